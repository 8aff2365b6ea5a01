"""How probable an n-gram model finds a text, and into which of CCNet's buckets it falls.

Wenzek et al. 2020 (arXiv 1911.00359) score a text line by line; datatrove and DCLM score the whole
text as one line, and get other values. Both are here under their own names, and the buckets are
CCNet's, of the perplexity by line.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from stages.language_model.model import LanguageModel, load
from stages.language_model.perplexity import bucket, line_scores, text_scores
from stages.language_model.tokens import PieceTokens, Tokens, WordTokens
from stages.signals.models import NgramScorer
from stages.signals.signal import Signal

CCNET = "Wenzek et al. 2020 (CCNet, arXiv 1911.00359)"
PERPLEXITY_SIGNALS: tuple[Signal, ...] = (
    Signal(
        "line_perplexity",
        "float64?",
        "perplexity",
        CCNET,
        "Of its lines, each with its end; null without a model of its language, or without text.",
    ),
    Signal("perplexity", "float64?", "perplexity", CCNET, "Of the text as one line."),
    Signal(
        "perplexity_bucket",
        "string?",
        "name",
        CCNET,
        "`head`, `middle` or `tail` of its language by line_perplexity; null without cut-offs.",
    ),
)
"""What n-gram models say; there only if some are given."""


def perplexity_signals(
    texts: Sequence[str], languages: Sequence[str | None], scorers: Sequence[NgramScorer]
) -> dict[str, list[Any]]:
    """The columns of `PERPLEXITY_SIGNALS`; `languages` are those of the texts, where known."""
    columns: dict[str, list[Any]] = {
        signal.name: [None] * len(texts) for signal in PERPLEXITY_SIGNALS
    }
    own = {scorer.language for scorer in scorers if scorer.language}
    for scorer in scorers:
        rows = [
            row
            for row, language in enumerate(languages)
            if (language == scorer.language if scorer.language else language not in own)
        ]
        if not rows:
            continue
        model, tokens = _loaded(scorer)
        chosen = [texts[row] for row in rows]
        by_line = line_scores(model, tokens, chosen).perplexities()
        as_one = text_scores(model, tokens, chosen).perplexities()
        for row, lines, whole in zip(rows, by_line.tolist(), as_one.tolist(), strict=True):
            if np.isnan(lines):
                continue
            columns["line_perplexity"][row], columns["perplexity"][row] = lines, whole
            if scorer.cutoffs is not None:
                columns["perplexity_bucket"][row] = bucket(lines, scorer.cutoffs)
    return columns


@lru_cache(maxsize=8)
def _loaded(scorer: NgramScorer) -> tuple[LanguageModel, Tokens]:
    """The model and how it splits text, once in each process."""
    model = load(scorer.path)
    if scorer.pieces is not None:
        return model, PieceTokens(scorer.pieces)
    if model.config is not None:
        return model, WordTokens.of(model.config)
    return model, WordTokens("ccnet", "unicode")
