"""HTTP as archives hold it: the head of a response, and its body with the encodings taken off."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/\d(?:\.\d)? +(\d{3})(?=[ \r\n]|$)", re.IGNORECASE)
_CHUNK_HEAD = re.compile(rb"\s*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([^\s"';,]+)""", re.IGNORECASE)


class MalformedBody(Exception):
    """The body is not what its own headers say, or it is larger than the limit (`too_large`)."""

    def __init__(self, detail: str, reason: str = "malformed_body") -> None:
        self.detail, self.reason = detail, reason
        super().__init__(detail, reason)


@dataclass(frozen=True, slots=True)
class Response:
    """A response: status, headers by lower-case name (the last of a name), body as stored."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def content_type(self) -> str | None:
        """The media type in lower case, without parameters."""
        return media_type(self.headers.get("content-type"))

    @property
    def charset(self) -> str | None:
        """The declared character encoding."""
        return charset_of(self.headers.get("content-type"))


def media_type(content_type: str | None) -> str | None:
    """`Text/HTML; charset=x` → `text/html`; None for nothing."""
    return (content_type or "").split(";")[0].split(",")[0].strip().lower() or None


def charset_of(content_type: str | None) -> str | None:
    """`text/html; charset="x"` → `x`."""
    found = _CHARSET.search(content_type or "")
    return found[1] if found else None


def parse_response(block: bytes) -> Response | None:
    """The response that a record's block holds, or None if it does not begin with a status line.

    Lenient as browsers are: bare LF, folded lines, lines without a colon, a head without an end.
    """
    status = _STATUS_LINE.match(block)
    if status is None:
        return None
    end = _HEAD_END.search(block)
    head, body = (block[: end.start()], block[end.end() :]) if end else (block, b"")
    headers: dict[str, str] = {}
    last = None
    for line in head.decode("latin-1").split("\n")[1:]:
        line = line.rstrip("\r")
        if line[:1] in (" ", "\t") and last is not None:
            headers[last] += " " + line.strip()
            continue
        name, colon, value = line.partition(":")
        if colon:
            last = name.strip().lower()
            headers[last] = value.strip()
    return Response(int(status[1]), headers, body)


def decoded_body(response: Response, limit: int) -> bytes:
    """The body without Transfer- and Content-Encoding, at most `limit` bytes long.

    Crawlers often store a body decoded and leave the headers, so an encoding is taken off only
    where the bytes show it. Raises MalformedBody for a broken encoding or a body over the limit.
    """
    body = response.body
    if "chunked" in response.headers.get("transfer-encoding", "").lower():
        body = dechunked(body)
    encodings = response.headers.get("content-encoding", "").lower().split(",")
    for encoding in reversed([name.strip() for name in encodings]):
        body = _inflated(body, encoding, limit)
    if len(body) > limit:
        raise MalformedBody(f"{len(body)} bytes", "too_large")
    return body


def dechunked(body: bytes) -> bytes:
    """A chunked body joined; the body itself if it does not begin with a chunk (RFC 9112, 7.1)."""
    parts: list[bytes] = []
    position = 0
    while head := _CHUNK_HEAD.match(body, position):
        size = int(head[1], 16)
        if size == 0:
            return b"".join(parts)
        chunk = body[head.end() : head.end() + size]
        if len(chunk) < size:
            if not parts:
                return body  # A number that happens to begin a body which was stored decoded.
            raise MalformedBody("chunked body ends early", "truncated")
        parts.append(chunk)
        position = head.end() + size
    if not parts:
        return body
    raise MalformedBody(f"no chunk at byte {position} of a chunked body")


def _inflated(body: bytes, encoding: str, limit: int) -> bytes:
    from fastwarc.stream_io import BrotliReader, GzipReader, ZstdReader

    stream = io.BytesIO(body)
    if encoding in ("gzip", "x-gzip"):
        if body[:2] != b"\x1f\x8b":
            return body
        return _read(GzipReader(stream), encoding, limit)
    if encoding == "zstd":
        if body[:4] != b"\x28\xb5\x2f\xfd":
            return body
        return _read(ZstdReader(stream), encoding, limit)
    if encoding == "br":
        # Brotli has no magic number: text that was stored decoded begins with '<' or white space.
        if body.lstrip()[:1] == b"<" or not body:
            return body
        return _read(BrotliReader(stream), encoding, limit)
    if encoding == "deflate":
        return _deflated(body, limit)
    return body


def _read(reader: object, encoding: str, limit: int) -> bytes:
    """Everything a decompressing reader gives, up to the limit."""
    parts, total = [], 0
    try:
        while part := reader.read(1 << 20):  # type: ignore[attr-defined]
            parts.append(part)
            total += len(part)
            if total > limit:
                raise MalformedBody(f"more than {limit} bytes after {encoding}", "too_large")
    except OSError as error:
        raise MalformedBody(f"{encoding}: {error}") from None
    return b"".join(parts)


def _deflated(body: bytes, limit: int) -> bytes:
    """zlib-wrapped or raw deflate (servers send both under one name); plain bytes stay."""
    import zlib

    for window in (zlib.MAX_WBITS, -zlib.MAX_WBITS):
        inflater = zlib.decompressobj(window)
        try:
            text = inflater.decompress(body, limit + 1)
        except zlib.error:
            continue
        if len(text) > limit:
            raise MalformedBody(f"more than {limit} bytes after deflate", "too_large")
        return text
    return body
