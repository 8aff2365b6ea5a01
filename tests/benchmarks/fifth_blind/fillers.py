"""Makers of everything in a text that is no value: names, hosts, versions, hashes, ids, dates."""

from __future__ import annotations

import calendar
import random
import string
import uuid
from base64 import b64encode
from functools import cache
from pathlib import Path

import yaml

from tests.benchmarks.fifth_blind.templates import Maker, Scene

DIGITS = string.digits
LOWER = string.ascii_lowercase
UPPER = string.ascii_uppercase
LETTERS = string.ascii_letters
ALNUM = LETTERS + DIGITS
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"
BASE32 = UPPER + "234567"


@cache
def _words() -> dict[str, str]:
    return yaml.safe_load((Path(__file__).with_name("texts") / "words.yaml").read_text())


def split_words(name: str, separator: str | None = None) -> list[str]:
    """A list of texts/words.yaml."""
    return _words()[name].split(separator)


FIRST = split_words("first_names")
LAST = split_words("last_names")
_PARTS = split_words("domain_parts")
_KINDS = split_words("domain_ends")
_ENDS = (
    *(".com",) * 14, *(".de", ".org", ".net", ".io", ".co.uk", ".fr", ".it", ".es", ".nl", ".ch"),
    *(".at", ".se", ".pl", ".com.br", ".edu", ".dev", ".co.jp", ".ru", ".info", ".cz", ".ca"),
)  # fmt: skip
_TOPICS = split_words("services")
_ENGLISH = split_words("words")
_CITIES = split_words("cities")


def chars(rng: random.Random, alphabet: str, size: int) -> str:
    """So many characters, each drawn by itself."""
    return "".join(rng.choice(alphabet) for _ in range(size))


def company_domain(rng: random.Random) -> str:
    """A domain that a company could have registered; never a reserved one."""
    joint = rng.choice(("", "", "-"))
    return rng.choice(_PARTS) + joint + rng.choice(_KINDS) + rng.choice(_ENDS)


def new_scene(rng: random.Random) -> Scene:
    """A scene with a person and a company."""
    return Scene(rng, rng.choice(FIRST), rng.choice(LAST), company_domain(rng))


def _date(scene: Scene, form: str) -> str:
    rng = scene.rng
    year, month, day = rng.randrange(2009, 2026), rng.randrange(1, 13), rng.randrange(1, 29)
    if form == "us":
        return f"{month}/{day}/{year}"
    if form == "eu":
        return f"{day:02}.{month:02}.{year}"
    if form == "mail":
        weekday = rng.choice(("Mon", "Tue", "Wed", "Thu", "Fri"))
        return f"{weekday}, {day} {calendar.month_abbr[month]} {year}"
    return f"{year}-{month:02}-{day:02}"


def _time(scene: Scene, form: str) -> str:
    rng = scene.rng
    hour, minute, second = rng.randrange(24), rng.randrange(60), rng.randrange(60)
    if form == "short":
        return f"{hour:02}:{minute:02}"
    return f"{hour:02}:{minute:02}:{second:02}"


def _version(scene: Scene, form: str) -> str:
    parts = int(form or 3)
    return ".".join(str(scene.rng.randrange(0, 24)) for _ in range(parts))


def _mac(scene: Scene, separator: str) -> str:
    return (separator or ":").replace("colon", ":").join(chars(scene.rng, HEX, 2) for _ in range(6))


def digest(scene: Scene, size: str) -> str:
    """A hexadecimal digest; 40 digits by default."""
    return chars(scene.rng, HEX, int(size or 40))


def words_form(words: tuple[str, ...], form: str) -> str:
    """The words of a name as code writes them; snake case if no other form is named."""
    if form == "camel":
        return words[0] + "".join(word.capitalize() for word in words[1:])
    if form == "pascal":
        return "".join(word.capitalize() for word in words)
    if form == "title":
        return " ".join(words).capitalize()
    if form == "upper":
        return "_".join(words).upper()
    return {"kebab": "-", "dotted": ".", "plain": " "}.get(form, "_").join(words)


def _int(scene: Scene, sizes: str) -> str:
    low, _, high = (sizes or "1-999").partition("-")
    return str(scene.rng.randrange(int(low), int(high) + 1))


FILLERS: dict[str, Maker] = {
    "first": lambda scene, _: scene.first,
    "last": lambda scene, _: scene.last,
    "user": lambda scene, _: scene.rng.choice(
        (scene.first.lower(), scene.first[0].lower() + scene.last.lower(), "deploy", "ubuntu")
    ),
    "nick": lambda scene, _: (
        scene.rng.choice(_PARTS) + scene.rng.choice(("", "_", "-")) + scene.rng.choice(_ENGLISH)
    ),
    "person": lambda scene, _: f"{scene.rng.choice(FIRST)} {scene.rng.choice(LAST)}",
    "domain": lambda scene, _: scene.domain,
    "otherdomain": lambda scene, _: company_domain(scene.rng),
    "company": lambda scene, _: scene.domain.partition(".")[0].replace("-", " ").title(),
    "topic": lambda scene, _: scene.rng.choice(_TOPICS),
    "word": lambda scene, _: scene.rng.choice(_ENGLISH),
    "part": lambda scene, _: scene.rng.choice(_PARTS),
    "city": lambda scene, _: scene.rng.choice(_CITIES),
    "date": _date,
    "time": _time,
    "version": _version,
    "int": _int,
    "digits": lambda scene, size: chars(scene.rng, DIGITS, int(size)),
    "hex": digest,
    "upper": lambda scene, size: chars(scene.rng, UPPER, int(size)),
    "alnum": lambda scene, size: chars(scene.rng, ALNUM, int(size)),
    "lownum": lambda scene, size: chars(scene.rng, LOWER + DIGITS, int(size)),
    "upnum": lambda scene, size: chars(scene.rng, UPPER + DIGITS, int(size)),
    "urlsafe": lambda scene, size: chars(scene.rng, URLSAFE, int(size)),
    "base64": lambda scene, size: b64encode(scene.rng.randbytes(int(size))).decode(),
    "uuid": lambda scene, _: str(uuid.UUID(int=scene.rng.getrandbits(128), version=4)),
    "mac": _mac,
    "choice": lambda scene, options: scene.rng.choice(options.split("|")),
    "value": lambda scene, _: scene.value,
    "name": lambda scene, form: words_form(scene.words, form),
}
