"""Templates of the fifth blind set: how they are written down, and how one becomes a text.

A file `texts/KIND.txt` holds templates, each after a line `=== SIGN REGISTER [rare]`: `+` for a
positive, `-` for a hard negative, `*` for a carrier, which several kinds fill with either.
The register names the neutral passages (texts/surroundings.txt) that may be put around the text.

A slot `⟦maker⟧` or `⟦maker:argument⟧` is drawn and labelled, `⟨maker⟩` is drawn and not labelled.
`⟨maker#2⟩` gives the same value wherever it occurs in the text, so one value may have two places.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.benchmarks.redaction_cases import Place

_HEAD = re.compile(r"^=== ([+*-]) ([a-z]+)( rare)?\n", re.MULTILINE)
_SLOT = re.compile(r"⟦([^⟧\n]+)⟧|⟨([^⟩\n]+)⟩")
_WEBHOOK = re.compile(r"https://\S+/(?:services|webhooks)/")
_RARE = 0.3
_SURROUNDED = 0.6
"""Share of texts that get a neutral passage before or after them."""


@dataclass(frozen=True)
class Template:
    """A text with slots; `weight` is how often it is drawn, against 1 of an ordinary one."""

    sign: str
    register: str
    text: str
    weight: float = 1.0


@dataclass
class Scene:
    """What one text is about: who writes, which words name its value, values drawn already."""

    rng: random.Random
    first: str = ""
    last: str = ""
    domain: str = ""
    words: tuple[str, ...] = ()
    value: str = ""
    memory: dict[str, str] = field(default_factory=dict)


Maker = Callable[[Scene, str], str]


@cache
def load(name: str) -> tuple[Template, ...]:
    """The templates of a file, in its order.

    Raises ValueError for a file that does not begin with the head of a template.
    """
    content = (Path(__file__).with_name("texts") / f"{name}.txt").read_text()
    parts = _HEAD.split(content)
    if parts[0].strip():
        raise ValueError(f"{name}.txt: text before the first head: {parts[0][:40]!r}")
    return tuple(
        Template(sign, register, text.rstrip("\n"), _RARE if rare else 1.0)
        for sign, register, rare, text in zip(*(parts[n::4] for n in (1, 2, 3, 4)), strict=True)
    )


def slots_of(text: str) -> list[str]:
    """Names of the makers in a template, in order."""
    return [re.split("[:#]", match[1] or match[2])[0] for match in _SLOT.finditer(text)]


def fill(
    text: str, makers: Mapping[str, Maker], scene: Scene, labelled: bool
) -> tuple[str, list[Place]]:
    """The text with every slot drawn, and the places of the labelled ones.

    The label of a webhook leaves out its host, so that a span of the whole address or of its path
    alone is right.
    """
    parts, places, length, end = list[str](), list[Place](), 0, 0
    for match in _SLOT.finditer(text):
        slot = match[1] or match[2]
        before, value = text[end : match.start()], _draw(slot, makers, scene)
        parts += [before, value]
        start = length + len(before)
        length, end = start + len(value), match.end()
        if match[1] and labelled:
            host = _WEBHOOK.match(value)
            places.append((start + (host.end() if host else 0), length))
    return "".join([*parts, text[end:]]), places


def _draw(slot: str, makers: Mapping[str, Maker], scene: Scene) -> str:
    if "#" in slot:
        if slot not in scene.memory:
            scene.memory[slot] = _draw(slot.rpartition("#")[0], makers, scene)
        return scene.memory[slot]
    name, _, argument = slot.partition(":")
    return makers[name](scene, argument)


def surround(
    text: str, places: list[Place], register: str, makers: Mapping[str, Maker], scene: Scene
) -> tuple[str, list[Place]]:
    """The text between neutral passages of its register, and its places moved with it."""
    passages = [part.text for part in load("surroundings") if part.register == register]
    if not passages or scene.rng.random() >= _SURROUNDED:
        return text, places
    both = scene.rng.sample(passages, 2)
    before, after = (fill(passage, makers, scene, False)[0] for passage in both)
    where = scene.rng.choice(("before", "after", "both"))
    gap = "\n\n" if register in {"prose", "markdown", "python", "mail"} else "\n"
    if where != "after":
        text = before + gap + text
        places = [(a + len(before + gap), b + len(before + gap)) for a, b in places]
    return (text if where == "before" else text + gap + after), places
