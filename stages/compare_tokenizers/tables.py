"""The files of a comparison, from what the shards gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from artifacts_schema.kinds import KINDS
from stages.compare_tokenizers.contestants import Contestant
from stages.engine.arrays import arrow_array, numpy_array
from stages.text.fertility import Fertility

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stages.compare_tokenizers.parallel import Passages
    from stages.engine import Context, ShardResult

_TABLES = KINDS["tokenizer_comparison"].tables


def write_comparison(
    context: Context,
    tokenizers: Sequence[Contestant],
    measured: Sequence[ShardResult],
    vocabularies: Sequence[ShardResult],
) -> None:
    """Write measures, tokens and what describes each tokenizer."""
    context.write_table("comparison", "measures.parquet", _measures(tokenizers, measured))
    described = {}
    schema = _TABLES["tokens.parquet"].arrow()
    with context.table_writer("comparison", "tokens.parquet", schema) as writer:
        for one, vocabulary in zip(tokenizers, vocabularies, strict=True):
            table = vocabulary.read_scratch("vocabulary")
            uses = _uses(one.place, numpy_array(table["token_id"].combine_chunks()), measured)
            names = pa.array([one.name] * table.num_rows, pa.string())
            columns = [names, *table.columns, arrow_array(uses)]
            writer.write(pa.table(columns, schema=schema))
            described[one.name] = {
                **one.described(),
                "unreachable": vocabulary.value["unreachable"],
                "unused": int((uses == 0).sum()),
            }
            context.count(tokenizers=1, unreachable=len(vocabulary.value["unreachable"]))
    context.write_json("comparison", "tokenizers.json", described)


def _measures(tokenizers: Sequence[Contestant], measured: Sequence[ShardResult]) -> pa.Table:
    """Fertility of all shards; rows in the order of the tokenizers, text, source, then language."""
    sums: dict[tuple[int, str, str, str | None], Fertility] = {}
    for result in measured:
        for group in result.value["groups"]:
            key = (group["tokenizer"], result.value["text"], group["source"], group["language"])
            sums.setdefault(key, Fertility()).add(Fertility(**group["sums"]))
    rows = [
        {
            "tokenizer": tokenizers[place].name,
            "text": text,
            "language": language,
            "source": source,
            **vars(sums[place, text, source, language]),
        }
        for place, text, source, language in sorted(sums, key=lambda k: (*k[:3], k[3] or ""))
    ]
    return pa.Table.from_pylist(rows, schema=_TABLES["measures.parquet"].arrow())


def _uses(place: int, ids: NDArray[np.int64], measured: Sequence[ShardResult]) -> NDArray[np.int64]:
    """[tokens] uses of each token of a vocabulary in all shards; `ids` rise."""
    uses = np.zeros(len(ids), dtype=np.int64)
    for result in measured:
        table = result.read_scratch("uses")
        of, used, counts = (numpy_array(column.combine_chunks()) for column in table.columns)
        here = of == place
        uses[np.searchsorted(ids, used[here])] += counts[here]
    return uses


def account(context: Context, measured: Sequence[ShardResult], passages: Passages) -> None:
    """Counters and conservation."""
    values: list[dict[str, Any]] = [result.value for result in measured]
    out = sum(value["measured"] for value in values)
    dropped = Counter(passages.left_out)
    for value in values:
        if value["text"] == "documents":
            dropped["not_drawn"] += value["read"] - value["measured"]
    context.count(documents_measured=out, passages=passages.passages)
    context.conserve(
        records_in=sum(value["read"] for value in values), out=out, dropped=dict(dropped)
    )
