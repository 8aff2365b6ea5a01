"""What a tokenizer contributes to a report."""

from __future__ import annotations

from stages.engine.figures import Figure
from stages.engine.page import Artifact


def page(artifact: Artifact) -> list[Figure]:
    """Facts, special tokens, training sample, fertility, tokens by length, texts in pieces."""
    from stages.text.figures import tokenizer_figures

    return tokenizer_figures(artifact)
