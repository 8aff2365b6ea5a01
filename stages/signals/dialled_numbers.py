"""Numbers where only a machine dials them, and those that letters spell.

A link that calls (`wa.me`, `tel=`), a channel of a telephone exchange (`PJSIP/+4930…`), and North
America's free numbers with letters for digits (`1-800-FLOWERS`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.signals.outputs import to_character_offsets

_MARKED_LETTERS = re.compile(rb"000 {1,2}(?:000 )?AA")
_LETTERED = re.compile(
    r"(?<![\w$€£.,+-])(?:\+?1[ .-])?(?:\(8(?:00|[2-8]{2})\) ?|8(?:00|[2-8]{2})-|(?<=1[ .-])800[ .])"
    r"(?P<letters>(?:[0-9]{3}-)?[A-Z]{2,}(?:-?[A-Z0-9]+){0,3})(?![\w-])"
)
_LETTERS = range(7, 12)
"""Digits and letters behind the code of a free number."""

_LINKED = re.compile(r"(?:[?&](?:phone|tel|mobile|number)=(?:%2B)?|\bt\.me/)\Z")
"""A link that calls or writes to a number: `api.whatsapp.com/send?phone=`."""

CHANNEL = re.compile(
    r"\b(?:(?:PJ)?SIP|DAHDI|IAX2|Local|sofia|gateway)/(?:[\w.-]{1,24}/){0,2}\Z"
    r"|\b(?:exten|register) ?=> ?\Z|\bsips?:\Z"
    r"|\b(?:destination_number|[rft]U|rdnis|DNIS|ANI)\b[^\n0-9]{0,16}\^(?:\(?\\?\+\??)?\Z"
)
"""What a telephone exchange dials: a channel, an extension, an address of SIP (RFC 3261)."""

REACH = 48
"""Characters before a number in which such a place begins."""

_FEWEST_DIALLED = 10
"""Digits of a number on a channel of an exchange; an extension has fewer."""

_DIGIT = re.compile(r"[0-9]")


def find_lettered_numbers(text: str, encoded: bytes, marks: bytes) -> Iterator[tuple[int, int]]:
    """Places of North America's free numbers with letters for digits: `1-800-FLOWERS`.

    `encoded` is `text` in UTF-8, and `marks` its bytes by `mark_bytes`.
    """
    places = [match.start() for match in _MARKED_LETTERS.finditer(marks)]
    for place in to_character_offsets(text, encoded, places) if places else ():
        match = _LETTERED.search(text, max(0, place - 4), place + 20)
        if match is None:
            continue
        letters = match["letters"].replace("-", "")
        if len(letters) in _LETTERS and len(set(re.sub("[0-9]", "", letters))) > 2:
            yield match.span()


def is_linked(text: str, start: int) -> bool:
    """Whether a link that calls or writes to a number ends before it."""
    return _LINKED.search(text, max(0, start - 16), start) is not None


def is_dialled(text: str, start: int, written: str) -> bool:
    """Whether a number stands after a channel of a telephone exchange: `PJSIP/+4930…`."""
    if written[:1] != "+" and len(_DIGIT.findall(written)) < _FEWEST_DIALLED:
        return False
    return CHANNEL.search(text, max(0, start - REACH), start) is not None
