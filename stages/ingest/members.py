"""Where records can begin in an archive: WARC lines, gzip members, zstd frames.

Only used where fastwarc stopped: to measure the last good member and to find the next one.
"""

from __future__ import annotations

import io
import re
import zlib
from typing import IO, Any, Literal

Codec = Literal["plain", "gzip", "zstd"]
_MAGIC = {"gzip": b"\x1f\x8b\x08", "zstd": b"\x28\xb5\x2f\xfd", "plain": b"WARC/"}
_VERSION = re.compile(rb"WARC/\d\.\d{1,2}\r?\n")
_WINDOW = 1 << 20
_HEAD = 64 << 10
_SLICE = 1 << 10
_PATIENCE = 1 << 30
"""Decompressed bytes after which a damaged member is no longer measured."""


def codec_of(stream: IO[bytes]) -> Codec:
    """How an archive is compressed, by its first bytes; the stream is left at its start."""
    stream.seek(0)
    head = stream.read(4)
    stream.seek(0)
    if head[:2] == b"\x1f\x8b":
        return "gzip"
    return "zstd" if head == _MAGIC["zstd"] else "plain"


def next_start(stream: IO[bytes], size: int, codec: Codec, position: int) -> int:
    """The first byte at or after `position` where a record (member, frame) begins; else `size`."""
    magic = _MAGIC[codec]
    while position < size:
        stream.seek(position)
        window = stream.read(_WINDOW)
        if not window:
            return size
        found = window.find(magic)
        while found >= 0:
            if _begins_record(stream, position + found, codec):
                return position + found
            found = window.find(magic, found + 1)
        if len(window) < len(magic):
            return size
        position += len(window) - len(magic) + 1
    return size


def _begins_record(stream: IO[bytes], position: int, codec: Codec) -> bool:
    """Whether a WARC version line stands here."""
    stream.seek(position)
    head = stream.read(_HEAD)
    return _VERSION.match(head if codec == "plain" else _opening(head, codec)) is not None


def _opening(head: bytes, codec: Codec) -> bytes:
    """The first decompressed bytes of a member; empty if these are none."""
    import zstandard

    try:
        if codec == "gzip":
            return zlib.decompressobj(31).decompress(head, 16)
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(head)) as reader:
            return reader.read(16)
    except (zlib.error, zstandard.ZstdError):
        return b""


def member_end(stream: IO[bytes], size: int, codec: Codec, start: int) -> int | None:
    """The first byte behind the record or member at `start`; None if it is broken or cut."""
    if codec == "plain":
        return _record_end(stream, size, start)
    end, _ = _walk(stream, codec, start)
    return end


def cut_short(stream: IO[bytes], size: int, codec: Codec, start: int) -> bool:
    """Whether what begins at `start` is sound as far as it goes, and the file ends before it."""
    if codec != "plain":
        end, sound = _walk(stream, codec, start)
        return end is None and sound
    stream.seek(start)
    head = stream.read(_HEAD)
    begins = head.startswith(b"WARC/") or b"WARC/".startswith(head)
    return begins and len(head) < _HEAD and not re.search(rb"\r?\n\r?\n", head)


def _record_end(stream: IO[bytes], size: int, start: int) -> int | None:
    """The end of an uncompressed record by its own Content-Length, closing line breaks included."""
    stream.seek(start)
    head = stream.read(_HEAD)
    blank = re.search(rb"\r?\n\r?\n", head)
    length = re.search(
        rb"(?im)^content-length:[ \t]*(\d{1,18})[ \t]*\r?$", head[: blank.end()] if blank else b""
    )
    if blank is None or length is None:
        return None
    end = start + blank.end() + int(length[1])
    stream.seek(min(end, size))
    closing = re.match(rb"(?:\r?\n){0,2}", stream.read(4))
    return min(size, end + (closing.end() if closing else 0))


def _walk(stream: IO[bytes], codec: Codec, start: int) -> tuple[int | None, bool]:
    """(end of the member or None, whether all bytes up to there or the file's end were sound)."""
    import zstandard

    member: Any = (
        zlib.decompressobj(31) if codec == "gzip" else zstandard.ZstdDecompressor().decompressobj()
    )
    stream.seek(start)
    position, given = start, 0
    try:
        while data := stream.read(_SLICE):
            position += len(data)
            given += len(member.decompress(data))
            if member.eof:
                return position - len(member.unused_data), True
            if given > _PATIENCE:
                return None, False
    except (zlib.error, zstandard.ZstdError):
        return None, False
    return None, True
