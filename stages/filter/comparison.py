"""How presets disagree on a corpus: each alone, on the signals that were measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stages.filter.bounds import rule_checks
from stages.filter.checks import LANGUAGE
from stages.filter.config import FilterConfig
from stages.filter.presets import PRESETS

if TYPE_CHECKING:
    from stages.engine import Shard
    from stages.filter.verdicts import Given


@dataclass(frozen=True, eq=False)
class Comparison:
    """What each preset alone would drop of the same documents."""

    presets: tuple[str, ...]
    """Those that could be asked: all their signals were measured."""
    missing: dict[str, tuple[str, ...]]
    """The others, each with the signals that were not measured for all documents."""
    documents: int
    dropped: NDArray[np.int64]
    """[preset]: documents that it drops."""
    both: NDArray[np.int64]
    """[preset, preset]: documents that both drop."""

    @property
    def kept(self) -> NDArray[np.int64]:
        """[preset]: documents that it keeps."""
        return self.documents - self.dropped

    @property
    def only(self) -> NDArray[np.int64]:
        """[preset, preset]: documents that the first drops and the second keeps."""
        return self.dropped[:, None] - self.both

    def table(self) -> pa.Table:
        """`preset`, `kept`, `dropped`, and for each other preset what only this one drops."""
        columns = {"preset": list(self.presets), "kept": self.kept, "dropped": self.dropped}
        against = {f"only, not {name}": self.only[:, k] for k, name in enumerate(self.presets)}
        return pa.table({**columns, **against})


def compare_presets(given: Given, presets: Sequence[str]) -> Comparison:
    """Ask each of `presets` alone: rules on signals only, whatever sources documents are of.

    UsageError for an unknown preset.
    """
    configs = {name: FilterConfig(rules=(name,)) for name in presets}
    shards = [shard for signals in given.signals for shard in signals.shards()]
    missing = _missing(configs, shards)
    asked = tuple(name for name in configs if name not in missing)
    dropped = np.zeros(len(asked), dtype=np.int64)
    both = np.zeros((len(asked), len(asked)), dtype=np.int64)
    for shard in shards:
        drops = _drops(shard, asked)
        # Exact: counts of one shard lie far below 2^53.
        both += (drops @ drops.T).astype(np.int64)
        dropped += drops.sum(axis=1).astype(np.int64)
    documents = sum(shard.rows for shard in shards)
    return Comparison(asked, missing, documents, dropped, both)


def _drops(shard: Shard, presets: Sequence[str]) -> NDArray[np.float64]:
    """[preset, document]: 1 where the preset drops it. Each rule is evaluated once."""
    every = tuple({rule.name: rule for name in presets for rule in PRESETS[name]}.values())
    wanted = {LANGUAGE, *(rule.signal for rule in every)}
    with shard.input.open(shard.path) as file:
        present = [name for name in pq.read_schema(file).names if name in wanted]
    signals = shard.read(["doc_id", *present])
    sources = pa.chunked_array([pa.repeat(pa.scalar(""), len(signals))])
    config = FilterConfig(rules=tuple(presets))
    failing = {check.name: check.rows for check in rule_checks(config, sources, signals)}
    drops = np.zeros((len(presets), len(signals)))
    for place, name in enumerate(presets):
        for rule in PRESETS[name]:
            if rule.name in failing:
                drops[place, failing[rule.name]] = 1
    return drops


def _missing(
    configs: dict[str, FilterConfig], shards: Sequence[Shard]
) -> dict[str, tuple[str, ...]]:
    """The presets that can not be asked, with the signals that some shard lacks."""
    measured: set[str] | None = None
    for shard in shards:
        with shard.input.open(shard.path) as file:
            names = set(pq.read_schema(file).names)
        measured = names if measured is None else measured & names
    found = {}
    for name, config in configs.items():
        needed = {rule.signal for rule in PRESETS[name]}
        if config.asks_language:
            needed.add(LANGUAGE)
        lacking = tuple(sorted(needed - (measured or set())))
        if lacking:
            found[name] = lacking
    return found
