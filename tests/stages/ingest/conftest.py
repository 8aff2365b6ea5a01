"""A maker of WARC records, good and bad."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
import zstandard


def _record(
    body: bytes | str = b"",
    *,
    type: str = "response",
    status: str = "200 OK",
    content_type: str = "text/html; charset=utf-8",
    http: dict[str, str] | None = None,
    warc: dict[str, str] | None = None,
    uri: str = "http://a.example/",
    block: bytes | None = None,
) -> bytes:
    """A WARC/1.1 record; `block` replaces the HTTP message, `warc` adds or replaces headers."""
    body = body.encode() if isinstance(body, str) else body
    if block is None:
        fields = {"Content-Type": content_type, **(http or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
        block = f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body
    headers = {
        "WARC-Type": type,
        "WARC-Record-ID": "<urn:uuid:00000000-0000-5000-8000-000000000000>",
        "WARC-Target-URI": uri,
        "WARC-Date": "2024-01-15T12:00:00Z",
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(block)),
        **(warc or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"WARC/1.1\r\n{head}\r\n".encode() + block + b"\r\n\r\n"


@pytest.fixture(scope="session")
def warc_record() -> Callable[..., bytes]:
    """`warc_record(body, …)` → the bytes of one record."""
    return _record


@pytest.fixture(params=["plain", "gzip", "zstd"], scope="session")
def member(request: pytest.FixtureRequest) -> Callable[[bytes], bytes]:
    """Wraps bytes as one gzip member or zstd frame, or leaves them plain."""
    wraps = {
        "plain": lambda data: data,
        "gzip": lambda data: gzip.compress(data, mtime=0),
        "zstd": zstandard.ZstdCompressor().compress,
    }
    return wraps[request.param]


@pytest.fixture(scope="session")
def article() -> str:
    """A page whose main text is two sentences."""
    return (
        "<!doctype html><html lang='de'><head><title>Of  foxes</title></head><body>"
        "<nav><a href='/'>Home</a><a href='/a'>About us</a></nav>"
        "<article><h1>Foxes</h1><p>The quick brown fox jumps over the lazy dog near the river bank."
        "</p><p>It was seen again in the evening, when the light had gone.</p></article>"
        "<footer>All rights reserved</footer></body></html>"
    )
