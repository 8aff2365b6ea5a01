"""Heads as servers send them, bodies with their encodings taken off."""

from __future__ import annotations

import gzip
import time
import zlib
from functools import partial

import brotli
import pytest
import zstandard
from archives.bodies import chunked, raw_deflate, spoiled
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.ingest.http_response import (
    FREE_EXPANSION,
    MalformedBody,
    Response,
    decode_body,
    parse_response,
)

gzipped = partial(gzip.compress, mtime=0)  # The same bytes, and names of tests, in every run.
TEXT = b"<p>" + b"hello world " * 50
LONG = b"<p>" + b"".join(b"%d hello worlds, " % n for n in range(40_000))
PACKED = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda body: brotli.compress(body, quality=5),
    "zstd": zstandard.compress,
}


def taken(body: bytes, limit: int = 1 << 20, **headers: str) -> tuple[bytes, str | None, bool]:
    """(content, encodings taken off, whether it ended early)."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    found = decode_body(Response(200, fields, body), limit)
    return found.content, found.encodings, found.truncated is not None


def refused(body: bytes, limit: int = 1 << 20, **headers: str) -> str:
    with pytest.raises(MalformedBody) as found:
        taken(body, limit, **headers)
    return found.value.reason


def test_head_is_read_as_leniently_as_browsers_do() -> None:
    found = parse_response(
        b"HTTP/1.0 404 Not Found\nX-Long: one\n two\nbroken line\n"
        b"CONTENT-type: Text/HTML ; x\n\nB\n\nC"
    )
    assert found is not None
    assert (found.status, found.body, found.content_type) == (404, b"B\n\nC", "text/html")
    assert found.headers["x-long"] == "one two"


@pytest.mark.parametrize(
    "line",
    [
        b"HTTP/2 200",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1  200  OK",
        b"HTTP/1.1\t200\tOK",
        b"http/1.1 200OK",
        b"HTTP 200 OK",
        b"ICY 200 OK",
        b"\r\nHTTP/1.1 200 OK",
    ],
)
def test_status_lines_of_all_versions_are_known(line: bytes) -> None:
    found = parse_response(line + b"\r\n\r\nbody")
    assert found is not None
    assert (found.status, found.body) == (200, b"body")


@pytest.mark.parametrize(
    "block",
    [b"", b"<html>", b"HTTP/1.1 OK\r\n\r\n", b"HTTP/1.1 2000 OK\r\n", b"x HTTP/1.1 200 OK\r\n"],
)
def test_what_has_no_status_line_is_no_response(block: bytes) -> None:
    assert parse_response(block) is None


def test_interim_responses_are_passed_over_and_only_these() -> None:
    final = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody"
    for interim in (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 x\r\nLink: </a>\r\n\r\n"):
        found = parse_response(interim * 3 + final)
        assert found is not None
        assert (found.status, dict(found.headers), found.body) == (200, {"a": "b"}, b"body")
    for other in (b"HTTP/1.1 302 Found\r\n\r\n", b"HTTP/1.1 101 Switching\r\n\r\n"):
        found = parse_response(other + final)
        assert found is not None
        assert (found.status, found.body) == (int(other[9:12]), final)


def test_repeated_fields_are_joined_unless_they_are_no_lists() -> None:
    found = parse_response(
        b"HTTP/1.1 200 OK\r\nX-Robots-Tag: noindex\r\nSet-Cookie: a=b; Expires=Mon, 1\r\n"
        b"Location: /a\r\nx-robots-tag: noai\r\nLocation: /b\r\nSet-Cookie: c=d\r\n\r\n"
    )
    assert found is not None
    assert found.headers["x-robots-tag"] == "noindex, noai"
    assert (found.headers["location"], found.headers["set-cookie"]) == ("/b", "c=d")
    assert found.values("set-cookie") == ("a=b; Expires=Mon, 1", "c=d")
    assert found.values("location") == ("/a", "/b")
    assert found.values("absent") == ()


def test_injected_control_characters_become_spaces_and_injected_lines_no_fields() -> None:
    found = parse_response(
        b"HTTP/1.1 200 OK\r\nX-A: a\0b\rSet-Cookie: c\r\nHTTP/1.1 404 Gone\r\n"
        b"GET /x HTTP/1.1: y\r\n: empty\r\nB: c\r\n\r\nbody"
    )
    assert found is not None
    assert dict(found.headers) == {"x-a": "a b Set-Cookie: c", "b": "c"}
    assert (found.status, found.body) == (200, b"body")


def test_a_head_without_a_blank_line_ends_where_html_begins() -> None:
    found = parse_response(b"HTTP/1.1 200 OK\r\nLink:\r\n <a>\r\nA: b\r\n<html>x\r\n\r\ny")
    assert found is not None
    assert (dict(found.headers), found.body) == ({"link": "<a>", "a": "b"}, b"<html>x\r\n\r\ny")


@pytest.mark.parametrize(
    "head",
    [
        b"X: y\r\n" * 200_000,
        b"".join(b"X%d: y\r\n" % n for n in range(100_000)),
        b"X: " + b"y" * 2_000_000 + b"\r\n",
        b"X:\r\n" + b" y\r\n" * 400_000,
        b"\r" * 1_000_000 + b"\r\n",
        b"HTTP/1.1 100 x\r\n\r\n" * 60_000,
    ],
    ids=["one_name", "many_names", "long_value", "folded", "bare_cr", "interim"],
)
def test_a_huge_head_costs_linear_time_bounded_memory_and_no_byte_of_the_body(head: bytes) -> None:
    begun = time.process_time()
    found = parse_response(b"HTTP/1.1 200 OK\r\n" + head + b"\r\nbody")
    assert time.process_time() - begun < 2  # Milliseconds; a quadratic reading takes minutes.
    assert found is not None
    assert found.body.endswith(b"body")
    assert sum(len(value) for value in found.headers.values()) <= 1 << 20
    assert len(found.headers) <= 1000


@pytest.mark.parametrize(
    ("values", "kind", "charset"),
    [
        (['text/html; charset="ISO-8859-1"; x=y'], "text/html", "ISO-8859-1"),
        (["text/plain", "text/html"], "text/html", None),
        (["text/html; charset=x", "text/html"], "text/html", "x"),
        (["text/html; charset=x", "text/plain"], "text/plain", None),
        (["text/html", "nonsense"], "text/html", None),
        (["text/html", "*/*"], "text/html", None),
        (["nonsense"], "nonsense", None),
        ([""], None, None),
        ([], None, None),
    ],
)
def test_of_several_types_the_last_that_is_one_counts(
    values: list[str], kind: str | None, charset: str | None
) -> None:
    """The examples of the Fetch standard, 2.2.2, "extract a MIME type", that bear on a type."""
    head = "".join(f"Content-Type: {value}\r\n" for value in values)
    found = parse_response(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode())
    assert found is not None
    assert (found.content_type, found.charset) == (kind, charset)


@pytest.mark.parametrize("told", ["5", "5, 5", "5, 6", "-5", "x", "", "9" * 40])
def test_a_declared_length_cuts_nothing(told: str) -> None:
    found = parse_response(f"HTTP/1.1 200 OK\r\nContent-Length: {told}\r\n\r\n".encode() + TEXT)
    assert found is not None
    assert found.body == TEXT


@pytest.mark.parametrize(
    ("encoding", "body", "told"),
    [
        ("gzip", gzipped(TEXT), "gzip"),
        ("x-gzip", gzipped(TEXT), "gzip"),
        ("GZIP", gzipped(TEXT), "gzip"),
        ("deflate", zlib.compress(TEXT), "deflate"),
        ("deflate", raw_deflate(TEXT), "deflate"),
        ("br", brotli.compress(TEXT), "br"),
        ("zstd", zstandard.compress(TEXT), "zstd"),
        ("gzip, br", brotli.compress(gzipped(TEXT)), "br gzip"),
        ("identity", TEXT, None),
        ("utf-8", TEXT, None),
        ("gzip", gzipped(TEXT[:100]) + gzipped(TEXT[100:]), "gzip"),
        ("zstd", zstandard.compress(TEXT[:100]) + zstandard.compress(TEXT[100:]), "zstd"),
        ("gzip", gzipped(TEXT) + b"\0" * 512, "gzip"),
        ("gzip", gzipped(gzipped(TEXT)), "gzip gzip"),
        ("gzip", zlib.compress(TEXT), "deflate"),
        ("br", gzipped(TEXT), "gzip"),
        ("gzip", zstandard.compress(TEXT), "zstd"),
        ("", gzipped(TEXT), "gzip"),
        ("", chunked(TEXT), "chunked"),
    ],
)
def test_encodings_are_taken_off_as_the_bytes_show_them(
    encoding: str, body: bytes, told: str | None
) -> None:
    fields = {"content_encoding": encoding, "content_type": "text/html"}
    assert taken(body, **fields) == (TEXT, told, False)


def test_what_is_a_file_of_its_own_kind_stays_packed() -> None:
    packed = gzipped(TEXT)
    assert taken(packed, content_type="application/gzip") == (packed, None, False)


@pytest.mark.parametrize("encoding", PACKED)
def test_a_body_stored_decoded_under_its_old_header_stays(encoding: str) -> None:
    for text in (TEXT, b'{"a": 1}', b"Words.", "Grüße".encode("latin-1"), b"0", b""):
        assert taken(text, content_encoding=encoding, transfer_encoding="chunked") == (
            text,
            None,
            False,
        )


def test_chunks_are_joined_and_then_inflated() -> None:
    whole = chunked(gzipped(TEXT), 7, ";name=value", "X-Trailer: 1\r\n")
    told = {"transfer_encoding": "chunked", "content_encoding": "gzip"}
    assert taken(whole, **told) == (TEXT, "chunked gzip", False)
    assert taken(whole, transfer_encoding="gzip, chunked") == (TEXT, "chunked gzip", False)


@pytest.mark.parametrize(
    ("body", "content"),
    [
        (b"5\r\nhello\r\n9\r\nwor", b"hellowor"),
        (b"5\r\nhello\r\n", b"hello"),
        (b"5\r\nhello\r\n5", b"hello"),
        (b"1000\r\n<html>cut in its first chunk", b"<html>cut in its first chunk"),
    ],
)
def test_chunks_that_end_early_give_what_there_is(body: bytes, content: bytes) -> None:
    assert taken(body, transfer_encoding="chunked") == (content, "chunked", True)


@pytest.mark.parametrize("body", [b"7e7\r\nwas a good year", b"0\r\nand more", b"no chunk"])
def test_a_text_that_begins_with_a_number_is_no_chunk(body: bytes) -> None:
    assert taken(body, transfer_encoding="chunked") == (body, None, False)


def test_chunks_that_contradict_themselves_are_malformed() -> None:
    assert refused(b"5\r\nhello\r\nnot a chunk\r\n", transfer_encoding="chunked") == (
        "malformed_body"
    )


def test_a_stream_that_ended_by_itself_is_whole_without_a_last_chunk() -> None:
    cut = chunked(gzipped(TEXT)).removesuffix(b"0\r\n\r\n")
    told = {"transfer_encoding": "chunked", "content_encoding": "gzip"}
    assert taken(cut, **told) == (TEXT, "chunked gzip", False)


@pytest.mark.parametrize("encoding", PACKED)
def test_a_stream_cut_anywhere_gives_what_came_before(encoding: str) -> None:
    packed = PACKED[encoding](LONG)
    assert len(packed) > 1000
    for cut in (len(packed) // 3, len(packed) // 2, len(packed) - 12, len(packed) - 1):
        content, told, truncated = taken(packed[:cut], content_encoding=encoding)
        assert (told, truncated) == (encoding, True)
        assert LONG.startswith(content)
    assert len(content) > len(LONG) // 2


def test_raw_deflate_that_begins_as_zlib_does_is_known() -> None:
    """A stored block of 257 bytes whose unused bits are those of zlib's first byte (RFC 1951)."""
    text = b"<p>" + b"x" * 254
    raw = b"\x78\x01\x01\xfe\xfe" + text + b"\x03\x00"
    assert zlib.decompress(raw, -15) == text
    assert taken(raw, content_encoding="deflate") == (text, "deflate", False)


