"""Encodings of HTTP bodies: chunks joined, gzip, deflate, Brotli and Zstandard undone in a budget.

Output is bounded while it is made, in bytes and as a multiple of what was stored, so that a bomb
costs no more than its limit. Each decompressor tells a stream that ends early (kept as far as it
goes) from one that is broken.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

FREE_EXPANSION = 1 << 20
"""Decompressed bytes of a body that may precede any check of the ratio."""
MAX_ENCODINGS = 3
"""Content encodings in a row that are undone; servers err with two."""
_STEP = 1 << 20
_FED = 1 << 10
"""Bytes that are fed to zstd at once: 128 KiB of output for each 4 (RFC 8878, 3.1.1.2) at most."""
_MEMBERS = 1_000
"""Members or frames of one body: of more, each would cost more than it gives."""
_ZSTD_WINDOW = 8 << 20
"""What a content encoding may ask for (RFC 9659)."""
_CHUNK_HEAD = re.compile(rb"\s*([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\r\n]*)?\r?\n")
_CONTROLS = bytes([*range(9), 11, *range(14, 27), *range(28, 32)])
"""Bytes that no text holds (https://mimesniff.spec.whatwg.org/#binary-data-byte)."""
_HEX = frozenset(bytes([digit]) for digit in b"0123456789abcdefABCDEF")
_LOOKED_AT = 1024


class MalformedBody(Exception):
    """The body is not what its own headers say, or it is larger than the limit (`too_large`)."""

    def __init__(self, detail: str, reason: str = "malformed_body") -> None:
        self.detail, self.reason = detail, reason
        super().__init__(detail, reason)


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes that a body of `stored` bytes may become: `limit`, and `expansion` times its size."""

    limit: int
    expansion: int
    stored: int

    def check(self, made: int, coding: str) -> None:
        """Raise MalformedBody if so many bytes are too many."""
        if made > self.limit:
            raise MalformedBody(f"more than {self.limit} bytes after {coding}", "too_large")
        if made > FREE_EXPANSION and made > self.expansion * self.stored:
            detail = f"{coding}: more than {self.expansion} times its stored size"
            raise MalformedBody(detail, "expansion")


@dataclass(slots=True)
class _Output:
    """What a decompressor has given so far, within the budget."""

    coding: str
    budget: Budget
    parts: list[bytes] = field(default_factory=list)
    made: int = 0

    def add(self, part: bytes) -> None:
        self.parts.append(part)
        self.made += len(part)
        self.budget.check(self.made, self.coding)

    def clear(self) -> None:
        self.parts, self.made = [], 0


def dechunked(body: bytes) -> tuple[bytes, str | None, bool]:
    """(joined body, what ended early, whether it was chunked at all); RFC 9112, 7.1.

    Extensions and trailers are passed over. A body that does not begin with a chunk is given as it
    is: crawlers store bodies joined and leave the header. A size that contradicts what follows
    raises MalformedBody.
    """
    parts: list[bytes] = []
    position = 0
    while head := _CHUNK_HEAD.match(body, position):
        size = int(head[1], 16)
        if size == 0:
            # An empty page is one last chunk; a text that begins with a line "0" is none.
            trailer = parts or not body[head.end() :].strip(b"\r\n")
            return (b"".join(parts), None, True) if trailer else (body, None, False)
        chunk = body[head.end() : head.end() + size]
        position = head.end() + size
        if len(chunk) < size:
            opens = chunk.lstrip()[:1] in (b"<", b"\x1f")
            if not parts and not opens and head.end() + size > 2 * len(body):
                return body, None, False  # A number that happens to begin a body stored joined.
            parts.append(chunk)
            return b"".join(parts), f"chunk of {size} bytes ends after {len(chunk)}", True
        parts.append(chunk)
    if not parts:
        return body, None, False
    if not body[position:].strip(b"\r\n") or re.fullmatch(
        rb"\s*[0-9A-Fa-f]{1,16}[^\r\n]{0,256}\r?", body[position:]
    ):
        return b"".join(parts), "no last chunk", True
    raise MalformedBody(f"no chunk at byte {position} of a chunked body")


def chunked_for_sure(body: bytes) -> bool:
    """Whether a body that is not declared chunked is HTML in chunks, by its first two."""
    if body[:1] not in _HEX or not (head := _CHUNK_HEAD.match(body)):
        return False
    following = _CHUNK_HEAD.match(body, head.end() + int(head[1], 16))
    return following is not None and body[head.end() : head.end() + 64].lstrip()[:1] == b"<"


def coding_of(body: bytes, label: str | None) -> str | None:
    """The encoding that a body is in: by its own first bytes, else as labelled; None for none.

    A body labelled `br` or `deflate` may be plain all the same, which `taken_off` finds out:
    neither has a mark of its own.
    """
    if body[:3] == b"\x1f\x8b\x08":
        return "gzip"
    if body[:4] == b"\x28\xb5\x2f\xfd":
        return "zstd"
    if label == "gzip" and _zlib_wrapped(body):
        return "deflate"
    return label if label in ("br", "deflate") and body else None


def taken_off(body: bytes, coding: str, budget: Budget) -> tuple[bytes, str | None, str | None]:
    """(content, what ended early, encoding taken off: None if the body was plain)."""
    output = _Output(coding, budget)
    ended = _UNDO[coding](body, output)
    if ended is None:
        return b"".join(output.parts), None, coding
    if coding in ("br", "deflate") and looks_like_text(body):
        return body, None, None
    if ended != "cut":
        raise MalformedBody(f"{coding}: {ended}")
    return b"".join(output.parts), f"{coding} stream ends early", coding


def looks_like_text(body: bytes) -> bool:
    """Whether the first bytes hold none that no text holds; compressed ones nearly always do."""
    head = body[:_LOOKED_AT]
    return len(head.translate(None, _CONTROLS)) == len(head) and b"\x7f" not in head


def _zlib_wrapped(body: bytes) -> bool:
    """Whether a body begins as zlib's format does (RFC 1950, 2.2)."""
    return len(body) > 2 and body[0] & 15 == 8 and int.from_bytes(body[:2]) % 31 == 0


def _gunzipped(body: bytes, output: _Output) -> str | None:
    """Every member of a gzip stream; bytes behind the last one are passed over, as browsers do."""
    position = 0
    for _ in range(_MEMBERS):
        ended, position = _inflated(body, position, 31, output)
        if ended is not None or body[position : position + 3] != b"\x1f\x8b\x08":
            return ended
    return f"more than {_MEMBERS} members"


def _undeflated(body: bytes, output: _Output) -> str | None:
    """zlib's format, or raw deflate, which some servers send instead (RFC 9110, 8.4.1.2)."""
    if not _zlib_wrapped(body):
        return _inflated(body, 0, -zlib.MAX_WBITS, output)[0]
    ended, _ = _inflated(body, 0, zlib.MAX_WBITS, output)
    if ended is None or ended == "cut":
        return ended
    output.clear()  # Raw deflate that happens to begin as zlib's format does.
    raw, _ = _inflated(body, 0, -zlib.MAX_WBITS, output)
    return ended if raw is not None else None


def _inflated(body: bytes, position: int, window: int, output: _Output) -> tuple[str | None, int]:
    """(what is wrong or None, byte behind the stream)."""
    stream = zlib.decompressobj(window)
    try:
        while True:
            fed = stream.unconsumed_tail
            if not fed:
                fed = body[position : position + _STEP // 8]
                position += len(fed)
            part = stream.decompress(fed, _STEP)
            output.add(part)
            if stream.eof:
                return None, position - len(stream.unused_data)
            if not fed and not part:
                return "cut", position
    except zlib.error as error:
        return str(error), position


def _unbrotlied(body: bytes, output: _Output) -> str | None:
    import brotli

    stream = brotli.Decompressor()
    data = body
    try:
        while not stream.is_finished():
            part = stream.process(data, output_buffer_limit=_STEP)
            output.add(part)
            data = b""
            if not part and stream.can_accept_more_data():
                return None if stream.is_finished() else "cut"
    except brotli.error as error:
        return str(error)
    return None


def _unzstd(body: bytes, output: _Output) -> str | None:
    """Every frame of a zstd stream."""
    import zstandard

    position = 0
    for _ in range(_MEMBERS):
        frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        try:
            while not frame.eof and position < len(body):
                fed = body[position : position + _FED]
                position += len(fed)
                output.add(frame.decompress(fed))
        except zstandard.ZstdError as error:
            return str(error)
        if not frame.eof:
            return "cut"
        position -= len(frame.unused_data)
        if body[position : position + 4] != b"\x28\xb5\x2f\xfd":
            return None
    return f"more than {_MEMBERS} frames"


_UNDO: dict[str, Callable[[bytes, _Output], str | None]] = {
    "gzip": _gunzipped,
    "deflate": _undeflated,
    "br": _unbrotlied,
    "zstd": _unzstd,
}
