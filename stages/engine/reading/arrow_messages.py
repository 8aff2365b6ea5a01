"""Sizes of the record batches of an Arrow stream, before any is decompressed.

A stream is a row of messages: 0xFFFFFFFF, the length of the metadata, the metadata (a flatbuffer,
Message.fbs), a body. In a compressed body each buffer begins with its decompressed length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO

from stages.engine.reading.rows import Damage

_CONTINUES = 0xFFFFFFFF
_MAX_METADATA = 32 << 20
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3


def decoded_bytes(stream: IO[bytes]) -> int:
    """Bytes of all batches from here to the end of the stream once they are decompressed.

    Raises Damage for what is no message. A stream that is cut ends at its last whole message.
    """
    total = 0
    try:
        for metadata, body in _messages(stream):
            total += sum(_buffers(metadata, stream, body))
    except (struct.error, RecursionError) as error:
        raise Damage("malformed_record", f"not a message of Arrow: {error}") from None
    return total


def _messages(stream: IO[bytes]) -> Iterator[tuple[_Flat, int]]:
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


def _buffers(message: _Flat, stream: IO[bytes], body: int) -> Iterator[int]:
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
    """A table of a flatbuffer; struct.error where it leads out of its bytes."""

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
