"""Which documents a tokenizer is trained on, and which are held out to measure it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stages.text.draw import draw
from stages.tokenizer.weights import UNKNOWN, Asked, Cell

if TYPE_CHECKING:
    import pyarrow as pa

    from stages.engine import Shard

SALT = "tokenizer sample"
PER_OCTAVE = 256
BINS = 54 * PER_OCTAVE


@dataclass(frozen=True)
class Short:
    """A source or language of which there is less text than its share asks for, in bytes."""

    by: str
    name: str
    asked: int
    available: int


@dataclass
class Tally:
    """Documents and bytes, by source and by language."""

    documents: dict[str, Counter[str]] = field(default_factory=lambda: _counters())
    bytes: dict[str, Counter[str]] = field(default_factory=lambda: _counters())

    def add(self, cell: Cell, size: int) -> None:
        """Count a document."""
        for by, name in zip(("source", "language"), cell, strict=True):
            self.documents[by][name] += 1
            self.bytes[by][name] += size


class Sample:
    """About `max_bytes` of the shards' text, drawn by a hash of each duplicate class.

    The hash is a document's depth in (0, 1]. The lowest `held_share` of the draw is held; above it
    each source and language is trained on from the lowest depth up, until it has the bytes that its
    share of the whole asks for. So copies of a text are never both held and trained on, and a
    larger sample holds a smaller one. `trained` counts what was trained on while `training` is
    read; `short` names what there is too little of: all of it is taken, and of the rest as much as
    was asked for.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        max_bytes: int,
        held_share: float,
        check_stop: Callable[[], None],
        asked: Asked,
    ) -> None:
        self._shards, self._check_stop, self._axes = shards, check_stop, asked.axes
        self.total_documents = sum(shard.rows for shard in shards)
        self.trained = Tally()
        bins = self._bins()
        total = int(sum(sizes.sum() for sizes in bins.values()))
        self.share = min(1.0, max_bytes / max(1, total))
        self._held = self.share * held_share
        held = bin_of(self._held) if self._held else BINS
        free = {cell: sizes[: held + 1] for cell, sizes in bins.items()}
        self.available = {cell: int(sizes.sum()) for cell, sizes in free.items()}
        self.target = min(max_bytes * (1.0 - held_share), float(sum(self.available.values())))
        self.asked = asked.shares(self.available) if self.target else {}
        self._depth = {
            cell: _depth(free[cell], share * self.target) for cell, share in self.asked.items()
        }

    @property
    def bytes(self) -> int:
        """Bytes trained on so far."""
        return self.trained.bytes["source"].total()

    @property
    def documents(self) -> int:
        """Documents trained on so far."""
        return self.trained.documents["source"].total()

    def training(self) -> Iterator[str]:
        """The texts to train on."""
        for cell, depth, text in self._documents():
            if self._held < depth <= self._depth.get(cell, 0.0):
                self.trained.add(cell, len(text.encode()))
                yield text

    def held(self) -> Iterator[tuple[str, str]]:
        """(source, text) of the documents to measure on."""
        for (source, _), depth, text in self._documents():
            if depth <= self._held:
                yield source, text

    def short(self) -> list[Short]:
        """Sources and languages asked for that lack over 1 % of the bytes they should have."""
        found = []
        for by in self._axes:
            position = ("source", "language").index(by)
            for name in sorted({cell[position] for cell in self.asked}):
                cells = [cell for cell in self.asked if cell[position] == name]
                wanted = sum(self.asked[cell] * self.target for cell in cells)
                there = sum(min(self.available[c], self.asked[c] * self.target) for c in cells)
                if there < 0.99 * wanted:
                    found.append(Short(by, name, round(wanted), round(there)))
        return found

    def largest(self) -> int:
        """Bytes to train on at which nothing would be short, about."""
        fits = [self.available[cell] / share for cell, share in self.asked.items() if share]
        return int(min(fits, default=0.0))

    def _bins(self) -> dict[Cell, NDArray[np.int64]]:
        """Bytes of each source and language, by depth."""
        import pyarrow.compute as pc

        bins: dict[Cell, NDArray[np.int64]] = {}
        for table in self._tables():
            sizes = pc.binary_length(table["text"]).to_pylist()
            for cell, depth, size in zip(*_named(table), sizes, strict=True):
                if cell not in bins:
                    bins[cell] = np.zeros(BINS, dtype=np.int64)
                bins[cell][bin_of(depth)] += size
        return bins

    def _documents(self) -> Iterator[tuple[Cell, float, str]]:
        for table in self._tables():
            for batch in table.to_batches(max_chunksize=1024):
                yield from zip(*_named(batch), batch["text"].to_pylist(), strict=True)

    def _tables(self) -> Iterator[pa.Table]:
        for shard in self._shards:
            self._check_stop()
            yield shard.read(["doc_id", "duplicate_class", "source", "language", "text"])


def bin_of(depth: float) -> int:
    """Which of BINS bins a depth in (0, 1] lies in: 0 is the deepest.

    Each octave has 256 of them, so a bin is 1/256 of what lies below it, at most: a share is met
    as well where one in a million documents is drawn as where all are.
    """
    mantissa, exponent = math.frexp(depth)
    return -exponent * PER_OCTAVE + int((1.0 - mantissa) * 2 * PER_OCTAVE)


def deepest(number: int) -> float:
    """The greatest depth in a bin; 0 past the last one."""
    octave, place = divmod(number, PER_OCTAVE)
    return math.ldexp(1.0 - place / (2 * PER_OCTAVE), -octave) if number < BINS else 0.0


def _depth(sizes: NDArray[np.int64], target: float) -> float:
    """Down from which depth the bins hold the sum nearest to `target`."""
    sums = np.append(np.cumsum(sizes[::-1])[::-1], 0)
    number = int(np.abs(sums - target).argmin())
    return deepest(number) if number < len(sizes) else 0.0


def _named(table: pa.Table | pa.RecordBatch) -> tuple[list[Cell], list[float]]:
    """Source and language, and depth, of each row."""
    columns = ("doc_id", "duplicate_class", "source", "language")
    rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
    cells, depths = [], []
    for doc_id, duplicate_class, source, language in rows:
        cells.append((source, language or UNKNOWN))
        depths.append(1.0 - draw(duplicate_class or doc_id, SALT))
    return cells, depths


def _counters() -> dict[str, Counter[str]]:
    return {"source": Counter(), "language": Counter()}
