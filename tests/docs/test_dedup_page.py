"""The numbers that `dedup.md` states by hand are those of the code."""

from __future__ import annotations

import re

import pytest
from docs_pages import DOCS

from artifacts_schema.errors import UsageError
from stages.dedup.config import MIB, DedupConfig, budget
from stages.dedup.index_files import PARTS, part_bytes, run_documents
from stages.dedup.presets import solve_bands

PAGE = (DOCS / "stages" / "dedup.md").read_text()


def rows(section: str) -> list[list[str]]:
    """The cells of the tables between a heading and the next one."""
    text = re.split(r"^##", PAGE.split(f"{section}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def whole(text: str) -> int:
    return int(text.replace(",", ""))


def test_bytes_of_the_index():
    settings, documents = DedupConfig().settings(), 1 << 16
    run = run_documents(settings.bands)
    found = {
        part: part_bytes(part, documents, [documents], settings.bands, run) / documents
        for part in PARTS
    }
    told = {row[0].strip("`"): row[1] for row in rows("### The index")[2:]}
    assert set(told) == set(PARTS)
    for part in ("ids", "names", "classes", "sizes"):
        assert round(found[part]) == int(told[part])
    assert told["keys"] == f"12 a band, {found['keys']:g} with {settings.bands} bands"
    fixed = round(sum(found.values()))
    without = fixed - round(found["sizes"])
    assert f"{fixed} bytes, whatever the length of a document; {without} with" in PAGE
    assert f"| {fixed} GB |" in PAGE
    assert f"({fixed - 12 * settings.bands} + 12 *b*) *N* bytes" in PAGE
    assert f"by default {settings.most:,}" in PAGE


def test_least_memory():
    told = [(int(row[0]), row[1]) for row in rows("## Execution") if row[0].isdecimal()]
    assert len(told) == 4
    for workers, text in told:
        least = whole(text.removesuffix(" MiB")) * MIB
        assert budget(least, workers).rows > 0
        with pytest.raises(UsageError):
            budget(least - 1, workers)


def test_solved_bands():
    told = [row for row in rows("### Bands and rows") if "×" in row[-1] and len(row) == 3][1:]
    assert len(told) == 5
    for threshold, hashes, bands_rows in told:
        assert solve_bands(float(threshold), int(hashes)) == tuple(
            map(int, bands_rows.split(" × "))
        )


def test_standard_error_of_an_estimate():
    settings = DedupConfig().settings()
    assert f"{(0.8 * 0.2 / settings.most) ** 0.5:.4f}" == "0.0044"
    assert "it is 0.0044" in PAGE
