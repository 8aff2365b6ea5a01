"""Sizes of Parquet pages and Arrow batches once decompressed, read from their own headers.

The totals of a Parquet footer cannot be trusted for this: a reader allocates what each page's
header says. Headers are Thrift structs in the compact protocol (parquet.thrift, `PageHeader`). An
Arrow stream is a row of messages: 0xFFFFFFFF, the length of the metadata, the metadata (a
flatbuffer, Message.fbs), a body; in a compressed body each buffer begins with its decompressed
length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from stages.engine.reading.row import Damage

_DICTIONARY_PAGE = 2
_DELTA_BYTE_ARRAY = 7
_VALUES = ((5, 1), (8, 1))
"""Fields of `num_values` in the headers of data pages, first and second version."""
_ENCODINGS = ((5, 2), (8, 4))
_REPEATED_VALUE = 16
"""Bytes that a value in a list takes at least: its levels, its offset and the value itself."""
_HEAD = 256
_MAX_HEAD = 16 << 20  # A header holds the least and greatest value of its page.
_MAX_NESTING = 16
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_VARINTS = (4, 5, 6)


_Numbers = dict[tuple[int, ...], int]
"""Integers of a struct; those of structs in it have the fields that lead there."""


class BadHeader(ValueError):
    """Bytes that are no page header."""


@dataclass(frozen=True)
class GroupBytes:
    """Bytes of a row group once it is decompressed.

    `total`: of all pages, or of the values of lists where these are more, since a page holds
    millions of equal values in a few bytes. `shared`: what a row may share with others, in
    dictionaries and prefixes, as often as a row has values on average.
    """

    total: int
    shared: int
    prefixed_lists: bool
    """Whether values of lists share prefixes, which cannot be read without repeating them."""


def decoded_group_bytes(stream: IO[bytes], group: Any, schema: Any) -> GroupBytes:
    """What a row group takes; `group` and `schema` are pyarrow's.

    BadHeader if a page has no sound header.
    """
    total = shared = 0
    prefixed_lists = False
    for number in range(group.num_columns):
        chunk, column = group.column(number), schema.column(number)
        width = column.length if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0
        pages = values = longest = 0
        for page in _pages(stream, *chunk_place(chunk)):
            pages += page.size
            values += page.values
            if column.physical_type == "BYTE_ARRAY" and (page.dictionary or page.prefixes):
                longest = max(longest, page.size)
                prefixed_lists |= page.prefixes and column.max_repetition_level > 0
        if column.max_repetition_level > 0:
            pages = max(pages, max(_REPEATED_VALUE, width) * values)
        total += pages
        shared += max(longest, width) * max(1, chunk.num_values // max(1, group.num_rows))
    return GroupBytes(total, shared, prefixed_lists)


def texts_in_lists(schema: Any) -> list[str]:
    """Paths of the columns that hold texts or bytes in lists."""
    columns = (schema.column(number) for number in range(len(schema)))
    return [
        column.path
        for column in columns
        if column.physical_type == "BYTE_ARRAY" and column.max_repetition_level > 0
    ]


def chunk_place(chunk: Any) -> tuple[int, int]:
    """(first byte, bytes) of a column chunk."""
    data, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    begin = dictionary if dictionary is not None and 0 < dictionary < data else data
    return begin, chunk.total_compressed_size


@dataclass(frozen=True, slots=True)
class _Page:
    size: int
    """Decompressed bytes."""
    values: int
    """Values and nulls, in all lists; none in a dictionary."""
    dictionary: bool
    """Whether it holds values that rows name by number."""
    prefixes: bool
    """Whether a value may begin with the bytes of the one before it."""


def _pages(stream: IO[bytes], begin: int, length: int) -> Iterator[_Page]:
    """The pages of a column chunk."""
    place, end = begin, begin + length
    while place < end:
        head, used = _header(stream, place)
        kind, decoded, stored = (head.get((field,), 0) for field in (1, 2, 3))
        values = max(head.get(field, 0) for field in _VALUES)
        if decoded < 0 or stored < 0 or values < 0:
            raise BadHeader("a page of negative size")
        prefixes = any(head.get(field) == _DELTA_BYTE_ARRAY for field in _ENCODINGS)
        yield _Page(decoded, values, kind == _DICTIONARY_PAGE, prefixes)
        place += used + stored


def _header(stream: IO[bytes], place: int) -> tuple[_Numbers, int]:
    """The numbers of the page header at `place` by field, and its length in bytes."""
    size = _HEAD
    while True:
        stream.seek(place)
        data = stream.read(size)
        try:
            numbers: _Numbers = {}
            return numbers, _struct(data, 0, (), numbers)
        except IndexError:
            if len(data) < size or size >= _MAX_HEAD:
                raise BadHeader("a page's header is cut") from None
        size *= 16


def _struct(data: bytes, at: int, path: tuple[int, ...], numbers: _Numbers | None) -> int:
    """Where the struct at this path of fields ends; its integers go to `numbers`.

    IndexError where `data` ends first.
    """
    field = 0
    while (head := data[at]) != _STOP:
        at += 1
        kind = head & 15
        if head >> 4:
            field += head >> 4
        else:
            field, at = _varint(data, at)
        if kind in _VARINTS:
            value, at = _varint(data, at)
            if numbers is not None:
                numbers[*path, field] = (value >> 1) ^ -(value & 1)
        elif kind == _STRUCT and len(path) < _MAX_NESTING:
            at = _struct(data, at, (*path, field), numbers)
        else:
            at = _skipped(data, at, kind, len(path))
    return at + 1


def _skipped(data: bytes, at: int, kind: int, depth: int) -> int:
    """Where a value of this type ends."""
    if depth > _MAX_NESTING:
        raise BadHeader("a page's header is nested too deeply")
    if kind in (_TRUE, _FALSE):
        return at
    if kind == _BYTE:
        return at + 1
    if kind in _VARINTS:
        return _varint(data, at)[1]
    if kind == _DOUBLE:
        return at + 8
    if kind == _BINARY:
        length, at = _varint(data, at)
        if at + length > len(data):
            raise IndexError
        return at + length
    if kind in (_LIST, _SET):
        count, item = data[at] >> 4, data[at] & 15
        at += 1
        if count == 15:
            count, at = _varint(data, at)
        for _ in range(count):
            if at >= len(data):
                raise IndexError
            at = at + 1 if item in (_TRUE, _FALSE) else _skipped(data, at, item, depth + 1)
        return at
    if kind == _STRUCT:
        return _struct(data, at, (0,) * (depth + 1), None)
    raise BadHeader(f"a page's header has a value of type {kind}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise BadHeader("a number of more than 64 bits")


_CONTINUES = 0xFFFFFFFF
_MAX_METADATA = 32 << 20
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3


def decoded_stream_bytes(stream: IO[bytes]) -> int:
    """Bytes of all batches from here to the end of the stream once they are decompressed.

    Raises Damage for what is no message. A stream that is cut ends at its last whole message.
    """
    total = 0
    try:
        for metadata, body in _arrow_messages(stream):
            total += sum(_buffer_sizes(metadata, stream, body))
    except (struct.error, RecursionError) as error:
        raise Damage("malformed_record", f"not a message of Arrow: {error}") from None
    return total


def _arrow_messages(stream: IO[bytes]) -> Iterator[tuple[_Flat, int]]:
    """The metadata of each message, and where its body begins."""
    while len(head := stream.read(4)) == 4:
        (size,) = struct.unpack("<I", head)
        if size == _CONTINUES:  # Streams of before 2019 have the length alone.
            (size,) = struct.unpack("<I", stream.read(4).ljust(4, b"\0"))
        if size == 0:
            return
        if size > _MAX_METADATA:
            raise Damage("too_large", f"a message with {size:,} bytes of metadata")
        data = stream.read(size)
        if len(data) < size:
            return
        message = _Flat(data, struct.unpack_from("<I", data)[0])
        body = stream.tell()
        yield message, body
        length = message.number(3, "<q")
        if length < 0:
            raise Damage("malformed_record", "a message with a body of negative length")
        stream.seek(body + length)


def _buffer_sizes(message: _Flat, stream: IO[bytes], body: int) -> Iterator[int]:
    """Decompressed bytes of each buffer of a message."""
    kind, batch = message.number(1, "<B"), message.table(2)
    if batch is not None and kind == _DICTIONARY_BATCH:
        batch = batch.table(1)
    if batch is None or kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return
    compressed = batch.table(3) is not None
    for offset, length in batch.pairs(2):
        if compressed and length > 8:
            stream.seek(body + max(0, offset))
            (decoded,) = struct.unpack("<q", stream.read(8).ljust(8, b"\0"))
            yield max(length, decoded)  # -1: this buffer is not compressed after all.
        else:
            yield max(0, length)


class _Flat:
    """A table of a flatbuffer; struct.error if an offset is outside its bytes."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def _get(self, form: str, at: int) -> int:
        if at < 0:  # `unpack_from` would count from the end.
            raise struct.error("an offset leads out of it")
        return int(struct.unpack_from(form, self.data, at)[0])

    def _place(self, field: int) -> int | None:
        vtable = self.at - self._get("<i", self.at)
        if 4 + 2 * field >= self._get("<H", vtable):
            return None
        offset = self._get("<H", vtable + 4 + 2 * field)
        return self.at + offset if offset else None

    def number(self, field: int, form: str) -> int:
        """A number; 0 where the field is absent."""
        place = self._place(field)
        return 0 if place is None else self._get(form, place)

    def table(self, field: int) -> _Flat | None:
        """A table, or None."""
        place = self._place(field)
        return None if place is None else _Flat(self.data, place + self._get("<I", place))

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """The structs of a vector as two numbers of 64 bits each."""
        place = self._place(field)
        if place is None:
            return
        start = place + self._get("<I", place)
        for number in range(self._get("<I", start)):
            at = start + 4 + 16 * number
            yield self._get("<q", at), self._get("<q", at + 8)
