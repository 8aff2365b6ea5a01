"""Event files as TensorBoard reads them, written without it: it weighs 77 MB for these few bytes.

A file is a row of TFRecords (length, its checksum, bytes, their checksum), each one an `Event`
message of protocol buffers. Numbers of fields are those of TensorBoard's `event.proto` and
`summary.proto`; its own reader is the test's oracle.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

_CASTAGNOLI = 0x82F63B78
"""The polynomial of CRC-32C, lowest bit first (RFC 3720, appendix B.4)."""
_MASK = 0xA282EAD8
"""Added to a turned checksum, so that the checksum of data that holds one is no trap."""

WALL_TIME, STEP, FILE_VERSION, SUMMARY, SESSION_LOG = 1, 2, 3, 5, 7
"""Fields of an `Event`."""
START = 1
"""`SessionLog.SessionStatus`: what stands in earlier files from the event's step on is void."""


def _table() -> tuple[int, ...]:
    values = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_CASTAGNOLI if byte & 1 else 0)
        values.append(byte)
    return tuple(values)


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """CRC-32C of some bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """Some bytes as a TFRecord."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def version_event(wall_time: float) -> bytes:
    """What every file begins with."""
    return _time(wall_time) + _bytes(FILE_VERSION, b"brain.Event:2")


def start_event(wall_time: float, step: int) -> bytes:
    """Training begins anew with `step`: readers drop what earlier files say of it and behind it."""
    return _time(wall_time) + _number(STEP, step) + _bytes(SESSION_LOG, _number(1, START))


def scalars_event(wall_time: float, step: int, scalars: Mapping[str, float]) -> bytes:
    """Values by tag at a training step, float32 as TensorBoard keeps them."""
    values = (
        _bytes(1, _bytes(1, tag.encode()) + _key(2, 5) + struct.pack("<f", _single(value)))
        for tag, value in scalars.items()
    )
    return _time(wall_time) + _number(STEP, step) + _bytes(SUMMARY, b"".join(values))


class EventFile:
    """One event file, appended to; each event is on its way to disk when the call returns."""

    def __init__(self, path: Path, wall_time: float) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)
        self.append(version_event(wall_time))

    def append(self, event: bytes) -> None:
        """Add one event."""
        self._file.write(record(event))

    def close(self) -> None:
        """Write no more."""
        self._file.close()


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF)


def _time(wall_time: float) -> bytes:
    return _key(WALL_TIME, 1) + struct.pack("<d", wall_time)


def _number(field: int, value: int) -> bytes:
    return _key(field, 0) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, 2) + _varint(len(value)) + value


def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _varint(value: int) -> bytes:
    """Seven bits a byte, lowest first; the eighth says that more follow."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*parts, value))


def _single(value: float) -> float:
    """A value that float32 can hold: beyond its range there is infinity."""
    try:
        struct.pack("<f", value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return value
