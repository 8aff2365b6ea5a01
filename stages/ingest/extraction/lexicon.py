"""Learned marks of words: those in class and id names, and those at the start of a text.

A mark is 100 x the log-odds that a block under such a name (or with such a word) is main text,
against the page's average; `tests/benchmarks/train_blocks.py` counts them over many sites.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stages.ingest.extraction.blocks import Blocks
from stages.ingest.extraction.vocabulary import name_words

Ints = NDArray[np.int32]
LEXICON_FEATURES: Final = (
    "names_low", "names_high", "names_low_all", "names_high_all", "names_sum_all", "names_low_up",
    "names_high_up", "names_low_up2", "names_high_up2", "words_low", "words_high", "words_mean",
)  # fmt: skip
LEAD_CHARACTERS, LEAD_WORDS = 60, 8
NAME_CHARACTERS: Final = 400
_CACHED: Final = 1 << 16


@dataclass(frozen=True)
class Lexicon:
    """Marks by word."""

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


def lead_words(text: str) -> list[str]:
    """The words at the start of a text, in lower case."""
    return text[:LEAD_CHARACTERS].lower().split()[:LEAD_WORDS]
