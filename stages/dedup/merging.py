"""Several indexes as one: small shards joined, and all pairs in one numbering.

A later run finds the same pairs and classes by the merged index as by those that it was made of:
generations and the order of documents stay. Consecutive shards of a generation are joined until
they have MERGED_DOCUMENTS, and sorted again in runs of the usual length, so that they are the files
that signing would have written for one shard of these documents. A shard of a merged index never
holds two generations, and a shard that stays alone is copied.

A process holds one run of documents, or some pairs; neither grows with the index.

`dedup` joins small shards of its own in the same way before it reads ranges of keys and digests:
every task of a range reads a piece of every shard, so that without it tasks times shards grows with
the square of the shards. The index that it writes keeps the shards of its documents.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.dedup.index import Corpus, EarlierPairs, number_documents
from stages.dedup.index_files import (
    ID_BYTES,
    PARTS,
    SHINGLES,
    TEXTS,
    VERIFYING,
    WORDS,
    Generation,
    IndexShard,
    IndexWriter,
    Signed,
    band_table,
    run_documents,
)
from stages.dedup.pairs import VERIFIED, PairFiles, renumber_pairs
from stages.dedup.verification import cut_ranges

if TYPE_CHECKING:
    from stages.dedup.index_record import Index
    from stages.dedup.presets import Settings
    from stages.dedup.sorted_runs import SortedRun
    from stages.engine import Context, ShardOutput, ShardResult

MERGED_DOCUMENTS = 1 << 20
"""Documents at most of a shard that is joined from smaller ones."""
MERGED_PAIRS = 1 << 22
"""Pairs at most of a file that is joined from smaller ones: 104 MiB."""
PAIRS_AT_ONCE = 1 << 17
SMALL_DOCUMENTS = 1 << 11
"""Documents at most of a shard that `dedup` joins with its neighbours before it reads ranges."""
SMALL_SHARDS = 256
"""Shards at most that it joins: one task reads them all."""
_OUTPUT = "dedup_index"


def check_alike(indexes: Sequence[Index]) -> None:
    """Raise InputError where some runs verified pairs and others did not."""
    without = [index for index in indexes if not index.verified]
    if 0 < len(without) < len(indexes):
        raise InputError(
            "the index was made without verification, others that are to be merged with it",
            where=without[0].where,
            hint="make it again with verify: true, or merge it with others of verify: false",
        )


@dataclass(frozen=True, eq=False)
class JoinedShard:
    """Consecutive shards of a generation, one or several, that become one."""

    id: str
    stem: str
    shards: tuple[IndexShard, ...]


def joined_shards(generation: Generation, place: int) -> list[JoinedShard]:
    """The shards of a merged index for one generation, the `place`th of all."""
    groups: list[list[IndexShard]] = []
    size = 0
    for shard in generation.shards:
        if groups and size + shard.documents <= MERGED_DOCUMENTS:
            groups[-1].append(shard)
            size += shard.documents
        else:
            groups.append([shard])
            size = shard.documents
    return [
        JoinedShard(f"{place:05d}-{number:05d}", f"{generation.folder}/{number:05d}", tuple(group))
        for number, group in enumerate(groups)
    ]


def join_small_shards(
    context: Context, generations: Sequence[Generation], settings: Settings, *, verified: bool
) -> list[Generation]:
    """The generations with their small neighbouring shards joined, in scratch files.

    Documents keep their order, so their numbers stay; larger shards stay as they are.
    """
    joined: list[list[IndexShard | JoinedShard]] = []
    for place, generation in enumerate(generations):
        groups = _small_groups(generation.shards)
        joined.append(
            [
                group[0]
                if len(group) == 1
                else JoinedShard(
                    f"{place:05d}-{number:05d}", f"{place:05d}/{number:05d}", tuple(group)
                )
                for number, group in enumerate(groups)
            ]
        )
    items = [one for shards in joined for one in shards if isinstance(one, JoinedShard)]
    if not items:
        return list(generations)
    results = context.map(join_shards, items, settings=settings, verified=verified, output=None)
    made = {
        item.id: _index_shard(item, result, output=None)
        for item, result in zip(items, results, strict=True)
    }
    return [
        replace(
            generation,
            shards=tuple(made[one.id] if isinstance(one, JoinedShard) else one for one in shards),
        )
        for generation, shards in zip(generations, joined, strict=True)
    ]


def _small_groups(shards: Sequence[IndexShard]) -> list[list[IndexShard]]:
    """The shards in order; small neighbours together."""
    groups: list[list[IndexShard]] = []
    is_open = False
    for shard in shards:
        is_small = shard.documents <= SMALL_DOCUMENTS
        if is_open and is_small and len(groups[-1]) < SMALL_SHARDS:
            groups[-1].append(shard)
        else:
            groups.append([shard])
        is_open = is_small
    return groups


def join_shards(
    item: JoinedShard,
    out: ShardOutput,
    *,
    settings: Settings,
    verified: bool,
    output: str | None = _OUTPUT,
) -> dict[str, Any]:
    """Write the files of a joined shard to `output`, or as scratch files where it is None.

    A joined one of this run has its shingles too. Returns its `documents`, `run` and `compared`.
    """
    parts: list[str] = [part for part in PARTS if verified or part not in VERIFYING]
    copied = parts if len(item.shards) == 1 else []
    if verified and output is None:
        parts, copied = [*parts, SHINGLES], [*copied, SHINGLES]
    with ExitStack() as stack:
        files: dict[str, Any] = {
            part: stack.enter_context(_opened(out, output, f"{item.stem}.{part}")) for part in parts
        }
        for part in copied:
            for shard in item.shards:
                with open(shard.path(part), "rb") as file:
                    shutil.copyfileobj(file, files[part])
        if len(item.shards) == 1:
            shard = item.shards[0]
            return _counts(shard.documents, shard.run, shard.compared)
        run = run_documents(settings.bands)
        writer = IndexWriter(files, settings.bands, run)
        for signed in read_signed(item.shards, settings, verified=verified):
            writer.add(signed)
        writer.flush()
        return _counts(writer.documents, run, writer.compared)


def _opened(out: ShardOutput, output: str | None, path: str) -> Any:
    return out.open_scratch(path) if output is None else out.open(output, path)


def _counts(documents: int, run: int, compared: Sequence[int]) -> dict[str, Any]:
    return {"documents": documents, "run": run, "compared": list(compared)}


def read_signed(
    shards: Sequence[IndexShard], settings: Settings, *, verified: bool
) -> Iterator[Signed]:
    """What signing found of the documents of some shards, a run at a time, without shingles."""
    (source,) = number_documents([Generation("", "", (), tuple(shards))])
    corpus = Corpus((source,), 0, settings.bands, settings.most)
    words, texts = corpus.runs(WORDS), corpus.runs(TEXTS)
    bands = [corpus.runs(band_table(band)) for band in range(settings.bands)]
    for shard in corpus.shards:
        for place, compared in enumerate(shard.compared):
            first = place * shard.run
            n = min(shard.run, shard.documents - first)
            ids = corpus.files.read(shard, "ids", first * ID_BYTES, n * ID_BYTES)
            keys, has_keys = np.zeros((n, settings.bands), np.uint64), np.zeros(n, np.bool_)
            for band, runs in enumerate(bands if compared else ()):
                rows, keys_of_rows = _read_run(next(runs), shard.start + first)
                keys[rows, band], has_keys[rows] = keys_of_rows[:, 0], True
            sizes = kept = None
            if verified:
                numbers = np.arange(n) + shard.start + first
                sizes = corpus.sizes(numbers)
                kept = np.minimum(sizes, settings.most)
            yield Signed(
                ids=ids.view(">u8").astype(np.uint64).reshape(-1, 2),
                words=_by_row(next(words), shard.start + first),
                texts=_by_row(next(texts), shard.start + first),
                keys=keys,
                compared=has_keys,
                sizes=sizes,
                kept=kept,
            )
    corpus.files.close()


def _by_row(run: SortedRun, first: int) -> NDArray[np.uint64]:
    """Upper and lower halves of the digests of a run in the order of documents: [documents, 2]."""
    rows, columns = _read_run(run, first)
    halves = np.empty_like(columns)
    halves[rows] = columns
    return halves


def _read_run(run: SortedRun, first: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Rows from document `first` on, and the value of each with the column after it, if any."""
    columns = [run.values(0, run.count)]
    if run.table.extras:
        columns.append(run.extra(1, 0, run.count))
    return run.numbers(0, run.count) - first, np.stack(columns, axis=1)


