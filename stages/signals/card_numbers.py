"""Payment card numbers in a run of digits, or in groups that other signs part.

What a number of a card is, is in `card_networks.py`, the words around it in `card_words.py`. Digits
in the groups of a card, and 15 or 16 of them alone, need no word beside them; others need one about
cards. Time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.signals.card_networks import is_card, is_of_code, is_worldwide
from stages.signals.card_words import (
    CHINESE_BEFORE,
    CODE_BEFORE,
    NAMES_CARD,
    NO_CARD_NAME,
    NUMBERS_OF_OTHER_KINDS,
    OTHER_CARD,
    OTHER_NAME,
    TEST_AFTER,
    TEST_BEFORE,
    TOUCHING_NAME,
)
from stages.signals.named_values import find_head
from stages.signals.outputs import to_character_offsets

_SPACES = " \u00a0\u2002\u2003\u2007\u2009\u200a\u202f"
_HYPHENS = "\u2010-\u2013-"
_GAP = rf"[{_SPACES}{_HYPHENS}]"
"""What parts the groups of a card: any blank of a typesetter, or a hyphen."""

_NO_DIGIT = re.compile(r"[^0-9]")
_NUMBER_SEPARATOR = r"[ \t]{0,3}(?:[,;|/:&\t]|<[^<>]{1,20}>|\\t| )[ \t\"']{0,3}"
_EXPIRY = rf"(?:0[1-9]|1[0-2])(?: ?[/-] ?|{_NUMBER_SEPARATOR})?(?:20)?[2-3][0-9](?![0-9])"
_GROUPED = re.compile(
    rf"(?<![0-9])(?:"
    rf"(?:[2-6][0-9]{{3}}|8600|9860|9792|9112|9704)({_GAP}|\.)[0-9]{{4}}\1[0-9]{{4}}\1[0-9]{{4}}"
    rf"(?:\1[0-9]{{3}})?"
    rf"|3[0-9]{{3}}({_GAP})[0-9]{{6}}\2[0-9]{{4,5}}"
    rf")(?![0-9]| ?{_GAP}(?!{_EXPIRY})[0-9])"
)
_LOOSE = re.compile(
    rf"(?<![0-9])(?:[1-69]|(?=8[126]))"
    rf"(?:[0-9]|(?:[ .]{{1,2}}|(?![ .]){_GAP})(?=[0-9]{{2}})){{11,26}}"
    rf"(?:(?<=[0-9]{{4}}) [0-9](?= ?(?:[^0-9 ]|\Z)))?(?![0-9]|{_GAP}[0-9])"
)
_UNGROUPED = re.compile(r"(?<![0-9])(?:[1-69]|8[126])[0-9]{11,18}(?![0-9])")
"""Digits in any groups, or in none: for these a word must speak of cards."""

_SIGN = r"(?:[ ]?[+/_|,;:\u00b7\u2022*~][ ]?|[\t\n]|\r\n|%20|\\t|&nbsp;|&#160;| [\u2013-] |--)"
_PARTED = re.compile(
    rf"[2-69][0-9]{{3}}({_SIGN})(?:[0-9]{{4}}\1[0-9]{{4}}\1[0-9]{{4}}(?:\1[0-9]{{3}})?"
    rf"|[0-9]{{6}}\1[0-9]{{4,5}})(?![0-9])"
)
_MARKED_GROUPS = re.compile(
    rb"0000(?=[x ]{1,6}00) {0,2}x[x ]{0,5}0000(?:(?:00)?[x ]{1,6}0000)"
    rb"|0000 {1,3}0000(?:00)? {1,3}0000"
)
"""Groups of a card that other signs part, in a text and in the marks of its bytes: a word must name
the card."""

_CARD_TOUCHING_BEFORE = re.compile(r"(?:[A-Za-z0-9_@/=#&.$€£-]|[0-9][ ,:])\Z")
_CARD_TOUCHING_AFTER = re.compile(r"(?![LlNn](?![A-Za-z0-9]))[A-Za-z0-9_@=%]|[.,:/-][0-9]|\.[a-z]")
"""A whole number of Java or JavaScript ends in `L` or `n`."""

_EXPIRY_AFTER = re.compile(
    rf"[\"']?{_NUMBER_SEPARATOR}[\"']?{_EXPIRY}|[,;]?\s{{1,2}}(?:exp|valid|good thru|gültig|vto"
    rf"|ven[ct]|scad|ważn|до)"
    rf"[^0-9\n]{{0,16}}{_EXPIRY}",
    re.IGNORECASE,
)
"""The month and year that stand after a card's number: `,08/27`, `|04|2027`."""

_BOOKED_AFTER = re.compile(rf"/D?{_EXPIRY}| ?EXP ?{_EXPIRY}")
"""The same in a booking: `VI4…/0725`, `CA5…/D0324`."""

_PARAMETERS_AFTER = re.compile(
    r"&(?:exp\w{0,12}|cv[cv]2?)=|[\"'],\s{0,20}[\"'](?:exp\w{0,12}|cv[cv]2?)[\"']\s?:"
    r"| MCC ?[0-9]{4}\b",
    re.IGNORECASE,
)
"""What follows a number in a form or an object: `number=…&exp=1027&cvc=468`."""

