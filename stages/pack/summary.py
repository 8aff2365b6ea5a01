"""What describes all shards of a split together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stages.engine.arrays import numpy_array
from stages.pack.plan import Plan

if TYPE_CHECKING:
    from stages.engine import ShardResult

SUMS = ("sequences", "tokens", "documents", "bytes", "repetitive", "cut")
TABLES = ("languages", "dropped_tokens")


def shards_table(
    plan: Plan, tokenizer_digest: str, split: str, results: Sequence[ShardResult]
) -> dict[str, Any]:
    """The content of shards.json; shards in the order of the documents that they hold.

    A source of which no sequence stays is not in it.
    """
    sources: dict[str, dict[str, Any]] = {}
    for group in (result.value for result in results if result.value["split"] == split):
        source = sources.setdefault(
            group["source"],
            {"shards": [], **dict.fromkeys(SUMS, 0), **{name: {} for name in TABLES}},
        )
        if group["sequences"]:
            source["shards"].append({n: group[n] for n in ("file", "sequences", "tokens")})
        for name in SUMS:
            source[name] += group[name]
        for name in TABLES:
            for part, number in group[name].items():
                source[name][part] = source[name].get(part, 0) + number
    return {
        "dtype": plan.dtype,
        "sequence_length": plan.sequence_length,
        "strategy": plan.strategy,
        "vocabulary_size": plan.vocabulary_size,
        "padded_vocabulary_size": plan.padded_vocabulary_size,
        "tokenizer": tokenizer_digest,
        "begin_id": plan.tokens.begin,
        "end_id": plan.tokens.end,
        "padding_id": plan.tokens.padding,
        "sources": {name: one for name, one in sources.items() if one["sequences"]},
    }


def totals(split: str, results: Sequence[ShardResult]) -> dict[str, int]:
    """Counters of a split over all its sources: SUMS, and tokens that are in no sequence."""
    groups = [result.value for result in results if result.value["split"] == split]
    told = {name: sum(group[name] for group in groups) for name in SUMS}
    for reason in ("cropped", "repetitive"):
        told[f"{reason}_tokens"] = sum(group["dropped_tokens"][reason] for group in groups)
    return {f"{split}_{name}": number for name, number in told.items()}


def train_counts(results: Sequence[ShardResult], vocabulary_size: int) -> npt.NDArray[np.int64]:
    """[vocabulary_size] occurrences of each token in the train split."""
    counts = np.zeros(vocabulary_size, dtype=np.int64)
    for result in results:
        if result.value["split"] == "train":
            counts += numpy_array(result.read_scratch("counts")["count"].combine_chunks())
    return counts
