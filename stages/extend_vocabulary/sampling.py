"""What the stage does with a shard of documents: count its words, and cut those held out.

Which documents are drawn, and which of those are held out, depends on their duplicate class alone,
so that copies of a text are never both learnt from and measured on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from stages.engine import Shard, ShardOutput, ShardResult
from stages.extend_vocabulary.continued_bpe import read_extensible
from stages.text.draw import draw
from stages.tokens.fertility import Fertility, fertility_by_source
from stages.tokens.pre_tokenizers import count_words

SALT = "extend_vocabulary sample"
_WORDS = "words"
_COLUMNS = ["doc_id", "duplicate_class", "source", "text"]


def count_shard(
    item: Any, out: ShardOutput, *, tokenizer: str, sample_share: float, held_share: float
) -> dict[str, Any]:
    """Leave how often each word comes in the documents that are learnt from."""
    read = read_extensible(tokenizer)
    sizes: list[int] = []

    def texts() -> Iterator[str]:
        for _, text in _drawn(item.shard, sample_share, held_share, held=False):
            sizes.append(len(text.encode()))
            yield text

    words = sorted(count_words(texts(), read.pre_tokenizer, read.normalizer).items())
    table = {
        "word": pa.array([word for word, _ in words], pa.large_string()),
        "count": pa.array([count for _, count in words], pa.int64()),
    }
    out.write_scratch(_WORDS, pa.table(table))
    return {"documents": len(sizes), "bytes": sum(sizes)}


def sum_words(counted: Sequence[ShardResult]) -> dict[str, int]:
    """How often each word comes in all shards."""
    words: dict[str, int] = {}
    for result in counted:
        table = result.read_scratch(_WORDS)
        for word, count in zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True):
            words[word] = words.get(word, 0) + count
    return words


def measure_shard(
    item: Any,
    out: ShardOutput,
    *,
    tokenizers: Sequence[str],
    sample_share: float,
    held_share: float,
) -> dict[str, Any]:
    """By tokenizer and source: what is counted of the documents held out."""
    documents = list(_drawn(item.shard, sample_share, held_share, held=True))
    return {
        "held": [
            {
                source: vars(measured)
                for source, measured in fertility_by_source(read_extensible(one), documents).items()
            }
            for one in tokenizers
        ]
    }


def sum_fertility(measured: Sequence[ShardResult], tokenizer: int) -> dict[str, Fertility]:
    """By source, over all shards, under one of the tokenizers."""
    sums: dict[str, Fertility] = {}
    for result in measured:
        for source, counts in result.value["held"][tokenizer].items():
            sums.setdefault(source, Fertility()).add(Fertility(**counts))
    return dict(sorted(sums.items()))


def _drawn(
    shard: Shard, sample_share: float, held_share: float, *, held: bool
) -> Iterator[tuple[str, str]]:
    """Source and text of the documents held out, or of those learnt from."""
    for table in shard.row_groups(_COLUMNS):
        rows = zip(*(table[name].to_pylist() for name in _COLUMNS), strict=True)
        for doc_id, duplicate_class, source, text in rows:
            depth = draw(duplicate_class or doc_id, SALT)
            if depth < sample_share and (depth < sample_share * held_share) == held:
                yield source, text
