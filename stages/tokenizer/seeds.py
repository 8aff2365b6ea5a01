"""Frequent substrings of words: the pieces that a unigram tokenizer is pruned from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.tokenizer.lattice import Ints, Words

Floats = NDArray[np.float64]


def seed_pieces(
    words: Words, longest: int, min_frequency: int, most: int
) -> tuple[list[bytes], Floats]:
    """(pieces, counts): the 256 bytes, then at most `most` substrings of 2 to `longest` bytes.

    Substrings come `min_frequency` times or oftener in the text, and not always before the same
    byte (then the longer one is as frequent). The best by count times length are taken, as in
    SentencePiece; the first of equal ones by place. A byte that never comes has count 1.
    """
    weights = np.repeat(words.counts, np.diff(words.starts))
    ends = np.repeat(words.starts[1:], np.diff(words.starts))
    data = words.data.astype(np.int64)
    single = _sums(data, weights, 256)
    at = np.arange(len(data))
    names, counts, first = data, single, np.zeros(256, dtype=np.int64)
    found: list[tuple[Ints, Ints, int]] = []
    for length in range(2, longest + 2):
        inside = (at + length <= ends[at]) & (counts[names] >= min_frequency)
        at, names = at[inside], names[inside]
        keys = names * 256 + data[at + length - 1]
        distinct, index, longer = np.unique(keys, return_index=True, return_inverse=True)
        longer_counts = _sums(longer, weights[at], len(distinct))
        if length > 2:
            best = np.zeros(len(counts), dtype=np.int64)
            np.maximum.at(best, distinct // 256, longer_counts)
            ending = (counts >= min_frequency) & (best < counts)
            found.append((first[ending], counts[ending], length - 1))
        if not len(at):
            break
        names, counts, first = longer, longer_counts, at[index]
    return _best(words, single, found, most)


def _best(
    words: Words, single: Ints, found: list[tuple[Ints, Ints, int]], most: int
) -> tuple[list[bytes], Floats]:
    places = np.concatenate([place for place, _, _ in found] or [np.zeros(0, dtype=np.int64)])
    counts = np.concatenate([count for _, count, _ in found] or [np.zeros(0, dtype=np.int64)])
    lengths = np.repeat([length for _, _, length in found], [len(place) for place, _, _ in found])
    order = np.lexsort((places, lengths, -counts * lengths))[:most]
    raw = words.data.tobytes()
    pieces = [bytes([byte]) for byte in range(256)]
    pieces += [raw[places[i] : places[i] + lengths[i]] for i in order.tolist()]
    return pieces, np.concatenate([np.maximum(single, 1), counts[order]]).astype(np.float64)


def _sums(groups: Ints, weights: Ints, size: int) -> Ints:
    """Sum of weights by group; exact, a double holding integers up to 2**53."""
    return np.bincount(groups, weights=weights, minlength=size).astype(np.int64)
