"""The trained block classifier, in integers: the same page gets the same verdict on every CPU.

Two ensembles of oblivious decision trees (all nodes of one depth share a split, as in Kohavi & Li
1995): the first looks at each block and its surroundings, the second sees the first's scores of the
neighbours and containers as well (stacking). Splits compare integer features with integer
thresholds, leaves are integers, so sums are exact in any order. `tests/benchmarks/train_blocks.py`
makes the weights.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from stages.ingest.extraction.blocks import Blocks
from stages.ingest.extraction.features import Ints, Page, first_features, second_features
from stages.ingest.extraction.lexicon import Lexicon

WEIGHTS: Final = Path(__file__).with_name("block_weights.json")
_CHUNK = 4096  # blocks scored at once: bounds the memory of a huge page


@dataclass(frozen=True)
class Ensemble:
    """Oblivious trees of one depth. A tree's leaf number has bit d set where split d holds."""

    features: Ints  # [split], distinct (feature, threshold) pairs
    thresholds: Ints  # [split]; a split holds where the feature is greater
    splits: Ints  # [depth, tree], numbers of distinct splits
    leaves: Ints  # [tree * 2**depth]
    base: int

    @classmethod
    def read(cls, held: dict[str, Any]) -> Ensemble:
        pairs = sorted({(f, t) for tree in held["trees"] for f, t in tree["splits"]})
        number = {pair: index for index, pair in enumerate(pairs)}
        splits = [[number[f, t] for f, t in tree["splits"]] for tree in held["trees"]]
        return cls(
            features=np.array([f for f, _ in pairs], np.int32),
            thresholds=np.array([t for _, t in pairs], np.int32),
            splits=np.array(splits, np.int32).T.copy(),
            leaves=np.array([tree["leaves"] for tree in held["trees"]], np.int32).ravel(),
            base=held["base"],
        )

    def score(self, features: Ints) -> Ints:
        """The sum of the leaves for each column of `features` [feature, block]."""
        count = features.shape[1]
        out = np.empty(count, np.int32)
        for start in range(0, count, _CHUNK):
            out[start : start + _CHUNK] = self._score(features[:, start : start + _CHUNK])
        return out

    def _score(self, features: Ints) -> Ints:
        holds = (features.take(self.features, axis=0) > self.thresholds[:, None]).view(np.uint8)
        depth, trees = self.splits.shape
        leaf = holds.take(self.splits[depth - 1], axis=0)
        for level in range(depth - 2, -1, -1):
            np.left_shift(leaf, 1, out=leaf)
            np.bitwise_or(leaf, holds.take(self.splits[level], axis=0), out=leaf)
        offsets = (np.arange(trees, dtype=np.int32) << depth)[:, None]
        sums: Ints = self.leaves.take(leaf + offsets).sum(axis=0, dtype=np.int32)
        return sums + np.int32(self.base)


@dataclass(frozen=True)
class BlockModel:
    """Both passes and the table that turns a sum of leaves into a score of 0 to 1000."""

    lexicon: Lexicon
    first: Ensemble
    second: Ensemble
    steps: Ints  # sums at which the score rises by 1000 / (len + 1)
    threshold: int  # score from which a block is main text

    def scores(self, blocks: Blocks) -> tuple[Ints, Ints]:
        """Scores of both passes for each block, 0 (boilerplate) to 1000 (main text)."""
        page = Page(blocks)
        _, features = first_features(page, blocks, self.lexicon)
        first = self.thousandths(self.first.score(features))
        _, more = second_features(page, first)
        second = self.thousandths(self.second.score(np.concatenate([features, more])))
        return first, second

    def thousandths(self, sums: Ints) -> Ints:
        """The logistic function of a sum of leaves, by table."""
        steps = np.searchsorted(self.steps, sums, side="right")
        return (steps * 1000 // len(self.steps)).astype(np.int32)


@cache
def block_model() -> BlockModel:
    """The model that stands beside this module."""
    held = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return BlockModel(
        lexicon=Lexicon(held["names"], held["words"]),
        first=Ensemble.read(held["first"]),
        second=Ensemble.read(held["second"]),
        steps=np.array(held["steps"], np.int32),
        threshold=held["threshold"],
    )