_ROUND = re.compile(r"(?:[0-9]{2}00\W?){4}")
"""Rows of hundreds: `3000 3100 3200 3300`."""

_ROW_BESIDE = re.compile(r"(?:\A|\n)[0-9 ]{9,40}\n\Z")
"""A line of numbers alone above another: a table."""

_NUMBER_BEFORE = re.compile(r"(?:(?<![\w-])number|\[number\])=[\"']?\Z")
_PAYS = re.compile(
    r"(?:pay(?:ment)?s?|charge|authori[sz]e|refund|luhn|checkout)\w{0,12}\(\s?[\"']?\Z",
    re.IGNORECASE,
)
"""A call that takes the number of a card: `process_payment(4…, 866)`."""

_OTHER_REACH = 48
_NO_TAG = r"(?<!<(?=(?-i:CARD>)))"
_CARD_WORDS = rf"{_NO_TAG}(?<![a-z]){NAMES_CARD}"
_CARD_WORD_REACH = 60
"""Characters around a number, without digits or another value, in which a word speaks of cards."""

_APART = r"(?:[^0-9<@]|<(?!(?-i:[A-Z_]{2,12}>))[^<>\n]{1,40}>|(?<![0-9])[0-9]{1,2}(?![0-9]))"
"""What may stand between: also tags but those of a redacted value, times and small numbers."""

_CARD_WORDS_BEFORE = re.compile(
    rf"{_NO_TAG}{NAMES_CARD}{_APART}{{0,{_CARD_WORD_REACH}}}\Z", re.IGNORECASE
)
_CARD_WORDS_AFTER = re.compile(rf"[^0-9<>@]{{0,{_CARD_WORD_REACH}}}?{_CARD_WORDS}", re.IGNORECASE)
_CARD_COLUMN = re.compile(_CARD_WORDS, re.IGNORECASE)
_TRACK_BEFORE, _TRACK_AFTER = (
    re.compile(r"(?:(?<![A-Za-z0-9])B|[^A-Za-z0-9_.]|\A)\Z"),
    re.compile(
        r"(?:[=D]|\^[^\^\n0-9]{1,30}\^)[2-4][0-9](?:0[1-9]|1[0-2])(?:[0-9]{3}|(?![0-9A-Za-z]))"
    ),
)
"""What a magnetic stripe has around the number (ISO/IEC 7813)."""

_FOUND_BEFORE = re.compile(r"\w\.\w{2,4}:[0-9]{1,6}:\Z")
"""The file and line in which a search has found a number: `orders.csv:822:`."""

_CHAIN = re.compile(r"[\s\"',;|]{1,6}")
_NAMED_CARD = re.compile(
    rf"(?:{NAMES_CARD})[\w \[\]%-]{{0,16}}?[\"'\])]{{0,2}}\s{{0,2}}(?:=>|=|:)\s{{0,2}}"
    rf"(?:[\"']|%22)?\Z",
    re.IGNORECASE,
)
_MESSAGE_FIELD = re.compile(
    r"\b(?:F|DE|P|bit|field|element)[ _.-]?\[?0{0,2}2\]?(?:\s?[=:]\s?|\s)[\"'\[]?\Z"
    r"|\b(?:5A ?0?8|57 ?1[0-9A-F]) ?\Z|\b[A-Z]{3}\+(?:[A-Z]{2}\+)?\Z",
    re.IGNORECASE,
)
"""The second field of a message of ISO 8583 is the number of the card, and so is EMV's tag 5A; also
a segment of EDIFACT that names an account: `FII+BF+`."""

_TAGGED_CARD = re.compile(
    rf"<(?!(?-i:CARD>))[^<>]{{0,40}}{NAMES_CARD}[^<>]{{0,40}}>\s{{0,4}}(?:<[^<>]{{0,30}}>\s{{0,4}})?\Z",
    re.IGNORECASE,
)


def find_cards(text: str, start: int, end: int, previous: int = -1) -> Iterator[tuple[int, int]]:
    """Places of payment card numbers in [start, end); one before them ended at `previous`."""
    for match in _GROUPED.finditer(text, start, end):
        if (
            _is_alone(text, match)
            and not _ROUND.fullmatch(match[0])
            and is_card(_NO_DIGIT.sub("", match[0]))
            and not _is_other(text, match)
        ):
            yield match.span()
    for shape in (_LOOSE, _UNGROUPED):
        for match in shape.finditer(text, start, end):
            if is_card(_NO_DIGIT.sub("", match[0]), named=True) and (
                (_is_alone(text, match) and _has_card_word(text, match, previous))
                or _is_on_track(text, match)
            ):
                yield match.span()


def find_parted_cards(text: str, encoded: bytes, marks: bytes) -> Iterator[tuple[int, int]]:
    """Places of named cards whose groups other signs part: `cc = 4539_1488_…`, `4539+1488+…`.

    `encoded` is `text` in UTF-8, and `marks` its bytes by `mark_bytes`.
    """
    places = [match.start() for match in _MARKED_GROUPS.finditer(marks)]
    for start in to_character_offsets(text, encoded, places) if places else ():
        match = _PARTED.match(text, start)
        if (
            match is not None
            and is_card(_NO_DIGIT.sub("", match[0]))
            and not text[start - 1 : start].isdecimal()
            and _is_alone(text, match)
            and _is_spoken_of(text, match)
        ):
            yield match.span()


