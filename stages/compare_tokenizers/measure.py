"""One shard cut by every tokenizer: sums by language and source, and uses of each token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from stages.compare_tokenizers.contestants import Contestant
from stages.engine.arrays import arrow_array
from stages.text.fertility import Fertility, batches
from stages.text.unicode_words import unicode_words

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from stages.compare_tokenizers.parts import Part
    from stages.engine import ShardOutput

Group = tuple[int, str | None, str]
"""Place of the tokenizer, language, source."""


def measure_part(
    part: Part, out: ShardOutput, *, tokenizers: Sequence[Contestant]
) -> dict[str, Any]:
    """Cut the part's documents with each tokenizer, a batch at a time.

    Returns {"text", "read": rows, "measured": rows, "groups": [{tokenizer, language, source,
    sums}]}; uses of each token go to scratch.
    """
    loaded = [contestant.load() for contestant in tokenizers]
    uses = [np.zeros(_ids(one.tokenizer), dtype=np.int64) for one in loaded]
    groups: dict[Group, Fertility] = {}
    measured = 0
    for rows in batches(part.documents(), text=lambda row: row["text"]):
        texts = [row["text"] for row in rows]
        words = unicode_words(texts)
        measured += len(rows)
        for place, cutter in enumerate(loaded):
            cuts = cutter.cut(texts, words)
            uses[place] += np.bincount(cuts.ids, minlength=len(uses[place]))
            for row, sums in zip(rows, cuts.sums, strict=True):
                group = (place, row["language"], row["source"])
                groups.setdefault(group, Fertility()).add(sums)
    out.write_scratch("uses", _uses_table(uses))
    return {
        "text": part.text,
        "read": part.shard.rows,
        "measured": measured,
        "groups": [
            {"tokenizer": place, "language": language, "source": source, "sums": vars(sums)}
            for (place, language, source), sums in groups.items()
        ],
    }


def _ids(tokenizer: Tokenizer) -> int:
    """One more than the greatest id."""
    return 1 + max(tokenizer.get_vocab(with_added_tokens=True).values())


def _uses_table(uses: Sequence[NDArray[np.int64]]) -> pa.Table:
    """One row for each token that was used."""
    used = [np.flatnonzero(counts) for counts in uses]
    places = np.repeat(np.arange(len(uses)), [len(ids) for ids in used])
    counts = [counts[ids] for counts, ids in zip(uses, used, strict=True)]
    return pa.table(
        {
            "tokenizer": arrow_array(places),
            "token_id": arrow_array(np.concatenate(used)),
            "uses": arrow_array(np.concatenate(counts)),
        }
    )
