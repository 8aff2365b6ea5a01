"""Records of WARC, WET, WAT and ARC files with their true offsets, whatever state the file is in.

fastwarc reads compressed WARC; uncompressed WARC, and ARC of every kind, are scanned here. Added to
that is what a corpus needs: where each record lies, a budget for decompressed bytes, continuing
after damage, and reading a file in parts. A stretch of bytes that holds no readable record is a
record of its own with a fault, so every byte range is reported once.

It is ours because fastwarc or warcio alone would lose records: after one damaged member, or foreign
bytes between two, fastwarc 2.0 and warcio 1.8 both end with an error and read none of the sound
records that follow; both return a record that the end of the file cuts as if it were whole.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import IO

from stages.ingest import archive_heads
from stages.ingest.archive_heads import Capture
from stages.ingest.archive_members import (
    ArchiveFile,
    Member,
    RecordScanner,
    open_archive_file,
)
from stages.ingest.archive_packed import PackedRecords

_LONG = 1 << 20
"""Length of a block above which the bytes after it are checked before it is read."""
_BLANK = (b"\r\n", b"\n", b"\r")  # The last where the file is cut.


class PlainRecords(RecordScanner):
    """Records of a file without compression."""

    def __iter__(self) -> Iterator[Capture]:
        volume, size = self.volume, self.volume.size
        stream, position = volume.stream, self.start
        stream.seek(position)
        while True:
            line = stream.readline(archive_heads.LONGEST_WARC_HEAD)
            while line in _BLANK:
                position += len(line)
                line = stream.readline(archive_heads.LONGEST_WARC_HEAD)
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
            self.pending, length, head_bytes = head
            position += head_bytes
            if length > _LONG and self._overran(self.pending, *self._next_line(position + length)):
                return
            if self.pending.fault is None:
                position += self._fill(self.pending, stream, length, size - position)
            if self.pending.fault in ("malformed_record", "truncated"):
                self._broken(self.pending)
                return

    def _next_line(self, position: int) -> tuple[int, bytes]:
        """The offset of the next line that is not blank, and that line; the position is kept."""
        stream = self.volume.stream
        here = stream.tell()
        stream.seek(min(position, self.volume.size))
        while (line := stream.readline(archive_heads.LONGEST_WARC_HEAD)) in _BLANK:
            position += len(line)
        stream.seek(here)
        return position, line

    def _overran(self, capture: Capture, end: int, line: bytes) -> bool:
        """Whether a record reaches into the next one: one begins in it, none after it."""
        is_head = (
            archive_heads.is_warc_head
            if self.volume.form == "warc"
            else archive_heads.ARC_HEAD.fullmatch
        )
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
        """Go on after a bad head, or one whose length is more than the file has."""
        self.resume, self.lost = capture.member + 1, True
        if self.volume.next_start(self.resume) < self.volume.size:
            capture.fault = "malformed_record"


class MemberRecords(RecordScanner):
    """Records of ARC in gzip members or zstd frames; no record leaves its member."""

    def __iter__(self) -> Iterator[Capture]:
        position = self.start
        while position < min(self.end, self.volume.size):
            member, ordinal, garbage = Member(self.volume, position), 0, False
            while line := member.readline(archive_heads.LONGEST_ARC_HEAD):
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


class ArchiveReader:
    """Every record that begins in [start, end) of an archive, in file order, to be iterated once.

    Faults are reported, never raised; errors of the stream itself are raised. Blocks over `limit`
    bytes are not read (fault `too_large`). A member that decompresses to more than `expansion`
    times its size (and FREE_EXPANSION) is left at that point (fault `expansion`). Other faults:
    `truncated`, `malformed_record`.

    A part begins at the first record start at or after `start`, or at `start` itself if that is
    `exact`. After iteration `first` is where it began (None: no record begins in the part) and
    `next` where the following part has to begin. Bytes inside a payload can look like a record's
    start; so parts are what the whole file would give only if each one's `next` is the `first` of
    the one after it, see `snapshot.misaligned_parts`.
    """

    def __init__(
        self,
        stream: IO[bytes],
        size: int,
        *,
        limit: int,
        expansion: int,
        start: int = 0,
        end: int | None = None,
        exact: bool = False,
    ) -> None:
        self.stream, self.size, self.limit, self.expansion = stream, size, limit, expansion
        self.start, self.end = start, size if end is None else min(end, size)
        self.exact = exact or start == 0
        self.first: int | None = None
        self.next: int | None = None

    def __iter__(self) -> Iterator[Capture]:
        volume = open_archive_file(self.stream, self.size, self.expansion)
        packed = PackedRecords if volume.form == "warc" else MemberRecords
        scanner = PlainRecords if volume.codec == "plain" else packed
        position = max(self.start, volume.begin)
        if not self.exact:
            position = volume.next_start(position, self.end)
            if position >= self.end:
                return
        if position < self.end:
            self.first = position
        while position < self.end:
            segment = scanner(volume, position, self.end, self.limit)
            records = iter(segment)
            first = next(records, None)
            begun = first or segment.pending
            segment_start = segment.resume if begun is None else begun.member
            if segment_start > position:
                yield _unreadable_stretch(position, segment_start)
            if first is not None:
                yield first
            del first
            yield from records
            if begun is None and segment_start > position:
                position = segment_start
            else:
                position = yield from _after_segment(volume, segment, position, begun is None)
        self.next = position


def _after_segment(
    volume: ArchiveFile,
    segment: RecordScanner,
    start: int,
    empty: bool,
) -> Generator[Capture, None, int]:
    """The last record of a segment and the damage after it; returns where to go on."""
    last, damage = segment.pending, segment.damage
    if empty and damage is None:
        damage = _unreadable_stretch(start, 0)
    following = segment.resume
    if segment.lost or empty:
        following = volume.next_start(max(segment.resume, start + 1))
    if last is not None:
        yield last.close(damage.member if damage is not None and not damage.ordinal else following)
    if damage is not None:
        if following == volume.size and volume.cut_short(damage.member):
            damage.fault = "truncated"
        yield damage.close(following)
    return following


def _unreadable_stretch(start: int, end: int) -> Capture:
    """A stretch that holds no record."""
    return Capture(
        "damage", start, 0, max(0, end - start), fault="malformed_record", detail="no record"
    )
