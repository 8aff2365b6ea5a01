"""Tables of blocks: the sha256 of every block of a large file, so that a part of it can be checked.

The sha256 of a whole file says nothing about a part. So beside a file of tokens or a Parquet table
of more than one block lies the sha256 of each of its blocks, 32 bytes each, one after the other;
the manifest has the sha256 of that table. Keys and output digests do not know it: it follows from
the bytes, and an artifact without one is read in whole files.

A row of 4,096 tokens has 8 or 16 KiB; a column of a Parquet table has 100 KB to some MB. The table
is a 2,048th of a token file and a 32,768th of a Parquet file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from pydantic import BaseModel, ConfigDict, Field

SIZES = {".tokens": 64 << 10, ".marks": 64 << 10, ".weights": 64 << 10, ".parquet": 1 << 20}
"""Bytes of a block, by the ending of the file's name; other files have no table."""
CHECKSUM = 32
"""Bytes of a sha256."""


class Blocks(BaseModel):
    """What a manifest says of a file's table of blocks."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes: int = Field(gt=0)
    """Of each block but the last."""
    sha256: str
    """Of the table."""

    def count(self, size: int) -> int:
        """Blocks of a file of `size` bytes."""
        return -(-size // self.bytes)

    def table_bytes(self, size: int) -> int:
        """Bytes of the table of a file of `size` bytes."""
        return CHECKSUM * self.count(size)


def block_bytes(path: str) -> int:
    """Bytes of a block of the file at `path`; 0 for a file that gets no table."""
    return SIZES.get(path[path.rfind(".") :], 0)


class BlockHasher:
    """Hashes blocks of `size` bytes of what is written to it; with size 0 nothing."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._done: list[bytes] = []
        self._hash, self._filled = hashlib.sha256(), 0

    def update(self, data: memoryview) -> None:
        """Hash some more bytes."""
        while self.size and data:
            part = data[: self.size - self._filled]
            self._hash.update(part)
            self._filled += len(part)
            data = data[len(part) :]
            if self._filled == self.size:
                self._done.append(self._hash.digest())
                self._hash, self._filled = hashlib.sha256(), 0

    @property
    def table(self) -> bytes | None:
        """The table; None if there is no more than one block, whose sha256 is the file's."""
        last = [self._hash.digest()] if self._filled else []
        checksums = [*self._done, *last]
        return b"".join(checksums) if len(checksums) > 1 else None

    @property
    def blocks(self) -> Blocks | None:
        """What the manifest says of the table."""
        table = self.table
        if table is None:
            return None
        return Blocks(bytes=self.size, sha256=hashlib.sha256(table).hexdigest())


def hash_blocks(parts: Iterable[bytes], size: int) -> tuple[str, BlockHasher]:
    """sha256 of a file that comes in parts, and those of its blocks."""
    whole, hasher = hashlib.sha256(), BlockHasher(size)
    for part in parts:
        whole.update(part)
        hasher.update(memoryview(part))
    return whole.hexdigest(), hasher


def merge(blocks: Iterable[int], gap: int) -> Iterator[range]:
    """Ascending block numbers as ranges; those with at most `gap` blocks between them are one."""
    begin = end = None
    for block in blocks:
        if begin is None or end is None:
            begin, end = block, block + 1
        elif block - end <= gap:
            end = block + 1
        else:
            yield range(begin, end)
            begin, end = block, block + 1
    if begin is not None and end is not None:
        yield range(begin, end)
