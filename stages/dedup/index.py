"""All documents of a run by one number: those of earlier indexes, then the run's own."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stages.dedup.document_bits import TaskFiles
from stages.dedup.index_files import (
    BLOCK,
    BLOCK_OF_SIZES,
    CLASSES,
    ID_BYTES,
    SHINGLES,
    Generation,
    IndexShard,
    Table,
    band_table,
    blocks_of_run,
)
from stages.dedup.pairs import PairFiles
from stages.dedup.sorted_runs import END, OpenFiles, SortedRun
from stages.engine.inputs import Input

_BLOCKS_AT_ONCE = 256
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


@dataclass(frozen=True, eq=False)
class EarlierPairs:
    """Pairs that an earlier run verified, in its own numbers: see `pairs.renumber_pairs`."""

    source: Input
    files: tuple[str, ...]
    starts: NDArray[np.int64]
    """First numbers of the generations that the run knew, and the end of the last."""
    here: NDArray[np.int64]
    """First numbers of the same generations in this run; -1 for one that this run does not have."""

    def path(self, file: str) -> Path:
        """One of the files on this machine, checked."""
        return self.source.local_path(file)


PLACED = np.dtype([("right", "<i8"), ("start", "<i8"), ("file", "<i4")])
"""An earlier document whose text was read, where its shingles begin, and in which file. The first
column has the name by which `pairs.PairFiles` finds its way."""


class Placed(NamedTuple):
    """Where the shingles of some documents lie; each field is int64 [documents]."""

    sizes: NDArray[np.int64]
    """Distinct shingles, kept or not."""
    starts: NDArray[np.int64]
    """Where the kept ones begin in their file, counted in shingles."""
    files: NDArray[np.int64]
    """Of an earlier document the file of `EarlierShingles`, -1 where its text was not read. A new
    one's are in the file of its own shard; the field means nothing there."""

    def some(self, places: NDArray[np.int64]) -> Placed:
        """Those at some places."""
        return Placed(self.sizes[places], self.starts[places], self.files[places])


