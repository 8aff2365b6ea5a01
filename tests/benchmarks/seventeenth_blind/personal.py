"""What fills the slots of the seventeenth set's texts of emails, phones, addresses and cards.

A pattern is a text in which `#` is any digit, `~` one of 1-9, `*` one of 2-9, `^` a small
hexadecimal digit, `?` a capital and `&` a small letter.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
import string

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.seventeenth_blind.personal_words import (
    BLOCKS6,
    CARD_RANGES,
    FICTION,
    FIRM_ENDS,
    FIRM_TAILS,
    FIRM_WORDS,
    FIRST_NAMES,
    FREE_MAIL,
    LAST_NAMES,
)

_ALPHABETS = {
    "#": string.digits,
    "~": "123456789",
    "*": "23456789",
    "^": "0123456789abcdef",
    "?": string.ascii_uppercase,
    "&": string.ascii_lowercase,
}
_FICTION = re.compile(FICTION)


def _draw(scene: Scene, pattern: str) -> str:
    return "".join(scene.rng.choice(_ALPHABETS.get(one, one)) for one in pattern)


def _pattern(scene: Scene, pattern: str) -> str:
    """A drawn pattern."""
    return _draw(scene, pattern)


def _phone(scene: Scene, pattern: str) -> str:
    """A drawn phone number outside the ranges of fiction; its drawn digits serve `_again`."""
    while True:
        number = _draw(scene, pattern)
        bare = re.sub(r"[^\d]", "", number)
        if not _FICTION.search(number) and not _FICTION.search(bare):
            break
    drawn = [one for one, form in zip(number, pattern, strict=True) if form in _ALPHABETS]
    scene.memory["drawn"] = "".join(drawn)
    return number


def _again(scene: Scene, pattern: str) -> str:
    """The digits of the last phone number in another way of writing."""
    digits = iter(scene.memory["drawn"])
    return "".join(next(digits) if one in _ALPHABETS else one for one in pattern)


def _no_card(scene: Scene, pattern: str) -> str:
    """A drawn pattern whose digits fail Luhn's check."""
    while True:
        number = _draw(scene, pattern)
        digits = re.sub(r"\D", "", number)
        if luhn_digit(digits[:-1]) != digits[-1]:
            return number


def _luhn(scene: Scene, pattern: str) -> str:
    """A drawn pattern with Luhn's digit behind it."""
    number = _draw(scene, pattern)
    return number + luhn_digit(re.sub(r"\D", "", number))


def _card(scene: Scene, argument: str) -> str:
    """A card of a network, its groups joined by what follows the first comma (nothing if none)."""
    network, _, joint = argument.partition(",")
    head = scene.rng.choice(CARD_RANGES[network].split())
    size = {"amex": 15, "diners": 14}.get(network, 16)
    while True:
        digits = head + _draw(scene, "#" * (size - 1 - len(head)))
        digits += luhn_digit(digits)
        if not re.search(r"(\d)\1{3}|0123|1234|4321", digits):
            break
    cuts = (4, 10, 16) if size < 16 else (4, 8, 12, 16)
    starts = (0, *cuts)
    groups = [digits[start:end] for start, end in zip(starts, cuts, strict=False)]
    return joint.join(groups)


def _named(scene: Scene, names: dict[str, str], argument: str) -> tuple[str, str]:
    """A name as shown and as an address has it, the same in the whole text."""
    language, _, number = argument.partition(",")
    kind = "first" if names is FIRST_NAMES else "last"
    word = scene.once(
        f"{kind} {language} {number}", lambda: scene.rng.choice(names[language].split())
    )
    shown, _, plain = word.partition("=")
    return shown, plain or shown.lower()


def _first(scene: Scene, argument: str) -> str:
    """A first name of a language."""
    return _named(scene, FIRST_NAMES, argument)[0]


def _last(scene: Scene, argument: str) -> str:
    """A family name of a language."""
    return _named(scene, LAST_NAMES, argument)[0]


def _person(scene: Scene, argument: str) -> str:
    """A full name; Chinese, Japanese and Korean names start with the family's."""
    first, last = _first(scene, argument), _last(scene, argument)
    if argument[:2] in ("zh", "ja", "ko"):
        return last + first
    return f"{last} {first}" if argument[:2] == "hu" else f"{first} {last}"


