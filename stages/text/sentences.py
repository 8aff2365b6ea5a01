"""Sentences as spaCy's sentencizer counts them: by their marks, without a model.

After a mark, punctuation still belongs to the sentence; the next token that is none, or white space
other than a single space, begins a new one. What holds white space alone is no sentence. Counted
over tokens of the splitter `spacy_english`, it is the number of sentences that datatrove's filters
see (`split_into_sentences`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.text.batch import PUNCTUATION, SENTENCE_END, Batch
from stages.text.native import compiled
from stages.text.punctuation import TERMINAL_PUNCTUATION

SENTENCE_MARKS = TERMINAL_PUNCTUATION - frozenset(
    "\u061d\u061e\u0837\u0839\u083d\u083e\u17d4\u17d5\u17d6\u17d9\u17da\u1b7d\u1b7e\u2e53\u2e54"
    "\U00010f55\U00010f56\U00010f57\U00010f58\U00010f59\U00010f86\U00010f87\U00010f88\U00010f89"
    "\U00011944\U00011946\U00011ef7\U00011ef8\U00011f43\U00011f44\U00016e98"
)
"""The sentencizer's `default_punct_chars`: it knows fewer marks than today's Unicode."""

_SPACE = ord(" ")


def sentence_counts(batch: Batch) -> NDArray[np.int64]:
    """[texts] sentences of each text."""
    return line_sentence_counts(batch, batch.offsets[:-1], batch.offsets[1:])


def line_sentence_counts(
    batch: Batch, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """[lines] sentences of each line on its own, as if it were a text.

    Line i has the code points [starts[i], ends[i]) of the batch. Lines are in order, do not
    overlap, and cut no token.
    """
    tokens = batch.tokens
    first = np.searchsorted(tokens.starts, starts)
    last = np.searchsorted(tokens.starts, ends)
    return _count(batch.codes, tokens.starts, tokens.ends, tokens.kinds, first, last)


@compiled
def _count(
    codes: NDArray[np.uint32],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
) -> NDArray[np.int64]:
    counts = np.zeros(len(first), dtype=np.int64)
    for line in range(len(first)):
        ended = False
        for token in range(first[line], last[line]):
            kind = kinds[token]
            if token == first[line]:
                counts[line] = 1
            elif ended:
                gap = starts[token] - ends[token - 1]
                space = gap > 1 or (gap == 1 and codes[ends[token - 1]] != _SPACE)
                if space or not kind & (PUNCTUATION | SENTENCE_END):
                    counts[line] += 1
                    ended = False
            if kind & SENTENCE_END:
                ended = True
    return counts
