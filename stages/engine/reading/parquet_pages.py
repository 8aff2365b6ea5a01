"""Sizes of the pages of a Parquet file, from the pages' own headers, before any is decompressed.

The footer's totals cannot be trusted for this: a reader allocates what each page's header says.
Headers are Thrift structs in the compact protocol (parquet.thrift, `PageHeader`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

_DICTIONARY_PAGE = 2
_HEAD = 256
_MAX_HEAD = 16 << 20  # A header holds the least and greatest value of its page.
_MAX_NESTING = 16
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_VARINTS = (4, 5, 6)


class BadHeader(ValueError):
    """Bytes that are no page header."""


def decoded_bytes(stream: IO[bytes], group: Any) -> tuple[int, int]:
    """(bytes of all pages of a row group, of its dictionaries of texts) once decompressed.

    A dictionary counts as often as a row of the group has values on average. `group` is pyarrow's
    metadata of the row group. BadHeader if a page has no sound header.
    """
    total = dictionaries = 0
    for number in range(group.num_columns):
        chunk = group.column(number)
        for kind, size in _pages(stream, *chunk_place(chunk)):
            total += size
            if kind == _DICTIONARY_PAGE and chunk.physical_type == "BYTE_ARRAY":
                dictionaries += size * max(1, chunk.num_values // max(1, group.num_rows))
    return total, dictionaries


def chunk_place(chunk: Any) -> tuple[int, int]:
    """(first byte, bytes) of a column chunk."""
    data, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    begin = dictionary if dictionary is not None and 0 < dictionary < data else data
    return begin, chunk.total_compressed_size


def _pages(stream: IO[bytes], begin: int, length: int) -> Iterator[tuple[int, int]]:
    """(type, decompressed bytes) of each page of a column chunk."""
    place, end = begin, begin + length
    while place < end:
        head, used = _header(stream, place)
        kind, decoded, stored = (head.get(field, 0) for field in (1, 2, 3))
        if decoded < 0 or stored < 0:
            raise BadHeader("a page of negative size")
        yield kind, decoded
        place += used + stored


def _header(stream: IO[bytes], place: int) -> tuple[dict[int, int], int]:
    """The numbers of the page header at `place` by field, and its length in bytes."""
    size = _HEAD
    while True:
        stream.seek(place)
        data = stream.read(size)
        try:
            return _struct(data, 0, 0)
        except IndexError:
            if len(data) < size or size >= _MAX_HEAD:
                raise BadHeader("a page's header is cut") from None
        size *= 16


def _struct(data: bytes, at: int, depth: int) -> tuple[dict[int, int], int]:
    """The integers of a struct by field, and where it ends; IndexError where `data` ends first."""
    numbers, field = dict[int, int](), 0
    while (head := data[at]) != _STOP:
        at += 1
        kind = head & 15
        if head >> 4:
            field += head >> 4
        else:
            field, at = _varint(data, at)
        if kind in _VARINTS:
            value, at = _varint(data, at)
            numbers[field] = (value >> 1) ^ -(value & 1)
        else:
            at = _skipped(data, at, kind, depth)
    return numbers, at + 1


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
        return _struct(data, at, depth + 1)[1]
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
