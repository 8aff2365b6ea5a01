"""What a release contributes to a report."""

from __future__ import annotations

from stages.engine.figures import Figure, TextFigure
from stages.engine.page import Artifact


def summary(artifact: Artifact) -> list[Figure]:
    """Where the released folder lies, and how to load it."""
    place = artifact.place("release")
    return [
        TextFigure("release", place),
        TextFigure(
            "load it",
            "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
            f'model = AutoModelForCausalLM.from_pretrained("{place}")\n'
            f'tokenizer = AutoTokenizer.from_pretrained("{place}")',
        ),
    ]