def merged_generations(
    generations: Sequence[Generation], items: Sequence[JoinedShard], results: Sequence[ShardResult]
) -> list[Generation]:
    """The generations of the merged index, from what `join_shards` returned for `items`."""
    shards: dict[str, list[IndexShard]] = {one.folder: [] for one in generations}
    for item, result in zip(items, results, strict=True):
        shards[item.stem.split("/")[0]].append(_index_shard(item, result, output=_OUTPUT))
    return [
        replace(generation, shards=tuple(shards[generation.folder]), indexed=False)
        for generation in generations
    ]


def _index_shard(item: JoinedShard, result: ShardResult, *, output: str | None) -> IndexShard:
    """The shard that `join_shards` wrote."""
    value = result.value
    return replace(
        item.shards[0],
        documents=value["documents"],
        run=value["run"],
        compared=tuple(value["compared"]),
        stem=item.stem,
        source=result,
        output=output,
    )


# Pairs -------------------------------------------------------------------------------------------


def merged_numbering(indexes: Sequence[Index]) -> list[tuple[str, int]]:
    """Digest and number of documents of every generation that the runs knew, for common numbers.

    Those that no index holds come first, so that in every pair the indexed document stays the
    newer one.
    """
    own = {one.documents: one.size for index in indexes for one in index.generations}
    knew = dict(entry for index in indexes for entry in index.knew)
    return [*((digest, size) for digest, size in knew.items() if digest not in own), *own.items()]


