"""Records of WARC, WET, WAT and ARC files with their true places, whatever state the file is in.

fastwarc reads; this package adds what a corpus needs beside it: where each record lies, a budget
for decompressed bytes, going on behind damage, and reading a file in parts. A stretch of bytes
that holds no readable record is given as a record of its own with a fault, so every byte range is
told of once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import IO

from stages.ingest.archives.captures import Capture
from stages.ingest.archives.members import FREE_EXPANSION, Volume, open_volume
from stages.ingest.archives.packed import Packed
from stages.ingest.archives.scan import Members, Plain

__all__ = ["FREE_EXPANSION", "Capture", "Reading", "read_archive"]


def read_archive(
    stream: IO[bytes],
    size: int,
    *,
    limit: int,
    expansion: int,
    start: int = 0,
    end: int | None = None,
    exact: bool = False,
) -> Reading:
    """Every record of an archive of `size` bytes in file order; faults are told, never raised.

    With `start` and `end`: the records of one part, see `Reading`. Blocks over `limit` bytes are
    not read (fault `too_large`). A member that decompresses to more than `expansion` times its
    size (and FREE_EXPANSION) is left at that point (fault `expansion`). Other faults:
    `truncated`, `malformed_record`. Errors of the stream itself are raised.
    """
    return Reading(stream, size, limit, expansion, start, size if end is None else end, exact)


class Reading:
    """The records of an archive that begin in [start, end), to be iterated once.

    A part begins at the first record start at or after `start`, or at `start` itself if that is
    `exact`. After iteration `first` is where it began (None: no record begins in the part) and
    `next` where the following part has to begin. Bytes inside a payload can look like a record's
    start; so parts are what the whole file would give only if each one's `next` is the `first` of
    the one behind it, see `units.parts_to_mend`.
    """

    def __init__(
        self,
        stream: IO[bytes],
        size: int,
        limit: int,
        expansion: int,
        start: int,
        end: int,
        exact: bool,
    ) -> None:
        self.stream, self.size, self.limit, self.expansion = stream, size, limit, expansion
        self.start, self.end, self.exact = start, min(end, size), exact or start == 0
        self.first: int | None = None
        self.next: int | None = None

    def __iter__(self) -> Iterator[Capture]:
        volume = open_volume(self.stream, self.size, self.expansion)
        position = max(self.start, volume.begin)
        if not self.exact:
            position = volume.next_start(position, self.end)
            if position >= self.end:
                return
        if position < self.end:
            self.first = position
        while position < self.end:
            segment = _segment(volume, position, self.end, self.limit)
            records = iter(segment)
            first = next(records, None)
            begun = first or segment.pending
            reached = segment.resume if begun is None else begun.member
            if reached > position:
                yield _untold(position, reached)
            if first is not None:
                yield first
            del first
            yield from records
            if begun is None and reached > position:
                position = reached
            else:
                position = yield from _rest(volume, segment, position, begun is None)
        self.next = position


def _segment(volume: Volume, start: int, end: int, limit: int) -> Packed | Plain | Members:
    if volume.codec == "plain":
        return Plain(volume, start, end, limit)
    return (Packed if volume.form == "warc" else Members)(volume, start, end, limit)


def _rest(
    volume: Volume, segment: Packed | Plain | Members, start: int, empty: bool
) -> Generator[Capture, None, int]:
    """The last record of a segment and the damage behind it; returns where to go on."""
    last, damage = segment.pending, segment.damage
    if empty and damage is None:
        damage = _untold(start, 0)
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


def _untold(start: int, end: int) -> Capture:
    """A stretch that holds no record."""
    return Capture(
        "damage", start, 0, max(0, end - start), fault="malformed_record", detail="no record"
    )