@pytest.mark.parametrize("encoding", PACKED)
def test_a_body_that_inflates_over_the_limit_is_too_large(encoding: str) -> None:
    assert refused(PACKED[encoding](b"a" * 50_000_000), 10_000, content_encoding=encoding) == (
        "too_large"
    )


@pytest.mark.parametrize("encoding", PACKED)
def test_a_bomb_is_left_at_its_ratio_and_a_plain_repetition_is_not(encoding: str) -> None:
    bomb = PACKED[encoding](b"a" * (8 << 20))
    assert refused(bomb, 1 << 30, content_encoding=encoding) == "expansion"
    small = b"a" * FREE_EXPANSION
    assert taken(PACKED[encoding](small), content_encoding=encoding)[0] == small


def test_a_bomb_within_a_bomb_is_measured_by_what_was_stored() -> None:
    nested = gzipped(gzipped(b"a" * (100 << 20), 9), 9)
    assert len(nested) < 3_000
    assert refused(nested, 1 << 30, content_encoding="gzip, gzip") == "expansion"


def test_more_encodings_in_a_row_than_anybody_means_are_malformed() -> None:
    assert refused(TEXT, content_encoding="gzip, gzip, gzip, gzip") == "malformed_body"


@pytest.mark.parametrize("member", [gzipped(b"a"), zstandard.compress(b"a")])
def test_very_many_members_cost_no_time(member: bytes) -> None:
    begun = time.process_time()
    encoding = "gzip" if member[:1] == b"\x1f" else "zstd"
    assert refused(member * 200_000, content_encoding=encoding) == "malformed_body"
    assert time.process_time() - begun < 2


