"""log10 probabilities of tokens under a back-off n-gram model, as kenlm's full score has them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.language_model.tables import Table, extended, find
from stages.language_model.vocabulary import BEGIN, END
from stages.text.native import compiled


@compiled
def token_scores(
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    unigrams: NDArray[np.float32],
    tables: tuple[Table, ...],
    order: int,
) -> NDArray[np.float64]:
    """log10 p of each token given those before it in its line, and of </s> at each line's end.

    Line i has the tokens [offsets[i], offsets[i + 1]) and, with its </s>, the scores
    [offsets[i] + i, offsets[i + 1] + i + 1). A line begins after <s>. The score of a token is that
    of the longest n-gram that ends in it, and the back-offs of the longer contexts that are known
    (Katz 1987). `tables` are those of orders from 2; `unigrams` [words, 2] holds log10 p, back-off.
    """
    words, starts = _with_marks(ids, offsets)
    count = len(words)
    hashes, lengths = np.empty(count, np.uint64), np.ones(count, np.int8)
    p, backoffs = np.empty(count, np.float32), np.empty((count, order), np.float32)
    for i in range(count):
        hashes[i] = extended(np.uint64(0), words[i])
        p[i], backoffs[i, 0] = unigrams[words[i], 0], unigrams[words[i], 1]
    # All tokens at one order before the next: their searches wait for memory side by side. An
    # n-gram is in the model only if its context is, which also keeps searches inside their lines.
    for length in range(1, order):
        table = tables[length - 1]
        for i in range(length, count):
            if lengths[i] < length or lengths[i - 1] < length or starts[i]:
                continue
            hashes[i] = extended(hashes[i], words[i - length])
            slot = find(table, hashes[i])
            if slot >= 0:
                lengths[i] = length + 1
                p[i], backoffs[i, length] = table.weights[slot, 2], table.weights[slot, 3]
    scores = np.empty(len(ids) + len(offsets) - 1, np.float64)
    at = 0
    for i in range(count):
        if not starts[i]:
            scores[at] = p[i]
            for context in range(lengths[i], min(lengths[i - 1], order - 1) + 1):
                scores[at] += backoffs[i - 1, context - 1]
            at += 1
    return scores


@compiled
def _with_marks(
    ids: NDArray[np.int32], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """All lines, each between <s> and </s>, and where those <s> are."""
    words = np.empty(len(ids) + 2 * (len(offsets) - 1), np.int32)
    starts = np.zeros(len(words), np.bool_)
    at = 0
    for line in range(len(offsets) - 1):
        words[at], starts[at] = BEGIN, True
        at += 1
        for i in range(offsets[line], offsets[line + 1]):
            words[at] = ids[i]
            at += 1
        words[at] = END
        at += 1
    return words, starts


@compiled
def line_sums(scores: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """The sum of the scores [offsets[i], offsets[i + 1]) of each line, in order."""
    sums = np.zeros(len(offsets) - 1)
    for line in range(len(offsets) - 1):
        for i in range(offsets[line], offsets[line + 1]):
            sums[line] += scores[i]
    return sums