@dataclass(frozen=True, eq=False)
class EarlierShingles:
    """Shingles of the earlier documents whose texts were read, in scratch files."""

    files: tuple[TaskFiles, ...]
    placed: PairFiles
    """PLACED, ascending over all files."""

    def locate(
        self, ordered: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Of ascending documents those that were read (their places), their starts and files."""
        known = self.placed.records_for(ordered, None)
        assert known is not None
        return np.searchsorted(ordered, known["right"]), known["start"], known["file"]

    def read(
        self,
        placed: Placed,
        kept: NDArray[np.int64],
        to: NDArray[np.int64],
        into: NDArray[np.uint8],
        files: OpenFiles,
    ) -> None:
        """Copy the `kept` shingles of ascending documents to their places `to` in `into`."""
        if len(placed.files) and placed.files.min() < 0:
            raise AssertionError("shingles of earlier documents whose texts were not read")
        edges = np.searchsorted(placed.files, np.arange(len(self.files) + 1))
        for file in np.flatnonzero(np.diff(edges)).tolist():
            part = slice(int(edges[file]), int(edges[file + 1]))
            starts = 8 * placed.starts[part]
            files.scattered(self.files[file], SHINGLES, starts, 8 * kept[part], to[part], into)


@dataclass(frozen=True, eq=False)
class Corpus:
    """All documents of a run; holds counts and places, and reads the rest from files when needed.

    Picklable: a process that has it already keeps its own, with its open files.
    """

    sources: tuple[Generation, ...]
    first_new: int
    """Number of the first document of this run's own."""
    bands: int
    most: int
    """Shingles kept of a document."""
    earlier_pairs: tuple[EarlierPairs, ...] = ()
    earlier_shingles: EarlierShingles | None = None
    """Those of the earlier documents that candidates need."""
    files: OpenFiles = field(default_factory=OpenFiles)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """First number of each generation and the end of the last: [generations + 1]."""
        return np.cumsum([0, *(generation.size for generation in self.sources)])

    @cached_property
    def shards(self) -> tuple[IndexShard, ...]:
        """Every shard, in the order of its documents' numbers."""
        return tuple(shard for generation in self.sources for shard in generation.shards)

    @property
    def documents(self) -> int:
        """Number of documents."""
        return int(self.starts[-1])

    @property
    def new(self) -> tuple[Generation, ...]:
        """The documents that no earlier index holds."""
        return tuple(source for source in self.sources if not source.indexed)

    @property
    def knew(self) -> list[tuple[str, int]]:
        """Digest and number of documents of each generation."""
        return [(source.documents, source.size) for source in self.sources]

    def compared(self, *, new: bool) -> int:
        """Documents with shingles, of this run's own shards or of the earlier ones."""
        sources = (source for source in self.sources if source.indexed != new)
        return sum(sum(shard.compared) for source in sources for shard in source.shards)

    def generations(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The generation of each document."""
        return np.searchsorted(self.starts, numbers, side="right") - 1

    # By document ---------------------------------------------------------------------------------

    def ids(self, numbers: NDArray[np.int64]) -> pa.StringArray:
        """The ids, 32 hex digits each."""
        id_bytes, inverse = self._id_bytes(numbers)
        digits = np.empty((len(id_bytes), 2 * ID_BYTES), np.uint8)
        digits[:, 0::2], digits[:, 1::2] = _HEX[id_bytes >> 4], _HEX[id_bytes & 15]
        offsets = np.arange(len(numbers) + 1, dtype=np.int32) * np.int32(2 * ID_BYTES)
        text = pa.py_buffer(digits[inverse].tobytes())
        return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), text)

    def rank_ids(self, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The first 64 bits of the ids."""
        id_bytes, inverse = self._id_bytes(numbers)
        upper = np.ascontiguousarray(id_bytes[:, :8]).view(">u8").astype(np.uint64).ravel()
        return upper[inverse]

    def sizes(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Distinct shingles of each document, kept or not."""
        ordered, inverse = np.unique(numbers, return_inverse=True)
        return self._sizes_and_starts(ordered)[0][inverse]

    def placed(self, ordered: NDArray[np.int64]) -> Placed:
        """Where the shingles of documents in ascending order lie, and how many there are."""
        sizes, starts = self._sizes_and_starts(ordered)
        files = np.full(len(ordered), -1, np.int64)
        if self.earlier_shingles is not None:
            old = ordered[: np.searchsorted(ordered, self.first_new)]
            read, begins, numbers = self.earlier_shingles.locate(old)
            starts[read], files[read] = begins, numbers
        return Placed(sizes, starts, files)

    def _sizes_and_starts(
        self, ordered: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Distinct shingles, and where in their file they began when the document was new."""
        sizes, starts = np.empty(len(ordered), np.int64), np.empty(len(ordered), np.int64)
        for shard, begin, end in self._by_shard(ordered):
            run, within = np.divmod(ordered[begin:end] - shard.start, shard.run)
            blocks = run * blocks_of_run(shard.run) + within // BLOCK
            slots = within % BLOCK
            different, block_of_row = np.unique(blocks, return_inverse=True)
            for low in range(0, len(different), _BLOCKS_AT_ONCE):
                high = low + _BLOCKS_AT_ONCE
                first, last = np.searchsorted(block_of_row, [low, high])
                read = self.files.gathered(
                    shard, "sizes", different[low:high], BLOCK_OF_SIZES.itemsize
                )
                held = read.view(BLOCK_OF_SIZES).ravel()
                kept = np.minimum(held["sizes"].astype(np.int64), self.most)
                before = np.cumsum(kept, axis=1) - kept + held["start"].astype(np.int64)[:, None]
                at, slot = block_of_row[first:last] - low, slots[first:last]
                sizes[begin + first : begin + last] = held["sizes"][at, slot]
                starts[begin + first : begin + last] = before[at, slot]
        return sizes, starts

    def shingles(
        self,
        numbers: NDArray[np.int64],
        placed: Placed | None = None,
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The kept shingles of each document, ascending, end to end, and where each begins.

        `placed`, of ascending `numbers`, saves looking there once more. Of earlier documents only
        those of `earlier_shingles` can be read. Offsets are [documents + 1].
        """
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        if placed is None:
            placed = self.placed(ordered)
        kept = np.minimum(placed.sizes, self.most)
        offsets = np.zeros(len(numbers) + 1, dtype=np.int64)
        offsets[order + 1] = kept
        np.cumsum(offsets, out=offsets)
        flat = np.empty(int(offsets[-1]), np.uint64)
        into, to = flat.view(np.uint8), 8 * offsets[order]
        old = int(np.searchsorted(ordered, self.first_new))
        if old:
            assert self.earlier_shingles is not None
            first = Placed(*(column[:old] for column in placed))
            self.earlier_shingles.read(first, kept[:old], to[:old], into, self.files)
        for shard, begin, end in self._by_shard(ordered[old:]):
            part = slice(old + begin, old + end)
            starts = 8 * placed.starts[part]
            self.files.scattered(shard, SHINGLES, starts, 8 * kept[part], to[part], into)
        return flat, offsets

    # By value ------------------------------------------------------------------------------------

    def runs(self, table: Table, *, new: bool | None = None) -> Iterator[SortedRun]:
        """The pieces of a sorted table, in the order of numbers; `new`: of this run's own shards
        or of the earlier ones only."""
        tables = {"keys": self.bands, "classes": CLASSES}.get(table.part, 1)
        for shard in self.shards:
            if new is not None and new == self.sources[shard.generation].indexed:
                continue
            start = 0
            for place, compared in enumerate(shard.compared):
                count = compared
                if table.part != "keys":
                    count = min(shard.run, shard.documents - place * shard.run)
                if count:
                    begin = start + table.place * count * table.width
                    yield SortedRun(self.files, shard, table, begin, count)
                start += tables * count * table.width

    def keys(
        self, band: int, low: int = 0, high: int = END
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Keys of a band in [low, high), and whose they are."""
        keys, numbers = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
        for run in self.runs(band_table(band)):
            begin, end = run.below(low), run.below(high)
            keys.append(run.values(begin, end))
            numbers.append(run.numbers(begin, end))
        return np.concatenate(keys), np.concatenate(numbers)

    # ---------------------------------------------------------------------------------------------

    @cached_property
    def _shard_starts(self) -> NDArray[np.int64]:
        return np.array([*(shard.start for shard in self.shards), self.documents], dtype=np.int64)

    def _by_shard(self, ordered: NDArray[np.int64]) -> Iterator[tuple[IndexShard, int, int]]:
        """The shards that the ascending numbers are in, each with its range of them."""
        if len(ordered) and not 0 <= ordered[0] <= ordered[-1] < self.documents:
            raise ValueError(f"documents are numbered from 0 to {self.documents - 1}")
        edges = np.searchsorted(ordered, self._shard_starts)
        for place in np.flatnonzero(np.diff(edges)).tolist():
            yield self.shards[place], int(edges[place]), int(edges[place + 1])

    def _id_bytes(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Ids of the distinct numbers, ascending [n, 16], and which of them each number has."""
        ordered, inverse = np.unique(numbers, return_inverse=True)
        id_bytes = np.empty((len(ordered), ID_BYTES), np.uint8)
        for shard, begin, end in self._by_shard(ordered):
            rows = ordered[begin:end] - shard.start
            id_bytes[begin:end] = self.files.gathered(shard, "ids", rows, ID_BYTES)
        return id_bytes, inverse

    @cached_property
    def _packed(self) -> bytes:
        names = ("sources", "first_new", "bands", "most", "earlier_pairs", "earlier_shingles")
        return zlib.compress(pickle.dumps({name: getattr(self, name) for name in names}), 1)

    def __reduce__(self) -> tuple[Any, ...]:
        """Packed once, however many tasks it goes with: from a stage to its own processes only."""
        return _unpack_corpus, (self._packed,)


@lru_cache(maxsize=2)
def _unpack_corpus(packed: bytes) -> Corpus:
    return Corpus(**pickle.loads(zlib.decompress(packed)))


def number_documents(generations: Sequence[Generation]) -> tuple[Generation, ...]:
    """The generations with their numbers: those of shards rise, and so do those of generations."""
    numbered, start = [], 0
    for place, generation in enumerate(generations):
        shards = []
        for shard in generation.shards:
            identity = f"{place:03d}-{shard.stem.replace('/', '-')}"
            shards.append(replace(shard, id=identity, generation=place, start=start))
            start += shard.documents
        numbered.append(replace(generation, shards=tuple(shards)))
    return tuple(numbered)
