"""Where records can begin in an archive: lines of WARC and ARC, gzip members, zstd frames.

Used to find the first record of a part, to measure a member, and to go on after damage.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import IO, Any, Literal

from stages.ingest.archive_heads import (
    ARC_HEAD,
    LONGEST_ARC_HEAD,
    Capture,
    find_arc_heads,
    is_read,
    is_warc_head,
    read_arc_head,
    read_warc_head,
    set_arc_type,
)

Codec = Literal["plain", "gzip", "zstd"]
Form = Literal["warc", "arc"]
FREE_EXPANSION = 64 << 20
"""Decompressed bytes that may precede any check of the ratio."""

_MAGIC = {"gzip": b"\x1f\x8b\x08", "zstd": b"\x28\xb5\x2f\xfd", "plain": b"WARC/"}
_DICTIONARY = b"\x5d\x2a\x4d\x18"
"""Magic number 0x184D2A5D of the skippable frame that holds a dictionary (IIPC, WARC-zstd 1.0)."""
_LONGEST_DICTIONARY = 16 << 20
_VERSION = re.compile(rb"WARC/\d\.\d{1,2}\r?\n")
_WINDOWS = (32 << 10, 1 << 20)
"""Bytes searched at once for a start: few at first, since it is mostly near."""
_HEADS = {"gzip": (1 << 10, 7 << 10), "zstd": (4 << 10, 192 << 10)}
"""Compressed bytes looked at for a member's opening, then some more: a zstd block may be long."""
_HEAD = 64 << 10
_SLICE = 1 << 10  # A zstd block of 4 bytes can hold 128 KiB, so one slice gives 32 MiB at most.


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """An archive file and what its first bytes say about it.

    `begin` is the first byte after a zstd dictionary; `expansion` the decompressed over
    compressed bytes above which a member is no longer followed. `bare_lines`: its lines end in LF
    alone, which the standard forbids and fastwarc reads in its quirks mode only.
    """

    stream: IO[bytes]
    size: int
    codec: Codec
    form: Form
    expansion: int
    dictionary: bytes | None = None
    begin: int = 0
    bare_lines: bool = False

    def next_start(self, position: int, stop: int | None = None) -> int:
        """The first byte in [position, stop) where a record (member, frame) begins, else `stop`.

        `stop` is the size of the file by default.
        """
        stop = self.size if stop is None else min(stop, self.size)
        position, length = max(position, self.begin), _WINDOWS[0]
        while position < stop:
            self.stream.seek(position)
            window = self.stream.read(min(length, self.size - position))
            length = min(4 * length, _WINDOWS[1])
            if not window:
                return stop
            for offset in self._candidates(window, whole=position + len(window) >= self.size):
                if position + offset >= stop:
                    return stop
                if self.begins_record(position + offset):
                    return position + offset
            reach = LONGEST_ARC_HEAD if self._is_arc_text else len(_MAGIC[self.codec]) - 1
            if len(window) <= reach:
                return stop
            position += len(window) - reach
        return stop

    def _candidates(self, window: bytes, whole: bool) -> Any:
        if self._is_arc_text:
            yield from find_arc_heads(window, whole)
            return
        magic = _MAGIC[self.codec]
        offset = window.find(magic)
        while offset >= 0:
            yield offset
            offset = window.find(magic, offset + 1)

    @property
    def _is_arc_text(self) -> bool:
        return self.form == "arc" and self.codec == "plain"

    def begins_record(self, position: int) -> bool:
        """Whether a record of this archive's form begins here."""
        if self.form == "warc":
            return _VERSION.match(self.opening(position, 16)) is not None
        if self._is_arc_text and position > self.begin:
            self.stream.seek(position - 1)
            if self.stream.read(1) != b"\n":
                return False
        return ARC_HEAD.match(self.opening(position, LONGEST_ARC_HEAD)) is not None

    def opening(self, position: int, wanted: int) -> bytes:
        """The first decompressed bytes from `position`, at most `wanted`; empty if none are."""
        self.stream.seek(position)
        if self.codec == "plain":
            return self.stream.read(wanted)
        return _decompress_opening(self.stream, self.codec, self.dictionary, wanted)

    def member_end(self, start: int) -> int | None:
        """The first byte after the member at `start`; None if it is broken or cut."""
        return self._walk(start)[0]

    def cut_short(self, start: int) -> bool:
        """Whether what begins at `start` is sound as far as it goes but cut by the file's end."""
        if self.codec != "plain":
            end, sound = self._walk(start)
            return end is None and sound
        self.stream.seek(start)
        head = self.stream.read(_HEAD)
        if self.form == "arc":
            return len(head) < LONGEST_ARC_HEAD and b"\n" not in head
        begins = head.startswith(b"WARC/") or b"WARC/".startswith(head)
        return begins and len(head) < _HEAD and not re.search(rb"\n\r?\n", head)

    def _walk(self, start: int) -> tuple[int | None, bool]:
        """(end of the member or None, whether all bytes up to it or the file's end are sound)."""
        member = Member(self, start)
        while member.pull():
            member.drop()
        return (member.end, True) if member.end is not None else (None, member.fault == "truncated")


