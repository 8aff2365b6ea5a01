"""The tables and pairs of every new shard, from all that was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stages.dedup.neighbours import DuplicatesShard, duplicates_shard

if TYPE_CHECKING:
    from stages.dedup.classes import Classes
    from stages.dedup.comparing import Compared
    from stages.dedup.index import Corpus
    from stages.dedup.memory import Budget
    from stages.engine import Context


@dataclass(frozen=True)
class Tables:
    """What `write_tables` wrote."""

    listed: list[dict[str, Any]]
    """What `duplicates_shard` returned for each shard."""
    pairs: list[tuple[str, int]]
    """Files of pairs in the index, and how many each has."""


def write_tables(
    context: Context, corpus: Corpus, classes: Classes, compared: Compared, memory: Budget
) -> Tables:
    """A `duplicates` table beside each new shard, and its pairs into the index, if one is kept."""
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
        for shard in corpus.shards
        if not corpus.sources[shard.generation].indexed
    ]
    written = context.map(
        duplicates_shard,
        items,
        corpus=corpus,
        classes=classes,
        found=compared.found,
        measure=config.measure,
        max_partners=config.max_partners,
        bytes_at_once=memory.pair_bytes,
    )
    listed = [result.value for result in written]
    pairs = [
        (item.pairs, value["pairs"])
        for item, value in zip(items, listed, strict=True)
        if item.pairs is not None
    ]
    return Tables(listed, pairs)
