"""ARC 1.0 and 1.1: the same places, faults and messages as WARC."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.ingest.archive import ArchiveReader
from stages.ingest.archive_heads import Capture, arc_date, read_arc_head
from stages.ingest.config import IngestConfig
from stages.ingest.pages import Document, Rejected, read_capture

Wrap = Callable[[bytes], bytes]

VERSION = (
    b"filedesc://x.arc 0.0.0.0 20140216050221 text/plain 76\n1 0 LiveWeb Capture\n"
    b"URL IP-address Archive-date Content-type Archive-length\n\n"
)


def record(body: str, uri: str = "http://a.example/", length: int | None = None) -> bytes:
    block = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}".encode()
    length = len(block) if length is None else length
    return f"{uri} 1.2.3.4 20140216050221 text/html {length}\n".encode() + block + b"\n"


def read(data: bytes, limit: int = 1 << 20, expansion: int = 200) -> list[Capture]:
    return list(ArchiveReader(io.BytesIO(data), len(data), limit=limit, expansion=expansion))


def told(captures: list[Capture]) -> list[tuple[int | str, int, str | None]]:
    return [(c.record, c.length, c.fault) for c in captures]


def test_a_record_is_a_response_with_uri_date_and_http_message(member: Wrap) -> None:
    version, page = member(VERSION), member(record("<p>x"))
    head, capture = read(version + page)
    assert (head.type, head.uri, head.length) == ("warcinfo", "filedesc://x.arc", len(version))
    assert (capture.type, capture.uri) == ("response", "http://a.example/")
    assert capture.date == "2014-02-16T05:02:21Z"
    assert capture.content_type == "application/http; msgtype=response"
    assert capture.block.startswith(b"HTTP/1.1 200 OK\r\n")
    assert (capture.member, capture.length) == (len(version), len(page))


def test_records_are_what_warcio_reads(shared_data: Path) -> None:
    warcio = pytest.importorskip("warcio.archiveiterator")
    path = shared_data / "warc_samples" / "warcio-example.arc.gz"
    expected = []
    with path.open("rb") as stream:
        for item in warcio.ArchiveIterator(stream, arc2warc=True, no_record_parse=True):
            uri = item.rec_headers.get_header("WARC-Target-URI")
            date = item.rec_headers.get_header("WARC-Date")
            expected.append((item.rec_type, uri, date, item.raw_stream.read()))
    found = [(c.type, c.uri, c.date, c.block) for c in read(path.read_bytes())]
    # warcio moves the address of the file's own record to another header, and reads no block of it.
    assert found[1:] == expected[1:]
    assert [kind for kind, *_ in found] == ["warcinfo", "response"]
    assert len(expected) == 2


def test_the_page_of_an_arc_becomes_a_document(article: str) -> None:
    (capture,) = read(record(article))
    made = read_capture(capture, IngestConfig())
    assert isinstance(made, Document)
    assert "quick brown fox" in made.text


def test_what_is_no_http_message_is_a_resource_of_its_own_type(member: Wrap) -> None:
    line = b"dns:a.example 1.2.3.4 20140216050221 text/dns 8\n"
    (capture,) = read(member(line + b"1.2.3.4\n\n"))
    assert (capture.type, capture.content_type) == ("resource", "text/dns")
    assert isinstance(read_capture(capture, IngestConfig()), Rejected)


@pytest.mark.parametrize(
    ("line", "uri", "length"),
    [
        (b"http://a/ 1.2.3.4 20140216050221 text/html 5\n", "http://a/", 5),
        (b"http://a/b c 1.2.3.4 20140216050221 text/html 5\r\n", "http://a/b c", 5),
        (b"http://a/ ::1 20140216050221 no-type 0\n", "http://a/", 0),
        # Ten fields, as version 2 has them (archive.org/web/researcher/ArcFileFormat.php).
        (b"http://a/ 1.2.3.4 19970101000000 text/html 200 fac069 - 209 x.arc 7\n", "http://a/", 7),
    ],
)
def test_a_head_has_five_fields_or_ten(line: bytes, uri: str, length: int) -> None:
    found = read_arc_head(line, 0, 0)
    assert found is not None
    assert (found[0].uri, found[1]) == (uri, length)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"http://a/ 1.2.3.4 20140216050221 text/html\n",
        b"http://a/ 1.2.3.4 20140216050221 text/html -5\n",
        b"http://a/ 1.2.3.4 20140216050221 text/html 5",
        b"http://" + b"a" * 9_000 + b" 1.2.3.4 20140216050221 text/html 5\n",
    ],
)
def test_other_lines_are_no_head(line: bytes) -> None:
    assert read_arc_head(line, 0, 0) is None


def test_a_date_is_fourteen_digits_of_a_calendar() -> None:
    assert arc_date("20140216050221") == "2014-02-16T05:02:21Z"
    assert [arc_date(s) for s in ("20141316050221", "20140216240000", "2014", "20140216")] == [
        None
    ] * 4


def test_cut_at_any_byte_keeps_what_is_complete_and_tells_of_one_cut(member: Wrap) -> None:
    whole, last = member(VERSION) + member(record("<p>0")), member(record("<p>1" * 20))
    for cut in range(1, len(last)):
        captures = read(whole + last[:cut])
        assert [c.fault for c in captures[:2]] == [None, None]
        assert [c.fault for c in captures[2:]] in ([None], ["truncated"])
        assert sum(c.length for c in captures) == len(whole) + cut


def test_garbage_and_wrong_lengths_cost_their_own_record(member: Wrap) -> None:
    a, b, c = member(record("<p>a")), member(record("<p>b", length=100_000)), member(record("c"))
    assert told(read(a + b"garbage\n" + c)) == [
        (0, len(a), None),
        (len(a), 8, "malformed_record"),
        (len(a) + 8, len(c), None),
    ]
    assert told(read(a + b + c)) == [
        (0, len(a), None),
        (len(a), len(b), "malformed_record"),
        (len(a) + len(b), len(c), None),
    ]


def test_records_that_share_a_member_are_numbered() -> None:
    shared, alone = gzip.compress(VERSION + record("<p>0"), mtime=0), gzip.compress(record("1"))
    assert told(read(shared + alone)) == [
        (0, 0, None),
        ("0#1", 0, None),
        (len(shared), len(alone), None),
    ]


def test_a_bomb_ends_at_its_budget_and_a_long_block_is_not_read() -> None:
    bomb = gzip.compress(record("a" * (100 << 20)), mtime=0)
    good = gzip.compress(record("<p>good"), mtime=0)
    assert told(read(bomb + good, expansion=100)) == [
        (0, len(bomb), "expansion"),
        (len(bomb), len(good), None),
    ]
    big, small = read(record("a" * 5_000) + record("b"), limit=4_000)
    assert (big.fault, big.block, small.fault) == ("too_large", b"", None)


@settings(max_examples=60, deadline=None)
@given(
    data=st.binary(max_size=300),
    head=st.sampled_from([VERSION, VERSION[:60], record("x"), gzip.compress(VERSION, mtime=0)]),
    tail=st.sampled_from([b"", record("y"), gzip.compress(record("y"), mtime=0)]),
)
def test_any_bytes_are_told_of_once(data: bytes, head: bytes, tail: bytes) -> None:
    whole = head + data + tail
    captures = read(whole)
    assert sum(c.length for c in captures if c.ordinal == 0) <= len(whole)
    assert len({c.record for c in captures}) == len(captures)
    ends = [c.member + c.length for c in captures if c.length]
    assert all(c.member >= end for c, end in zip(captures[1:], ends, strict=False) if c.length)