class Member:
    """The decompressed bytes of one gzip member or zstd frame, with a budget.

    When it is exhausted, `end` is the first byte after it, or None and `fault` says why:
    "truncated", "malformed_record" or "expansion".
    """

    def __init__(self, volume: ArchiveFile, start: int) -> None:
        self.start = start
        self.end: int | None = None
        self.fault: str | None = None
        self.detail: str | None = None
        self._stream, self._position = volume.stream, start
        self._expansion, self._produced = volume.expansion, 0
        self._inflater = _decompressor(volume.codec, volume.dictionary)
        self._held, self._at = bytearray(), 0

    def pull(self) -> bool:
        """Decompress some more; False when nothing is left."""
        import zstandard

        while self.end is None and self.fault is None:
            self._stream.seek(self._position)
            data = self._stream.read(_SLICE)
            if not data:
                self.fault, self.detail = "truncated", "the file ends within the member"
                return False
            try:
                chunk = self._inflater.decompress(data)
            except (zlib.error, zstandard.ZstdError) as error:
                self.fault, self.detail = "malformed_record", str(error)
                return False
            self._position += len(data)
            self._produced += len(chunk)
            if self._inflater.eof:
                self._position -= len(self._inflater.unused_data)
                self.end = self._position
            elif self._produced > self._expansion * (self._position - self.start) + FREE_EXPANSION:
                self.fault = "expansion"
                self.detail = f"more than {self._expansion} times its compressed size"
            self._held += chunk
            if chunk:
                return True
        return False

    def drop(self) -> None:
        """Forget what was decompressed and not read."""
        self._held, self._at = bytearray(), 0

    def readline(self, limit: int = -1) -> bytes:
        """As a file's: up to and with the line break, at most `limit` bytes, empty at the end."""
        searched = self._at
        while True:
            line_end = self._held.find(b"\n", searched) + 1
            end = line_end or len(self._held)
            if line_end or 0 <= limit <= end - self._at:
                return self._take(end - self._at if limit < 0 else min(limit, end - self._at))
            searched = end
            if not self.pull():
                return self._take(end - self._at)

    def read(self, size: int) -> bytes:
        """`size` bytes, fewer only at the end of the member."""
        while len(self._held) - self._at < size and self.pull():
            pass
        return self._take(size)

    def skip(self, size: int) -> int:
        """Pass over `size` bytes; how many there were."""
        left = size
        while left > 0:
            held = len(self._held) - self._at
            if held > left:
                self._at += left
                return size
            left -= held
            self.drop()
            if left and not self.pull():
                break
        return size - left

    def _take(self, size: int) -> bytes:
        data = bytes(self._held[self._at : self._at + size])
        self._at += len(data)
        if self._at > _WINDOWS[1]:
            del self._held[: self._at]
            self._at = 0
        return data


