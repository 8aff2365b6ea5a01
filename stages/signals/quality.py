"""Gopher's quality signals (Rae et al. 2021, appendix A.1.1), for a batch of texts at once.

The definitions are datatrove's, in `gopher_quality_filter.py`: tokens that are punctuation only are
no words for the count and the mean length, but are counted where something is divided by "words". A
text without tokens or lines has 0 in every share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from stages.text.tokens import Tokens

ELLIPSES = ("...", "…")
BULLETS = ("•", "-")


def share(
    part: NDArray[np.int64] | Sequence[int], whole: NDArray[np.int64] | Sequence[int]
) -> NDArray[np.float64]:
    """part / whole, and 0 where the whole is 0."""
    parts, wholes = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    return np.divide(parts, wholes, out=np.zeros_like(parts), where=wholes != 0)


def word_signals(
    texts: Sequence[str],
    words: Sequence[Sequence[str]],
    tokens: Tokens,
    stop_words: Iterable[str],
) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """Counts and shares over words; `words` and `tokens` are those of `texts`."""
    all_tokens = np.diff(tokens.offsets)
    wordlike = ~tokens.symbols
    count = tokens.sums(wordlike)
    stops = frozenset(stop_words)
    return {
        "words": count,
        "word_tokens": all_tokens,
        "mean_word_length": share(tokens.sums(tokens.lengths * wordlike), count),
        "hash_to_word_ratio": share([text.count("#") for text in texts], all_tokens),
        "ellipsis_to_word_ratio": share(
            [sum(map(text.count, ELLIPSES)) for text in texts], all_tokens
        ),
        "newline_to_word_ratio": share([text.count("\n") for text in texts], all_tokens),
        "alphabetic_word_share": share(tokens.sums(tokens.alphabetic), all_tokens),
        "stop_words": np.array([len(stops.intersection(w)) for w in words], dtype=np.int64),
    }


def bullet_lines(text_lines: Sequence[str]) -> int:
    """Lines that begin, after white space, with a bullet or a hyphen."""
    return sum(line.lstrip().startswith(BULLETS) for line in text_lines)


def ellipsis_lines(text_lines: Sequence[str]) -> int:
    """Lines that end, before white space, with an ellipsis."""
    return sum(line.rstrip().endswith(ELLIPSES) for line in text_lines)
