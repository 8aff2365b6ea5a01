"""Heads as servers send them, bodies with their encodings taken off."""

from __future__ import annotations

import gzip
import zlib

import brotli
import pytest
import zstandard

from stages.ingest.http import MalformedBody, Response, decoded_body, parse_response

TEXT = b"<p>" + b"hello world " * 50


def body_of(body: bytes, limit: int = 10_000, **headers: str) -> bytes:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return decoded_body(Response(200, fields, body), limit)


def test_head_is_read_as_leniently_as_browsers_do() -> None:
    found = parse_response(
        b"HTTP/1.0 404 Not Found\nX-Long: one\n two\nbroken line\n"
        b"CONTENT-type: Text/HTML ; x\n\nB\n\nC"
    )
    assert found is not None
    assert (found.status, found.body, found.content_type) == (404, b"B\n\nC", "text/html")
    assert found.headers["x-long"] == "one two"


@pytest.mark.parametrize("line", [b"HTTP/2 200", b"HTTP/1.1 200", b"HTTP/1.1 200 OK"])
def test_status_lines_of_all_versions_are_known(line: bytes) -> None:
    found = parse_response(line + b"\r\n\r\nbody")
    assert found is not None
    assert (found.status, found.body) == (200, b"body")


@pytest.mark.parametrize("block", [b"", b"<html>", b"HTTP/1.1 OK\r\n\r\n", b"HTTP/1.1 2000 OK\r\n"])
def test_what_has_no_status_line_is_no_response(block: bytes) -> None:
    assert parse_response(block) is None


def test_charset_is_read_from_its_quotes() -> None:
    found = Response(200, {"content-type": 'text/html; charset="ISO-8859-1"; x=y'}, b"")
    assert found.charset == "ISO-8859-1"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("x-gzip", gzip.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)[2:-4]),  # raw, as some servers send it
        ("br", brotli.compress(TEXT)),
        ("zstd", zstandard.compress(TEXT)),
        ("gzip, br", brotli.compress(gzip.compress(TEXT))),
        ("identity", TEXT),
    ],
)
def test_content_encodings_are_taken_off(encoding: str, body: bytes) -> None:
    assert body_of(body, content_encoding=encoding) == TEXT


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_a_body_stored_decoded_under_its_old_header_stays(encoding: str) -> None:
    assert body_of(TEXT, content_encoding=encoding, transfer_encoding="chunked") == TEXT


def test_chunks_are_joined_and_then_inflated() -> None:
    packed = gzip.compress(TEXT)
    chunks = b"".join(
        b"%x;name=value\r\n%s\r\n" % (len(part), part) for part in (packed[:7], packed[7:])
    )
    whole = chunks + b"0\r\n\r\n"
    assert body_of(whole, transfer_encoding="chunked", content_encoding="gzip") == TEXT


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"5\r\nhello\r\n9\r\nwor", "truncated"),
        (b"5\r\nhello\r\nnot a chunk\r\n", "malformed_body"),
    ],
)
def test_broken_chunks_are_told(body: bytes, reason: str) -> None:
    with pytest.raises(MalformedBody) as found:
        body_of(body, transfer_encoding="chunked")
    assert found.value.reason == reason


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress, zstandard.compress])
def test_a_body_that_inflates_over_the_limit_is_too_large(compress: object) -> None:
    names = {gzip.compress: "gzip", zlib.compress: "deflate", zstandard.compress: "zstd"}
    with pytest.raises(MalformedBody) as found:
        body_of(compress(b"a" * 50_000_000), content_encoding=names[compress])  # type: ignore[operator,index]
    assert found.value.reason == "too_large"


def test_a_corrupt_body_is_malformed() -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[12] ^= 0xFF
    with pytest.raises(MalformedBody) as found:
        body_of(bytes(packed), content_encoding="gzip")
    assert found.value.reason == "malformed_body"
