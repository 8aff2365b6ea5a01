"""WARC 1.1 records, written byte for byte: equal records give equal files on every machine.

Layout: ISO 28500:2017 (WARC 1.1). Records are not compressed, so a file's bytes do not hang on a
version of zlib, and a record is named by the offset of its first line.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

DATE = "2024-01-15T12:00:00Z"
HTML = "text/html; charset=utf-8"


@dataclass(frozen=True)
class Exchange:
    """A response as the crawler saw it. `raw` replaces the whole HTTP message, `cut` drops its end.

    `truncated` is the reason of a WARC-Truncated header. A record with `cut` promises more bytes
    than follow, so it can only stand last in its file.
    """

    url: str
    body: bytes
    status: str = "200 OK"
    content_type: str = HTML
    truncated: str | None = None
    raw: bytes | None = None
    cut: int = 0


def response(exchange: Exchange) -> bytes:
    """A `response` record with the HTTP message of `exchange`."""
    message = exchange.raw if exchange.raw is not None else _http(exchange)
    headers = [
        ("WARC-Type", "response"),
        ("WARC-Record-ID", _record_id(exchange.url)),
        ("WARC-Date", DATE),
        ("WARC-Target-URI", exchange.url),
        ("WARC-IP-Address", "192.0.2.10"),
        ("WARC-Payload-Digest", _sha1(exchange.body)),
        ("Content-Type", "application/http; msgtype=response"),
    ]
    if exchange.truncated:
        headers.append(("WARC-Truncated", exchange.truncated))
    whole = _record(headers, message)
    return whole[: len(whole) - exchange.cut] if exchange.cut else whole


def warcinfo(file: str) -> bytes:
    """The record that opens a file."""
    fields = "software: ingot sample\r\nformat: WARC File Format 1.1\r\nrobots: obey\r\n"
    return _record(
        [
            ("WARC-Type", "warcinfo"),
            ("WARC-Record-ID", _record_id(f"warcinfo:{file}")),
            ("WARC-Date", DATE),
            ("WARC-Filename", file),
            ("Content-Type", "application/warc-fields"),
        ],
        fields.encode(),
    )


def warc_file(name: str, exchanges: Iterable[Exchange]) -> tuple[bytes, list[int]]:
    """A file's bytes, and the offset of the record of each exchange."""
    parts = [warcinfo(name)]
    offset, offsets = len(parts[0]), []
    for exchange in exchanges:
        offsets.append(offset)
        parts.append(response(exchange))
        offset += len(parts[-1])
    return b"".join(parts), offsets


def _http(exchange: Exchange) -> bytes:
    head = (
        f"HTTP/1.1 {exchange.status}\r\n"
        "Server: docs\r\n"
        "Date: Mon, 15 Jan 2024 12:00:00 GMT\r\n"
        f"Content-Type: {exchange.content_type}\r\n"
        f"Content-Length: {len(exchange.body)}\r\n"
        "\r\n"
    )
    return head.encode() + exchange.body


def _record(headers: Sequence[tuple[str, str]], block: bytes) -> bytes:
    lines = ["WARC/1.1", *(f"{name}: {value}" for name, value in headers)]
    lines += [f"Content-Length: {len(block)}", "", ""]
    return "\r\n".join(lines).encode() + block + b"\r\n\r\n"


def _record_id(name: str) -> str:
    return f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, name)}>"


def _sha1(data: bytes) -> str:
    digest = hashlib.sha1(data, usedforsecurity=False).digest()
    return f"sha1:{base64.b32encode(digest).decode()}"
