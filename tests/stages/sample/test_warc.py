"""WARC records against two readers of the format."""

from __future__ import annotations

import io

import pytest

from stages.sample.crawl import Exchange, response_record, warc_file

PAGES = [
    Exchange("https://docs.example/a.html", "<p>naïve café</p>".encode()),
    Exchange("https://docs.example/b.html", b"gone", status="404 Not Found"),
    Exchange("https://docs.example/c.html", b"<p>half", truncated="length"),
]


def test_fastwarc_reads_every_record_at_the_offset_told() -> None:
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    data, offsets = warc_file("crawl-00000.warc", PAGES)
    read = [
        (
            record.stream_pos,
            record.headers["WARC-Target-URI"],
            record.http_headers.status_code,
            record.reader.read(),
        )
        for record in ArchiveIterator(
            io.BytesIO(data), record_types=WarcRecordType.response, parse_http=True
        )
    ]
    status = [200, 404, 200]
    assert read == [
        (offset, page.url, code, page.body)
        for offset, page, code in zip(offsets, PAGES, status, strict=True)
    ]
    assert all(data[offset:].startswith(b"WARC/1.1\r\n") for offset in offsets)


def test_warcio_finds_the_digests_right_and_the_file_described() -> None:
    archiveiterator = pytest.importorskip("warcio.archiveiterator")
    data, _ = warc_file("crawl-00000.warc", PAGES)
    records = archiveiterator.ArchiveIterator(io.BytesIO(data), check_digests="raise")
    types = []
    for record in records:
        types.append(record.rec_type)
        record.content_stream().read()
    assert types == ["warcinfo", "response", "response", "response"]


def test_a_cut_record_promises_more_bytes_than_follow() -> None:
    whole = response_record(Exchange("https://docs.example/a.html", b"x" * 100))
    cut = response_record(Exchange("https://docs.example/a.html", b"x" * 100, cut=50))
    assert cut == whole[:-50]


def test_equal_exchanges_give_equal_bytes() -> None:
    assert warc_file("a.warc", PAGES) == warc_file("a.warc", PAGES)
    assert warc_file("a.warc", PAGES)[0] != warc_file("b.warc", PAGES)[0]
