from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from artifacts_schema.store import Store
from stages.engine.page import Artifact, Figure, make_page
from stages.ingest.stage import Ingest

Snapshot = Callable[..., Any]


def row(text: str | None, **fields: str) -> bytes:
    return json.dumps({"text": text, **fields}).encode() + b"\n"


@pytest.fixture
def figures(store: Store, run_stage: Any, snapshot: Snapshot) -> Callable[..., dict[str, Figure]]:
    """`figures({"a.jsonl": b"…"}, **config)` → the page of what ingest makes, by title."""

    def make(files: dict[str, bytes], **config: Any) -> dict[str, Figure]:
        manifest = run_stage(Ingest, config, {"snapshot": snapshot(files)})
        found = make_page(Ingest, Artifact(store, manifest))
        assert len({figure.title for figure in found}) == len(found)
        return {figure.title: figure for figure in found}

    return make


def test_documents_are_counted_by_what_the_reader_kept(figures: Callable[..., Any]) -> None:
    """Four rows become documents of 10, 10, 20 and 1000 characters; one has no text."""
    page = figures(
        {
            "a.jsonl": row("x" * 10, url="https://www.a.example/1", lang="en-GB", date="2024-05-01")
            + row("y" * 10, url="https://a.example/2", lang="en", date="2024-05-31")
            + row("z" * 1000, url="https://b.example/", lang="de", date="2024-06-01"),
            "b.jsonl": row("u" * 20, url="b/c.txt") + row(None, url="https://c.example"),
        },
        max_bad_share=0.5,
    )
    account = dict(page["Records read and documents made"].rows)
    assert account["records read"] == 5
    assert account["… became documents"] == 4
    assert account["characters of text"] == 1040

    languages = page["Documents by declared language"]
    assert dict(zip(languages.labels, languages.series[0].values, strict=True)) == {
        "en": 2,
        "(none)": 1,
        "de": 1,
    }
    domains = page["Documents by web domain"]
    assert dict(zip(domains.labels, domains.series[0].values, strict=True)) == {
        "a.example": 2,
        "b.example": 1,
    }
    assert page["Documents by date"].labels == ("2024-05", "2024-06")
    lengths = page["Characters a document"]
    assert sum(lengths.series[0].values) == 4
    assert lengths.series[0].values[0] == 2
    assert page["Records by file"].rows == (("a.jsonl", 3, 0), ("b.jsonl", 1, 1))


def test_every_reason_is_counted_with_a_sample(figures: Callable[..., Any]) -> None:
    page = figures(
        {"a.jsonl": row("fine") + b"{torn\n" + row(" ") + row("", url="https://c.example/")},
        max_bad_share=0.5,
    )
    reasons = page["Records rejected, by reason"]
    assert reasons.labels == ("no_text", "malformed_json")
    assert reasons.series[0].values == (2, 1)
    assert reasons.note.startswith("75.0% of 4 ")
    samples = page["Samples of rejected records"].rows
    assert [row[0] for row in samples] == ["malformed_json", "no_text", "no_text"]
    assert "https://c.example/" in {row[1] for row in samples}


def test_statuses_and_types_behind_a_reason(
    figures: Callable[..., Any], warc_record: Callable[..., bytes], article: str
) -> None:
    captures = [
        warc_record(article),
        warc_record(status="404 Not Found"),
        warc_record(status="404 Not Found"),
        warc_record(status="500 Oops"),
        warc_record(b"\x89PNG", content_type="image/png"),
    ]
    page = figures({"a.warc": b"".join(captures)})
    assert set(page["Records rejected, by status and type"].rows) == {
        ("HTTP status", "404", 2),
        ("HTTP status", "500", 1),
        ("declared type", "image/png", 1),
    }
    kept = page["How records were read"].rows
    assert ("character set", "utf-8", 1) in kept
    assert ("main text found by", "blocks", 1) in kept


def test_what_pages_declare_ask_and_allow(
    figures: Callable[..., Any], warc_record: Callable[..., bytes], article: str
) -> None:
    """Two pages of four ask for no AI, one under a licence; one is the URL of another again."""
    asking = article.replace("<head>", "<head><meta name=robots content='noai, noindex'>")
    free = asking.replace(
        "<head>", "<head><link rel=license href='https://creativecommons.org/licenses/by/4.0/'>"
    )
    captures = [
        warc_record(html, uri=f"http://a.example/{name}")
        for name, html in (("1", article), ("2", asking), ("3", free), ("1", article))
    ]
    page = figures({"a.warc": b"".join(captures)})
    declared = {row[0]: row[1:] for row in page["What pages declare"].rows}
    assert declared["marks against use for AI"] == (2, 0.5)
    assert declared["licence"] == (1, 0.25)
    assert declared["the URL of an earlier one"] == (1, 0.25)
    assert declared["author"] == (0, 0.0)
    assert set(page["What pages ask and allow"].rows) == {
        ("robots directives", "noai", 2),
        ("robots directives", "noindex", 2),
        ("marks against use for AI", "noai", 2),
        ("licence", "CC-BY-4.0", 1),
    }
    assert sum(page["Doubt in the main text"].series[0].values) == 4


def test_what_is_not_there_is_not_drawn(figures: Callable[..., Any]) -> None:
    page = figures({"a.py": b"print('hello')\n", "b.py": b"x = 1\n"}, source="code")
    assert list(page) == [
        "Records read and documents made",
        "Characters a document",
        "How records were read",
    ]


def test_hostile_fields_are_plain_data(figures: Callable[..., Any]) -> None:
    page = figures(
        {"a.jsonl": row("fine", lang="<script>") + row("", url="https://x.example/<img src=x>")},
        max_bad_share=0.5,
    )
    assert page["Documents by declared language"].labels == ("(other)",)
    assert page["Samples of rejected records"].rows[0][1] == "https://x.example/<img src=x>"


def test_the_smaller_of_many_files_share_a_row(figures: Callable[..., Any]) -> None:
    """22 files of two documents, one with two torn rows: 14 rows, and one for eight more files."""
    files = {f"{n:02d}.jsonl": row("one") + row("two") for n in range(22)}
    files["21.jsonl"] += b"{\n{\n"
    rows = figures(files, max_bad_share=0.5)["Records by file"].rows
    assert len(rows) == 15
    assert rows[0] == ("21.jsonl", 2, 2)
    assert rows[-1] == ("8 others", 16, 0)