def is_called_test(text: str, start: int, end: int) -> bool:
    """Whether a word in the line of a card's number says that it is for tests."""
    return (
        TEST_BEFORE.search(text, max(0, start - 2 * _CARD_WORD_REACH), start) is not None
        or TEST_AFTER.match(text, end) is not None
    )


def _is_other(text: str, match: re.Match[str]) -> bool:
    """Whether groups of digits are named as another number, or a row of a table of numbers."""
    start, end = match.span()
    before = text[max(0, start - _OTHER_REACH) : start]
    if OTHER_CARD.search(before):
        return True
    if OTHER_NAME.search(before) and not _CARD_WORDS_BEFORE.search(before):
        return True
    groups = match[0].split()
    return (
        groups == sorted(groups)
        and _ROW_BESIDE.search(before) is not None
        and text[end : end + 1] in ("", "\n")
    )


def _is_alone(text: str, match: re.Match[str]) -> bool:
    """Whether nothing touches a number but the name of a card or its expiry."""
    start, end = match.span()
    if _PARAMETERS_AFTER.match(text, end):
        return True
    if _NUMBER_BEFORE.search(text, max(0, start - 9), start):
        return True
    is_coded = _is_coded(text, match) or _FOUND_BEFORE.search(text, max(0, start - 16), start)
    if (
        _CARD_TOUCHING_BEFORE.search(text, max(0, start - 2), start)
        and not is_coded
        and not _is_named_card(text, start)
    ):
        return False
    if not _CARD_TOUCHING_AFTER.match(text, end) or _EXPIRY_AFTER.match(text, end):
        return True
    if is_coded and _BOOKED_AFTER.match(text, end):
        return True
    return (
        text.startswith((",", ";"), end) and _CARD_COLUMN.search(find_head(text, start)) is not None
    )


def _is_coded(text: str, match: re.Match[str]) -> bool:
    """Whether the code of the number's network, or the name of one, touches it."""
    start = match.start()
    code = CODE_BEFORE.search(text, max(0, start - 8), start)
    if code is not None and is_of_code(code[1], match[0]):
        return True
    return TOUCHING_NAME.search(text, max(0, start - 12), start) is not None


def _is_on_track(text: str, match: re.Match[str]) -> bool:
    """Whether a number stands as on the second or first track of a magnetic stripe."""
    start, end = match.span()
    return (
        _TRACK_BEFORE.search(text, max(0, start - 2), start) is not None
        and _TRACK_AFTER.match(text, end) is not None
    )


def _is_bare_card(text: str, match: re.Match[str]) -> bool:
    """Whether 15 or 16 digits alone are a card's: in web text hardly another number has its sum.

    Of the numbers of so many digits in 18 MB of prose and code none had; what is named otherwise
    is none.
    """
    if len(match[0]) not in (15, 16) or not match[0].isdecimal():
        return False
    if not is_card(match[0]) or not is_worldwide(match[0]):
        return False
    before = text[max(0, match.start() - _OTHER_REACH) : match.start()]
    if _PAYS.search(before):
        return True
    return NUMBERS_OF_OTHER_KINDS.search(before) is None


def _is_named_card(text: str, start: int) -> bool:
    """Whether a field, or a tag, right before is named as a card is: `card_number=`."""
    before = text[max(0, start - _CARD_WORD_REACH) : start]
    if NO_CARD_NAME.search(before):
        return False
    if _MESSAGE_FIELD.search(before):
        return True
    return _NAMED_CARD.search(before) is not None or _TAGGED_CARD.search(before) is not None


def _has_card_word(text: str, match: re.Match[str], previous: int) -> bool:
    """Whether a number stands as a card's does, or words near it speak of cards."""
    start, end = match.span()
    if _EXPIRY_AFTER.match(text, end) or _PARAMETERS_AFTER.match(text, end):
        return True
    if _is_bare_card(text, match):
        return True
    if 0 <= previous <= start and _CHAIN.fullmatch(text, previous, start):
        return True
    return _is_spoken_of(text, match)


def _is_spoken_of(text: str, match: re.Match[str]) -> bool:
    """Whether a word before or after speaks of cards, nothing that may be redacted between."""
    start, end = match.span()
    if _is_named_card(text, start) or _is_coded(text, match):
        return True
    if _CARD_COLUMN.search(find_head(text, start)):
        return True
    before = text[max(0, start - 2 * _CARD_WORD_REACH) : start]
    if CHINESE_BEFORE.search(before) and match[0].startswith("62"):
        return True
    if (
        _CARD_WORDS_BEFORE.search(before)
        and not NO_CARD_NAME.search(before)
        and not OTHER_CARD.search(before)
    ):
        return True
    return _CARD_WORDS_AFTER.match(text, end, end + 2 * _CARD_WORD_REACH) is not None
