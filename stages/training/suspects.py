"""The documents behind training steps in trouble: named, and listed as `filter` takes them."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from artifacts_schema.kinds import KINDS
from stages.training.spikes import robust_z
from stages.training.stability_config import StabilityConfig

if TYPE_CHECKING:
    import pyarrow as pa

    from stages.training.clock import SampleClock
    from stages.training.data import TokenShards

TROUBLE = ("spike", "not_finite")
"""Kinds of events that cast suspicion on the documents of their training step."""

NAMED = 3


class Suspect(NamedTuple):
    """A document that a training step read."""

    source: str
    doc_id: str


def outstanding(row_losses: Sequence[float]) -> list[int]:
    """The rows of a training step whose loss is not finite, or else a spike among the others'.

    None where no row stands out: then all of them are as suspect as any.
    """
    odd = [row for row, loss in enumerate(row_losses) if not math.isfinite(loss)]
    if odd or not row_losses:
        return odd
    middle, far = statistics.median(row_losses), StabilityConfig().threshold
    # The rows of a step are of all sorts: half of its median is what they differ by in any case.
    return [
        row
        for row, loss in enumerate(row_losses)
        if robust_z(loss, row_losses, least=0.5 * middle / far) > far
    ]


def documents_of_step(
    shards: TokenShards, clock: SampleClock, training_step: int, rows: Sequence[int] = ()
) -> list[Suspect]:
    """The documents of a training step of a run over token shards, each once, in order.

    Of these `rows` of its batch alone, if any are given.
    """
    draw = clock.batch(training_step)
    chosen = list(rows) or slice(None)
    sources = draw.sources[chosen]
    found = shards.documents_of(sources, draw.sequences[chosen])
    return sorted(
        {
            Suspect(shards.sources[source], piece.doc_id)
            for source, row in zip(sources.tolist(), found, strict=True)
            for piece in row
        }
    )


def told(suspects: Iterable[Suspect]) -> str:
    """How many documents of which source, the first of them by name."""
    found = sorted(set(suspects))
    counts = Counter(one.source for one in found)
    sources = ", ".join(f"{number:,} of {source}" for source, number in counts.most_common())
    named = ", ".join(one.doc_id for one in found[:NAMED])
    return f"documents: {sources} ({named}{', …' if len(found) > NAMED else ''})"


def excluded_table(
    events: Sequence[Mapping[str, Any]],
    documents: Callable[[int, Sequence[int]], Sequence[Suspect]],
) -> pa.Table:
    """`excluded.parquet` of a training run: the documents of each training step in trouble.

    Of the rows that stood out there, or of all. `documents(training_step, rows)` knows them.
    Each document once, with the first such step and why. The columns of kind `exclusions` come
    first, so its rows can go on a list for `filter`.
    """
    import pyarrow as pa

    rows: dict[str, dict[str, Any]] = {}
    for event in sorted(events, key=lambda one: one["training_step"]):
        step = event["training_step"]
        if event["kind"] in TROUBLE:
            for source, doc_id in documents(step, json.loads(event["details"])["rows"]):
                reason = f"training step {step}: {event['kind'].replace('_', ' ')}"
                row = {"doc_id": doc_id, "reason": reason, "source": source, "training_step": step}
                rows.setdefault(doc_id, row)
    schema = KINDS["training_run"].tables["excluded.parquet"].arrow()
    return pa.Table.from_pylist([rows[doc_id] for doc_id in sorted(rows)], schema=schema)
