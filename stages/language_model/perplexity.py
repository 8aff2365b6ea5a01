"""Perplexity of texts and lines, and CCNet's buckets of it.

PPL = 10^(-sum of log10 p / sum of lengths), a length being the tokens of a line and its end
(cc_net/perplexity.py). CCNet's function goes line by line, blank lines too; its pipeline gave it
whole texts as one line, as datatrove and DCLM do: the two differ, so both are here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.language_model.model import LanguageModel
from stages.language_model.tokens import TextLines, Tokens

PERCENTILES = (30.0, 60.0)
"""CCNet's: head below the first, middle below the second, tail."""

_MOST = 300.0
"""log10 of the greatest perplexity, so that every one is finite."""


@dataclass(frozen=True, eq=False)
class LineScores:
    """Scores of the lines of texts; text d has the lines [offsets[d], offsets[d + 1])."""

    log10: NDArray[np.float64]
    lengths: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def line_perplexities(self) -> NDArray[np.float64]:
        """[lines]"""
        return perplexities(self.log10, self.lengths)

    def perplexities(self) -> NDArray[np.float64]:
        """[texts]; NaN for the empty text."""
        return perplexities(_sums(self.log10, self.offsets), _sums(self.lengths, self.offsets))


def line_scores(model: LanguageModel, tokens: Tokens, texts: Sequence[str]) -> LineScores:
    """Scores of each line of each text."""
    return _scores(model, tokens.lines(texts))


def text_scores(model: LanguageModel, tokens: Tokens, texts: Sequence[str]) -> LineScores:
    """Scores of each text as one line."""
    return _scores(model, tokens.whole(texts))


def line_and_text_scores(
    model: LanguageModel, tokens: Tokens, texts: Sequence[str]
) -> tuple[LineScores, LineScores]:
    """`line_scores` and `text_scores`, of texts that are normalised once."""
    by_line = tokens.lines(texts)
    return _scores(model, by_line), _scores(model, tokens.joined(by_line, texts))


def _scores(model: LanguageModel, text_lines: TextLines) -> LineScores:
    lines, offsets = text_lines
    return LineScores(*model.line_scores(lines), offsets)


def _sums(values: NDArray, offsets: NDArray[np.int64]) -> NDArray:
    """Sums of values[offsets[i]:offsets[i + 1]], each from its own values alone, in order."""
    filled = np.flatnonzero(np.diff(offsets))
    sums = np.zeros(len(offsets) - 1, values.dtype)
    if len(filled):
        sums[filled] = np.add.reduceat(values, offsets[filled])
    return sums


def perplexities(log10: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """10^(-log10 / length); NaN where the length is 0."""
    means = np.divide(-log10, lengths, out=np.full(len(log10), np.nan), where=lengths > 0)
    return np.power(10.0, np.minimum(means, _MOST))


def cutoffs(
    by_language: Mapping[str, Sequence[float]], percentiles: Sequence[float] = PERCENTILES
) -> dict[str, list[float]]:
    """Perplexities at percentiles, by language in alphabetical order.

    Between two values they lie in proportion (numpy's `linear`). NaN is left out; so is a language
    without a value. The order of the values is of no effect.
    """
    found = {}
    for language, values in sorted(by_language.items()):
        known = np.asarray(values, np.float64)
        known = known[~np.isnan(known)]
        if len(known):
            found[language] = np.percentile(known, list(percentiles)).tolist()
    return found


def bucket(perplexity: float, at: Sequence[float] | None) -> str:
    """`head` below the first cut-off, `middle` below the second, else `tail`.

    `all` without cut-offs or without a perplexity, as in CCNet.
    """
    if at is None or np.isnan(perplexity):
        return "all"
    return "head" if perplexity < at[0] else "middle" if perplexity < at[1] else "tail"
