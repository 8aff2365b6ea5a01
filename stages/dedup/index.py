"""All documents of a run by one number, and `index.json`, the record of an index.

Documents of earlier indexes come first, then those that the run signed. Every reason to refuse an
index is found from its own record and the sizes of its files, before anything is read; that the
bytes are those that were committed is checked where a file is opened.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, InputError
from artifacts_schema.identity import short
from stages.dedup.index_files import (
    BLOCK,
    BLOCK_OF_SIZES,
    CLASSES,
    ID_BYTES,
    PARTS,
    VERIFYING,
    Generation,
    IndexShard,
    Part,
    Table,
    band_table,
    blocks_of_run,
    part_bytes,
)
from stages.dedup.presets import Settings
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
        sizes, _ = self.placed(ordered)
        return sizes[inverse]

    def placed(self, ordered: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Distinct shingles of documents in ascending order, and where in their file they begin."""
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
        placed: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The kept shingles of each document, ascending, end to end, and where each begins.

        `placed`, of ascending `numbers`, saves looking there once more. Offsets are
        [documents + 1].
        """
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        sizes, starts = placed or self.placed(ordered)
        kept = np.minimum(sizes, self.most)
        offsets = np.zeros(len(numbers) + 1, dtype=np.int64)
        offsets[order + 1] = kept
        np.cumsum(offsets, out=offsets)
        flat = np.empty(int(offsets[-1]), np.uint64)
        into, to = flat.view(np.uint8), 8 * offsets[order]
        for shard, begin, end in self._by_shard(ordered):
            part = slice(begin, end)
            self.files.scattered(
                shard, "shingles", 8 * starts[part], 8 * kept[part], to[part], into
            )
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
        names = ("sources", "first_new", "bands", "most", "earlier_pairs")
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


FORMAT = 2
"""Raised whenever files or record mean something else: since 2 the digits of all scripts are folded
to ASCII ones, so shingles differ from those of format 1."""
RECORD = "index.json"


@dataclass(frozen=True, eq=False)
class Index:
    """An earlier index that a run may use."""

    input: Input
    generations: tuple[Generation, ...]
    knew: tuple[tuple[str, int], ...]
    """Digest and number of documents of each generation its run knew, earlier ones first."""
    pairs: tuple[str, ...]
    """Its files of pairs."""

    @property
    def where(self) -> str:
        """For messages."""
        return _index_label(self.input)


def index_record(
    corpus: Corpus,
    settings: Settings,
    *,
    verified: bool,
    pairs: Sequence[tuple[str, int]] = (),
    kept: bool = True,
) -> dict[str, Any]:
    """The content of `index.json` for this run's own documents; `kept`: whether files go with it.

    `pairs` are the files of pairs that the index holds (`pairs/NAME.pairs`) and how many each has;
    their numbers are those of `corpus`, which `knows` lists for later runs.
    """
    if not kept:
        return {"format": FORMAT, "kept": False}
    new = [source for source in corpus.sources if not source.indexed]
    parts = [part for part in PARTS if verified or part not in VERIFYING]
    return {
        "format": FORMAT,
        "kept": True,
        "settings": asdict(settings),
        "verified": verified,
        "knows": [[source.documents, source.size] for source in corpus.sources],
        "generations": [
            {
                "documents": source.documents,
                "folder": source.folder,
                "snapshots": list(source.snapshots),
                "shards": [
                    {
                        "stem": shard.stem,
                        "documents": shard.documents,
                        "run": shard.run,
                        "compared": list(shard.compared),
                        "kept": shard.kept,
                    }
                    for shard in source.shards
                ],
            }
            for source in new
        ],
        "pairs": [[name, count] for name, count in pairs],
        "bytes": {
            part: sum(
                _part_bytes(part, shard, corpus.bands) for source in new for shard in source.shards
            )
            for part in parts
        },
    }


def read_indexes(
    inputs: Sequence[Input], settings: Settings, *, verify: bool, documents: Sequence[str]
) -> tuple[Index, ...]:
    """The earlier indexes, each after those that its run knew, else in the order of `inputs`.

    `documents` are the digests of the documents outputs to be signed. Raises InputError, which
    names the index, for one of another format or of other settings, for one without shingles where
    `verify` asks for them, and for documents that come twice; CorruptArtifact for one whose files
    are not those of its record.
    """
    indexes = [_read_index(one, settings, verify=verify) for one in inputs]
    held: dict[str, str] = {}
    for digest in documents:
        _check_unique(held, digest, "the documents of this run")
    for index in indexes:
        for generation in index.generations:
            _check_unique(held, generation.documents, index.where)
    return _in_order(indexes)


def build_corpus(indexes: Sequence[Index], new: Sequence[Generation], settings: Settings) -> Corpus:
    """All documents of the run: those of `indexes`, in their order, then the `new` ones."""
    old = [generation for index in indexes for generation in index.generations]
    sources = number_documents([*old, *new])
    starts = {source.documents: source.shards[0].start for source in sources if source.shards}
    return Corpus(
        sources=sources,
        first_new=sum(generation.size for generation in old),
        bands=settings.bands,
        most=settings.most,
        earlier_pairs=tuple(_earlier_pairs(index, starts) for index in indexes if index.pairs),
    )


def _earlier_pairs(index: Index, starts: dict[str, int]) -> EarlierPairs:
    return EarlierPairs(
        index.input,
        index.pairs,
        np.cumsum([0, *(size for _, size in index.knew)]),
        np.array([starts.get(digest, -1) for digest, _ in index.knew], dtype=np.int64),
    )


def _read_index(input_: Input, settings: Settings, *, verify: bool) -> Index:
    record = input_.read_json(RECORD) if input_.has(RECORD) else {}
    if record.get("format") != FORMAT:
        raise InputError(
            f"the index has format {record.get('format', 'unknown')}, this program reads {FORMAT}",
            where=_index_label(input_),
            hint="make it again, or use the program that made it",
        )
    if not record["kept"]:
        raise InputError(
            "no index was kept by the run that made it",
            where=_index_label(input_),
            hint="run that step with index: true, or leave its index out",
        )
    _check_settings(input_, record["settings"], settings)
    if verify and not record["verified"]:
        raise InputError(
            "the index holds no shingles: it was made without verification",
            where=_index_label(input_),
            hint="make it again with verify: true, or run with verify: false",
        )
    generations = tuple(_read_generation(input_, plain) for plain in record["generations"])
    parts = [part for part in PARTS if record["verified"] or part not in VERIFYING]
    _check_files(input_, generations, parts, settings.bands)
    knew = tuple((digest, size) for digest, size in record["knows"])
    return Index(input_, generations, knew, tuple(name for name, _ in record["pairs"]))


def _read_generation(input_: Input, plain: dict[str, Any]) -> Generation:
    shards = tuple(
        IndexShard(
            id="",
            generation=0,
            start=0,
            documents=shard["documents"],
            run=shard["run"],
            compared=tuple(shard["compared"]),
            kept=shard["kept"],
            stem=shard["stem"],
            source=input_,
            output=None,
        )
        for shard in plain["shards"]
    )
    return Generation(
        plain["documents"], plain["folder"], tuple(plain["snapshots"]), shards, indexed=True
    )


def _check_settings(input_: Input, theirs: dict[str, Any], settings: Settings) -> None:
    ours = asdict(settings)
    differing = [
        f"{name} {theirs.get(name)} (this run: {ours.get(name)})"
        for name in dict.fromkeys([*(field.name for field in fields(settings)), *theirs])
        if theirs.get(name) != ours.get(name)
    ]
    if differing:
        raise InputError(
            "the index was made with other settings: " + ", ".join(differing),
            where=_index_label(input_),
            hint="give this run the same settings, or leave the index out",
        )


def _check_files(
    input_: Input, generations: Sequence[Generation], parts: Sequence[Part], bands: int
) -> None:
    sizes = {file.path: file.bytes for file in input_.files}
    for generation in generations:
        for shard in generation.shards:
            for part in parts:
                path = f"{shard.stem}.{part}"
                expected = _part_bytes(part, shard, bands)
                if sizes.get(path) != expected:
                    held = f"{sizes[path]:,} bytes" if path in sizes else "is not there"
                    raise CorruptArtifact(
                        f"{path} should have {expected:,} bytes, but {held}",
                        where=_index_label(input_),
                        hint="make the index again",
                    )


def _part_bytes(part: Part, shard: IndexShard, bands: int) -> int:
    return part_bytes(part, shard.documents, shard.compared, shard.kept, bands, shard.run)


def _check_unique(held: dict[str, str], digest: str, where: str) -> None:
    if digest in held:
        raise InputError(
            f"documents {short(digest)} come twice: in {held[digest]} and in {where}",
            where="dedup",
            hint="leave one of them out",
        )
    held[digest] = where


def _in_order(indexes: Sequence[Index]) -> tuple[Index, ...]:
    """Each index after those whose documents its run knew, so that numbers rise as they did."""
    waiting, ordered = list(indexes), list[Index]()
    while waiting:
        missing = {g.documents for index in waiting for g in index.generations}
        for index in waiting:
            own = {generation.documents for generation in index.generations}
            if not missing & ({digest for digest, _ in index.knew} - own):
                break
        else:
            raise CorruptArtifact(
                "each of the indexes says that it was made after another one of them",
                where=", ".join(index.where for index in waiting),
                hint="make them again",
            )
        waiting.remove(index)
        ordered.append(index)
    return tuple(ordered)


def _index_label(input_: Input) -> str:
    return f"dedup_index {short(input_.digest)} of {input_.stage} {short(input_.key)}"
