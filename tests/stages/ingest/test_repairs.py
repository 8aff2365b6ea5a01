"""Dates that are dates or null, and characters that are replaced or dropped: all counted."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from artifacts_schema.manifest import Manifest
from stages.ingest.linked_data import normalise_date
from stages.ingest.stage import Ingest

Maker = Callable[..., bytes]
Snapshot = Callable[..., list[tuple[Manifest, str]]]
Run = Callable[..., Manifest]
Read = Callable[..., Any]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024", "2024"),
        ("2024-05", "2024-05"),
        ("2024-05-01", "2024-05-01"),
        ("2013-05-18T06:50:04Z", "2013-05-18T06:50:04Z"),
        ("2024-05-01T10:00:00.123456+02:00", "2024-05-01T10:00:00.123456+02:00"),
        ("2024-05-01 10:00:00", "2024-05-01T10:00:00"),
        ("1843-07-04", "1843-07-04"),
        ("Tue, 05 Sep 2011 10:00:00 GMT", "2011-09-05"),
        ("20240501", "2024-05-01"),
        ("2024-02-30", None),
        ("2024-13", None),
        ("2024-05-01T25:00:00Z", "2024-05-01"),
        ("03/04/2021", None),
        ("yesterday", None),
        ("1700000000", None),
        (" ", None),
        (None, None),
    ],
)
def test_a_date_is_iso_8601_or_none(value: str | None, expected: str | None) -> None:
    assert normalise_date(value) == expected


def test_what_is_no_date_goes_to_the_metadata(
    warc_record: Maker, article: str, snapshot: Snapshot, run_stage: Run, read_table: Read
) -> None:
    rows = [
        {"text": "a", "date": "yesterday"},
        {"text": "b", "date": ""},
        {"text": "c", "date": "soon", "published": "2024-01-02"},
        {"text": "d", "date": "5 September 2011"},
    ]
    dates = ("2024-01-15T12:00:00Z", "yesterday", "")
    archive = b"".join(warc_record(article, warc={"WARC-Date": date}) for date in dates)
    files = {
        "a.jsonl": "\n".join(json.dumps(row) for row in rows).encode(),
        "b.warc": archive,
    }
    made = run_stage(Ingest, {}, {"snapshot": snapshot(files)})
    documents = read_table(made, "documents").to_pylist()
    assert [(row["date"], json.loads(row["metadata"])) for row in documents] == [
        (None, {"date": "yesterday"}),
        (None, {"date": ""}),
        ("2024-01-02", {"date": "soon"}),
        ("2011-09-05", {"date": "5 September 2011"}),
        ("2024-01-15T12:00:00Z", {}),
        (None, {"warc_date": "yesterday"}),
        (None, {}),
    ]


def test_dropped_nuls_count_as_repaired(
    warc_record: Maker, article: str, snapshot: Snapshot, run_stage: Run, read_table: Read
) -> None:
    table = io.BytesIO()
    pq.write_table(pa.table({"text": ["p\0q\0"], "note": ["\0"]}), table)
    files = {
        "a.jsonl": b'{"text": "a\\u0000b", "note": "c\\u0000\\ud800"}',
        "b.parquet": table.getvalue(),
        "c.txt": b"plain\0 text, long enough to be a text and no binary file at all.",
        "d.warc": warc_record(article.replace("river", "ri\0ver\0")),
    }
    made = run_stage(Ingest, {}, {"snapshot": snapshot(files)})
    documents, pages = read_table(made, "documents"), read_table(made, "pages")
    assert pages["characters_repaired"].to_pylist() == [3, 3, 1, 2]
    assert documents["text"].to_pylist()[:2] == ["ab", "pq"]
    assert "\0" not in "".join(documents["text"].to_pylist())
    assert made.counts["characters_repaired"] == 9


def test_a_bad_byte_becomes_a_replacement_character_and_the_row_stays(
    snapshot: Snapshot, run_stage: Run, read_table: Read
) -> None:
    text = b"Foxes live in dens, and sleep by day. "
    files = {
        "a.jsonl": b'{"text": "%b\xe9"}\n{"text": "%b"}' % (text, text),
        "b.json": b'[{"text": "%b\xff"}, {"text": "%b"}]' % (text, text),
    }
    made = run_stage(Ingest, {}, {"snapshot": snapshot(files)})
    documents, pages = read_table(made, "documents"), read_table(made, "pages")
    plain = text.decode()
    assert documents["text"].to_pylist() == [f"{plain}\ufffd", plain, f"{plain}\ufffd", plain]
    assert pages["characters_repaired"].to_pylist() == [1, 0, 1, 0]


def test_a_row_in_another_encoding_is_undecodable(
    snapshot: Snapshot, run_stage: Run, read_table: Read
) -> None:
    """Of 31 characters 7 are no UTF-8: more than the twentieth that is repaired."""
    lines = ['{"text": "Füchse schlafen"}'.encode(), '{"text": "äöüßéèà"}'.encode("latin-1")]
    config = {"max_bad_share": 0.5}
    made = run_stage(Ingest, config, {"snapshot": snapshot({"a.jsonl": b"\n".join(lines)})})
    assert made.counts["documents"] == 1
    assert [row["reason"] for row in read_table(made, "rejected").to_pylist()] == ["undecodable"]
