"""Rows whose fields have other names than a reader knows: what is there, and what may be meant."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

_SYNONYMS = {
    "text": ("content", "body", "text_content", "raw_content", "raw_text", "document", "markdown"),
    "messages": ("message", "conversation", "dialog", "dialogue", "chat", "turns", "history"),
    "prompt": ("query", "input", "user", "human", "request", "instructions"),
    "completion": ("target", "assistant", "reply", "answers", "responses", "gpt", "label"),
    "chosen": ("chosen_response", "preferred", "accepted", "winner", "better", "positive"),
    "rejected": ("rejected_response", "dispreferred", "loser", "worse", "negative"),
    "question": ("query", "stem", "sentence", "text", "instruction"),
    "choices": ("candidates", "answers", "alternatives", "answer_choices"),
}
"""Ingot's name → what data sets call the same thing, lower case, most likely first."""


def suggested(fields: Mapping[str, Any], wanted: tuple[str, ...]) -> dict[str, str]:
    """Field of the data → the name of `wanted` that it may mean; each of both at most once."""
    free = {name.lower(): name for name in fields if name not in wanted}
    found: dict[str, str] = {}
    for ours in wanted:
        if ours in fields:
            continue
        likely = [one for one in _SYNONYMS.get(ours, ()) if one in free]
        likely += get_close_matches(ours, sorted(free), n=1, cutoff=0.7)
        if likely:
            found[free.pop(likely[0])] = ours
    return found


def fields_there(fields: Mapping[str, Any]) -> str:
    """The names of a row's fields, for a message."""
    names = sorted(fields)
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"fields: {', '.join(name[:40] for name in names[:10])}{more}" if names else "no fields"


def rename_hint(fields: Mapping[str, Any], wanted: tuple[str, ...]) -> str:
    """What a row has, after the `rename` that may be meant."""
    found = suggested(fields, wanted)
    guess = ", ".join(f"{theirs}: {ours}" for theirs, ours in found.items())
    meant = f"did you mean `rename: {{{guess}}}`? " if guess else ""
    return f"{meant}{fields_there(fields)}"
