"""Texts of the blind set: templates of redaction_texts_blind.yaml with every slot drawn.

The YAML file describes the slots. Places of labelled values are noted while a text is built, so a
label cannot lie elsewhere than its value.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

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

Place = tuple[int, int]
SPLIT = "split_over_lines"
SPLIT_KINDS = (
    *("github_token", "gitlab_token", "slack_token", "openai_key", "anthropic_key", "npm_token"),
    *("sendgrid_key", "pypi_token", "json_web_token", "stripe_key", "digitalocean_token"),
)
_MAKERS: dict[str, Callable[[random.Random], str]] = {
    **BLIND_SECRETS,
    **PARTNERS,
    "email": make_email,
    "ip_address": make_ip,
    "card": make_card,
    "iban": make_iban,
}
_ALPHABETS = {
    "d": DIGITS,
    "h": HEX,
    "x": ALNUM,
    "A": string.ascii_uppercase,
    "a": string.ascii_lowercase,
}
_SLOT = re.compile(
    r"\{(?:(?P<value>|=[a-z0-9_]+|[A-Z]{2}|esc|ind[0-9])|(?P<sort>[dhxAanb])(?P<size>[0-9]+)"
    r"|(?P<low>[0-9]+)\.\.(?P<high>[0-9]+)|one:(?P<choices>[^{}]+)"
    r"|rep:(?P<sign>.):(?P<least>[0-9]+)\.\.(?P<most>[0-9]+)|(?P<word>[a-z0-9_]+|NAME|PREFIX|SERVICE))\}"
)
_BREAKS = ("\n", "\n    ", "\\\n", "=\n", "\r\n")
_CODE_BREAKS = ('"\n    "', '" +\n    "', '" .\n  "', '" \\\n  "')


@cache
def blind_texts() -> dict[str, Any]:
    """What redaction_texts_blind.yaml holds."""
    path = Path(__file__).with_name("redaction_texts_blind.yaml")
    loaded: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def blind_templates(group: str, kind: str) -> list[str]:
    """Templates of a kind: its own, and for tokens of a named service those of all tokens."""
    texts = blind_texts()
    own = texts[group].get("password" if kind == "chosen_password" else kind, [])
    return [*own, *(texts[group]["secret"] if kind in texts["kinds"] else [])]


def draw_text(group: str, kind: str, rng: random.Random) -> tuple[str, tuple[Place, ...]]:
    """A text of `positives` or `negatives` of a kind, and the places of its labelled values."""
    template = rng.choice(blind_templates(group, kind))
    token_kind = rng.choice(SPLIT_KINDS) if kind == SPLIT else kind
    names = blind_texts()["kinds"].get(token_kind)
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
            text += _filler(slot, words, rng)
            continue
        value = _value(slot["value"], token_kind, rng)
        if kind == SPLIT:
            value = _broken(value, template, rng)
        start = len(text) + len(value) - len(value.lstrip())
        text += value
        places.append((start, len(text)))
    return text + template[end:], tuple(places)


def _value(slot: str, kind: str, rng: random.Random) -> str:
    forms = blind_texts()["phones"]
    if slot.startswith("="):
        return _MAKERS[slot[1:]](rng)
    if kind == "phone":
        return make_phone(rng, forms, *((slot,) if slot else (rng.choice(sorted(forms)),)))
    value = _MAKERS[kind](rng)
    if slot == "esc":
        return value.replace("\n", "\\n")
    if slot.startswith("ind"):
        return "\n".join(" " * int(slot[3:]) + row for row in value.split("\n"))
    return value


def _broken(token: str, template: str, rng: random.Random) -> str:
    """A token cut by the end of a line, as mail programs, terminals and source files do."""
    cut = rng.randrange(12, len(token) - 4)
    if template.startswith(">"):
        between = "\n> "
    else:
        between = rng.choice(_CODE_BREAKS if '"{}"' in template else _BREAKS)
    return token[:cut] + between + token[cut:]


def _filler(slot: re.Match[str], words: dict[str, str], rng: random.Random) -> str:
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
    return FILLERS[word](rng) if word in FILLERS else slot[0]


def _drawn(sort: str, size: int, rng: random.Random) -> str:
    if sort == "n":
        return str(rng.randrange(1, size + 1))
    if sort == "b":
        body = rng.choice("3456789") + draw(rng, DIGITS, size - 2)
        return body + str((int(luhn_digit(body)) + rng.randrange(1, 10)) % 10)
    return draw(rng, _ALPHABETS[sort], size)
