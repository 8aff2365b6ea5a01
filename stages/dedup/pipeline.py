"""From signed documents to tables: candidates, verification, two-hop pairs, recall, statistics.

Maps return counts that add up, so that no pair is held in order to be counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS
from stages.dedup.candidates import bucket_tasks, propose, proposed_pairs
from stages.dedup.earlier_texts import mark_candidates, read_shingles
from stages.dedup.pairs import BYTES_AT_WORK, Pairs
from stages.dedup.presets import candidate_probability
from stages.dedup.recall import choose_sample, draw_sample, recall, scan, scan_tasks
from stages.dedup.two_hop import (
    VerifiedPairs,
    earlier_tasks,
    find_two_hop_pairs,
    split_by_generation,
    translate_pairs,
)
from stages.dedup.verification import (
    STEPS,
    Measure,
    cut_ranges,
    keep_of_pieces,
    nearest_partners,
    pair_tasks,
    ranks,
    verify_pairs,
)
from stages.engine.arrays import arrow_array
from stages.engine.outputs import ROW_GROUP

if TYPE_CHECKING:
    from stages.dedup.config import Budget
    from stages.dedup.exact import Classes
    from stages.dedup.index import Corpus
    from stages.dedup.index_files import IndexShard
    from stages.dedup.presets import Settings
    from stages.engine import Context, Input, ShardOutput, ShardResult


PAIRS_PER_TASK = 1 << 16
SCANNED_PER_TASK = 1 << 16


@dataclass(frozen=True)
class ComparedDocuments:
    """The pairs of this run's documents, and what the maps that found them counted."""

    pairs: list[VerifiedPairs]
    """Of each new generation."""
    capped_buckets: int
    verified: list[dict[str, Any]]
    """What `verify_pairs` returned for pairs of bands."""
    closed: list[dict[str, Any]]
    """The same for two-hop pairs."""
    recall: dict[str, Any] | None


