"""The files of an index: what a later step or run needs of each document, as little-endian arrays.

A shard's documents are divided into runs of a fixed number. Whatever is looked up by value (band
keys, digests, ids) is sorted within each run, so that a range of values is one piece of each run: a
step takes a range and merges those pieces, and never needs more than one range in memory. What is
looked up by document is in the order of documents. Files are, for a shard of n documents:

- `ids`: 16 bytes a document.
- `names`: in each run, the first 64 bits of the ids, ascending, then their rows.
- `classes`: in each run, twice (digests of the normalised words, digests of the raw texts): upper
  halves, ascending, then lower halves, then the first 64 bits of the ids, then rows.
- `keys`: in each run, for each band, the keys of the documents with shingles, ascending, then rows.
- `sizes`: in each run, blocks of 1,024 documents: where the shingles of the first one begin
  (uint64, counted in shingles), then the distinct shingles of each (uint32; the last block is
  filled up with zeros).

Values are uint64, rows (within the shard) uint32. Equal values follow each other by row, so the
bytes depend on nothing but the documents and their order.

A run that verifies also leaves `shingles` of its own documents as a scratch file: the kept
shingles of all documents of a shard end to end, those of each ascending. They take ten times the
room of the rest, so no index keeps them: those of an earlier document are computed from its text
(`earlier_texts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.identity import short
from stages.engine.inputs import Input

if TYPE_CHECKING:
    from stages.engine import ShardResult


Part = Literal["ids", "names", "classes", "keys", "sizes"]
PARTS: tuple[Part, ...] = get_args(Part)
VERIFYING: tuple[Part, ...] = ("sizes",)
"""Parts that only verification reads."""
SHINGLES = "shingles"
"""The scratch file of a run's own shard."""

BLOCK = 1_024
"""Documents of a block of sizes."""
BLOCK_OF_SIZES = np.dtype([("start", "<u8"), ("sizes", "<u4", BLOCK)])
ID_BYTES = 16
MOST_ROWS = 1 << 32
"""Documents of a shard, which rows can number."""
_RUN, _KEYS_OF_A_RUN = 1 << 16, 1 << 21