def _local(scene: Scene, argument: str) -> str:
    """The part before the at sign, from the text's person."""
    first, last = (_named(scene, names, argument)[1] for names in (FIRST_NAMES, LAST_NAMES))
    year = str(scene.rng.randrange(60, 100))
    forms = (f"{first}.{last}", f"{first[0]}{last}", f"{last}.{first}", f"{first}{last}")
    more = (f"{first}_{last}", f"{first}{last}{year}", f"{last}{year}", f"{first[0]}.{last}")
    return scene.rng.choice(forms + more + forms[:1] * 3)


def _firm(scene: Scene, argument: str) -> str:
    """The domain of a firm of a language, the same in the whole text."""

    def make() -> str:
        word = scene.rng.choice(" ".join(FIRM_WORDS).split())
        tail = scene.rng.choice(" ".join(FIRM_TAILS).split())
        end = scene.rng.choice(FIRM_ENDS.get(argument, argument).split())
        return f"{word}{scene.rng.choice(['-', ''])}{tail}.{end}"

    return scene.once(f"firm {argument}", make)


def _free(scene: Scene, argument: str) -> str:
    """An address of a person at a free mail service."""
    domain = scene.rng.choice(FREE_MAIL[argument.partition(",")[0]].split())
    return f"{_local(scene, argument)}@{domain}"


def _work(scene: Scene, argument: str) -> str:
    """An address of a person at the text's firm."""
    return f"{_local(scene, argument)}@{_firm(scene, argument.partition(',')[0])}"


def _role(scene: Scene, argument: str) -> str:
    """An address of an office: `info,de` is `info@` at the text's firm."""
    role, _, language = argument.partition(",")
    return f"{role}@{_firm(scene, language)}"


def _at(scene: Scene, argument: str) -> str:
    """An address of a person of a language at a named domain: `de,uni-jena.de`."""
    language, _, domain = argument.partition(",")
    return f"{_local(scene, language)}@{domain}"


def _ip4(scene: Scene, argument: str) -> str:
    """A public address of version 4; an argument is its first part."""
    while True:
        first = argument or str(scene.rng.choice([23, 31, 37, 45, 46, *range(50, 220)]))
        parts = [first, *(str(scene.rng.randrange(1, 255)) for _ in range(3))]
        address = ipaddress.ip_address(".".join(parts))
        ordinary = len(set(parts)) == 4 and not re.match(r"198\.51|203\.0|192\.", str(address))
        if address.is_global and not address.is_multicast and ordinary:
            return str(address)


def _ip6(scene: Scene, argument: str) -> str:
    """A public address of version 6: `full`, `mac` (from a hardware address), `one`, or short."""
    block = scene.rng.choice(" ".join(BLOCKS6).split())
    groups = [*block.split(":"), _draw(scene, "~^^^"), _draw(scene, "~^^")]
    host = [_draw(scene, "~^^^") for _ in range(4)]
    if argument == "mac":
        host[1:3] = [_draw(scene, "~^ff"), _draw(scene, "fe~^")]
    if argument == "one":
        return ":".join(groups[:3]) + "::" + _draw(scene, "~")
    if argument in ("full", "mac"):
        return ":".join(groups + host)
    return ":".join(groups[:3]) + "::" + ":".join(host[:2])


def _pick(scene: Scene, argument: str) -> str:
    """One of several words, divided by `|`."""
    return scene.rng.choice(argument.split("|"))


def _int(scene: Scene, argument: str) -> str:
    """A whole number of a range, both ends included: `1-254`."""
    low, high = map(int, argument.split("-"))
    return str(scene.rng.randint(low, high))


def _date(scene: Scene, form: str) -> str:
    """A day and time of the years from 2009 to 2024 in a form of `strftime`."""
    start = datetime.datetime(2009, 1, 1, tzinfo=datetime.UTC)
    return (start + datetime.timedelta(seconds=scene.rng.randrange(500_000_000))).strftime(form)


MAKERS: dict[str, Maker] = {
    "personal_p": _pattern,
    "personal_n": _phone,
    "personal_again": _again,
    "personal_nocard": _no_card,
    "personal_luhn": _luhn,
    "personal_card": _card,
    "personal_first": _first,
    "personal_last": _last,
    "personal_person": _person,
    "personal_user": _local,
    "personal_firm": _firm,
    "personal_free": _free,
    "personal_work": _work,
    "personal_role": _role,
    "personal_at": _at,
    "personal_ip4": _ip4,
    "personal_ip6": _ip6,
    "personal_pick": _pick,
    "personal_int": _int,
    "personal_date": _date,
}