def compare_documents(
    context: Context,
    corpus: Corpus,
    classes: Classes,
    memory: Budget,
    earlier: Mapping[str, Input],
) -> ComparedDocuments:
    """All pairs with a new document that reach the config's floor.

    `earlier` has the documents outputs of the earlier indexes, by digest.
    """
    config = context.config
    buckets = context.map(
        propose,
        bucket_tasks(corpus, memory.rows),
        corpus=corpus,
        classes=classes,
        max_bucket=config.max_bucket,
        rows=memory.rows,
        pairs_at_once=memory.pairs,
    )
    candidates = proposed_pairs(buckets)
    per_task = min(PAIRS_PER_TASK, memory.bytes // (2 * BYTES_AT_WORK))
    tasks = pair_tasks(candidates, corpus, per_task)
    closes = config.verify and config.closure
    earlier_pairs: list[ShardResult] = []
    if config.verify and corpus.first_new:
        marked = mark_candidates(context, corpus, candidates, tasks)
        if closes:
            pairs_tasks = earlier_tasks(corpus, per_task)
            earlier_pairs = context.map(translate_pairs, pairs_tasks, candidates=marked)
        shingles = read_shingles(context, corpus, earlier, marked, earlier_pairs)
        corpus = replace(corpus, earlier_shingles=shingles)
    verified = context.map(
        verify_pairs,
        tasks,
        corpus=corpus,
        candidates=candidates,
        measure=config.measure,
        floor=config.floor,
        verify=config.verify,
        bytes_at_once=memory.shingle_bytes,
    )
    new = range(_first_new_generation(corpus), len(corpus.sources))
    pairs = split_by_generation(new, tasks, verified)
    closed: list[ShardResult] = []
    if closes:
        pairs, closed = _two_hop_pairs(context, corpus, earlier_pairs, pairs, memory, per_task)
    return ComparedDocuments(
        pairs,
        sum(result.value["capped"] for result in buckets),
        [result.value for result in verified],
        [result.value for result in closed],
        _measure_recall(context, corpus, classes, pairs, memory) if config.verify else None,
    )


def _first_new_generation(corpus: Corpus) -> int:
    return sum(source.indexed for source in corpus.sources)


def _two_hop_pairs(
    context: Context,
    corpus: Corpus,
    earlier: Sequence[ShardResult],
    pairs: Sequence[VerifiedPairs],
    memory: Budget,
    per_task: int,
) -> tuple[list[VerifiedPairs], list[ShardResult]]:
    """`pairs` with the two-hop pairs, through pairs of earlier indexes as well."""
    closed, results = find_two_hop_pairs(
        context.map,
        corpus,
        [VerifiedPairs.from_results(-1, earlier), *pairs],
        floor=context.config.floor,
        measure=context.config.measure,
        bytes_at_once=memory.pair_bytes,
        shingle_bytes=memory.shingle_bytes,
        pairs_per_task=per_task,
    )
    return [one for one in closed if one.generation >= 0], results


def _measure_recall(
    context: Context,
    corpus: Corpus,
    classes: Classes,
    pairs: Sequence[VerifiedPairs],
    memory: Budget,
) -> dict[str, Any] | None:
    """Which pairs there are between a sample and all new documents, and which were found."""
    config = context.config
    tasks = scan_tasks(corpus.first_new, corpus.documents, SCANNED_PER_TASK)
    if not config.recall_sample or not tasks:
        return None
    drawn = context.map(
        draw_sample, tasks, corpus=corpus, classes=classes, sample=config.recall_sample
    )
    sample = choose_sample(drawn, corpus, config.recall_sample)
    if not len(sample):
        return None
    scanned = context.map(
        scan,
        tasks,
        corpus=corpus,
        classes=classes,
        pairs=pairs,
        sample=sample,
        floor=config.floor,
        bytes_at_once=memory.shingle_bytes,
    )
    return recall([result.value for result in scanned], len(sample), config.floor)


_SCHEMA = KINDS["duplicates"].tables["*/*.parquet"].arrow()
_ITEM = _SCHEMA.field("partners").type.value_type
_STEPS = 10
"""Similarity is ranked in steps of 1 / _STEPS when a list of partners has to be capped."""


@dataclass(frozen=True)
class DuplicatesShard:
    """Documents [start, start + documents) of one generation, and the files about them."""

    id: str
    generation: int
    start: int
    documents: int
    table: str
    """Path of the table in `duplicates`."""
    pairs: str | None
    """Path of the pairs in `dedup_index`; None where no index is written."""


def duplicates_shard(
    item: DuplicatesShard,
    out: ShardOutput,
    *,
    corpus: Corpus,
    classes: Classes,
    pairs: Sequence[VerifiedPairs],
    measure: Measure,
    max_partners: int,
    bytes_at_once: int,
) -> dict[str, Any]:
    """Write the table of one shard, and its pairs for a later run; returns counts.

    Of `pairs` those of the shard's generation are read: at most `bytes_at_once` of them are in
    memory, and the lists of one row group.
    """
    records = max(bytes_at_once // BYTES_AT_WORK, 1)
    own = next(one for one in pairs if one.generation == item.generation)
    end = item.start + item.documents
    documents_with_pairs = capped = 0
    with out.table_writer("duplicates", item.table, _SCHEMA) as writer:
        for low in range(item.start, end, ROW_GROUP):
            high = min(low + ROW_GROUP, end)
            counts = np.zeros(high - low, dtype=np.int64)
            partners = _partner_lists(
                low, high, counts, corpus, own, measure, max_partners, records
            )
            writer.write(duplicates_rows(low, high, partners, corpus, classes))
            documents_with_pairs += int((counts > 0).sum())
            capped += int((counts > max_partners).sum())
    stored = _store_pairs(item, out, own, records) if item.pairs else 0
    return {
        "documents_with_pairs": documents_with_pairs,
        "capped_documents": capped,
        "pairs": stored,
    }


def _store_pairs(item: DuplicatesShard, out: ShardOutput, own: VerifiedPairs, records: int) -> int:
    """The pairs of a shard's documents, in this run's numbers: see `pairs.renumber_pairs`."""
    stored = 0
    with out.open("dedup_index", str(item.pairs)) as file:
        for low, high in cut_ranges([own.pairs], item.start, item.start + item.documents, records):
            pairs = own.pairs.between(low, high)
            file.write(pairs.tobytes())
            stored += len(pairs)
    return stored


def duplicates_rows(
    low: int, high: int, partners: Pairs, corpus: Corpus, classes: Classes
) -> pa.Table:
    """Documents [low, high) as rows of a `duplicates` table.

    `partners` lists them with their partners as (right, left), in the order of the rows.
    """
    numbers = np.arange(low, high)
    bounds = np.searchsorted(partners["right"], np.arange(low, high + 1))
    items = pa.StructArray.from_arrays(
        [
            _class_ids(partners["left"], corpus),
            _or_null(partners["jaccard"]),
            _or_null(partners["containment"]),
            arrow_array(partners["band"].astype(np.int32)),
        ],
        fields=list(_ITEM),
    )
    lists = pa.ListArray.from_arrays(
        arrow_array(bounds.astype(np.int32)), items, type=_SCHEMA.field("partners").type
    )
    return pa.table(
        [
            corpus.ids(numbers),
            _class_ids(classes.first(low, high), corpus),
            _class_ids(classes.text_first(low, high), corpus),
            lists,
        ],
        schema=_SCHEMA,
    )


def _partner_lists(
    low: int,
    high: int,
    counts: NDArray[np.int64],
    corpus: Corpus,
    verified: VerifiedPairs,
    measure: Measure,
    most: int,
    records: int,
) -> Pairs:
    """Partners of documents [low, high) in the order of the lists; `counts` is how many there are.

    Of more than `most` partners the most similar stay, in steps of 0.1, and of equally
    similar ones the first by rank: in a large group of copies it is these that the rest is compared
    with when `filter` decides.
    """

    def pieces() -> Iterator[Pairs]:
        for side in verified.sides:
            for piece in side.slices(low, high, records):
                counts[:] += np.bincount(piece["right"] - low, minlength=high - low)
                yield piece

    def kept(pairs: Pairs) -> Pairs:
        # 1e-6: a stored 0.7 counts as the step 0.7 although its float32 is less.
        steps = np.floor(np.nan_to_num(pairs[measure].astype(np.float64)) * _STEPS + 1e-6)
        return pairs[nearest_partners(pairs["right"], pairs["left"], steps, most, corpus)]

    partners = keep_of_pieces(pieces(), kept, records)
    generation, identity = ranks(partners["left"], corpus)
    similarity = partners["jaccard"]
    # Measured ones follow by similarity and id; others are all alike and follow by rank.
    generation = np.where(np.isnan(similarity), generation, 0)
    return partners[np.lexsort((identity, generation, -similarity, partners["right"]))]


def _class_ids(numbers: NDArray[np.int64], corpus: Corpus) -> pa.StringArray:
    different, places = np.unique(numbers, return_inverse=True)
    return corpus.ids(different).take(arrow_array(places))


def _or_null(measured: NDArray[np.float32]) -> pa.Array:
    return arrow_array(measured, np.isnan(measured))


@dataclass(frozen=True)
class WrittenTables:
    """What `write_tables` wrote."""

    counts: list[dict[str, Any]]
    """What `duplicates_shard` returned for each shard."""
    pairs: list[tuple[str, int]]
    """Files of pairs in the index, and how many each has."""


def write_tables(
    context: Context,
    corpus: Corpus,
    shards: Sequence[IndexShard],
    classes: Classes,
    compared: ComparedDocuments,
    memory: Budget,
) -> WrittenTables:
    """Write a `duplicates` table for each new shard, and its pairs into a kept index.

    `shards` are those of the documents, with the same numbers as in `corpus`, which may have joined
    small ones.
    """
    config = context.config
    keeps_pairs = config.index and config.verify
    items = [
        DuplicatesShard(
            id=shard.id,
            generation=shard.generation,
            start=shard.start,
            documents=shard.documents,
            table=f"{shard.stem}.parquet",
            pairs=f"pairs/{shard.id}.pairs" if keeps_pairs else None,
        )
        for shard in shards
        if not corpus.sources[shard.generation].indexed
    ]
    written = context.map(
        duplicates_shard,
        items,
        corpus=corpus,
        classes=classes,
        pairs=compared.pairs,
        measure=config.measure,
        max_partners=config.max_partners,
        bytes_at_once=memory.pair_bytes,
    )
    counts = [result.value for result in written]
    pairs = [
        (item.pairs, value["pairs"])
        for item, value in zip(items, counts, strict=True)
        if item.pairs is not None
    ]
    return WrittenTables(counts, pairs)


Values = Sequence[Mapping[str, Any]]


def make_statistics(
    parameters: Mapping[str, Any],
    settings: Settings,
    counts: Mapping[str, int],
    verified: Values,
    closed: Values,
    tables: Values,
    recall: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The content of `statistics.json`.

    `parameters` is the plain config, `counts` those of documents and classes; `verified`
    and `closed` are what `verify_pairs` returned for pairs of bands and of closure, `tables` what
    `duplicates_shard` returned; `recall` is None where it was not measured.
    """
    return {
        "parameters": {**parameters, "settings": asdict(settings)},
        "counts": {
            **counts,
            "candidate_pairs": _sum(verified, "candidates"),
            "verified_pairs": _sum(verified, "pairs"),
            "closed_candidates": _sum(closed, "candidates"),
            "closed_pairs": _sum(closed, "pairs"),
            "unequal_candidates": _sum(verified, "unequal") + _sum(closed, "unequal"),
            "estimated_pairs": _sum(verified, "estimated") + _sum(closed, "estimated"),
            "documents_with_pairs": _sum(tables, "documents_with_pairs"),
            "capped_documents": _sum(tables, "capped_documents"),
        },
        "similarity": _histogram([*verified, *closed]),
        "curve": [
            {
                "similarity": step / STEPS,
                "probability": round(
                    candidate_probability(step / STEPS, settings.bands, settings.rows), 6
                ),
            }
            for step in range(1, STEPS + 1)
        ],
        "recall": None if recall is None else dict(recall),
    }


def _sum(values: Values, name: str) -> int:
    return sum(value[name] for value in values)


def _histogram(values: Values) -> list[dict[str, float | int]]:
    """Measured pairs by similarity; the last step holds 1.0 as well."""
    counts = np.zeros(STEPS, dtype=np.int64)
    for value in values:
        if value["similarity"]:
            counts += np.array(value["similarity"], dtype=np.int64)
    return [
        {"from": step / STEPS, "to": (step + 1) / STEPS, "pairs": int(counts[step])}
        for step in range(STEPS)
        if counts[step]
    ]
