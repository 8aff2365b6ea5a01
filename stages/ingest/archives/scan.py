"""Records read by Ingot's own hand: uncompressed WARC, and ARC of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from stages.ingest.archives import arc, warc
from stages.ingest.archives.captures import Capture, is_read
from stages.ingest.archives.members import Member, Volume

_LONG = 1 << 20
"""Length of a block above which it is looked at what stands behind it before it is read."""
_BLANK = (b"\r\n", b"\n", b"\r")  # The last where the file is cut.


class Scan:
    """Records from a start up to the end of the part or of the file, or to damage.

    After iteration it tells what `packed.Packed` tells.
    """

    def __init__(self, volume: Volume, start: int, end: int, limit: int) -> None:
        self.volume, self.start, self.end, self.limit = volume, start, end, limit
        self.pending: Capture | None = None
        self.damage: Capture | None = None
        self.resume, self.lost = start, False

    def _head(
        self, line: bytes, source: IO[bytes] | Member, member: int, ordinal: int
    ) -> tuple[Capture, int, int] | None:
        """(record without block, length of the block, bytes of the head), or None for no head."""
        if self.volume.form == "warc":
            return warc.read_head(line, source, member, ordinal) if warc.is_head(line) else None
        read = arc.read_head(line, member, ordinal)
        return (*read, len(line)) if read else None

    def _fill(self, capture: Capture, source: IO[bytes] | Member, length: int, there: int) -> int:
        """Read or pass over a block of which `there` bytes exist; how many were passed."""
        wanted = is_read(capture.type, capture.content_type)
        if wanted and length <= min(self.limit, there):
            capture.block = source.read(length)
            passed = len(capture.block)
        elif isinstance(source, Member):
            passed = source.skip(length)
        else:
            passed = min(length, there)
            source.seek(passed, 1)
        if passed < length:
            capture.block = b""
            capture.fault, capture.detail = "truncated", f"{passed} of {length} bytes"
        elif wanted and length > self.limit:
            capture.fault, capture.detail = "too_large", f"{length} bytes"
        if self.volume.form == "arc":
            arc.typed(capture)
        return passed


class Plain(Scan):
    """Records of a file without compression."""

    def __iter__(self) -> Iterator[Capture]:
        volume, size = self.volume, self.volume.size
        stream, position = volume.stream, self.start
        stream.seek(position)
        while True:
            line = stream.readline(warc.LONGEST_HEAD)
            while line in _BLANK:
                position += len(line)
                line = stream.readline(warc.LONGEST_HEAD)
            capture = self.pending
            if capture is not None:
                self.pending = None
                if self._overran(capture, position, line):
                    return
                yield capture.close(position)
            head = self._head(line, stream, position, 0) if position < self.end else None
            if head is None:
                self.resume = position
                return
            self.pending, length, taken = head
            position += taken
            if length > _LONG and self._overran(self.pending, *self._behind(position + length)):
                return
            if self.pending.fault is None:
                position += self._fill(self.pending, stream, length, size - position)
            if self.pending.fault in ("malformed_record", "truncated"):
                self._broken(self.pending)
                return

    def _behind(self, position: int) -> tuple[int, bytes]:
        """Where the next line that is not blank begins, and that line; the stream stays."""
        stream = self.volume.stream
        here = stream.tell()
        stream.seek(min(position, self.volume.size))
        while (line := stream.readline(warc.LONGEST_HEAD)) in _BLANK:
            position += len(line)
        stream.seek(here)
        return position, line

    def _overran(self, capture: Capture, end: int, line: bytes) -> bool:
        """Whether a record took a part of the next one: behind it is none, but inside it one."""
        is_head = warc.is_head if self.volume.form == "warc" else arc.HEAD_LINE.fullmatch
        if not line or is_head(line):
            return False
        inner = self.volume.next_start(capture.member + 1, end)
        if inner < end:
            capture.block = b""
            capture.fault = "malformed_record"
            capture.detail = "its length reaches into the next record"
            self.pending, self.resume, self.lost = capture, inner, True
        return inner < end

    def _broken(self, capture: Capture) -> None:
        """Go on behind a bad head, or one whose length is more than the file has."""
        self.resume, self.lost = capture.member + 1, True
        if self.volume.next_start(self.resume) < self.volume.size:
            capture.fault = "malformed_record"


class Members(Scan):
    """Records of ARC in gzip members or zstd frames; no record leaves its member."""

    def __iter__(self) -> Iterator[Capture]:
        position = self.start
        while position < min(self.end, self.volume.size):
            member, ordinal, garbage = Member(self.volume, position), 0, False
            while line := member.readline(arc.LONGEST_LINE):
                if line in _BLANK:
                    continue
                head = self._head(line, member, position, ordinal)
                garbage = head is None
                if head is None:
                    break
                if self.pending is not None:
                    yield self.pending.close(position)
                self.pending, ordinal = head[0], ordinal + 1
                self._fill(self.pending, member, head[1], head[1])
            last = self.pending
            is_followed = member.end is not None and member.end < self.volume.size
            if last is not None and last.fault == "truncated" and is_followed:
                last.fault = "malformed_record"
            if member.end is None or garbage:
                self._broke(member, ordinal, "no record" if garbage else member.detail)
                return
            if ordinal == 0:
                break
            position = member.end
        self.resume = position

    def _broke(self, member: Member, ordinal: int, detail: str | None) -> None:
        """The member is damaged, cut, or holds other things than records."""
        last = self.pending
        if ordinal == 0:
            self.resume = member.start
            return
        self.resume, self.lost = member.start + 1, True
        assert last is not None, "the member gave a record"
        if last.fault == "truncated":
            last.fault, last.detail = member.fault or last.fault, member.detail or last.detail
            return
        if member.fault == "truncated":  # Only what closes the member is cut.
            self.resume, self.lost = self.volume.size, False
            return
        fault = member.fault or "malformed_record"
        self.damage = Capture("damage", member.start, ordinal, fault=fault, detail=detail)
