"""WARC records in gzip members or zstd frames: fastwarc reads; offsets and budgets are ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from stages.ingest import archive_heads
from stages.ingest.archive_heads import Capture, is_read
from stages.ingest.archive_members import FREE_EXPANSION, ArchiveFile, Member, RecordScanner

_SKIP = 1 << 20
_BUFFER = 64 << 10
_LONG = 1 << 20
"""Length of a block above which it is looked at before it is read."""
_RATIO = 1032
"""The most that deflate compresses; zstd may reach 32 times that."""
_READS = 16
"""Reads of _BUFFER compressed bytes from the end of a block to the next head: white space only."""


class _WhiteSpaceError(Exception):
    """More white space between two records than the budget allows."""


class PackedRecords(RecordScanner):
    """Records of WARC in gzip members or zstd frames; a record may leave its member."""

    def __init__(self, volume: ArchiveFile, start: int, end: int, limit: int) -> None:
        from fastwarc.stream_io import GzipReader, ZstdReader
        from fastwarc.warc import ArchiveIterator, WarcHeader

        super().__init__(volume, start, end, limit)
        self.source, self.field = _MeteredStream(volume.stream, start), WarcHeader
        self.reader: Any
        if volume.codec == "gzip":
            self.reader = GzipReader(self.source, buffer_size=_BUFFER)
        else:
            self.reader = ZstdReader(self.source, buffer_size=_BUFFER, dictionary=volume.dictionary)
        self.archive = ArchiveIterator(
            self.reader, parse_http=False, stream_detect=False, quirks_mode=volume.bare_lines
        )

    def __iter__(self) -> Iterator[Capture]:
        reader, source, pending = self.reader, self.source, None
        tail = -1  # The member in which the last block ended.
        while True:
            source.left = _READS
            try:
                record = next(self.archive, None)
            except (OSError, _WhiteSpaceError) as error:
                self._broke(pending, tail, error)
                return
            if record is None:
                self._ended(pending, tail)
                return
            source.left = -1
            member = reader.frame_start_position()
            # fastwarc reports where the head ended; it began there only if the member does.
            if member >= self.end and member > tail and self.volume.begins_record(member):
                self.resume = member
                return
            ordinal = 0
            if pending is not None:
                ordinal = pending.ordinal + 1 if pending.member == member else 0
                yield pending.close(member)
            self.pending = pending = self._read(record, member, ordinal)
            if self.lost:
                return
            tail = reader.frame_start_position()
            if tail != member:
                tail = self._true_tail(pending, record.content_length, tail)
                if self.lost:
                    return

    def _read(self, record: Any, member: int, ordinal: int) -> Capture:
        """The record with its block, and what is wrong with it; `lost` is set if that is much."""
        capture = archive_heads.capture_from_record(record, self.field, member, ordinal)
        if capture.fault is not None:
            self._failed(capture)
            return capture
        length = record.content_length
        wanted = is_read(capture.type, capture.content_type)
        is_doubtful = length > _LONG and self._is_doubtful(member, length)
        if is_doubtful and not self._has_room(capture, length):
            return capture
        try:
            if wanted and length <= self.limit:
                capture.block = record.reader.read()
                read = len(capture.block)
            else:
                read = _skip(record)
        except OSError as error:
            _fault_message(error)
            read = -1
        if read < length:
            self._failed(capture, f"fewer than {length} bytes")
        elif wanted and length > self.limit:
            capture.fault, capture.detail = "too_large", f"{length} bytes"
        return capture

    def _failed(self, capture: Capture, detail: str | None = None) -> None:
        """Give up the rest of the record's member; the member's own bytes decide the fault."""
        end = self.volume.member_end(capture.member)
        self.resume, self.lost = end or capture.member + 1, True
        capture.block, capture.detail = b"", detail or capture.detail
        sound = end is not None if detail else False
        sound = sound or self.volume.cut_short(capture.member)
        is_last = sound and self.volume.next_start(self.resume) == self.volume.size
        capture.fault = "truncated" if is_last else "malformed_record"

    def _is_doubtful(self, member: int, length: int) -> bool:
        """Whether a member may be a bomb, or another one begins before it can hold `length` bytes.

        Without a look at this a short member that claims a long block would cost reading one.
        """
        if length > FREE_EXPANSION:
            return True
        least = member + length // (_RATIO if self.volume.codec == "gzip" else 32 * _RATIO)
        return self.volume.next_start(member + 1, least) < least

    def _has_room(self, capture: Capture, length: int) -> bool:
        """Whether a member gives so many bytes within its budget; else the record has failed."""
        member = self._member_after_head(capture)
        if member is not None and member.skip(length) == length:
            return True
        self._failed(capture, f"fewer than {length} bytes")
        if member is not None and member.fault == "expansion":
            capture.fault, capture.detail = member.fault, member.detail
        return False

    def _member_after_head(self, capture: Capture) -> Member | None:
        """The record's member, read up to its block; None if the member begins with no record."""
        if not self.volume.begins_record(capture.member):
            return None
        member, length = Member(self.volume, capture.member), 0
        for _ in range(capture.ordinal + 1):
            member.skip(length)
            line = member.readline(archive_heads.LONGEST_WARC_HEAD)
            while line in (b"\r\n", b"\n"):
                line = member.readline(archive_heads.LONGEST_WARC_HEAD)
            _, length, _ = archive_heads.read_warc_head(line, member, 0, 0)
        return member

    def _true_tail(self, capture: Capture, length: int, tail: int) -> int:
        """The member in which a block ended that seems to have left its own.

        Some archives are compressed without regard to records; but where the record does not fit
        into its member and the next member begins with one, its length is wrong.
        """
        member = self._member_after_head(capture)
        if member is None:
            return tail
        if member.skip(length) == length:
            return capture.member
        if member.end is not None and self.volume.begins_record(member.end):
            self._failed(capture, f"fewer than {length} bytes")
        return tail

    def _broke(self, pending: Capture | None, tail: int, error: Exception) -> None:
        """fastwarc found no record where one should begin."""
        detail = _fault_message(error) if isinstance(error, OSError) else str(error)
        if pending is None:
            return
        end = self.volume.member_end(tail)
        if end is None:
            self._damaged(pending, tail, detail, tail + 1)
        elif self.reader.frame_start_position() >= end:
            self.resume = end
        else:
            self._damaged(pending, tail, detail, end)

    def _ended(self, pending: Capture | None, tail: int) -> None:
        """fastwarc found no more; short of the end of the file there are bytes it skipped."""
        if pending is None:
            return
        end = self.volume.member_end(tail)
        if end is not None:
            self.resume = end
        elif self.volume.cut_short(tail):
            self.resume = self.volume.size
        else:
            self._damaged(pending, tail, "no record", tail + 1)

    def _damaged(self, pending: Capture, tail: int, detail: str, resume: int) -> None:
        ordinal = pending.ordinal + 1 if tail == pending.member else 1
        self.damage = Capture("damage", tail, ordinal, fault="malformed_record", detail=detail)
        self.resume, self.lost = resume, True


def _skip(record: Any) -> int:
    """Pass over the block; how many bytes it had."""
    total = 0
    while passed := record.reader.consume(_SKIP):
        total += passed
    return total


class _MeteredStream:
    """A stream that allows `left` more reads; any number while that is below 0.

    It keeps a position of its own, since others look into the stream between two reads.
    """

    def __init__(self, stream: IO[bytes], start: int) -> None:
        self.stream, self.position, self.left = stream, start, -1

    def read(self, size: int = -1) -> bytes:
        if self.left >= 0:
            if self.left == 0:
                raise _WhiteSpaceError("no record in a long stretch of white space")
            self.left -= 1
        self.stream.seek(self.position)
        data = self.stream.read(size)
        self.position += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        self.position = self.stream.seek(offset + (self.position if whence == 1 else 0), whence % 2)
        return self.position

    def tell(self) -> int:
        return self.position

    def close(self) -> None:
        """The stream is the caller's."""


def _fault_message(error: OSError) -> str:
    """The message of a fault in the data; a fault of the disk or network is raised on."""
    if error.errno is not None:
        raise error
    return str(error)
