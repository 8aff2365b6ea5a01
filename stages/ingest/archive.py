"""WARC and WET records with their true places, whatever state the file is in.

fastwarc reads; this module adds what a corpus needs beside it: where each record lies, a budget for
decompressed bytes, and going on behind damage. A stretch of bytes that holds no readable record is
given as a record of its own with a fault, so every byte range is told of once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import IO, Any

from stages.ingest.members import Codec, codec_of, cut_short, member_end, next_start

_SKIP = 1 << 20
FREE_EXPANSION = 64 << 20
"""Decompressed bytes that may precede any check of the ratio."""
_READ = frozenset({"response", "resource", "conversion", "revisit"})


@dataclass(frozen=True, slots=True)
class Capture:
    """One record of an archive, or a stretch that is none (`type` "damage").

    `member` is the first byte of the record, or of the gzip member or zstd frame that holds it;
    `ordinal` counts the records before it in that member; `length` is 0 where a member holds
    several.
    """

    type: str
    member: int
    ordinal: int
    length: int = 0
    uri: str | None = None
    date: str | None = None
    content_type: str | None = None
    truncated: str | None = None
    language: str | None = None
    block: bytes = b""
    fault: str | None = None
    detail: str | None = None

    @property
    def record(self) -> int | str:
        """What names the record within its file: the offset, with `#ordinal` if it is shared."""
        return f"{self.member}#{self.ordinal}" if self.ordinal else self.member


def read_archive(stream: IO[bytes], size: int, *, limit: int, expansion: int) -> Iterator[Capture]:
    """Every record of an archive of `size` bytes in file order; faults are told, never raised.

    Blocks over `limit` bytes are not read (fault `too_large`). A member that decompresses to more
    than `expansion` times its size (and FREE_EXPANSION) is left at that point (fault `expansion`).
    Other faults: `truncated`, `malformed_record`. Errors of the stream itself are raised.
    """
    codec = codec_of(stream)
    position = 0
    while position < size:
        segment = _Segment(stream, size, codec, position, limit, expansion)
        pending: Capture | None = None
        for capture in segment:
            if pending is not None:
                yield _closed(pending, capture.member)
            pending = capture
        resume = max(segment.resume, position + 1)
        following = next_start(stream, size, codec, resume) if segment.resume < size else size
        damage = segment.damage
        end = damage.member if damage is not None and damage.ordinal == 0 else following
        if pending is not None:
            yield _closed(pending, end)
        if damage is not None and (damage.ordinal or following > damage.member):
            fault = "truncated" if cut_short(stream, size, codec, damage.member) else damage.fault
            yield _closed(replace(damage, fault=fault), following)
        position = following


def _closed(capture: Capture, end: int) -> Capture:
    """The capture with its length, now that the next start is known."""
    shared = capture.ordinal > 0 or end <= capture.member
    return replace(capture, length=0 if shared else end - capture.member)


class _Segment:
    """Records from a start up to the end of the file or the first damage.

    After iteration: `resume`, the byte from which to look for a further record, and `damage`, the
    unreadable stretch if there is one.
    """

    def __init__(
        self, stream: IO[bytes], size: int, codec: Codec, start: int, limit: int, expansion: int
    ) -> None:
        from fastwarc.stream_io import GzipReader, ZstdReader
        from fastwarc.warc import ArchiveIterator

        self.stream, self.size, self.codec, self.start = stream, size, codec, start
        self.limit, self.expansion = limit, expansion
        self.resume, self.damage = size, None  # type: int, Capture | None
        stream.seek(start)
        readers = {"gzip": GzipReader, "zstd": ZstdReader}
        self.reader: Any = readers[codec](stream) if codec != "plain" else None
        self.archive = ArchiveIterator(self.reader or stream, parse_http=False, stream_detect=False)

    def __iter__(self) -> Iterator[Capture]:
        last: tuple[int, int] | None = None
        while True:
            try:
                record = next(self.archive, None)
            except OSError as error:
                self._broke_between(last, _own(error))
                return
            if record is None:
                self._ended(last)
                return
            member = self.reader.frame_start_position() if self.reader else record.stream_pos
            ordinal = last[1] + 1 if last is not None and last[0] == member else 0
            last = member, ordinal
            capture = self._read(record, member, ordinal)
            yield capture
            if capture.fault in ("malformed_record", "expansion"):
                self.resume = member + 1
                return

    def _read(self, record: Any, member: int, ordinal: int) -> Capture:
        """The record with its block, and what is wrong with it."""
        headers = record.headers
        capture = Capture(
            type=str(record.record_type),
            member=member,
            ordinal=ordinal,
            uri=headers.get("WARC-Target-URI"),
            date=headers.get("WARC-Date"),
            content_type=headers.get("Content-Type"),
            truncated=headers.get("WARC-Truncated"),
            language=headers.get("WARC-Identified-Content-Language"),
        )
        length = headers.get("Content-Length") or ""
        if not (length.isascii() and length.isdigit() and len(length) < 19):
            cut = cut_short(self.stream, self.size, self.codec, member)
            fault = "truncated" if cut else "malformed_record"
            return replace(capture, fault=fault, detail="no Content-Length")
        try:
            if capture.type in _READ and record.content_length <= self.limit:
                block = record.reader.read()
                read = len(block)
            else:
                block, read = b"", self._skip(record)
        except OSError as error:
            return replace(capture, fault="malformed_record", detail=_own(error))
        except _Expansion as error:
            return replace(capture, fault="expansion", detail=str(error))
        if read < record.content_length:
            detail = f"{read} of {record.content_length} bytes"
            return replace(capture, fault="truncated", detail=detail)
        if capture.type in _READ and record.content_length > self.limit:
            return replace(capture, fault="too_large", detail=f"{record.content_length} bytes")
        return replace(capture, block=block)

    def _skip(self, record: Any) -> int:
        """Pass over the block, decompressing no more than the budget allows; the bytes passed."""
        total = 0
        while passed := record.reader.consume(_SKIP):
            total += passed
            if self.reader is None:
                continue
            given, taken = self.reader.tell(), self.reader.inner_tell() - self.start
            if given > self.expansion * taken + FREE_EXPANSION:
                raise _Expansion(f"more than {self.expansion} times its compressed size")
        return total

    def _broke_between(self, last: tuple[int, int] | None, error: str) -> None:
        """fastwarc found no record where one should begin."""
        if last is None:
            self._damaged(self.start, 0, error, self.start)
            return
        member, ordinal = last
        end = member_end(self.stream, self.size, self.codec, member)
        if end is None:
            self._damaged(member, ordinal + 1, error, member + 1)
        elif self.reader is None or self.reader.frame_start_position() >= end:
            self._damaged(end, 0, error, end)
        else:
            self._damaged(member, ordinal + 1, error, end)

    def _ended(self, last: tuple[int, int] | None) -> None:
        """fastwarc found no more; short of the end of the file there are bytes it passed over."""
        if last is None:
            self._damaged(self.start, 0, "no record", self.start)
            return
        if self.reader is None:
            return
        begun, taken = self.reader.frame_start_position(), self.reader.inner_tell()
        if begun > last[0]:
            self._damaged(begun, 0, "no record", begun)
        elif taken < self.size:
            self._damaged(taken, 0, "no record", taken)

    def _damaged(self, member: int, ordinal: int, detail: str, resume: int) -> None:
        self.damage = Capture("damage", member, ordinal, fault="malformed_record", detail=detail)
        self.resume = resume


class _Expansion(Exception):
    """A member decompresses to more than its budget."""


def _own(error: OSError) -> str:
    """The message of a fault in the data; a fault of the disk or network is raised on."""
    if error.errno is not None:
        raise error
    return str(error)
