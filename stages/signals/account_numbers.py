"""Bank account (IBAN) and payment card numbers in a run of digits.

An IBAN has the length and the shape of its country and the remainder 1 modulo 97 (ISO 13616, ISO
7064 MOD 97-10): a made-up number passes once in 97 times, if country, length and shape fit. The
registry, MOD 97-10 and Luhn's sum are python-stdnum's. A card number has a length and first digits
that a network issues (ISO/IEC 7812) and Luhn's sum, which one in ten passes; a number that is not
written in the groups of a card needs a word about cards near it. Time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from stdnum import iban, luhn, numdb

_SPACES = " \u00a0\u2002\u2003\u2007\u2009\u200a\u202f"
_GAP = rf"[{_SPACES}\u2010-\u2013-]"
"""What parts the groups of an account or a card: any blank of a typesetter, or a hyphen."""

_NO_DIGIT = re.compile(r"[^0-9]")
_IBAN_HEAD = re.compile(rf"(?<![A-Za-z0-9])([A-Za-z]{{2}})[0-9]{{2}}(?={_GAP}?[A-Za-z0-9]{{4}})")
_IBAN_REACH = 12
"""Characters before a run of digits in which the IBAN that holds it begins: `MT84 MALT 0110…`."""

_IBAN_BODY = re.compile(rf"[A-Za-z]{{2}}[0-9]{{2}}(?:{_GAP}?[A-Za-z0-9]){{11,29}}")
_ALNUM = re.compile(r"[A-Za-z0-9]")

_GROUPED = re.compile(
    rf"(?<![0-9])(?:"
    rf"[2-6][0-9]{{3}}({_GAP})[0-9]{{4}}\1[0-9]{{4}}\1[0-9]{{4}}(?:\1[0-9]{{3}})?"
    rf"|3[0-9]{{3}}({_GAP})[0-9]{{6}}\2[0-9]{{4,5}}"
    rf")(?![0-9]| ?{_GAP}[0-9])"
)
_UNGROUPED = re.compile(r"(?<![0-9])[1-6][0-9]{11,18}(?![0-9])")
_CARD_TOUCHING_BEFORE = re.compile(r"(?:[A-Za-z0-9_@/=#&.$€£-]|[0-9][ ,:])\Z")
_CARD_TOUCHING_AFTER = re.compile(r"[A-Za-z0-9_@=&%]|[.,:/-][0-9]|\.[a-z]")
_CARD_WORDS = (
    r"(?<![<\w])(?:card|cc|visa|master ?card|amex|american express|diners|discover|jcb|maestro"
    r"|karte|kreditkarten?|carte|tarjeta|cartão|carta di credito)"
)
_CARD_WORD_REACH = 60
"""Characters around a number, without digits or another value, in which a word speaks of cards."""

_CARD_WORDS_BEFORE = re.compile(rf"{_CARD_WORDS}[^0-9<>@]{{0,{_CARD_WORD_REACH}}}\Z", re.IGNORECASE)
_CARD_WORDS_AFTER = re.compile(rf"[^0-9<>@]{{0,{_CARD_WORD_REACH}}}?{_CARD_WORDS}", re.IGNORECASE)

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


def find_ibans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The place of an IBAN whose digits fill the run [start, end)."""
    head = _IBAN_HEAD.search(text, max(0, start - _IBAN_REACH), min(end, start + 8))
    while head is not None:
        stop = _iban_end(text, head.start(), _iban_length(head[1].upper()))
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
    return (
        stop if iban.is_valid("".join(c[0] for c in letters[:length]), check_country=False) else 0
    )


@cache
def _iban_length(country: str) -> int:
    """Characters of an IBAN of a country, by ISO 13616's registry; 0 where it has none."""
    ((_, entry),) = numdb.get("iban").info(country)
    return 4 + sum(map(int, re.findall("[0-9]+", entry["bban"]))) if entry else 0


def find_cards(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Places of payment card numbers in the run [start, end)."""
    for match in _GROUPED.finditer(text, start, end):
        if _is_alone(text, match) and is_card(_NO_DIGIT.sub("", match[0])):
            yield match.span()
    for match in _UNGROUPED.finditer(text, start, end):
        if is_card(match[0], named=True) and _is_alone(text, match) and _has_card_word(text, match):
            yield match.span()


def is_card(number: str, *, named: bool = False) -> bool:
    """Whether digits are a number that a network issues, by its beginning, length and Luhn sum.

    Of 15 and 16 digits that are `named` a card the sum alone decides: networks grow.
    """
    if not (named and 15 <= len(number) <= 16) and not any(
        issued.match(number) for issued in _ISSUED.get(len(number), ())
    ):
        return False
    return bool(luhn.is_valid(number))


def _is_alone(text: str, match: re.Match[str]) -> bool:
    start, end = match.span()
    return not _CARD_TOUCHING_BEFORE.search(text, max(0, start - 2), start) and not (
        _CARD_TOUCHING_AFTER.match(text, end)
    )


def _has_card_word(text: str, match: re.Match[str]) -> bool:
    """Whether a word before or after speaks of cards, nothing that may be redacted between."""
    start, end = match.span()
    if _CARD_WORDS_BEFORE.search(text, max(0, start - 2 * _CARD_WORD_REACH), start):
        return True
    return _CARD_WORDS_AFTER.match(text, end, end + 2 * _CARD_WORD_REACH) is not None
