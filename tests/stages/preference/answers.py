"""What preference stages read of an answer in ChatML, written by the renderer alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stages.tokens.chat import Segment, render_segments

Messages = Sequence[Mapping[str, Any]]


def answer_segments(prompt: Messages, answer: Messages) -> list[Segment]:
    """Prompt and answer up to the token that closes it; of the prompt nothing is learnt."""
    *parts, newline = render_segments([*({**one, "weight": 0} for one in prompt), *answer])
    assert newline.text == "\n"
    return parts
