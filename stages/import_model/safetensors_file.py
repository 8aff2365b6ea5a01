"""A safetensors file that nobody vouches for, read tensor by tensor.

The format (github.com/huggingface/safetensors, "Format"): eight bytes that say how long the header
is, the header as JSON, then the tensors, which follow each other without gap or overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

import torch
from torch import Tensor

from artifacts_schema.errors import InputError
from stages.engine.strict_json import parse_object

LARGEST_HEADER = 100_000_000
"""Bytes; the limit of the safetensors library."""
TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_METADATA = "__metadata__"


@dataclass(frozen=True)
class Entry:
    """A tensor as the header describes it; `start` counts from the beginning of the file."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    bytes: int


class SafetensorsFile:
    """An open file, its header read and checked.

    InputError if the header is not what the format says, or a tensor is not of 16 or 32 bit floats.
    """

    def __init__(self, file: BinaryIO, *, bytes: int, where: str) -> None:
        self.file, self.where = file, where
        length = int.from_bytes(self._exactly(0, 8), "little")
        if length > min(LARGEST_HEADER, bytes - 8):
            raise self._wrong(f"announces a header of {length:,} bytes in a file of {bytes:,}")
        header = parse_object(self._exactly(8, length), where=where)
        header.pop(_METADATA, None)
        self.entries = {
            name: self._entry(name, described, 8 + length) for name, described in header.items()
        }
        self._check_places(8 + length, bytes)

    def read(self, name: str) -> Tensor:
        """A tensor in its own type; InputError if it holds a number that is not finite."""
        entry = self.entries[name]
        if entry.bytes == 0:
            return torch.empty(entry.shape, dtype=entry.dtype)
        raw = self._exactly(entry.start, entry.bytes)
        tensor = torch.frombuffer(raw, dtype=entry.dtype).view(entry.shape)
        if not all(one.isfinite() for one in tensor.aminmax()):  # Both are NaN if one number is.
            raise self._wrong(f"has numbers that are not finite in '{name[:80]}'")
        return tensor

    def _entry(self, name: str, described: Any, data: int) -> Entry:
        described = described if isinstance(described, dict) else {}
        dtype = described.get("dtype")
        if dtype not in TYPES:
            raise InputError(
                f"'{name[:80]}' is of type {str(dtype)[:20]}, known are {', '.join(TYPES)}",
                where=self.where,
                hint="take the weights before quantization",
            )
        shape, places = described.get("shape"), described.get("data_offsets")
        if not _counts(shape) or not _counts(places) or len(places) != 2:
            raise self._wrong(f"describes '{name[:80]}' otherwise than the format says")
        size = TYPES[dtype].itemsize
        for length in shape:
            size *= length
        if places[1] - places[0] != size:
            raise self._wrong(
                f"gives '{name[:80]}' {places[1] - places[0]:,} bytes, its shape {shape} {size:,}"
            )
        return Entry(TYPES[dtype], tuple(shape), data + places[0], size)

    def _check_places(self, data: int, end: int) -> None:
        """Each byte belongs to one tensor: nothing is hidden, nothing is read twice."""
        reached = data
        for name, entry in sorted(self.entries.items(), key=lambda item: item[1].start):
            if entry.bytes and entry.start != reached:
                raise self._wrong(f"has a gap or an overlap before '{name[:80]}'")
            reached += entry.bytes
        if reached != end:
            raise self._wrong(f"has {end:,} bytes, its tensors end at {reached:,}")

    def _exactly(self, start: int, count: int) -> bytearray:
        """So many bytes; one read of the system gives at most two gigabytes."""
        self.file.seek(start)
        found = bytearray(count)
        view, done = memoryview(found), 0
        while done < count:
            got = self.file.readinto(view[done:])  # type: ignore[attr-defined]
            if not got:
                raise self._wrong(f"ends after {start + done:,} bytes")
            done += got
        return found

    def _wrong(self, what: str) -> InputError:
        return InputError(what, where=self.where, hint="is it whole, and a safetensors file?")


def _counts(value: Any) -> bool:
    """Whether this is a list of whole numbers from 0, none of more than 64 bits."""
    return isinstance(value, list) and all(
        isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 2**63 for one in value
    )
