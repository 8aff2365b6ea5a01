"""Marks of machine translation and of spam for search engines: phrases that give a page away.

Widgets and tools of translation name themselves, in the language of the page; pages that are made
to be found sell the same things in the same words, and fill lines with links and repeated keys.
The phrases are our own collection, in `phrase_marks.json`; a page may hold one of them in earnest,
so a rule asks for several different ones.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from stages.signals.signal import Signal, count

SOURCE = "Ingot"
PHRASE_SIGNALS: tuple[Signal, ...] = (
    count(
        "machine_translation_marks",
        "phrases",
        SOURCE,
        "Different phrases by which tools of machine translation name themselves.",
    ),
    count("seo_spam_marks", "phrases", SOURCE, "Different phrases of pages made to be found."),
)


def phrase_signals(lowered: Sequence[str]) -> dict[str, list[int]]:
    """The columns of `PHRASE_SIGNALS` for texts in lower case."""
    # Few phrases stand anywhere in many texts, and one search through all of them says which.
    together = "\n".join(lowered)
    columns = {}
    for signal in PHRASE_SIGNALS:
        there = [phrase for phrase in phrases(signal.name) if phrase in together]
        columns[signal.name] = [sum(phrase in text for phrase in there) for text in lowered]
    return columns


@lru_cache(maxsize=2)
def phrases(name: str) -> tuple[str, ...]:
    """The phrases of a mark, none of which holds another."""
    told = json.loads((Path(__file__).parent / "phrase_marks.json").read_text(encoding="utf-8"))
    return tuple(phrase for group in told[name].values() for phrase in group)
