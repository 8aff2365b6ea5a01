"""Bank account numbers (IBAN) in a text and in a run of digits.

An IBAN has the length and the shape of its country and the remainder 1 modulo 97 (ISO 13616, ISO
7064 MOD 97-10): a made-up number passes once in 97 times, if country, length and shape fit. The
registry and MOD 97-10 are python-stdnum's. Time is linear in the text.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from functools import cache

from stdnum import iban, numdb
from stdnum.iso7064 import mod_97_10

from stages.signals.outputs import to_character_offsets

_SPACES = " \u00a0\u2002\u2003\u2007\u2009\u200a\u202f"
_HYPHENS = "\u2010-\u2013-"
_IBAN_GAP = (
    rf"(?:[{_SPACES}{_HYPHENS}./_+~\t\u200b\u00b7]| ?\r?\n[ \t]{{0,12}}|  | [{_HYPHENS}] "
    r"|&nbsp;|&#160;|%20|\\[,; ]|\\_)"
)
"""What parts the groups of an account: dots, strokes, the end of a line, escaped blanks as well."""

_IBAN_HEAD = re.compile(
    rf"(?:(?<![A-Za-z0-9])|(?<=IBAN)|(?<=%3D)|(?<=%20)|(?<=%3A)"
    r"|(?<==3D)|(?<=\\[nrt])|(?<=\?3[0-9]))"
    rf"([A-Za-z]{{2}}) ?[0-9]{{2}}(?={_IBAN_GAP}?[A-Za-z0-9])"
)
_IBAN_BODY = re.compile(rf"[A-Za-z]{{2}} ?[0-9]{{2}}(?:{_IBAN_GAP}?[A-Za-z0-9]){{11,29}}")
_OTHER_LENGTHS = {
    **dict.fromkeys(("AO", "CV", "GW", "MZ"), 25),
    **dict.fromkeys(("DZ", "IR"), 26),
    **dict.fromkeys(("CF", "CG", "CM", "GA", "GQ", "KM", "MG", "TD"), 27),
    **dict.fromkeys(("BF", "BJ", "CI", "MA", "ML", "NE", "SN", "TG"), 28),
}
"""Countries that use such numbers, but are not in the registry of ISO 13616."""

_OTHER_BODY = re.compile(r"[A-Za-z]{0,4}[0-9]{16,24}")
_ALNUM = re.compile(r"[A-Za-z0-9]")
_CHARACTER = re.compile(r"&nbsp;|&#160;|%20|([A-Za-z0-9])")
"""A character of an account, or a blank that is escaped."""

_NAME_AFTER = re.compile(r"[A-Z][a-z]{2,15}:")
"""The next field of a form whose line breaks were lost: `…226Bank:`."""

_CURRENCY_AFTER = re.compile(
    r"(?:EUR|USD|GBP|CHF|PLN|SEK|NOK|DKK|CZK|HUF|RON|BGN|TRY|ISK)(?![A-Za-z0-9])"
    r"|(?:BIC|SWIFT)(?![a-z])"
)
"""The currency of an account, which SWIFT's MT940 writes right behind it, or the next field."""

_HEADS = (b"AA00", b"AA 00")
"""Two capitals and two digits, as `marks` has them."""

_LOWER_HEAD = re.compile(rf"(?<![A-Za-z0-9])([a-z]{{2}})[0-9]{{2}}(?={_IBAN_GAP}?[a-z0-9]{{2}})")
_LOWER_REACH = 12
"""Characters before a run of digits in which an IBAN in small letters begins: `mt84 malt 0110…`."""


def find_ibans(text: str, encoded: bytes, marks: bytes) -> Iterator[tuple[int, int]]:
    """Places of IBANs in capitals; `encoded` is `text` in UTF-8, `marks` what each byte is.

    Marks are `A` for a capital of ASCII, `0` for a digit and a blank for what may stand between.
    """
    places = list[int]()
    for head in _HEADS:
        place = marks.find(head)
        while place >= 0:
            if encoded[place : place + 2] in _iban_countries():
                places.append(place)
            place = marks.find(head, place + 1)
    free = 0
    for start in to_character_offsets(text, encoded, sorted(places)) if places else ():
        match = _IBAN_HEAD.match(text, start) if start >= free else None
        stop = _iban_end(text, start, _iban_length(match[1])) if match else 0
        if stop:
            yield start, stop
            free = stop


def find_lower_ibans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The place of an IBAN in small letters whose digits fill the run [start, end)."""
    head = _LOWER_HEAD.search(text, max(0, start - _LOWER_REACH), min(end, start + 8))
    while head is not None:
        stop = _iban_end(text, head.start(), _iban_length(head[1].upper()))
        if stop:
            yield head.start(), stop
            return
        head = _LOWER_HEAD.search(text, head.start() + 1, min(end, start + 8))


@cache
def _iban_countries() -> frozenset[bytes]:
    """Countries with an IBAN, in ASCII."""
    letters = string.ascii_uppercase
    names = (a + b for a in letters for b in letters)
    return frozenset(name.encode() for name in names if _iban_length(name))


def _iban_end(text: str, start: int, length: int) -> int:
    """Where the IBAN at `start` ends if its check digits are right; otherwise 0."""
    body = _IBAN_BODY.match(text, start) if length else None
    if body is None:
        return 0
    letters = [one for one in _CHARACTER.finditer(body[0]) if one[1]]
    if len(letters) < length:
        return 0
    stop = start + letters[length - 1].end()
    if _ALNUM.match(text, stop) and not (
        _NAME_AFTER.match(text, stop) or _CURRENCY_AFTER.match(text, stop)
    ):
        return 0
    number = "".join(c[0] for c in letters[:length])
    return stop if _is_iban(number) else 0


def _is_iban(number: str) -> bool:
    """Whether the check digits are right, and the rest has the letters of its country."""
    if number[:2].upper() not in _OTHER_LENGTHS:
        return bool(iban.is_valid(number, check_country=False))
    turned = number[4:].upper() + number[:4].upper()
    return _OTHER_BODY.fullmatch(number[4:]) is not None and mod_97_10.is_valid(turned)


@cache
def _iban_length(country: str) -> int:
    """Characters of an IBAN of a country, by ISO 13616's registry; 0 where it has none."""
    if country in _OTHER_LENGTHS:
        return _OTHER_LENGTHS[country]
    ((_, entry),) = numdb.get("iban").info(country)
    return 4 + sum(map(int, re.findall("[0-9]+", entry["bban"]))) if entry else 0
