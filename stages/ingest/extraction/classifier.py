"""The trained block classifier, in integers: the same page gets the same labels on every CPU.

Two ensembles of oblivious decision trees (all nodes of one depth share a split, as in Kohavi & Li
1995): the first looks at each block and its surroundings, the second sees the first's scores of the
neighbours and containers as well (stacking). Splits compare integer features with integer
thresholds, leaves are integers, so sums are exact in any order. `tests/benchmarks/train_blocks.py`
makes the weights.

Then headings and short gaps amid main text of one section are added: a term of a definition list
between two that are kept, or the heading of a section that is, belongs to the text whatever its own
score says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stages.ingest.extraction.blocks import Blocks
from stages.ingest.extraction.features import Ints, Page, first_features, second_features
from stages.ingest.extraction.vocabulary import BLOCK, name_words

WEIGHTS: Final = Path(__file__).with_name("block_weights.json")
LEAD_CHARACTERS, LEAD_WORDS = 60, 8
NAME_CHARACTERS: Final = 400
_CACHED: Final = 1 << 16
_CHUNK = 4096  # blocks scored at once: bounds the memory of a huge page


@dataclass(frozen=True)
class Lexicon:
    """Learned marks of words: those in class and id names, and those at the start of a text.

    A mark is 100 x the log-odds that a block under such a name (or with such a word) is main text,
    against the page's average; `tests/benchmarks/train_blocks.py` counts them over many sites.
    """

    names: Mapping[str, int]
    words: Mapping[str, int]
    _cache: dict[str, tuple[int, int]] = field(default_factory=dict, repr=False)

    def features(self, blocks: Blocks) -> Ints:
        """What the marks say: [feature, block], in the order of `LEXICON_FEATURES`."""
        held = blocks.containers
        low, high, chain_low, chain_high, chain_sum = [0], [0], [0], [0], [0]
        up = [0]  # Position 0 is what lies above the root.
        for above, names in zip(held.parent, held.names, strict=True):
            above += 1
            up.append(above)
            if not names:
                low.append(0)
                high.append(0)
                chain_low.append(chain_low[above])
                chain_high.append(chain_high[above])
                chain_sum.append(chain_sum[above])
                continue
            lowest, highest = self._marks_of_names(names)
            low.append(lowest)
            high.append(highest)
            before = chain_low[above]
            chain_low.append(lowest if lowest < before else before)
            before = chain_high[above]
            chain_high.append(highest if highest > before else before)
            chain_sum.append(lowest + highest + chain_sum[above])
        table = np.array([low, high, chain_low, chain_high, chain_sum, up], np.int32)
        at = np.array(blocks.container, np.int32) + 1
        one = table[5, at]
        marks = self._marks_of_texts(blocks.text)
        words = np.array(marks, np.int32).reshape(-1, 3).T
        return np.concatenate(
            [table[:5, at], table[:2, one], table[:2, table[5, one]], words], dtype=np.int32
        )

    def _marks_of_names(self, names: str) -> tuple[int, int]:
        """The lowest and the highest mark of classes and ids, 0 where no word bears one."""
        cache = self._cache
        marks_known = cache.get(names)
        if marks_known is not None:
            return marks_known
        low = high = 0
        for name in names[:NAME_CHARACTERS].split():
            marks = cache.get(name)
            if marks is None:
                marks = self._marks_of_name(name)
            if marks[0] < low:
                low = marks[0]
            if marks[1] > high:
                high = marks[1]
        if len(cache) >= _CACHED:
            cache.clear()
        cache[names] = low, high
        return low, high

    def _marks_of_name(self, name: str) -> tuple[int, int]:
        """The same of one class or id; names recur over the pages of a crawl."""
        low = high = 0
        for word in name_words(name):
            mark = self.names.get(word, 0)
            low, high = min(low, mark), max(high, mark)
        if len(self._cache) < _CACHED:
            self._cache[name] = low, high
        return low, high

    def _marks_of_texts(self, texts: list[str]) -> list[int]:
        """Lowest, highest and mean mark of the first words of each text, one after the other."""
        get = self.words.get
        out: list[int] = []
        for text in texts:
            words = text[:LEAD_CHARACTERS].lower().split(None, LEAD_WORDS)[:LEAD_WORDS]
            marks = [mark for word in words if (mark := get(word))]
            if not marks:
                out += (0, 0, 0)
            elif len(marks) == 1:
                out += marks * 3
            else:
                out += (min(marks), max(marks), sum(marks) // len(marks))
        return out


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

    @classmethod
    def from_weights(cls, held: Mapping[str, Any]) -> BlockModel:
        """The model that `tests/benchmarks/train_blocks.py` made these weights of."""
        return cls(
            lexicon=Lexicon(held["names"], held["words"]),
            first=Ensemble.read(held["first"]),
            second=Ensemble.read(held["second"]),
            steps=np.array(held["steps"], np.int32),
            threshold=held["threshold"],
        )

    def scores(self, blocks: Blocks) -> tuple[Ints, Ints]:
        """Scores of both passes for each block, 0 (boilerplate) to 1000 (main text)."""
        page = Page(blocks)
        _, features = first_features(page, blocks, self.lexicon.features(blocks))
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
    """The model whose weights lie next to this module."""
    return BlockModel.from_weights(json.loads(WEIGHTS.read_text(encoding="utf-8")))


LEAST_SCORE: Final = 50
"""Score, of 1000, below which a block stays out all the same."""
GAP_BLOCKS, GAP_CHARACTERS = 2, 200
_HEADINGS: Final = frozenset(BLOCK[f"h{level}"] for level in range(2, 7))
_NEAR: Final = 6
"""Containers that may lie between a section and the block after its heading."""


def smooth(main: NDArray[np.bool_], scores: NDArray[Any], blocks: Blocks) -> NDArray[np.bool_]:
    """`main` [block], with headings (h2 to h6) before main text, then gaps within one parent."""
    out = main.copy()
    tags = blocks.containers.tag
    for index in range(len(out) - 2, -1, -1):
        if out[index] or not out[index + 1] or scores[index] < LEAST_SCORE:
            continue
        container = blocks.container[index]
        if container >= 0 and tags[container] in _HEADINGS and _precedes_section(blocks, index):
            out[index] = True
    kept: list[int] = np.flatnonzero(out).tolist()
    for before, after in pairwise(kept):
        gap = range(before + 1, after)
        if 0 < len(gap) <= GAP_BLOCKS and _fills_gap(blocks, before, gap, after, scores):
            out[before + 1 : after] = True
    return out


def _precedes_section(blocks: Blocks, index: int) -> bool:
    """Whether the block after a heading lies in the same section."""
    section = _parent_container(blocks, index)
    container = blocks.container[index + 1]
    for _ in range(_NEAR):
        if container == section:
            return True
        if container < 0:
            return False
        container = blocks.containers.parent[container]
    return False


def _fills_gap(
    blocks: Blocks, before: int, gap: Sequence[int], after: int, scores: NDArray[Any]
) -> bool:
    """Whether a gap is short, not of links, and under one parent with the block on a side of it."""
    if sum(len(blocks.text[index]) for index in gap) > GAP_CHARACTERS:
        return False
    for index in gap:
        linked = 2 * blocks.link_characters[index] > len(blocks.text[index])
        if linked or scores[index] < LEAST_SCORE:
            return False
    parents = {_parent_container(blocks, index) for index in gap}
    sides = (_parent_container(blocks, before), _parent_container(blocks, after))
    return len(parents) == 1 and not parents.isdisjoint(sides)


def _parent_container(blocks: Blocks, index: int) -> int:
    container = blocks.container[index]
    return blocks.containers.parent[container] if container >= 0 else -1
