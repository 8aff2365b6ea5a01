"""Reads templates and fills them: a text and the places of its labelled values.

A file of texts/ holds the templates of one kind. Each begins with a line `=== + PLACE` (positive)
or `=== - PLACE` (hard negative); PLACE is what may surround it: `prose.LANGUAGE`, `log` or `bare`.
In a template `<<maker>>` draws a labelled value, `<~maker>` any other word; both may have an
argument after a colon. A label is written down when the value is, before any rule reads the text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Make = Callable[[random.Random, str], str]
"""Draws a value; the second argument is what stands after the colon of a slot, or empty."""

Place = tuple[int, int]

_HEAD = re.compile(r"^=== ([+-]) ([a-z.]+)\n", re.MULTILINE)
_SLOT = re.compile(r"<(<|~)([a-z_0-9]+)(?::([^<>]*))?>(>?)")


@dataclass(frozen=True)
class Template:
    """A text with slots, and what may surround it."""

    positive: bool
    place: str
    text: str


@cache
def load(kind: str) -> tuple[Template, ...]:
    """The templates of a kind, in the order of its file."""
    path = Path(__file__).with_name("texts") / f"{kind}.txt"
    parts = _HEAD.split(path.read_text(encoding="utf-8"))
    return tuple(
        Template(sign == "+", place, text.removesuffix("\n"))
        for sign, place, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    )


def fill(text: str, makers: Mapping[str, Make], rng: random.Random) -> tuple[str, list[Place]]:
    """The text with all slots filled, and where its labelled values lie."""
    pieces: list[str] = []
    places: list[Place] = []
    length = done = 0
    for slot in _SLOT.finditer(text):
        before = text[done : slot.start()]
        value = makers[slot[2]](rng, slot[3] or "")
        start = length + len(before)
        if slot[1] == "<":
            places.append((start, start + len(value)))
        pieces += [before, value]
        length = start + len(value)
        done = slot.end()
        if slot[1] == "~" and slot[4]:
            pieces.append(">")
            length += 1
    pieces.append(text[done:])
    return "".join(pieces), places
