"""Texts of the blind sets: templates of a set's YAML file with every slot drawn.

The YAML files describe the slots. Places of labelled values are noted while a text is built, so a
label cannot lie elsewhere than its value. A seed draws from one set (`find_set`).

    python -m tests.benchmarks.redaction_blind [--set blind2] [--seed 3000] [--kinds KIND]
"""

from __future__ import annotations

import argparse
import random
import re
import string
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.benchmarks import redaction_values_blind2 as blind2
from tests.benchmarks.redaction_fillers_blind2 import FILLERS as BLIND2_FILLERS
from tests.benchmarks.redaction_values import ALNUM, DIGITS, HEX, draw, luhn_digit
from tests.benchmarks.redaction_values_blind import (
    BLIND_SECRETS,
    FILLERS,
    PARTNERS,
    make_card,
    make_email,
    make_iban,
    make_ip,
    make_phone,
)
from tests.benchmarks.splits import FIRST_BLIND_SEED, SECOND_BLIND_SEED

Place = tuple[int, int]
Make = Callable[[random.Random], str]
SPLIT = "split_over_lines"
SPLIT_KINDS = (
    *("github_token", "gitlab_token", "slack_token", "openai_key", "anthropic_key", "npm_token"),
    *("sendgrid_key", "pypi_token", "json_web_token", "stripe_key", "digitalocean_token"),
)


@dataclass(frozen=True)
class BlindSet:
    """A labelled set written by somebody who knew neither the rules nor the earlier sets.

    Its templates stand in redaction_texts_<name>.yaml; seeds from `first_seed` up to the next set's
    draw from it. `makers` draw labelled values, `fillers` the rest of a text.
    """

    name: str
    first_seed: int
    makers: Mapping[str, Make]
    fillers: Mapping[str, Make]
    make_phone: Callable[[random.Random, Any, str, str], str]


_FIRST_MAKERS: dict[str, Make] = {
    **BLIND_SECRETS,
    **PARTNERS,
    "email": make_email,
    "ip_address": make_ip,
    "card": make_card,
    "iban": make_iban,
}
SETS = {
    chosen.name: chosen
    for chosen in (
        BlindSet("blind", FIRST_BLIND_SEED, _FIRST_MAKERS, FILLERS, make_phone),
        BlindSet("blind2", SECOND_BLIND_SEED, blind2.MAKERS, BLIND2_FILLERS, blind2.make_phone),
    )
}
"""The blind sets by name, oldest first."""
NEWEST = list(SETS)[-1]

_ALPHABETS = {
    "d": DIGITS,
    "h": HEX,
    "x": ALNUM,
    "A": string.ascii_uppercase,
    "a": string.ascii_lowercase,
}
_SLOT = re.compile(
    r"\{(?:(?P<value>|=[a-z0-9_]+|[A-Z]{2}|\+|(?:esc|ind[0-9])(?:=[a-z0-9_]+)?)|(?P<sort>[dhxAanb])(?P<size>[0-9]+)"
    r"|(?P<low>[0-9]+)\.\.(?P<high>[0-9]+)|one:(?P<choices>[^{}]+)"
    r"|rep:(?P<sign>.):(?P<least>[0-9]+)\.\.(?P<most>[0-9]+)|(?P<word>[a-z0-9_]+|NAME|PREFIX|SERVICE))\}"
)
_BREAKS = ("\n", "\n    ", "\\\n", "=\n", "\r\n")
_CODE_BREAKS = ('"\n    "', '" +\n    "', '" .\n  "', '" \\\n  "')


def find_set(seed: int) -> BlindSet:
    """The blind set that a seed draws from. Raises ValueError if no set begins that early."""
    begun = [chosen for chosen in SETS.values() if chosen.first_seed <= seed]
    if not begun:
        raise ValueError(f"seed {seed} is below those of the blind sets ({FIRST_BLIND_SEED})")
    return begun[-1]


@cache
def blind_texts(name: str = "blind") -> dict[str, Any]:
    """What the YAML file of a blind set holds."""
    path = Path(__file__).with_name(f"redaction_texts_{name}.yaml")
    loaded: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def blind_templates(group: str, kind: str, name: str = "blind") -> list[str]:
    """Templates of a kind: its own, and for tokens of a named service those of all tokens."""
    texts = blind_texts(name)
    own = texts[group].get("password" if kind == "chosen_password" else kind, [])
    return [*own, *(texts[group]["secret"] if kind in texts["kinds"] else [])]


