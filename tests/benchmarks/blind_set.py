"""What blind sets have in common: texts with slots, how they are drawn and labelled.

A file of `texts/` holds templates. A line `=== SIGN any [WEIGHT]` starts one: `+` is a positive,
`-` a hard negative. A slot is `<<maker>>` or `<<maker:argument>>`; `<<!maker>>` labels what it
draws, so the label exists before any rule has read the text; `<<maker@1>>` draws once and repeats
the value in the rest of the text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.benchmarks.redaction_cases import Case, Place

_HEAD = re.compile(r"^=== ([+-]) any(?: (\d*\.?\d+))?\n", re.MULTILINE)
_SLOT = re.compile(r"<<(!?)([A-Za-z_0-9]+)(?::([^<>@\n]*))?(@\d)?>>")
KINDS = (
    *("email", "phone", "ip", "card", "iban", "jwt", "private_key", "provider_key", "connection"),
    *("password", "bearer", "broken_token"),
)


@dataclass(frozen=True)
class Template:
    """A text with slots; `weight` is the chance that a round over all templates uses it."""

    sign: str
    text: str
    weight: float = 1.0


@dataclass
class Scene:
    """What the slots of one text are drawn with."""

    rng: random.Random
    memory: dict[str, str] = field(default_factory=dict)

    def once(self, key: str, make: Callable[[], str]) -> str:
        """The value of a key, made at its first use."""
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]


Maker = Callable[[Scene, str], str]


def values_of(case: Case) -> list[str]:
    """The labelled parts of a text."""
    return [case.text[start:end] for start, end in case.values]


@cache
def load(name: str, folder: Path) -> tuple[Template, ...]:
    """The templates of `NAME.txt` in their order; ValueError if the file starts without a head."""
    content = (folder / f"{name}.txt").read_text("utf-8")
    parts = _HEAD.split(content)
    if parts[0].strip():
        raise ValueError(f"{name}.txt does not start with a head: {parts[0][:40]!r}")
    return tuple(
        Template(sign, text.rstrip("\n"), float(weight or 1))
        for sign, weight, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
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


@dataclass(frozen=True)
class BlindSet:
    """A set of labelled texts: its templates, and what draws their slots."""

    ordinal: str
    first_seed: int
    texts: Path
    makers: Mapping[str, Maker]
    kinds: tuple[str, ...] = KINDS
    in_turn: bool = False
    """Whether a round uses every template, the last drawn first, whatever its weight."""

    def templates_of(self, kind: str, positive: bool) -> list[Template]:
        """Templates of a kind's positives or hard negatives."""
        return [part for part in load(kind, self.texts) if (part.sign == "+") == positive]

    def make_cases(self, kind: str, seed: int, count: int = 200) -> list[Case]:
        """So many positives of a kind, then so many hard negatives, all different.

        A round goes over all templates in a drawn order and uses each with the chance of its
        weight. Raises ValueError for an unknown kind.
        """
        if kind not in self.kinds:
            raise ValueError(
                f"no kind of the {self.ordinal} blind set: {kind}; it has {', '.join(self.kinds)}"
            )
        rng = random.Random(f"{self.ordinal} {kind} {seed}")
        cases: dict[str, Case] = {}
        for positive in (True, False):
            templates = self.templates_of(kind, positive)
            wanted = len(cases) + count
            while len(cases) < wanted:
                drawn = rng.sample(templates, len(templates))
                for template in reversed(drawn) if self.in_turn else drawn:
                    if len(cases) < wanted and (self.in_turn or rng.random() < template.weight):
                        text, places = fill(template.text, self.makers, Scene(rng), positive)
                        cases.setdefault(text, Case(kind, text, tuple(places)))
        return list(cases.values())
