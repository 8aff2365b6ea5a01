"""From signed documents to verified pairs: propose, verify, close, and measure what was missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stages.dedup.candidates import bucket_tasks, propose, proposed
from stages.dedup.closure import (
    Found,
    by_generation,
    close_pairs,
    earlier_tasks,
    translate_pairs,
)
from stages.dedup.pairs import BYTES_AT_WORK
from stages.dedup.recall import draw_sample, recall, sampled, scan, scan_tasks
from stages.dedup.verify import pair_tasks, verify_pairs

if TYPE_CHECKING:
    from stages.dedup.classes import Classes
    from stages.dedup.index import Corpus
    from stages.dedup.memory import Budget
    from stages.engine import Context, ShardResult

PAIRS_PER_TASK = 1 << 16
SCANNED_PER_TASK = 1 << 18


@dataclass(frozen=True)
class Compared:
    """The pairs of this run's documents, and what the maps that found them counted."""

    found: list[Found]
    """Of each new generation."""
    capped_buckets: int
    verified: list[dict[str, Any]]
    """What `verify_pairs` returned for pairs of bands."""
    closed: list[dict[str, Any]]
    """The same for pairs that partners led to."""
    recall: dict[str, Any] | None


def compare(context: Context, corpus: Corpus, classes: Classes, memory: Budget) -> Compared:
    """All pairs with a new document that reach the config's floor."""
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
    candidates = proposed(buckets)
    per_task = min(PAIRS_PER_TASK, memory.bytes // (2 * BYTES_AT_WORK))
    tasks = pair_tasks(candidates, corpus, per_task)
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
    found = by_generation(new, tasks, verified)
    closed: list[ShardResult] = []
    if config.verify and config.closure:
        found, closed = _closed(context, corpus, found, memory, per_task)
    return Compared(
        found,
        sum(result.value["capped"] for result in buckets),
        [result.value for result in verified],
        [result.value for result in closed],
        _recall(context, corpus, classes, found, memory) if config.verify else None,
    )


def _first_new_generation(corpus: Corpus) -> int:
    return sum(source.indexed for source in corpus.sources)


def _closed(
    context: Context, corpus: Corpus, found: Sequence[Found], memory: Budget, per_task: int
) -> tuple[list[Found], list[ShardResult]]:
    """`found` with the pairs that partners lead to, by way of earlier indexes' pairs as well."""
    earlier = context.map(translate_pairs, earlier_tasks(corpus, per_task))
    closed, results = close_pairs(
        context.map,
        corpus,
        [Found.of(-1, earlier), *found],
        floor=context.config.floor,
        measure=context.config.measure,
        bytes_at_once=memory.pair_bytes,
        shingle_bytes=memory.shingle_bytes,
        pairs_per_task=per_task,
    )
    return [of for of in closed if of.generation >= 0], results


def _recall(
    context: Context, corpus: Corpus, classes: Classes, found: Sequence[Found], memory: Budget
) -> dict[str, Any] | None:
    """Which pairs there are between a sample and all new documents, and which were found."""
    config = context.config
    tasks = scan_tasks(corpus.first_new, corpus.documents, SCANNED_PER_TASK)
    if not config.recall_sample or not tasks:
        return None
    drawn = context.map(
        draw_sample, tasks, corpus=corpus, classes=classes, sample=config.recall_sample
    )
    sample = sampled(drawn, corpus, config.recall_sample)
    if not len(sample):
        return None
    scanned = context.map(
        scan,
        tasks,
        corpus=corpus,
        classes=classes,
        found=found,
        sample=sample,
        floor=config.floor,
        bytes_at_once=memory.shingle_bytes,
    )
    return recall([result.value for result in scanned], len(sample), config.floor)
