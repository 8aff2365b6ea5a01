"""Labelled texts for redaction: positives and hard negatives of each kind, by side and seed.

A positive is a sentence of its side around one value; a hard negative holds what only looks like
one: templates, and for tokens also near misses (cut short, filled with `x`, a name that begins
alike). Every text is labelled by how it was made, before any rule sees it. See redaction_values.py
for the values and splits.py for the sides. The blind sets have their own texts (blind_set.py).
"""

from __future__ import annotations

import os.path
import random
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from stages.scoring.uncertainty import wilson
from tests.benchmarks.redaction_values import (
    ALNUM,
    DIGITS,
    HEX,
    SECRETS,
    draw,
    luhn_digit,
    make_card,
    make_email,
    make_iban,
    make_international,
    make_ip,
    make_national,
)
from tests.benchmarks.splits import Side, seed_side

PERSONAL = ("email", "phone", "ip_address", "card", "iban")
SPLIT = "split_over_lines"
KINDS = (*PERSONAL, *SECRETS, SPLIT)
COUNT = 200
"""Positives of a kind, and hard negatives."""

Place = tuple[int, int]
_SLOT = re.compile(r"\{([dhAaxbn])([0-9]+)\}")
_ALPHABETS = {
    "d": DIGITS,
    "h": HEX,
    "A": string.ascii_uppercase,
    "a": string.ascii_lowercase,
    "x": ALNUM,
}
_BREAKS: dict[Side, tuple[str, ...]] = {
    "development": ("\n", "\\\n"),
    "test": ("\n", "\n    ", "\\\n  ", '" +\n    "', "=\n", "\r\n"),
}
_SPLIT_KINDS = (
    *("github_token", "gitlab_token", "slack_token", "openai_key", "anthropic_key"),
    *("sendgrid_key", "pypi_token", "json_web_token", "stripe_key", "digitalocean_token"),
)


@dataclass(frozen=True)
class Case:
    """A text and the places of the values in it; none in a hard negative."""

    kind: str
    text: str
    values: tuple[Place, ...] = ()


@cache
def _texts() -> dict[str, dict[str, dict[Side, list[str]]]]:
    loaded: Any = yaml.safe_load(Path(__file__).with_name("redaction_texts.yaml").read_text())
    return loaded  # type: ignore[no-any-return]


def _templates(group: str, kind: str, side: Side) -> list[str]:
    texts = _texts()[group]
    name = "password" if kind == "chosen_password" else kind
    return texts[name if name in texts else "secret"][side]


def fill(template: str, rng: random.Random) -> str:
    """A hard negative's template with every slot drawn."""

    def drawn(slot: re.Match[str]) -> str:
        kind, size = slot[1], int(slot[2])
        if kind == "n":
            return str(rng.randrange(1, size + 1))
        if kind == "b":
            body = rng.choice("3456789") + draw(rng, DIGITS, size - 2)
            return body + str((int(luhn_digit(body)) + rng.randrange(1, 10)) % 10)
        return draw(rng, _ALPHABETS[kind], size)

    return _SLOT.sub(drawn, template)


def _value(kind: str, side: Side, rng: random.Random) -> str:
    if kind == "phone":
        return (make_international if rng.random() < 0.4 else make_national)(rng, side)
    if kind == "card":
        return make_card(rng, side, "" if rng.random() < 0.25 else None)
    makers: dict[str, Callable[[random.Random, Side], str]] = {
        "email": make_email, "ip_address": make_ip, "iban": make_iban
    }  # fmt: skip
    if kind in makers:
        return makers[kind](rng, side)
    if kind != SPLIT:
        return SECRETS[kind][side](rng)
    token = SECRETS[rng.choice(_SPLIT_KINDS)][side](rng)
    cut = rng.randrange(12, len(token) - 4)
    return token[:cut] + rng.choice(_BREAKS[side]) + token[cut:]


def _near_miss(kind: str, side: Side, rng: random.Random) -> str:
    """A text that begins as a token of the kind does, and is none."""
    token = SECRETS[kind][side](rng)
    prefix = os.path.commonpath([SECRETS[kind][side](random.Random(n)) for n in range(9)])
    filler = [
        prefix + "x" * (len(token) - len(prefix)),
        f"{prefix}your-token-here",
        f"{prefix}{rng.choice(['some', 'other'])}_name_of_a_function_{rng.randrange(99)}",
        token[: len(prefix) + 4 + (len(token) - len(prefix)) // 6],
    ]
    return rng.choice(filler)


def make_cases(kind: str, seed: int, count: int = COUNT) -> list[Case]:
    """`count` positives of a kind and `count` hard negatives, all different, by the seed's side."""
    side, rng = seed_side(seed), random.Random(f"{kind} {seed}")
    positives, negatives = dict[str, Case](), dict[str, Case]()
    while len(positives) < count:
        template, value = rng.choice(_templates("positives", kind, side)), _value(kind, side, rng)
        start = template.index("{}")
        text = template[:start] + value + template[start + 2 :]
        positives[text] = Case(kind, text, ((start, start + len(value)),))
    misses = kind in SECRETS and kind not in _texts()["negatives"] and kind != "chosen_password"
    while len(negatives) < count:
        text = fill(rng.choice(_templates("negatives", kind, side)), rng)
        if kind == SPLIT:
            text = f"{_near_miss(rng.choice(_SPLIT_KINDS), side, rng)}\n{text}"
        elif misses and rng.random() < 0.5:
            template = rng.choice(_templates("positives", kind, side))
            text = template.replace("{}", _near_miss(kind, side, rng)) + f" #{len(negatives)}"
        negatives[text] = Case(kind, text)
    return [*positives.values(), *negatives.values()]


@dataclass(frozen=True)
class Score:
    """Values there are, those of them covered whole, spans, and those of them on values."""

    values: int
    covered: int
    spans: int
    right: int

    @property
    def recall(self) -> float:
        return self.covered / self.values if self.values else 1.0

    @property
    def precision(self) -> float:
        return self.right / self.spans if self.spans else 1.0

    def row(self) -> str:
        """Precision and recall with Wilson's 95 % intervals."""
        parts = [
            f"{hits / of:.3f} [{low:.3f}, {high:.3f}]"
            for hits, of in ((self.right, self.spans), (self.covered, self.values))
            for low, high in [wilson(hits, max(of, 1))]
            if of
        ]
        return " | ".join(parts) if len(parts) == 2 else f"no span | {parts[0]}"


def score(cases: Sequence[Case], spans: Sequence[Sequence[Place]]) -> Score:
    """How spans agree with labels.

    A value is covered if no character of it is left; a span is right if at least half of it lies on
    values.
    """
    values = covered = count = right = 0
    for case, found in zip(cases, spans, strict=True):
        marked = {place for start, end in found for place in range(start, end)}
        inside = {place for start, end in case.values for place in range(start, end)}
        values += len(case.values)
        covered += sum(marked.issuperset(range(*value)) for value in case.values)
        count += len(found)
        right += sum(2 * len(inside & set(range(*span))) >= span[1] - span[0] for span in found)
    return Score(values, covered, count, right)