def draw_text(
    group: str, kind: str, rng: random.Random, blind_set: BlindSet = SETS["blind"]
) -> tuple[str, tuple[Place, ...]]:
    """A text of `positives` or `negatives` of a kind, and the places of its labelled values."""
    template = rng.choice(blind_templates(group, kind, blind_set.name))
    token_kind = rng.choice(SPLIT_KINDS) if kind == SPLIT else kind
    names = blind_texts(blind_set.name)["kinds"].get(token_kind)
    names = names or {"names": ["TOKEN"], "prefix": "eyJ", "service": "login"}
    words = {
        "NAME": rng.choice(names["names"]),
        "PREFIX": names["prefix"],
        "SERVICE": names["service"],
    }
    text, places, end = "", list[Place](), 0
    for slot in _SLOT.finditer(template):
        text, end = text + template[end : slot.start()], slot.end()
        if slot["value"] is None:
            text += _filler(slot, words, rng, blind_set.fillers)
            continue
        value = _value(slot["value"], token_kind, rng, blind_set)
        if kind == SPLIT:
            value = _broken(value, template, rng)
        start = len(text) + len(value) - len(value.lstrip())
        text += value
        places.append((start, len(text)))
    return text + template[end:], tuple(places)


def _value(slot: str, kind: str, rng: random.Random, blind_set: BlindSet) -> str:
    """A labelled value; `esc=KIND` and `ind4=KIND` write one of a kind escaped or indented."""
    forms = blind_texts(blind_set.name)["phones"]
    layout, _, named = slot.partition("=")
    maker = "phone" if slot in forms else named or kind
    if maker == "phone":
        country = slot if slot in forms else rng.choice(sorted(forms))
        return blind_set.make_phone(rng, forms, country, "international" if slot == "+" else "")
    value = blind_set.makers[maker](rng)
    if layout == "esc":
        return value.replace("\n", "\\n")
    if layout.startswith("ind"):
        return "\n".join(" " * int(layout[3:]) + row for row in value.split("\n"))
    return value


def _broken(token: str, template: str, rng: random.Random) -> str:
    """A token cut by the end of a line, as mail programs, terminals and source files do."""
    cut = rng.randrange(12, len(token) - 4)
    if template.startswith(">"):
        between = "\n> "
    else:
        between = rng.choice(_CODE_BREAKS if '"{}"' in template else _BREAKS)
    return token[:cut] + between + token[cut:]


def _filler(
    slot: re.Match[str], words: dict[str, str], rng: random.Random, fillers: Mapping[str, Make]
) -> str:
    """What stands in a slot that holds no value; a slot of no known name stays as it is."""
    if slot["sort"]:
        return _drawn(slot["sort"], int(slot["size"]), rng)
    if slot["low"]:
        number = rng.randrange(int(slot["low"]), int(slot["high"]) + 1)
        return f"{number:0{len(slot['low'])}d}"
    if slot["choices"]:
        return rng.choice(slot["choices"].split("|"))
    if slot["sign"]:
        return slot["sign"] * rng.randrange(int(slot["least"]), int(slot["most"]) + 1)
    word = slot["word"]
    if word in words:
        return words[word]
    return fillers[word](rng) if word in fillers else slot[0]


def _drawn(sort: str, size: int, rng: random.Random) -> str:
    if sort == "n":
        return str(rng.randrange(1, size + 1))
    if sort == "b":
        body = rng.choice("3456789") + draw(rng, DIGITS, size - 2)
        return body + str((int(luhn_digit(body)) + rng.randrange(1, 10)) % 10)
    return draw(rng, _ALPHABETS[sort], size)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run redaction.py on a blind set; options that are not of this program go to it."""
    from tests.benchmarks import redaction

    parser = argparse.ArgumentParser(
        description="Precision and recall of redaction on a blind set."
    )
    parser.add_argument("--set", choices=list(SETS), default=NEWEST, help="default: the newest")
    parser.add_argument("--seed", type=int, help="one of the set's; default: its first")
    options, rest = parser.parse_known_args(arguments)
    chosen = SETS[options.set]
    seed = chosen.first_seed if options.seed is None else options.seed
    if seed < FIRST_BLIND_SEED or find_set(seed) is not chosen:
        parser.error(
            f"--seed {seed} does not draw from {chosen.name}, which begins at {chosen.first_seed}"
        )
    print(f"set {chosen.name}, seed {seed}")
    sys.argv = ["redaction.py", "--seed", str(seed), *rest]
    redaction.main()


if __name__ == "__main__":
    main()