@pytest.mark.parametrize("encoding", PACKED)
def test_a_corrupt_body_is_malformed(encoding: str) -> None:
    broken = spoiled(PACKED[encoding](LONG), encoding)
    assert refused(broken, content_encoding=encoding) == "malformed_body"


_LABELS = st.sampled_from(["", "gzip", "br", "deflate", "zstd", "gzip, br", "chunked", "x"])


@settings(max_examples=300, deadline=None)
@given(
    body=st.binary(max_size=400),
    wraps=st.lists(st.sampled_from([*PACKED, "chunked"]), max_size=3),
    content=_LABELS,
    transfer=_LABELS,
    cut=st.integers(0, 30),
    limit=st.integers(0, 2000),
)
@example(b"", ["chunked"], "gzip", "chunked", 0, 10)
def test_any_body_under_any_label_is_bounded_and_never_crashes(
    body: bytes, wraps: list[str], content: str, transfer: str, cut: int, limit: int
) -> None:
    for wrap in wraps:
        body = chunked(body) if wrap == "chunked" else PACKED[wrap](body)
    body = body[: len(body) - cut]
    fields = {"content-encoding": content, "transfer-encoding": transfer}
    try:
        found = decode_body(Response(200, fields, body), limit)
    except MalformedBody as error:
        reason = error.reason
    else:
        reason = None
        assert len(found.content) <= limit
    assert reason in (None, "malformed_body", "too_large", "expansion")


@settings(max_examples=300, deadline=None)
@given(body=st.binary(max_size=600), coding=st.sampled_from([*PACKED, "raw"]))
def test_what_was_packed_comes_back(body: bytes, coding: str) -> None:
    packed = raw_deflate(body) if coding == "raw" else PACKED[coding](body)
    label = "deflate" if coding == "raw" else coding
    assert taken(packed, content_encoding=label, content_type="image/png")[0] == body


@settings(max_examples=200, deadline=None)
@given(block=st.binary(max_size=300), known=st.booleans())
def test_any_bytes_are_a_response_or_none(block: bytes, known: bool) -> None:
    found = parse_response((b"HTTP/1.1 200 OK\r\n" if known else b"") + block)
    assert found is not None or not known
    if found is not None:
        assert not any(set("\r\n\0") & set(value) for value in found.headers.values())
        assert block.endswith(found.body)