@dataclass(frozen=True, eq=False)
class JoinedPairs:
    """Files of pairs of one index that become one."""

    id: str
    name: str
    pairs: EarlierPairs


def joined_pairs(indexes: Sequence[Index]) -> list[JoinedPairs]:
    """The files of pairs of a merged index."""
    numbering = merged_numbering(indexes)
    ends = np.cumsum([size for _, size in numbering], dtype=np.int64)
    starts = {digest: int(end) - size for (digest, size), end in zip(numbering, ends, strict=True)}
    items: list[JoinedPairs] = []
    for index in indexes:
        sizes = {file.path: file.bytes for file in index.input.files}
        groups: list[list[str]] = []
        held = 0
        for name in index.pairs:
            count = sizes[name] // VERIFIED.itemsize
            if groups and held + count <= MERGED_PAIRS:
                groups[-1].append(name)
                held += count
            else:
                groups.append([name])
                held = count
        there = np.cumsum([0, *(size for _, size in index.knew)], dtype=np.int64)
        here = np.array([starts[digest] for digest, _ in index.knew], dtype=np.int64)
        for group in groups:
            number = f"{len(items):05d}"
            pairs = EarlierPairs(index.input, tuple(group), there, here)
            items.append(JoinedPairs(number, f"pairs/{number}.pairs", pairs))
    return items


def join_pairs(item: JoinedPairs, out: ShardOutput) -> dict[str, Any]:
    """Write pairs in the numbers of the merged index, sorted as before; returns how `many`."""
    many = 0
    with out.open(_OUTPUT, item.name) as file:
        for name in item.pairs.files:
            pairs = PairFiles.open([item.pairs.path(name)], VERIFIED)
            for low, high in cut_ranges([pairs], 0, int(item.pairs.starts[-1]), PAIRS_AT_ONCE):
                records = renumber_pairs(
                    pairs.between(low, high), item.pairs.starts, item.pairs.here
                )
                file.write(records.tobytes())
                many += len(records)
    return {"many": many}
