"""Bank account numbers (IBAN) and payment card numbers in a text, told by their check digits.

An IBAN has its country's length and the remainder 1 modulo 97 (ISO 13616, ISO 7064 MOD 97-10): a
number made up passes once in 97 times, after its country code and length fit. A card number has a
length and first digits that a network issues (ISO/IEC 7812) and Luhn's sum, which one in ten
passes; what is not written in the groups of a card needs a word that speaks of cards beside it.

Both are looked for around runs of digits (`number_runs.py`), in time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_IBAN_LENGTHS = {
    **dict.fromkeys(("NO",), 15),
    **dict.fromkeys(("BE",), 16),
    **dict.fromkeys(("DK", "FI", "FK", "FO", "GL", "NL", "SD"), 18),
    **dict.fromkeys(("MK", "SI"), 19),
    **dict.fromkeys(("AT", "BA", "EE", "KZ", "LT", "LU", "MN", "XK"), 20),
    **dict.fromkeys(("CH", "CR", "HR", "LI", "LV"), 21),
    **dict.fromkeys(("BG", "BH", "DE", "GB", "GE", "IE", "ME", "RS", "VA"), 22),
    **dict.fromkeys(("AE", "GI", "IL", "IQ", "OM", "SO", "TL"), 23),
    **dict.fromkeys(("AD", "CZ", "ES", "MD", "PK", "RO", "SA", "SE", "SK", "TN", "VG"), 24),
    **dict.fromkeys(("LY", "PT", "ST"), 25),
    **dict.fromkeys(("IS", "TR"), 26),
    **dict.fromkeys(("BI", "DJ", "FR", "GR", "IT", "MC", "MR", "SM"), 27),
    **dict.fromkeys(("AL", "AZ", "BY", "CY", "DO", "GT", "HN", "HU", "LB", "NI", "PL", "SV"), 28),
    **dict.fromkeys(("BR", "EG", "PS", "QA", "UA"), 29),
    **dict.fromkeys(("JO", "KW", "MU", "YE"), 30),
    **dict.fromkeys(("MT", "SC"), 31),
    "LC": 32,
    "RU": 33,
}
"""Characters of an IBAN by country: the registry of ISO 13616, release 99."""

_IBAN_HEAD = re.compile(r"(?<![A-Za-z0-9])([A-Za-z]{2})[0-9]{2}(?=[ -]?[A-Za-z0-9]{4})")
_IBAN_REACH = 12
"""Characters before a run of digits in which the IBAN that holds it begins: `MT84 MALT 0110…`."""

_IBAN_BODY = re.compile(r"[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]){11,29}")
_ALNUM = re.compile(r"[A-Za-z0-9]")

_GROUPS = re.compile(
    r"(?<![0-9])(?:"
    r"[2-6][0-9]{3}([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{3})?"
    r"|3[0-9]{3}([ -])[0-9]{6}\2[0-9]{4,5}"
    r")(?![0-9]| ?[ -][0-9])"
)
_TOGETHER = re.compile(r"(?<![0-9])[1-6][0-9]{11,18}(?![0-9])")
_TOUCHING_BEFORE = re.compile(r"(?:[A-Za-z0-9_@/=#&.$€£-]|[0-9][ ,:])\Z")
_TOUCHING_BEHIND = re.compile(r"[A-Za-z0-9_@=&%]|[.,:/-][0-9]|\.[a-z]")
_WORDS = (
    r"(?<![<\w])(?:card|cc|visa|master ?card|amex|american express|diners|discover|jcb|maestro"
    r"|karte|kreditkarten?|carte|tarjeta|cartão|carta di credito)"
)
_NEAR = 60
"""Characters beside a number, without digits or another value, in which a word speaks of cards."""

_WORDS_BEFORE = re.compile(rf"{_WORDS}[^0-9<>@]{{0,{_NEAR}}}\Z", re.IGNORECASE)
_WORDS_BEHIND = re.compile(rf"[^0-9<>@]{{0,{_NEAR}}}?{_WORDS}", re.IGNORECASE)

# First digits of the networks that check with Luhn, by length of the number (ISO/IEC 7812-1).
_AMEX = re.compile(r"3[47]")
_OLD_JCB = re.compile(r"2131|1800")
_DINERS = re.compile(r"30[0-5]|3095|3[689]")
_VISA = re.compile(r"4")
_MAESTRO = re.compile(r"50[0-9]|5[6-8]|6304|6390|67")
_SIXTEEN = re.compile(
    r"4|5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|220[0-4]|6011|6[45]|62|35(?:2[89]|[3-8])"
    r"|3[068]|50[0-9]|5[6-8]|6304|6390|67"
)
_LONG = re.compile(r"4|62|6011|6[45]|50[0-9]|5[6-8]|6304|6390|67")
_ISSUED = {
    12: (_MAESTRO,),
    13: (_VISA, _MAESTRO),
    14: (_DINERS, _MAESTRO),
    15: (_AMEX, _OLD_JCB, _MAESTRO),
    16: (_SIXTEEN,),
    17: (_LONG,),
    18: (_LONG,),
    19: (_LONG,),
}
_DOUBLED = str.maketrans("0123456789", "0246813579")


def ibans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where an IBAN stands whose digits fill the run [start, end)."""
    head = _IBAN_HEAD.search(text, max(0, start - _IBAN_REACH), min(end, start + 8))
    while head is not None:
        stop = _iban_end(text, head.start(), _IBAN_LENGTHS.get(head[1].upper(), 0))
        if stop:
            yield head.start(), stop
            return
        head = _IBAN_HEAD.search(text, head.start() + 1, min(end, start + 8))


