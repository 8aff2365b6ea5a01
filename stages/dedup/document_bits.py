"""One bit for each document, in blocks of 2^20 documents on disk: copies, texts to be read.

A bit for each of 10^9 documents is 125 MB, which is too much for every process to hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stages.dedup.sorted_runs import OpenFiles

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult

BLOCK_DOCUMENTS = 1 << 20
_BITS = "bits"
_DENSE = 64
"""Of so many documents one is to be looked up: then all of their bits are read."""


@dataclass(frozen=True)
class BlockTask:
    """The documents [low, high)."""

    low: int
    high: int

    @property
    def id(self) -> str:
        """The first one's number."""
        return f"{self.low:015d}"


def block_tasks(documents: int) -> list[BlockTask]:
    """All documents, in blocks."""
    return [
        BlockTask(low, min(low + BLOCK_DOCUMENTS, documents))
        for low in range(0, documents, BLOCK_DOCUMENTS)
    ]


def write_bits(out: ShardOutput, bits: NDArray[np.bool_]) -> None:
    """Leave the bits of a block's documents as a scratch file."""
    with out.open_scratch(_BITS) as file:
        file.write(np.packbits(bits, bitorder="little").tobytes())


@dataclass(frozen=True, eq=False)
class TaskFiles:
    """The scratch files of a finished task, for `OpenFiles`."""

    result: ShardResult

    @property
    def id(self) -> str:
        """The task's."""
        return self.result.id

    def path(self, part: str) -> Path:
        """One of them on this machine."""
        return self.result.scratch_path(part)


@dataclass(frozen=True, eq=False)
class DocumentBits:
    """The bits of all documents. Picklable; holds nothing, reads from files when called."""

    blocks: tuple[TaskFiles, ...]
    """In the order of `block_tasks`."""
    documents: int
    files: OpenFiles = field(default_factory=OpenFiles)

    def between(self, low: int, high: int) -> NDArray[np.bool_]:
        """The bits of the documents [low, high)."""
        bits = np.empty(high - low, dtype=np.bool_)
        at = 0
        for block, begin, end in self.spans(low, high):
            start = begin // 8
            packed = self.files.read(block, _BITS, start, -(-end // 8) - start)
            unpacked = np.unpackbits(packed, bitorder="little")
            bits[at : at + end - begin] = unpacked[begin - 8 * start : end - 8 * start]
            at += end - begin
        return bits

    def at(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The bit of each document, in any order."""
        if not len(numbers):
            return np.empty(0, dtype=np.bool_)
        low, high = int(numbers.min()), int(numbers.max()) + 1
        if high - low <= _DENSE * len(numbers):
            return self.between(low, high)[numbers - low]
        ordered, inverse = np.unique(numbers, return_inverse=True)
        bits = np.empty(len(ordered), dtype=np.bool_)
        edges = np.searchsorted(ordered, np.arange(len(self.blocks) + 1) * BLOCK_DOCUMENTS)
        for place in np.flatnonzero(np.diff(edges)).tolist():
            part = slice(int(edges[place]), int(edges[place + 1]))
            within = ordered[part] - place * BLOCK_DOCUMENTS
            packed = self.files.gathered(self.blocks[place], _BITS, within // 8, 1)[:, 0]
            bits[part] = packed >> (within % 8).astype(np.uint8) & np.uint8(1)
        return bits[inverse]

    def spans(self, low: int, high: int) -> list[tuple[TaskFiles, int, int]]:
        """Blocks that hold documents of [low, high), and which places of theirs."""
        if not 0 <= low <= high <= self.documents:
            raise ValueError(f"[{low}, {high}) is not within the {self.documents} documents")
        return [
            (
                self.blocks[place],
                max(low - place * BLOCK_DOCUMENTS, 0),
                min(high - place * BLOCK_DOCUMENTS, BLOCK_DOCUMENTS),
            )
            for place in range(low // BLOCK_DOCUMENTS, -(-high // BLOCK_DOCUMENTS))
        ]
