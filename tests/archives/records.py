"""WARC, ARC and WET records, and the ways in which they lie in a file."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import zstandard

Packing = Literal["plain", "gzip", "shared", "zstd"]
"""One after the other; a gzip member each; all in one gzip member; a zstd frame each."""
SUFFIX: dict[Packing, str] = {"plain": "", "gzip": ".gz", "shared": ".gz", "zstd": ".zst"}

SENTENCES = (
    "The grey heron stood in the shallow water all morning and waited for a careless fish.",
    "When the wind turned, it rose without a sound and crossed the meadow towards the old mill.",
    "Nobody in the village could remember a year in which the herons had come so early.",
)
HTML = "text/html; charset=utf-8"
HTTP = "application/http; msgtype=response"


def page(
    paragraphs: Sequence[str] = SENTENCES,
    *,
    head: str = "",
    declaration: str = "<!doctype html>",
    title: str = "Herons",
) -> str:
    """A page with navigation, an article of these paragraphs, and a footer."""
    text = "".join(f"<p>{paragraph}</p>\n" for paragraph in paragraphs)
    return (
        f"{declaration}<html lang='en'><head>{head}<title>{title}</title></head><body>"
        "<nav><a href='/'>Home</a> <a href='/about'>About us</a></nav>\n"
        f"<article><h1>{title}</h1>\n{text}</article>\n"
        "<footer>All rights reserved</footer></body></html>"
    )


def http(
    body: bytes | str = "",
    *,
    status: str = "200 OK",
    content_type: str | None = HTML,
    fields: Iterable[tuple[str, str]] | Mapping[str, str] = (),
) -> bytes:
    """An HTTP message with a well-formed head."""
    more = fields.items() if isinstance(fields, Mapping) else fields
    typed = [("Content-Type", content_type)] if content_type is not None else []
    head = "".join(f"{name}: {value}\r\n" for name, value in [*typed, *more])
    payload = body.encode() if isinstance(body, str) else body
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + payload


def warc(
    block: bytes | str,
    *,
    type: str | None = "response",
    uri: str | None = "http://a.example/page",
    content_type: str | None = HTTP,
    version: str = "WARC/1.1",
    fields: Iterable[tuple[str, str]] = (),
    length: str | None = None,
) -> bytes:
    """A record. A header given as None is left out; `length` replaces the true Content-Length."""
    payload = block.encode() if isinstance(block, str) else block
    headers = [
        ("WARC-Type", type),
        ("WARC-Record-ID", "<urn:uuid:00000000-0000-5000-8000-000000000000>"),
        ("WARC-Target-URI", uri),
        ("WARC-Date", "2024-01-15T12:00:00Z"),
        ("Content-Type", content_type),
        ("Content-Length", str(len(payload)) if length is None else length),
        *fields,
    ]
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers if value is not None)
    return f"{version}\r\n{lines}\r\n".encode("utf-8", "surrogateescape") + payload + b"\r\n\r\n"


def wet(text: str | bytes, *, uri: str = "http://a.example/page", **fields: str) -> bytes:
    """A conversion record, as Common Crawl's WET files have them."""
    more = [(name.replace("_", "-"), value) for name, value in fields.items()]
    return warc(text, type="conversion", uri=uri, content_type="text/plain", fields=more)


def arc_file_head() -> bytes:
    """The record that an ARC file begins with."""
    block = b"1 0 Example\nURL IP-address Archive-date Content-type Archive-length\n"
    line = f"filedesc://a.arc 0.0.0.0 20080115120000 text/plain {len(block)}\n"
    return line.encode() + block + b"\n"


def arc(message: bytes, *, uri: str = "http://a.example/page", kind: str = "text/html") -> bytes:
    """An ARC record, version 1."""
    return f"{uri} 192.0.2.1 20080115120000 {kind} {len(message)}\n".encode() + message + b"\n"


def good(name: str, version: str = "WARC/1.1") -> bytes:
    """A sound page at an address of its own."""
    return warc(http(page()), uri=f"http://good.example/{name}", version=version)


def gz(data: bytes) -> bytes:
    """One gzip member, the same bytes on every run."""
    return gzip.compress(data, 6, mtime=0)


def packed(records: Sequence[bytes], packing: Packing) -> bytes:
    """Records as the bytes of a file."""
    if packing == "gzip":
        return b"".join(map(gz, records))
    if packing == "shared":
        return gz(b"".join(records))
    if packing == "zstd":
        return b"".join(map(zstandard.ZstdCompressor().compress, records))
    return b"".join(records)