def run_documents(bands: int) -> int:
    """Documents of a run: 65,536, or fewer where they have so many bands that the keys of a run
    take more than 16 MiB; whole blocks of sizes."""
    return min(_RUN, _KEYS_OF_A_RUN // bands // BLOCK * BLOCK)


@dataclass(frozen=True)
class Table:
    """One sorted table, of which each run has a piece: the place among those of its part, and
    the columns of 64 bits that follow the sorted one."""

    part: Part
    place: int
    extras: int

    @property
    def width(self) -> int:
        """Bytes of a row."""
        return 8 * (1 + self.extras) + 4


NAMES = Table("names", 0, 0)
WORDS, TEXTS = Table("classes", 0, 2), Table("classes", 1, 2)
CLASSES = 2
"""Tables in `classes`."""


def band_table(band: int) -> Table:
    """The table of a band's keys."""
    return Table("keys", band, 0)


@dataclass(frozen=True, eq=False)
class Signed:
    """What signing found of some documents, in order. Digests and ids are [documents, 2]: upper
    half, lower half."""

    ids: NDArray[np.uint64]
    words: NDArray[np.uint64]
    texts: NDArray[np.uint64]
    keys: NDArray[np.uint64]
    """[documents, bands]"""
    compared: NDArray[np.bool_]
    """Whether the document has shingles; the keys of others mean nothing."""
    sizes: NDArray[np.int64] | None = None
    """Distinct shingles; None with `shingles` where nothing will be verified."""
    kept: NDArray[np.int64] | None = None
    """Shingles kept of each."""
    shingles: NDArray[np.uint64] | None = None
    """The kept ones, end to end."""

    def __len__(self) -> int:
        return len(self.ids)


class IndexWriter:
    """Writes the files of one shard; holds one run of documents, and no shingles.

    `files` are open for writing: all parts, or all but those of verification, and `shingles` where
    documents come with theirs.
    """

    def __init__(self, files: dict[str, IO[bytes] | Any], bands: int, run: int) -> None:
        self._files, self._run = files, run
        self._ids = np.empty((run, 2), np.uint64)
        self._words = np.empty((run, 2), np.uint64)
        self._texts = np.empty((run, 2), np.uint64)
        self._keys = np.empty((bands, run), np.uint64)
        self._compared = np.empty(run, np.bool_)
        self._sizes = np.empty(run, np.int64)
        self._kept = np.empty(run, np.int64)
        self._filled = 0
        self.documents = self.kept = self.distinct = 0
        self.compared: list[int] = []
        """Documents with shingles of each run."""

    def add(self, signed: Signed) -> None:
        """Append documents."""
        begin = 0
        while begin < len(signed):
            end = min(len(signed), begin + self._run - self._filled)
            into = slice(self._filled, self._filled + end - begin)
            self._ids[into] = signed.ids[begin:end]
            self._words[into] = signed.words[begin:end]
            self._texts[into] = signed.texts[begin:end]
            self._keys[:, into] = signed.keys[begin:end].T
            self._compared[into] = signed.compared[begin:end]
            if signed.sizes is not None and signed.kept is not None:
                self._sizes[into] = signed.sizes[begin:end]
                self._kept[into] = signed.kept[begin:end]
            self._filled, begin = into.stop, end
            if self._filled == self._run:
                self.flush()
        if signed.shingles is not None:
            self._files[SHINGLES].write(_bytes(signed.shingles, "<u8"))

    def flush(self) -> None:
        """Write the run that is held; only the last one may be a short one."""
        n, first = self._filled, self.documents
        if not n:
            return
        if first + n > MOST_ROWS:
            raise ValueError(f"a shard holds at most {MOST_ROWS:,} documents")
        rows = np.arange(first, first + n, dtype=np.uint32)
        upper = self._ids[:n, 0].copy()
        self._files["ids"].write(_bytes(self._ids[:n], ">u8"))
        self._write("names", [upper], rows)
        for digests in (self._words[:n], self._texts[:n]):
            self._write("classes", [digests[:, 0].copy(), digests[:, 1], upper], rows)
        compared = np.flatnonzero(self._compared[:n])
        for keys in self._keys:
            self._write("keys", [keys[compared]], rows[compared])
        if "sizes" in self._files:
            self._write_sizes(n)
        self.compared.append(len(compared))
        self.documents, self._filled = first + n, 0

    def _write(self, part: Part, columns: Sequence[NDArray[np.uint64]], rows: Any) -> None:
        order = ascending(columns[0])
        for column in columns:
            self._files[part].write(_bytes(column[order], "<u8"))
        self._files[part].write(_bytes(rows[order], "<u4"))

    def _write_sizes(self, n: int) -> None:
        blocks = np.zeros(blocks_of_run(n), BLOCK_OF_SIZES)
        blocks["start"] = self.kept + (np.cumsum(self._kept[:n]) - self._kept[:n])[::BLOCK]
        padded = np.zeros(blocks.size * BLOCK, np.uint32)
        padded[:n] = self._sizes[:n]
        blocks["sizes"] = padded.reshape(-1, BLOCK)
        self._files["sizes"].write(blocks.tobytes())
        self.kept += int(self._kept[:n].sum())
        self.distinct += int(self._sizes[:n].sum())


def ascending(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The order of `values`, equal ones by their place.

    Several times faster than a stable sort where few values are equal.
    """
    order = np.argsort(values)
    ordered = values[order]
    equal = ordered[1:] == ordered[:-1]
    if equal.any():
        tied = np.zeros(len(values), dtype=np.bool_)
        tied[1:] = equal
        tied[:-1] |= equal
        places = order[tied]
        order[tied] = places[np.lexsort((places, ordered[tied]))]
    return order


def _bytes(values: NDArray[Any], dtype: str) -> bytes:
    return np.ascontiguousarray(values, dtype=dtype).tobytes()


def size_blocks(documents: int, run: int) -> int:
    """Blocks of sizes of so many documents; each run begins with a new one."""
    whole, rest = divmod(documents, run)
    return whole * blocks_of_run(run) + blocks_of_run(rest)


def blocks_of_run(documents: int) -> int:
    """Blocks of sizes of a run."""
    return -(-documents // BLOCK)


def part_bytes(part: Part, documents: int, compared: Sequence[int], bands: int, run: int) -> int:
    """Size of a shard's file, from its counts."""
    return {
        "ids": documents * ID_BYTES,
        "names": documents * NAMES.width,
        "classes": documents * CLASSES * WORDS.width,
        "keys": sum(compared) * bands * band_table(0).width,
        "sizes": size_blocks(documents, run) * BLOCK_OF_SIZES.itemsize,
    }[part]


@dataclass(frozen=True, eq=False)
class IndexShard:
    """The index files of one shard of documents, on this machine or elsewhere."""

    id: str
    """Unique in its corpus."""
    generation: int
    start: int
    """Number of its first document."""
    documents: int
    run: int
    """Documents of a run; the last one may be shorter."""
    compared: tuple[int, ...]
    """Documents with shingles of each run."""
    stem: str
    """Path of its files within the output, without their endings."""
    source: Input | ShardResult
    output: str | None
    """Output of the shard's result that holds the files; None: scratch, or an earlier index."""

    def path(self, part: str) -> Path:
        """One of its files on this machine; of an earlier index, checked (`Input.local_path`)."""
        name = f"{self.stem}.{part}"
        if isinstance(self.source, Input):
            return self.source.local_path(name)
        return self.source.path(None if part == SHINGLES else self.output, name)

    @property
    def where(self) -> str:
        """For messages."""
        if isinstance(self.source, Input):
            return f"{self.stem} of dedup_index {short(self.source.digest)}"
        return self.stem


@dataclass(frozen=True, eq=False)
class Generation:
    """The documents of one documents output."""

    documents: str
    """Digest of the documents output."""
    folder: str
    """Folder of its index files within the output."""
    snapshots: tuple[str, ...]
    """Names of the snapshots that its documents came from."""
    shards: tuple[IndexShard, ...]
    indexed: bool = False
    """Whether an earlier index holds it; its documents are old."""

    @property
    def size(self) -> int:
        """Number of documents."""
        return sum(shard.documents for shard in self.shards)
