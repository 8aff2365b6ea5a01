"""What describes all shards of a split together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stages.pack.plan import Plan, token_type
from stages.text.chat import END_OF_TEXT, PADDING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.engine import ShardResult

SUMS = ("sequences", "tokens", "documents", "bytes")


def shards_table(
    plan: Plan,
    tokenizer: Tokenizer,
    tokenizer_digest: str,
    split: str,
    results: Sequence[ShardResult],
) -> dict[str, Any]:
    """The content of shards.json; shards in the order of the documents shards they come from."""
    sources: dict[str, dict[str, Any]] = {}
    for group in (group for result in results for group in result.value["groups"]):
        if group["split"] == split:
            source = sources.setdefault(group["source"], {"shards": [], **dict.fromkeys(SUMS, 0)})
            source["shards"].append({"file": group["file"], "sequences": group["sequences"]})
            for name in SUMS:
                source[name] += group[name]
    size = tokenizer.get_vocab_size()
    return {
        "dtype": token_type(size),
        "sequence_length": plan.sequence_length,
        "vocabulary_size": size,
        "tokenizer": tokenizer_digest,
        "padding_id": tokenizer.token_to_id(PADDING),
        "end_id": tokenizer.token_to_id(END_OF_TEXT),
        "sources": sources,
    }


def total(table: dict[str, Any], name: str) -> int:
    """One of SUMS over all sources of a shards.json."""
    return sum(source[name] for source in table["sources"].values())


def train_counts(results: Sequence[ShardResult], vocabulary_size: int) -> npt.NDArray[np.int64]:
    """[vocabulary_size] occurrences of each token in the train split."""
    counts = np.zeros(vocabulary_size, dtype=np.int64)
    for result in results:
        counts += result.read_scratch("counts")["count"].to_numpy()
    return counts
