"""Texts with slots: how they are stored, drawn and labelled.

A file of `texts/` holds templates. A line `=== SIGN REGISTER [WEIGHT]` starts one: `+` is a positive,
`-` a hard negative, `*` a carrier that serves both (its value is drawn by the caller), `|` a frame,
into which other texts of its register are put. A slot is `<<maker>>` or `<<maker:argument>>`; `<<!maker>>`
labels what it draws, so the label exists before any rule has read the text; `<<maker@1>>` draws once
and repeats the value in the rest of the text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.benchmarks.redaction_cases import Place

_HEAD = re.compile(r"^=== ([+*|-]) (\w+)(?: (\d*\.?\d+))?\n", re.MULTILINE)
_SLOT = re.compile(r"<<(!?)([A-Za-z_0-9]+)(?::([^<>@\n]*))?(@\d)?>>")
_FRAMED = 0.4
"""Share of the texts that are put into a frame, if their register has one."""
BODY = "<<BODY>>"
_TEXTS = Path(__file__).with_name("texts")
"""The texts of the sixth set; a later set passes its own folder."""


@dataclass(frozen=True)
class Template:
    """A text with slots; `weight` is the chance that a round over all templates uses it."""

    sign: str
    register: str
    text: str
    weight: float = 1.0


@dataclass
class Scene:
    """What one text is about: its writer, and for a carrier the name and the value it assigns."""

    rng: random.Random
    words: tuple[str, ...] = ()
    value: str = ""
    memory: dict[str, str] = field(default_factory=dict)

    def once(self, key: str, make: Callable[[], str]) -> str:
        """The value of a key, made at its first use."""
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]


Maker = Callable[[Scene, str], str]


@cache
def load(name: str, folder: Path = _TEXTS) -> tuple[Template, ...]:
    """The templates of `NAME.txt` in their order; ValueError if the file starts without a head."""
    content = (folder / f"{name}.txt").read_text("utf-8")
    parts = _HEAD.split(content)
    if parts[0].strip():
        raise ValueError(f"{name}.txt does not start with a head: {parts[0][:40]!r}")
    return tuple(
        Template(sign, register, text.rstrip("\n"), float(weight or 1))
        for sign, register, weight, text in zip(
            parts[1::4], parts[2::4], parts[3::4], parts[4::4], strict=True
        )
    )


def slots_of(text: str) -> list[tuple[str, bool]]:
    """Makers that a text names, in order, each with whether its value is labelled."""
    return [(match[2], bool(match[1])) for match in _SLOT.finditer(text)]


def fill(
    template: str, makers: Mapping[str, Maker], scene: Scene, labelled: bool
) -> tuple[str, list[Place]]:
    """The text with each slot drawn, and the places of the labelled ones (none if not `labelled`).

    A maker may return a value with several parts to label, each between `\\x02` and `\\x03`; then
    only these are labelled, and the marks are removed.
    """
    pieces: list[str] = []
    places: list[Place] = []
    at = end = 0
    for match in _SLOT.finditer(template):
        mark, name, argument, memo = match[1], match[2], match[3] or "", match[4]

        def draw(name: str = name, argument: str = argument) -> str:
            return makers[name](scene, argument)

        value = scene.once(f"{name}{memo}", draw) if memo else draw()
        before = template[end : match.start()]
        text, inner = _unmark(value)
        at += len(before)
        if mark and labelled:
            places += [(at + start, at + stop) for start, stop in inner or [(0, len(text))]]
        pieces += [before, text]
        at, end = at + len(text), match.end()
    pieces.append(template[end:])
    return "".join(pieces), places


def _unmark(value: str) -> tuple[str, list[Place]]:
    text, places, start = "", list[Place](), 0
    for character in value:
        if character == "\x02":
            start = len(text)
        elif character == "\x03":
            places.append((start, len(text)))
        else:
            text += character
    return text, places


def put_into_frame(
    text: str,
    places: list[Place],
    register: str,
    makers: Mapping[str, Maker],
    scene: Scene,
    folder: Path = _TEXTS,
) -> tuple[str, list[Place]]:
    """The text inside a frame of its register (some of the texts), with its places moved."""
    frames = [part.text for part in load("frames", folder) if part.register == register]
    if not frames or scene.rng.random() >= _FRAMED:
        return text, places
    before, _, after = scene.rng.choice(frames).partition(BODY)
    head, _ = fill(before, makers, scene, labelled=False)
    tail, _ = fill(after, makers, scene, labelled=False)
    return head + text + tail, [(start + len(head), end + len(head)) for start, end in places]