def _iban_end(text: str, start: int, length: int) -> int:
    """Where the IBAN at `start` ends if its check digits are right; otherwise 0."""
    body = _IBAN_BODY.match(text, start) if length else None
    if body is None:
        return 0
    letters = list(_ALNUM.finditer(body[0]))
    if len(letters) < length:
        return 0
    stop = start + letters[length - 1].end()
    if _ALNUM.match(text, stop):
        return 0
    return stop if has_iban_check(text[start:stop]) else 0


def has_iban_check(written: str) -> bool:
    """Whether what is written is 1 modulo 97 after its first four characters move to the end."""
    value = written.replace(" ", "").replace("-", "").upper()
    return int("".join(str(int(letter, 36)) for letter in value[4:] + value[:4])) % 97 == 1


def cards(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where payment card numbers stand in the run [start, end)."""
    for match in _GROUPS.finditer(text, start, end):
        if _is_alone(text, match) and is_card(match[0].replace(" ", "").replace("-", "")):
            yield match.span()
    for match in _TOGETHER.finditer(text, start, end):
        if (
            is_card(match[0], named=True)
            and _is_alone(text, match)
            and _speaks_of_cards(text, match)
        ):
            yield match.span()


def is_card(number: str, *, named: bool = False) -> bool:
    """Whether digits are a number that a network issues, by its beginning, length and Luhn sum.

    Of 15 and 16 digits that are `named` a card the sum alone decides: networks grow.
    """
    if not (named and 15 <= len(number) <= 16) and not any(
        issued.match(number) for issued in _ISSUED.get(len(number), ())
    ):
        return False
    doubled = number[-2::-2].translate(_DOUBLED)
    return (sum(map(int, number[::-2])) + sum(map(int, doubled))) % 10 == 0


def _is_alone(text: str, match: re.Match[str]) -> bool:
    start, end = match.span()
    return not _TOUCHING_BEFORE.search(text, max(0, start - 2), start) and not (
        _TOUCHING_BEHIND.match(text, end)
    )


def _speaks_of_cards(text: str, match: re.Match[str]) -> bool:
    """Whether a word before or behind speaks of cards, nothing that may be redacted between."""
    start, end = match.span()
    if _WORDS_BEFORE.search(text, max(0, start - 2 * _NEAR), start):
        return True
    return _WORDS_BEHIND.match(text, end, end + 2 * _NEAR) is not None
