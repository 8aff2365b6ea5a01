"""Phone numbers in a text, by the numbering plans that libphonenumber knows.

A run of digits is a phone number if it is one of four things:

- international (`+49 30 1234567`, `0049 30 1234567`) and valid in its country;
- behind or before a word that names one (`Tel.:`, `Fax`, `call me at`, `mobile`; many languages):
  seven to fifteen digits, and the plan is not asked, for the country is not known;
- valid in one of the given countries, in groups, and shortly behind a word that speaks of calling
  or writing to somebody;
- valid in one of the given countries and written as that country writes it: an area code that
  brackets or a leading 0 tell, or the groups of North America: `(212) 736-5000`, `020 7946 1234`,
  `01 84 17 61 18`.

What a word before it names otherwise (ISBN, order, invoice), a date and a part of a longer number
are none. Time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from stages.signals import phone_words as words

FEWEST, MOST = 7, 15
"""Digits of a number: seven are the fewest looked at, fifteen the most that ITU-T E.164 allows."""

_BETWEEN = r"[ \u00a0\u2009\u202f./\u2010-\u2014\u2212-]"
# Where one number may end and the next begin: two blanks, a stroke between blanks, a plus.
_CUT = re.compile(r"(?<=[0-9)])(?:[ \u00a0]{2,}|[ \u00a0][-/\u2013\u2014.][ \u00a0]|[ /]*(?=\+))")
_NUMBER = re.compile(
    rf"(?:\(?\+ ?|\()?[0-9](?:[0-9]|(?![ \u00a0]{{2}}){_BETWEEN}{{1,3}}(?=[0-9(])"
    rf"|{_BETWEEN}{{0,3}}\((?=[0-9]{{1,5}}\))|\){_BETWEEN}{{0,3}}(?=[0-9])){{5,30}}+"
)
_LONGEST = 48
"""Characters in which a number's first seven digits stand."""

_DIGIT = re.compile(r"[0-9]")
_GROUP = re.compile(r"[0-9]+")
_EXTENSION = re.compile(r"(?:[ ,;]{0,2}(?:x|[Ee]xt\.?)[ .:]{0,2})[0-9]{1,5}(?![0-9A-Za-z])")
_TOUCHING_BEFORE = re.compile(r"(?:[\w@=#&%$€£¥^*+~\\-]|[0-9][.,:/]|[A-Za-z]/|[$€£¥#] )\Z")
_TOUCHING_BEHIND = re.compile(
    r"[A-Za-z0-9_@=&%°\u00b2€$£]|[,:.][0-9]|\.[a-z]|-[0-9]|/[A-Za-z0-9]| [%€$£°]"
)

_TELLING = re.compile(r"\([0-9]|0[1-9]|(?:1[ .-])?[2-9][0-9]{2}([ .-])[2-9][0-9]{2}\1[0-9]{4}\Z")
_DATE = re.compile(
    rf"(?:(?:19|20)[0-9]{{2}}{_BETWEEN}[01]?[0-9]{_BETWEEN}[0-3]?[0-9]"
    rf"|[0-3]?[0-9]{_BETWEEN}[0-3]?[0-9]{_BETWEEN}(?:19|20)[0-9]{{2}}|[0-3]?[0-9]/[0-3]?[0-9]"
    rf"|(?:1[5-9]|20)[0-9]{{2}}{_BETWEEN}{{1,3}}(?:1[5-9]|20)[0-9]{{2}})(?![0-9])"
)
_DECIMAL_OR_IP = re.compile(r"\+?[0-9]+\.[0-9]+\Z|[0-9]{1,3}(?:\.[0-9]{1,3}){3}\Z")
_FEWEST_UNNAMED = 9
"""Digits of a national number that no word names: fewer are dates and clocks too often."""

_AREA_CODE = 3
"""Digits of an area code after which a number may be grouped otherwise than its country does."""


def phone_numbers(
    text: str, start: int, end: int, regions: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Where phone numbers stand in the run [start, end); `regions` are ISO 3166 codes."""
    for piece_start, piece_end in _pieces(text, start, end):
        found = _number_in(text, piece_start, piece_end, regions)
        if found is not None:
            yield found


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A run cut where one number ends and the next begins: no piece of fewer digits than one."""
    last = start
    for cut in _CUT.finditer(text, start, end):
        written = text[last : min(cut.start(), last + _LONGEST)]
        if len(_DIGIT.findall(written)) >= FEWEST or text[cut.end() : cut.end() + 1] == "+":
            yield last, cut.start()
            last = cut.end()
    yield last, end


def _number_in(text: str, start: int, end: int, regions: Sequence[str]) -> tuple[int, int] | None:
    """The number with which a piece begins, brackets around it left out."""
    match = _NUMBER.search(text, start, end)
    if match is None:
        return None
    first, last = match.span()
    written = match[0]
    if written[0] == "(" and written.count("(") > written.count(")"):
        first += 1
    if not FEWEST <= len("".join(_GROUP.findall(written))) <= MOST:
        return None
    extension = _EXTENSION.match(text, last)
    stop = extension.end() if extension else last
    if _TOUCHING_BEHIND.match(text, stop):
        return None
    if _TOUCHING_BEFORE.search(text, max(0, first - 2), first):
        return None
    return (first, stop) if _is_phone(text, first, last, regions) else None


def _is_phone(text: str, start: int, end: int, regions: Sequence[str]) -> bool:
    """Whether what stands in [start, end) is a number of one of the four sorts."""
    written, before = text[start:end], text[max(0, start - words.LOOK_BACK) : start]
    groups = _GROUP.findall(written)
    digits = "".join(groups)
    if _DECIMAL_OR_IP.match(written):
        return False
    is_named = words.NAMED_BEFORE.search(before) is not None
    if "+" in written[:2]:
        return is_named or _is_valid(written, None)
    if len(set(digits)) < 3 or _DATE.match(written):
        return False
    if is_named or words.NAMED_BEHIND.match(text, end):
        return True
    if len(groups) == 1 or words.OTHER_BEFORE.search(before):
        return False
    if len(digits) < _FEWEST_UNNAMED:
        return False
    if digits.startswith("00"):
        return _is_valid("+" + digits[2:], None)
    is_telling = _TELLING.match(written) is not None
    if (words.TALK_BEFORE.search(before) and "." not in written) or (
        is_telling and words.LETTERED_BEFORE.search(before)
    ):
        return any(_is_valid(written, region) for region in regions)
    return is_telling and any(_is_written_in(region, written, groups) for region in regions)


def _is_valid(written: str, region: str | None) -> bool:
    import phonenumbers

    number = _parsed(written, region)
    return number is not None and phonenumbers.is_valid_number(number)


def _is_written_in(region: str, written: str, groups: list[str]) -> bool:
    """Whether a number is valid in a country and written in the groups of that country.

    Where the area code has three digits or more, the rest may be grouped otherwise.
    """
    import phonenumbers

    number = _parsed(written, region)
    if number is None or not phonenumbers.is_valid_number_for_region(number, region):
        return False
    national = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    known = _GROUP.findall(national)
    if groups in (known, ["1", *known]):
        return True
    return len(known) > 1 and known[0] == groups[0] and len(known[0]) >= _AREA_CODE


def _parsed(written: str, region: str | None) -> Any:
    import phonenumbers

    try:
        return phonenumbers.parse(written, region)
    except phonenumbers.NumberParseException:
        return None
