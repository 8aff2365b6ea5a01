"""The held-out protocol: no source lies on both sides, and a side never changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.splits import FIRST_TEST_SEED, seed_side, select, side, source_of


def test_a_side_never_changes() -> None:
    """Stored verdicts: another hash or key would move test data into development."""
    assert {
        name: side(name) for name in ("bbc.co.uk", "example.org", "python/peps:peps/pep-0008")
    } == {
        "bbc.co.uk": "test",
        "example.org": "test",
        "python/peps:peps/pep-0008": "test",
    }


def test_sides_are_halves() -> None:
    """Of 4,000 names 2,000 are expected on each; four standard deviations are 126."""
    test = sum(side(f"site-{number}.org") == "test" for number in range(4000))
    assert 1874 <= test <= 2126


def test_pages_of_a_site_and_chapters_of_a_book_stay_together() -> None:
    pages = [{"url": f"https://{host}.bbc.co.uk/{n}"} for host in ("www", "news") for n in range(9)]
    assert {source_of(page) for page in pages} == {"bbc.co.uk"}
    chapters = [{"source": "books", "path": "a/b.md", "title": str(n)} for n in range(5)]
    assert len({source_of(chapter) for chapter in chapters}) == 1
    modules = [
        {"source": "cpython", "path": f"Lib/email/{name}.py"} for name in ("header", "errors")
    ]
    assert {source_of(module) for module in modules} == {"cpython:Lib/email"}


def test_seeds_are_split_by_number() -> None:
    assert seed_side(FIRST_TEST_SEED - 1) == "development"
    assert seed_side(FIRST_TEST_SEED) == "test"


@pytest.mark.parametrize("folder", ["text", "code", "warc"])
def test_no_development_file_shares_a_source_with_the_test_split(
    folder: str, shared_data: Path
) -> None:
    import zstandard

    works: dict[str, set[str]] = {"development": set(), "test": set()}
    for path in sorted((shared_data / folder).glob("*.jsonl.zst")):
        with zstandard.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        for name in ("development", "test"):
            works[name] |= {source_of(row) for row in select(rows, name)}  # type: ignore[arg-type]
        kept = sum(len(select(rows, name)) for name in ("development", "test"))  # type: ignore[arg-type]
        assert kept == len(rows)
    assert works["development"].isdisjoint(works["test"])
    assert min(map(len, works.values())) > 0
