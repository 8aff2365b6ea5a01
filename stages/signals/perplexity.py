"""How probable an n-gram model finds a text, and into which of CCNet's buckets it falls.

Wenzek et al. 2020 (arXiv 1911.00359) score a text line by line; datatrove and DCLM score the whole
text as one line, and get other values. Both are here under their own names, and the buckets are
CCNet's, of the perplexity by line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from artifacts_schema.errors import IngotError
from stages.language_model.model import LanguageModel, load
from stages.language_model.perplexity import bucket, line_and_text_scores
from stages.language_model.tokens import PieceTokens, Tokens, WordTokens
from stages.signals.models import NgramScorer, published_place
from stages.signals.signal import Signal
from stages.text.batch import batches

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

BATCH_CHARACTERS = 1 << 19
"""Texts scored together; it bounds memory and changes no value."""


def perplexity_signals(
    texts: Sequence[str], languages: Sequence[str | None], scorers: Sequence[NgramScorer]
) -> dict[str, list[Any]]:
    """The columns of `PERPLEXITY_SIGNALS`; `languages` are those of the texts, where known.

    A text is scored by the model of its language, else by that of what stands before `-` or `_`
    in it, else by the one without a language. InputError for a model that cannot be read.
    """
    columns: dict[str, list[Any]] = {
        signal.name: [None] * len(texts) for signal in PERPLEXITY_SIGNALS
    }
    by_language = {scorer.language: scorer for scorer in scorers}
    rows: dict[NgramScorer, list[int]] = {scorer: [] for scorer in scorers}
    for row, language in enumerate(languages):
        scorer = by_language.get(language) or by_language.get(_primary(language))
        scorer = scorer or by_language.get(None)
        if scorer is not None:
            rows[scorer].append(row)
    for scorer in scorers:
        own = rows[scorer]
        for batch in batches([len(texts[row]) for row in own], BATCH_CHARACTERS):
            _score(scorer, own[batch], texts, columns)
    return columns


def _score(
    scorer: NgramScorer, rows: Sequence[int], texts: Sequence[str], columns: dict[str, list[Any]]
) -> None:
    """Fill in what a model says of the texts of `rows`."""
    model, tokens = _loaded(scorer)
    chosen = [texts[row] for row in rows]
    found = line_and_text_scores(model, tokens, chosen)
    by_line, as_one = (scores.perplexities().tolist() for scores in found)
    for row, lines, whole in zip(rows, by_line, as_one, strict=True):
        if np.isnan(lines):  # The empty text.
            continue
        columns["line_perplexity"][row], columns["perplexity"][row] = lines, whole
        if scorer.cutoffs is not None:
            columns["perplexity_bucket"][row] = bucket(lines, scorer.cutoffs)


def _primary(language: str | None) -> str | None:
    """`en` of `en-GB` or `en_US`."""
    return re.split("[-_]", language, maxsplit=1)[0].lower() if language else None


@lru_cache(maxsize=8)
def _loaded(scorer: NgramScorer) -> tuple[LanguageModel, Tokens]:
    """The model and how it splits text, once in each process."""
    try:
        model = load(scorer.path)
        if scorer.pieces is not None:
            return model, PieceTokens(scorer.pieces)
    except IngotError as error:
        # The file that was given, not where the run laid it.
        where = (error.where or "").replace(f"{scorer.path.parent}/", published_place(""))
        raise type(error)(error.what, where=where, hint=error.hint) from None
    if model.config is not None:
        return model, WordTokens.of(model.config)
    return model, WordTokens("ccnet", "unicode")
