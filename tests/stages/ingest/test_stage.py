"""The stage as a whole: every record accounted for, the same bytes for any number of workers."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import InputError
from artifacts_schema.identity import document_id
from artifacts_schema.manifest import Manifest
from stages.ingest.config import IngestConfig
from stages.ingest.pages import Document, Rejected
from stages.ingest.reader import Part, Reader
from stages.ingest.snapshot import make_units
from stages.ingest.stage import Ingest

Maker = Callable[..., bytes]
Snapshot = Callable[..., list[tuple[Manifest, str]]]
Run = Callable[..., Manifest]
Read = Callable[..., Any]


@pytest.fixture
def crawl(warc_record: Maker, article: str) -> bytes:
    """Eight pages, a request, and one each of: wrong status, picture, page without text."""
    pages = [warc_record(article, uri=f"http://a.example/{n}") for n in range(8)]
    return b"".join(
        [
            warc_record(type="warcinfo", block=b"software: x\r\n"),
            *pages[:4],
            warc_record(article, status="404 Not Found", uri="http://a.example/gone"),
            warc_record(b"\x89PNG\r\n\x1a\n", content_type="image/png"),
            warc_record(type="request", block=b"GET / HTTP/1.1\r\n\r\n"),
            warc_record("<html><body></body></html>"),
            *pages[4:],
        ]
    )


def test_every_record_is_a_document_a_rejected_row_or_ignored(
    crawl: bytes, snapshot: Snapshot, run_stage: Run, read_table: Read
) -> None:
    made = run_stage(Ingest, {}, {"snapshot": snapshot({"a.warc": crawl})})
    reasons = {"http_status": 1, "content_type": 1, "no_text": 1}
    assert made.conservation is not None
    assert made.conservation.model_dump() == {"records_in": 11, "out": 8, "dropped": reasons}
    assert (made.counts["ignored_request"], made.counts["ignored_warcinfo"]) == (1, 1)
    assert "http://a.example/gone 404" in made.samples["http_status"][0]
    documents, rejected = read_table(made, "documents"), read_table(made, "rejected")
    assert Counter(rejected["reason"].to_pylist()) == reasons
    for row in [*documents.to_pylist(), *rejected.to_pylist()]:
        start, end = row["origin_offset"], row["origin_offset"] + row["origin_length"]
        assert crawl[start:end].startswith(b"WARC/1.1\r\n")
        assert crawl[start:end].endswith(b"\r\n\r\n")
        assert row["doc_id"] == document_id("trial", "a.warc", start)
    assert documents["url"].to_pylist() == [f"http://a.example/{n}" for n in range(8)]


def test_the_same_bytes_for_one_worker_and_two(
    crawl: bytes, snapshot: Snapshot, run_stage: Run
) -> None:
    files = {"a.warc": crawl, "b.warc.gz": gzip.compress(crawl, mtime=0), "c.py": b"x = 1\n"}
    given = snapshot(files)
    one = run_stage(Ingest, {}, {"snapshot": given}, {"workers": 1})
    two = run_stage(Ingest, {}, {"snapshot": given}, {"workers": 2}, force=True)
    assert {n: o.digest for n, o in one.outputs.items()} == {
        n: o.digest for n, o in two.outputs.items()
    }


def test_a_crawl_cut_in_mid_record_loses_one_record_and_says_so(
    crawl: bytes, snapshot: Snapshot, run_stage: Run, read_table: Read
) -> None:
    made = run_stage(Ingest, {}, {"snapshot": snapshot({"a.warc": crawl[:-300]})})
    assert made.counts["documents"] == 7
    rejected = read_table(made, "rejected").to_pylist()
    assert [(r["reason"], r["url"]) for r in rejected if r["reason"] == "truncated"] == [
        ("truncated", "http://a.example/7")
    ]


def test_broken_records_above_the_share_fail_the_stage_and_healthy_losses_do_not(
    warc_record: Maker, article: str, snapshot: Snapshot, run_stage: Run
) -> None:
    good, gone = warc_record(article), warc_record(article, status="404 Not Found")
    made = run_stage(Ingest, {}, {"snapshot": snapshot({"a.warc": good + gone * 9})})
    assert made.counts["rejected_http_status"] == 9
    broken = snapshot({"a.warc": good * 7 + warc_record(block=b"not http")})
    with pytest.raises(InputError, match=r"1 of 8 .*12\.5%"):
        run_stage(Ingest, {}, {"snapshot": broken})
    assert run_stage(Ingest, {"max_bad_share": 0.2}, {"snapshot": broken}).counts["documents"] == 7


def test_a_snapshot_without_any_document_is_an_error_that_tells_the_reasons(
    snapshot: Snapshot, run_stage: Run
) -> None:
    with pytest.raises(InputError, match="empty_body 1"):
        run_stage(Ingest, {}, {"snapshot": snapshot({"a.txt": b"\n"})})


def test_tables_keep_their_fields(snapshot: Snapshot, run_stage: Run, read_table: Read) -> None:
    row = {"body": "a text", "url": "u", "title": "t", "lang": "de", "date": "2024-01-01", "n": 1}
    lines = [json.dumps(row), '{"body": 5}', *['{"body": "more"}'] * 18]
    files = {"x.jsonl.zst": zstandard.compress("\n".join(lines).encode())}
    config = {"text_field": "body", "source": "notes"}
    made = run_stage(Ingest, config, {"snapshot": snapshot(files)})
    first = read_table(made, "documents").to_pylist()[0]
    told = {name: first[name] for name in ("text", "url", "title", "language", "date", "source")}
    assert told == {
        "text": "a text",
        "url": "u",
        "title": "t",
        "language": "de",
        "date": "2024-01-01",
        "source": "notes",
    }
    assert json.loads(first["metadata"]) == {"n": 1}
    assert made.counts["rejected_missing_text"] == 1


def test_code_is_one_document_a_file_with_path_and_language(
    snapshot: Snapshot, run_stage: Run, read_table: Read
) -> None:
    files = {
        "pkg/a.py": "x = 'ü'\n".encode(),
        "pkg/b.rs": b"fn main() {}\n",
        "pkg/logo.py": b"\x00\x01\x02\x03",
        "pkg/README.md": b"# pkg\n",
        "pkg/LICENSE": b"Do what you like.\n",
    }
    made = run_stage(Ingest, {"source": "code"}, {"snapshot": snapshot(files)})
    rows = read_table(made, "documents").to_pylist()
    told = {row["url"]: json.loads(row["metadata"]).get("language") for row in rows}
    assert told == {
        "pkg/LICENSE": None,
        "pkg/README.md": None,
        "pkg/a.py": "python",
        "pkg/b.rs": "rust",
    }
    assert {row["text"] for row in rows} >= {"x = 'ü'\n", "fn main() {}\n"}
    assert made.counts["rejected_content_type"] == 1
    assert len(made.outputs["documents"].files) == 1


def test_a_document_over_the_limit_is_turned_away_unread(
    snapshot: Snapshot, run_stage: Run
) -> None:
    files = {"a.txt": b"word " * 100_000, "b.txt": b"word", "c.txt.gz": gzip.compress(b"w" * 10**7)}
    made = run_stage(Ingest, {"max_document_bytes": 1_000}, {"snapshot": snapshot(files)})
    assert (made.counts["documents"], made.counts["rejected_too_large"]) == (1, 2)


def test_unknown_names_are_known_by_content_and_packed_files_are_named(
    crawl: bytes, snapshot: Snapshot, run_stage: Run
) -> None:
    files = {"crawl": crawl, "rows": b'{"text": "a row"}\n', "old.tar.gz": b"x"}
    made = run_stage(Ingest, {}, {"snapshot": snapshot(files)})
    assert made.counts["documents"] == 9
    assert "a tar archive is not read" in made.samples["unsupported_format"][0]


def test_small_runs_take_the_first_files_and_records(
    crawl: bytes, snapshot: Snapshot, run_stage: Run
) -> None:
    files = {"a.warc": crawl, "b.warc": crawl}
    config = {"max_files": 1, "max_records": 3}
    made = run_stage(Ingest, config, {"snapshot": snapshot(files)})
    assert made.counts["records_in"] == made.counts["documents"] == 3


def test_small_files_share_a_shard_and_archives_have_their_own(read_bytes: Any) -> None:
    names = ["a.py", "b.py", "c.warc.gz", "d.md", "e.md", "f.md"]
    files = [read_bytes(name, b"12345") for name in names]
    units = make_units(files, IngestConfig(shard_bytes=10))
    assert [[part.file.name for part in unit.parts] for unit in units] == [
        ["a.py", "b.py"],
        ["c.warc.gz"],
        ["d.md", "e.md"],
        ["f.md"],
    ]
    assert [unit.id for unit in units] == ["00000", "00001", "00002", "00003"]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(["x.warc", "x.warc.gz", "x.jsonl", "x.json", "x.html", "x.py", "x"]),
    head=st.sampled_from([b"", b"WARC/1.0\r\n", b'{"text": "', b"\x1f\x8b\x08\0", b"<html>"]),
    data=st.binary(max_size=200),
)
def test_any_bytes_under_any_name_are_read_without_a_crash(
    read_bytes: Any, name: str, head: bytes, data: bytes
) -> None:
    found = list(Reader(Part(read_bytes(name, head + data)), IngestConfig()))
    told = [r.place.record for r in found if isinstance(r, Document | Rejected)]
    assert len(set(told)) == len(told)
    for record in found:
        if isinstance(record, Document):
            record.text.encode("utf-8")
            assert record.text.strip()
            assert "\0" not in record.text


# Records: responses, resources, revisits, conversions by the data folder's table. Documents: what
# warcio counts as status 200 of type text/html, less two pages of aut-example: one is empty, one is
# a line that leads elsewhere.
SAMPLES = {
    "aut-example.warc.gz": (299, 92),
    "ia-web-commons-IAH-urls-wget.warc.gz": (19, 2),
    "jwarc-cc.warc.gz": (1, 1),
    "pywb-dupes.warc.gz": (12, 1),
    "pywb-iana.warc.gz": (171, 16),
    "resiliparse-clipped.warc.gz": (1, 0),
    "warcio-example-iana.org-chunked.warc": (1, 1),
    "warcio-example-resource.warc.gz": (1, 1),
    "warcio-example.warc.gz": (2, 1),
    "warcio-post-test.warc.gz": (3, 0),
    "whirlwind.warc.gz": (1, 1),
    "whirlwind.warc.wat.gz": (0, 0),
    "whirlwind.warc.wet.gz": (1, 1),
}


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_archives_of_other_tools_are_read(shared_data: Path, read_bytes: Any, name: str) -> None:
    source = read_bytes(name, (shared_data / "warc_samples" / name).read_bytes())
    records = list(Reader(Part(source), IngestConfig()))
    counted = [record for record in records if isinstance(record, Document | Rejected)]
    documents = [record for record in counted if isinstance(record, Document)]
    assert (len(counted), len(documents)) == SAMPLES[name]


def test_a_real_crawl_file_keeps_nearly_all_its_pages(
    shared_data: Path, snapshot: Snapshot, run_stage: Run, read_table: Read
) -> None:
    name = "crawl-2024-A-00003.warc.gz"
    data = (shared_data / "warc" / name).read_bytes()
    made = run_stage(Ingest, {}, {"snapshot": snapshot({name: data}, "crawl-2024-A")})
    assert made.counts["records_in"] == 263  # the data folder's table
    assert made.counts["documents"] >= 0.97 * 263
    assert set(read_table(made, "documents")["origin_file"].to_pylist()) == {name}