def open_archive_file(stream: IO[bytes], size: int, expansion: int) -> ArchiveFile:
    """An archive by its first bytes: how it is compressed, whether it is WARC or ARC.

    If the first bytes are no record of either, the record that comes first decides.
    """
    stream.seek(0)
    head = stream.read(4)
    codec: Codec = "plain"
    if head[:2] == b"\x1f\x8b":
        codec = "gzip"
    elif head in (_MAGIC["zstd"], _DICTIONARY):
        codec = "zstd"
    dictionary, begin = _read_dictionary(stream, size) if head == _DICTIONARY else (None, 0)
    warc = ArchiveFile(stream, size, codec, "warc", expansion, dictionary, begin)
    arc = ArchiveFile(stream, size, codec, "arc", expansion, dictionary, begin)
    if match := _VERSION.match(warc.opening(begin, 16)):
        return replace(warc, bare_lines=match[0][-2:] != b"\r\n")
    if arc.begins_record(begin):
        return arc
    first = warc.next_start(begin)
    return arc if arc.next_start(begin, first) < first else warc


def _read_dictionary(stream: IO[bytes], size: int) -> tuple[bytes | None, int]:
    """The dictionary in the skippable frame at the file's start, and the first byte after it."""
    import zstandard

    stream.seek(4)
    length = int.from_bytes(stream.read(4), "little")
    begin = 8 + length
    if begin > size:
        return None, 0
    content = stream.read(length) if length <= _LONGEST_DICTIONARY else b""
    if content.startswith(_MAGIC["zstd"]):
        try:
            with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content)) as reader:
                content = reader.read(_LONGEST_DICTIONARY)
        except zstandard.ZstdError:
            return None, begin
    try:
        _decompressor("zstd", content)
    except zstandard.ZstdError:
        return None, begin
    return content, begin


def _decompressor(codec: Codec, dictionary: bytes | None) -> Any:
    import zstandard

    if codec == "gzip":
        return zlib.decompressobj(31)
    data = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
    return zstandard.ZstdDecompressor(dict_data=data).decompressobj()


def _decompress_opening(
    stream: IO[bytes], codec: Codec, dictionary: bytes | None, wanted: int
) -> bytes:
    import zstandard

    inflater, output = _decompressor(codec, dictionary), b""
    try:
        for length in _HEADS[codec]:
            data = stream.read(length)
            output += inflater.decompress(data, wanted) if codec == "gzip" else b""
            for at in range(0, len(data) if codec == "zstd" else 0, _SLICE):
                output += inflater.decompress(data[at : at + _SLICE])
                if len(output) >= wanted or inflater.eof:
                    break
            if len(output) >= wanted or inflater.eof or not data:
                break
    except (zlib.error, zstandard.ZstdError):
        return output[:wanted]  # Damage further on; what came before it may tell what this is.
    return output[:wanted]


class RecordScanner:
    """Records from a start up to the end of the part or of the file, or to damage.

    Subclasses yield the records whose length is known. Afterwards `pending` is the last one, which
    ends where the next begins; `resume` is where to go on, and if the bytes there may be no record,
    `lost` is true: the next start is to be searched from there. `damage` is a stretch that is
    unreadable inside a member.
    """

    def __init__(self, volume: ArchiveFile, start: int, end: int, limit: int) -> None:
        self.volume, self.start, self.end, self.limit = volume, start, end, limit
        self.pending: Capture | None = None
        self.damage: Capture | None = None
        self.resume, self.lost = start, False

    def __iter__(self) -> Iterator[Capture]:
        raise NotImplementedError

    def _head(
        self, line: bytes, source: IO[bytes] | Member, member: int, ordinal: int
    ) -> tuple[Capture, int, int] | None:
        """(record without block, length of the block, bytes of the head), or None for no head."""
        if self.volume.form == "warc":
            return read_warc_head(line, source, member, ordinal) if is_warc_head(line) else None
        read = read_arc_head(line, member, ordinal)
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
            set_arc_type(capture)
        return passed
