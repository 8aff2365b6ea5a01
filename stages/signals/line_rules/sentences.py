"""Sentences as spaCy's sentencizer parts them, in any stretches of a batch.

A sentence ends behind a mark (a token of the kind SENTENCE_END) and the punctuation that follows,
as soon as another token comes. spaCy's tokens of white space are such tokens: all of a run of white
space but one space behind a word. So white space behind a last mark is a sentence too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.text.batch import PUNCTUATION, SENTENCE_END, Batch
from stages.text.native import compiled

_SPACE = ord(" ")


def sentence_counts(
    batch: Batch, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Sentences within characters [starts[i], ends[i]) of the batch; none where that is empty.

    The stretches come in order, without overlap, and part no token.
    """
    tokens = batch.tokens
    return _count(batch.codes, tokens.starts, tokens.ends, tokens.kinds, starts, ends)


@compiled
def _count(
    codes: NDArray[np.uint32],
    token_starts: NDArray[np.int64],
    token_ends: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.int64]:
    counts = np.zeros(len(starts), dtype=np.int64)
    token = 0
    for i in range(len(starts)):
        while token < len(token_starts) and token_starts[token] < starts[i]:
            token += 1
        count, ended, behind = int(starts[i] < ends[i]), False, starts[i]
        while token < len(token_starts) and token_starts[token] < ends[i]:
            if ended and _holds_space_token(codes, behind, token_starts[token]):
                count += 1
                ended = False
            if kinds[token] & SENTENCE_END:
                ended = True
            elif ended and not kinds[token] & PUNCTUATION:
                count += 1
                ended = False
            behind = token_ends[token]
            token += 1
        counts[i] = count + (ended and _holds_space_token(codes, behind, ends[i]))
    return counts


@compiled
def _holds_space_token(codes: NDArray[np.uint32], start: int, end: int) -> bool:
    """Whether the white space [start, end) behind a token is more than one space."""
    return end > start and end > start + (codes[start] == _SPACE)
