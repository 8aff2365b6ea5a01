"""Numbers that what stands around them names: one before, the list, the column, a person.

`Tel. 030 1234567 or the office 030 7654321`: the second has no word of its own. A list of people
has a number a line, and a directory a person's name beside ten digits.
"""

from __future__ import annotations

import re

from stages.signals.named_values import find_head
from stages.signals.other_numbers import YEAR_OR_SUM
from stages.signals.phone_words import (
    CHAINED,
    CHAINED_OFFICE,
    NAMED_COLUMN,
    OTHER_BEFORE,
    PERSON_BEFORE,
    PERSON_IN_ROW,
)

_REACH = 60
"""Characters between two numbers that one word names."""

_LIST_ITEM = re.compile(
    r"[,;]?\r?\n[ \t]{0,8}(?:[-*•+]|\(?[0-9]{1,2}[.)])?[ \t]{0,4}"
    r"(?![^\n0-9]{0,60}(?:num|nr|n[°º]|regist|code|kod|konto|account|compte|ref|tax|vat|mwst|serial|\bid\b))"
    r"[^\W\d_][^\n0-9:<>=@$€£]{2,68}[ \t]",
    re.IGNORECASE,
)
_LINE_END = re.compile(r"[ \t]{0,4}[.,;)]?[ \t]{0,4}(?:\r?\n|\Z)")
"""A number that ends its line, below another that did."""

_OTHER_PLACE = re.compile(r"[,;|•·.)][ \u2013\u2014-]{1,4}([^\W\d_]{2,16})(?:[.:]{1,2} ?| )")
_LED = re.compile(r"\(?0|8[ (-]")
"""How a country's own numbers begin where a prefix leads out of a town."""

_OF_PERSON = re.compile(r"\(?[0-9]{2,6}\)?(?:[ \u00a0/-]{1,2}[0-9]{2,7}){1,4}\Z")
"""Groups of a number after a person's name; rows of tables have more, or single digits."""

THREES = re.compile(r"[25-9][0-9]{2}([ .])[0-9]{3}\1[0-9]{3}\Z")
"""Nine digits that a person may have, but in hardly any unit."""

_TEN = re.compile(r"[2-9][0-9]{2}[2-9][0-9]{6}\Z|[6-9][0-9]{9}\Z|3[0-9]{9}\Z|89[0-9]{9}\Z")
"""North America's, India's, Italy's and Russia's mobile numbers without a blank."""

_CELL_END = re.compile(r"[ \t]{0,12}(?:[,;|)\n]|\r|\Z)")
_RELATION_BEFORE = re.compile(
    r"(?:^|[\s,;:])[A-ZÀ-ÖØ-Þ][a-zß-ÿ'’-]{1,20} \([^()0-9\n]{3,24}\):? \Z"
)
_NAMES_IN_ROW = re.compile(
    r"(?:^|\n)\"?[A-ZÀ-ÖØ-Þ][a-zß-ÿ'’-]{1,20}\"?[;,|\t]\"?[A-ZÀ-ÖØ-Þ][a-zß-ÿ'’-]{1,20}\"?[;,|\t]\"?\Z"
)
"""`Becky (Ethan's mom) …`, and the cells of a first and a last name."""

_REGISTER_BEFORE = re.compile(r"\b[A-Z]{2,5} [A-ZÀ-Þ][\w'-]+\W{0,3}\Z")
"""A register and its town: `RCS Paris 988 259 452`."""


def is_listed(text: str, start: int, end: int, previous: int) -> bool:
    """Whether a number right before, or the head of the column, names this one too."""
    if 0 <= previous <= start <= previous + _REACH and (
        CHAINED.fullmatch(text, previous, start) or _is_second(text, start, end, previous)
    ):
        return True
    return NAMED_COLUMN.search(find_head(text, start)) is not None


def _is_second(text: str, start: int, end: int, previous: int) -> bool:
    """Whether a number is the second of a line, of another place: `… or the office 02 …`."""
    written = text[start:end]
    is_plain = written.isdigit()
    if YEAR_OR_SUM.match(written) or (is_plain and written[0] != "0" and end - start < 8):
        return False
    if CHAINED_OFFICE.fullmatch(text, previous, start):
        return True
    place = _OTHER_PLACE.fullmatch(text, previous, start)
    return (
        place is not None
        and not is_plain
        and not place[1].isupper()
        and _LED.match(written) is not None
        and OTHER_BEFORE.search(text[previous:start]) is None
    )


def is_in_list(text: str, start: int, end: int, previous: int) -> bool:
    """Whether a number ends a line of a list, as the one before it does; its plan must allow it."""
    return (
        0 <= previous < start <= previous + 80
        and _LIST_ITEM.fullmatch(text, previous, start) is not None
        and _LINE_END.match(text, end) is not None
    )


def is_of_person(text: str, start: int, end: int, before: str) -> bool:
    """Whether a number is a person's: right after the name, written as no sum, year or id is."""
    written = text[start:end]
    if written.isdigit():
        if written[0] != "0" and not (_TEN.match(written) and _CELL_END.match(text, end)):
            return False
        if _RELATION_BEFORE.search(before) or _NAMES_IN_ROW.search(before):
            return True
    elif THREES.match(written):
        if written.endswith("000") or _REGISTER_BEFORE.search(before):
            return False
    elif not _OF_PERSON.match(written) or YEAR_OR_SUM.match(written):
        return False
    return PERSON_BEFORE.search(before) is not None or PERSON_IN_ROW.search(before) is not None
