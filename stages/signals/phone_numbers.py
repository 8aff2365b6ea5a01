"""Phone numbers in a run of digits.

A run of digits is a phone number, by the numbering plans that libphonenumber knows, if it is one of
five things:

- international (`+49 30 1234567`, `0049 30 1234567`) and valid in its country;
- named by a word before or after it (`Tel.:`, `Fax`, `call me at`, `(mobile)`), by the head of its
  column, or as the next of several: seven to fifteen digits; the plan is not checked, since the
  country is unknown;
- valid in one of the configured countries, right after a word about calling somebody;
- valid there, of nine digits or more, and shortly after or before such a word, with an extension,
  in a field that says where a message goes, or after a letter (`T: …`) or a person's name;
- valid there and written as that country writes it: an area code in brackets or with a leading 0,
  or the groups of North America: `(212) 736-5000`, `020 7946 1234`, `01 84 17 61 18`.

A number that a word before it names otherwise (ISBN, order, invoice), a date, a row of counted
numbers and a part of a longer number are none. The words are in `phone_words.py`.

The library knows which numbers a country has; what tells a number from its context is ours. Its own
`PhoneNumberMatcher`, over eight regions, takes 23 times the CPU time of all personal data here and
finds .863 at a precision of .785, the rules of version 7 .845 at .995
(blind set, docs/figures.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from stages.signals.dialled_numbers import CHANNEL, REACH, is_dialled, is_linked
from stages.signals.listed_numbers import THREES, is_in_list, is_listed, is_of_person
from stages.signals.named_values import find_head
from stages.signals.other_numbers import (
    AREA_POINT,
    BETWEEN,
    NO_SHORT,
    NOBODYS,
    SPACES,
    YEAR_OR_SUM,
    is_number_of_other_kind,
    is_other_number,
    is_tax_number,
)
from stages.signals.phone_words import (
    EXTENSION_AFTER,
    FIELD_BEFORE,
    LETTERED_BEFORE,
    NAMED_AFTER,
    NAMED_BEFORE,
    NAMED_COLUMN,
    OFFICE_BEFORE,
    OTHER_BEFORE,
    PERSON_BEFORE,
    TAGGED_BEFORE,
    TALK_AFTER,
    TALK_BEFORE,
    TALK_RIGHT_BEFORE,
    TALK_TO_BEFORE,
)

LOOK_BACK, LOOK_AHEAD = 64, 60
"""Characters before and after a number in which a word may name it."""

FEWEST_DIGITS, MOST_DIGITS = 7, 15
"""Digits of a number: seven are the fewest looked at, fifteen the most that ITU-T E.164 allows."""

# Where one number may end and the next begin: two blanks, a stroke between blanks or long groups,
# a plus.
_CUT = re.compile(
    r"(?<=[0-9)])(?:[ \u00a0]{2,}|[ \u00a0][-/\u2013\u2014.][ \u00a0]|[ /]*(?=\+)"
    r"|(?<=[0-9]{8})/(?=[0-9]{8}))"
)
_HOURS = re.compile(r"\(?(?:24/7|24/24|7/7|(?<=[hj]/)(?:24|7))\)?[ \u00a0]{1,2}")
"""When somebody can be called, right before a number: `24/7 0800 …`, `7j/7`."""

_IN_ADDRESS = re.compile(r"\b10\.[0-9]{4,9}/\S*\Z|://[^\s?=:]*#\Z")
"""The end of a DOI, and the fragment of an address: `doi:10.1016/j.cell.2011.…`."""

_HOURS_BEFORE = re.compile(r"\(?(?:24/7|24/24|7/7|24h?/24|7j/7)\)? {1,2}\Z")
_NUMBER = re.compile(
    rf"(?:\(?\+ ?|\()?[0-9](?:[0-9]|(?![ \u00a0]{{2}}){BETWEEN}{{1,3}}(?=[0-9(])"
    rf"|{BETWEEN}{{0,3}}\((?=[0-9 ]{{1,7}}\))|\){BETWEEN}{{0,3}}(?=[0-9])){{5,30}}+"
)
_LONGEST = 48
"""Characters that hold the first seven digits of a number."""

_DIGIT = re.compile(r"[0-9]")
_GROUP = re.compile(r"[0-9]+")
_EXTENSION = re.compile(
    r"(?: {0,2}(?:x|[Ee]xt(?:ension)?\.?|DW|Durchwahl)[ .:]{0,2})[0-9]{1,5}(?![0-9A-Za-z])"
)
_TOUCHING_BEFORE = re.compile(
    r"(?:(?![\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef])\w"
    r"|[@=#&%$€£¥^*+~\\-]"
    r"|[0-9][.,:/]|[A-Za-z/]/|[A-Za-z_]\(|[$€£¥#] |(?<![^\s(])\.)\Z"
)
"""Scripts without blanks between words may touch a number."""

_SUM_BEFORE = re.compile(r"[0-9)] ?\Z")
"""What stands before a plus between two blanks: the sum `36 + 62426244000`."""

_TOUCHING_AFTER = re.compile(
    r"[A-Za-z0-9_@=&%°\u00b2€$£]|[,:.][0-9]|\.[a-z]|-(?:[0-9]|[A-Z]{3}|[A-Z](?![A-Za-z]))"
    r"|/[A-Za-z0-9]| ?[%€$£°]"
    r"| (?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{4}(?![0-9A-Za-z])"
)
"""Also the next group of a dump of bytes: `8120 8205 a5f5`."""

_NEXT_LABEL = re.compile(r"[A-Z][a-z-]")
"""The next label without a blank, as text from pages has it: `Fax: 03-5613699E-mail`."""

_ABROAD = re.compile(r"\+[1-9][0-9]{0,2}[^0-9]+[0-9]+[^0-9]+[0-9]")
"""The beginning of an international number in groups."""

_PARAMETER = re.compile(r"=(?:\+|%2B)?\Z")
_SEGMENT_BEFORE, _SEGMENT_AFTER = re.compile(r"\bCOM\+\+?\Z"), re.compile(r":(?:TE|FX|AL|CA)\b")
"""A number in a message of EDIFACT: `COM+0408…:FX'`."""

_MESSENGER = re.compile(r"@(?:s\.whatsapp\.net|c\.us)\b")
"""What parts a number from its server in WhatsApp."""

_UNIT_AFTER = re.compile(
    r" (?:Kč|kr|zł|Ft|₽|₹|¥|грн|CHF|SEK|NOK|DKK|PLN|CZK|HUF|INR|JPY|USD|EUR|GBP|euros?|dollars?"
    r"|pesos|reais|lei|рублей|unidades|unités|Stk|reviews"
    r"|k[gm]|m[lm²]|people|persons|inhabitants|views|hits|times|pcs"
    r"|visitors|users|votes|miles|years|rows|bytes|units|tons|Mio|Euro|habitants|habitantes|Stück"
    r"|Einwohner|руб)\b"
)
"""What is counted, right after a number."""

_GROUPED_NATIONAL = re.compile(
    r"\([0-9]|0[ ]?[1-9]|(?:1[ .-]?)?\(?[2-9][0-9]{2}\)?[ ./-]{1,3}[2-9][0-9]{2}[ .-][0-9]{4}\Z"
    r"|1[38]00[ -][0-9]{3}[ -][0-9]{3}\Z"
    r"|8[ -]?\(?[3-9][0-9]{2}\)?[ -][0-9]{3}[ -][0-9]{2}[ -][0-9]{2}\Z"
    r"|1[3-9][0-9]([ -])[0-9]{4}\1[0-9]{4}\Z"
)
_SPACED_AREA = re.compile(r"\((0[0-9 ]{1,6})\)|(0[0-9 ]{1,6}) ?/")
_PAIRED = re.compile(
    r"[1-9][0-9]([ .-])[0-9]{3}\1[0-9]{2}\1[0-9]{2}\Z"
    r"|[679][0-9]{2}([ .-])[0-9]{2}\2[0-9]{2}\2[0-9]{2}\Z"
)
"""Groups of nine digits that are no sum: `91 848 86 83`, `612 34 56 78`."""

_PAIRS = re.compile(
    r"(?!(?:[67][0-9] ){3}|[23][0-9] [01][0-9] (?:19|20) "
    r"|([0-9]{2}) ([0-9]{2}) (?:\1|\2))[2-9][0-9](?: [0-9]{2}){3}\Z"
)
"""Eight digits in pairs, as the north writes them, but no four rounds of golf, nor sets."""

_WITHOUT_TRUNK = frozenset(("ES", "PL", "CZ", "SK", "PT", "HU", "GR"))
_EXIT = re.compile(r"(?:00 ?|011[ -])(?=[1-9])")
_SHORT_TAIL = re.compile(r"[/\u2013-][0-9]{1,2}\Z")
"""Further lines of one number: `4556-9147/48`."""

_FEWEST_UNNAMED = 9
"""Digits of a number that no word names: fewer are dates and clocks too often."""

_MOST_NATIONAL = 13
"""Digits of a number without its country's code that no word names."""

_FEWEST_ABROAD = 10
"""Digits of an international number that its plan does not list."""

_FEWEST_DIFFERENT = 3
"""Different digits of a number that no word names."""

_MEXICAN = re.compile(r"\A\+52 ?1(?=[ -]?[1-9])")
"""Until 2019 a mobile number of Mexico had a 1 behind the code of the country."""

_BRAZILIAN = re.compile(r"\([1-9]{2}\) ?9 ?[0-9]{4}[ .-][0-9]{4}\Z")
_AREA_IN_BRACKETS = re.compile(r"(?:\([2-9][0-9]{2}\) ?|1-8[0-9]{2}-)[2-9][0-9]{2}[ .-][0-9]{4}\Z")
"""Only a telephone's number is written so."""

_AREA_CODE = 3
"""Digits of an area code after which a number may be grouped otherwise than its country does."""


def find_phone_numbers(
    text: str, start: int, end: int, regions: Sequence[str], previous: int = -1
) -> Iterator[tuple[int, int]]:
    """Places of phone numbers in the run [start, end); `regions` are ISO 3166 codes.

    `previous` is where the last number before the run ends, if there is one.
    """
    for piece_start, piece_end in _split_run(text, start, end):
        span = _find_number(text, piece_start, piece_end, regions, previous)
        if span is not None:
            previous = span[1]
            yield span


def _split_run(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A run cut where one number ends and the next begins: no piece of fewer digits than one."""
    hours = _HOURS.match(text, start, end)
    last = hours.end() if hours else start
    for cut in _CUT.finditer(text, start, end):
        written = text[last : min(cut.start(), last + _LONGEST)]
        if len(_DIGIT.findall(written)) >= FEWEST_DIGITS or text[cut.end() : cut.end() + 1] == "+":
            yield last, cut.start()
            last = cut.end()
    yield last, end


def _find_number(
    text: str, start: int, end: int, regions: Sequence[str], previous: int
) -> tuple[int, int] | None:
    """The number with which a piece begins, without brackets around it."""
    match = _NUMBER.search(text, start, end)
    if match is None:
        return None
    written = match[0].rstrip(SPACES)
    first, last = match.start(), match.start() + len(written)
    if written[0] == "(" and written.count("(") > written.count(")"):
        first += 1
    if text.startswith("COM+", first - 3) and written[1] != "+":  # The sign of a segment.
        first, written = first + 1, written[1:]
    if not FEWEST_DIGITS <= len("".join(_GROUP.findall(written))) <= MOST_DIGITS:
        return None
    if _IN_ADDRESS.search(text, max(0, first - LOOK_BACK), first):
        return None
    extension = _EXTENSION.match(text, last)
    stop = extension.end() if extension else last
    is_sum = written.startswith("+ ") and (
        ")" in written.partition("(")[0] or _SUM_BEFORE.search(text, max(0, first - 2), first)
    )
    if is_sum:
        return None
    touched = _TOUCHING_AFTER.match(text, stop)
    if touched and _goes_on(text, first, stop, written):
        touched = None
    if is_other_number(written) or (touched and not _NEXT_LABEL.match(text, stop)):
        return None
    named_before = _is_named_before(text, first)
    if touched and not named_before:
        return None
    edge = first - 2 if text.startswith("**", max(0, first - 2)) else first  # Bold in Markdown.
    touching = _TOUCHING_BEFORE.search(text, max(0, edge - 2), edge)
    if touching and not (
        named_before or previous == first - 1 or _may_touch(text, first, written, touching[0])
    ):
        return None
    named = (
        named_before
        or _MESSENGER.match(text, last) is not None
        or _SEGMENT_AFTER.match(text, last) is not None
        or is_linked(text, first)
        or is_dialled(text, first, written)
        or NAMED_AFTER.match(text, last, last + LOOK_AHEAD) is not None
        or is_listed(text, first, last, previous)
    )
    if not named and is_in_list(text, first, last, previous) and _is_valid_in(written, regions):
        named = len(_DIGIT.findall(written)) >= _FEWEST_UNNAMED
    return (first, stop) if _is_phone(text, first, last, regions, named) else None


def _goes_on(text: str, start: int, end: int, written: str) -> bool:
    """Whether what touches the end is a cell, a parameter, a second number or a provider."""
    match text[end]:
        case ",":
            return _is_cell(text, start, written) or is_dialled(text, start, written)
        case "$":
            return is_dialled(text, start, written)
        case "&":
            return _PARAMETER.search(text, max(0, start - 4), start) is not None
        case "/":
            return _CUT.match(text, end) is not None
        case "@":
            return (
                CHANNEL.search(text, max(0, start - REACH), start) or _MESSENGER.match(text, end)
            ) is not None
    return False


def _is_cell(text: str, start: int, written: str) -> bool:
    """Whether a number is a cell of a row: in a column of numbers, or with its plus."""
    if written[0] == "+" and text[start - 1 : start] in (",", "\n", '"', ""):
        return True
    return NAMED_COLUMN.search(find_head(text, start)) is not None


def _may_touch(text: str, start: int, written: str, touching: str) -> bool:
    """Whether a number may follow right after a letter, or after the `=` of a field."""
    if touching.endswith("="):
        if is_linked(text, start):
            return True
        return (
            written[:1] == "+" or FIELD_BEFORE.search(text, max(0, start - 16), start) is not None
        )
    if touching.endswith(("/", "^")):
        return is_dialled(text, start, written) or is_linked(text, start)
    if touching.endswith("+"):
        return _SEGMENT_BEFORE.search(text, max(0, start - 5), start) is not None
    if touching.endswith("B"):
        return is_linked(text, start)
    return _ABROAD.match(written) is not None and touching.isalpha()


def _is_named_before(text: str, start: int) -> bool:
    """Whether a word right before says that this is a number; one that touches it is a name."""
    before = text[max(0, start - LOOK_BACK) : start]
    if before.endswith(">") and TAGGED_BEFORE.search(before):
        return True
    match = NAMED_BEFORE.search(before)
    last = match[0].removesuffix("%2B")[-1:] if match else ""
    return match is not None and (not (last.isascii() and last.isalpha()) or text[start] in "+(0")


def _is_phone(text: str, start: int, end: int, regions: Sequence[str], named: bool) -> bool:
    """Whether the text in [start, end) is a number of one of the five kinds."""
    written, before = text[start:end], text[max(0, start - LOOK_BACK) : start]
    groups = _GROUP.findall(written)
    if NOBODYS.match(" ".join(groups)) or is_tax_number(written, before):
        return False
    if named:
        return True
    if "+" in written[:2]:
        return _is_valid_abroad(written)
    if (
        len(set("".join(groups))) < _FEWEST_DIFFERENT
        or (OTHER_BEFORE.search(before) and not _AREA_IN_BRACKETS.match(written))
        or is_number_of_other_kind(written, groups, before)
        or _UNIT_AFTER.match(text, end)
    ):
        return False
    return _is_national(text, start, end, regions, before, groups)


def _is_national(
    text: str, start: int, end: int, regions: Sequence[str], before: str, groups: list[str]
) -> bool:
    """Whether a number that nothing names is one by its form, or by a word of calling near it."""
    written, digits = text[start:end], sum(map(len, groups))
    grouped, is_telling = len(groups) > 1, _GROUPED_NATIONAL.match(written) is not None
    if digits < _FEWEST_UNNAMED:
        return (
            grouped
            and not NO_SHORT.match(written)
            and not YEAR_OR_SUM.match(written)
            and _is_short_called(before, written, text[end : end + 2])
            and _is_valid_in(written, regions)
        )
    abroad = _EXIT.match(written)
    if (
        abroad
        and (grouped or TALK_BEFORE.search(before))
        and _is_valid_abroad("+" + "".join(_GROUP.findall(written[abroad.end() :])))
    ):
        return True
    if digits > _MOST_NATIONAL:
        return False
    talked = (written.count(".") != 1 or AREA_POINT.match(written) is not None) and (
        TALK_BEFORE.search(before) is not None
        or TALK_AFTER.match(text, end, end + LOOK_AHEAD) is not None
        or EXTENSION_AFTER.match(text, end) is not None
        or FIELD_BEFORE.search(before) is not None
        or (
            (grouped or written[0] == "0")
            and (THREES.match(written) or not YEAR_OR_SUM.match(written))
            and ("." not in written or " " not in written)
            and OFFICE_BEFORE.search(before) is not None
        )
    )
    if talked or _is_lettered(before, written, is_telling and grouped):
        return _is_valid_in(written, regions)
    if AREA_POINT.match(written):
        return False
    if is_of_person(text, start, end, before):
        return _is_valid_in(written, regions)
    if _PAIRED.match(written):
        return _is_valid_in(written, [r for r in regions if r in _WITHOUT_TRUNK])
    if _BRAZILIAN.match(written) and "BR" in regions:
        return _is_valid(written, "BR")
    return grouped and is_telling and any(_is_written_in(r, written, groups) for r in regions)


def _is_short_called(before: str, written: str, after: str) -> bool:
    """Whether seven or eight digits stand right after whom to call, or in pairs after a person."""
    before = _HOURS_BEFORE.sub("", before)
    if TALK_RIGHT_BEFORE.search(before) or TALK_TO_BEFORE.search(before):
        return True
    if written[0] == "(":
        return bool(OFFICE_BEFORE.search(before) or TALK_BEFORE.search(before))
    return (
        _PAIRS.match(written) is not None
        and not (after[:1] == " " and after[1:].islower())
        and before[-2:] in (", ", ": ")
        and PERSON_BEFORE.search(before) is not None
    )


def _is_lettered(before: str, written: str, is_telling: bool) -> bool:
    """Whether a letter names a number: `T: 030 …`; without a sign only a form that tells."""
    if LETTERED_BEFORE.search(before) is None:
        return False
    return (
        is_telling or before.endswith((": ", ". ", ") ")) or re.match("0[1-9]", written) is not None
    )


def _is_valid_abroad(written: str) -> bool:
    """Whether an international number is valid, or has a possible length in three groups or more.

    Further lines of a number do not count. Plans change, and people write trunk prefixes.
    """
    import phonenumbers

    plain = _SHORT_TAIL.sub("", written) if written.count("/") else written
    number = _parse_number(_MEXICAN.sub("+52", plain), None)
    if number is None:
        return False
    if phonenumbers.is_valid_number(number):
        return True
    groups = _GROUP.findall(written)
    return (
        len(groups) > 2
        and sum(map(len, groups)) >= _FEWEST_ABROAD
        and phonenumbers.is_possible_number(number)
    )


def _is_valid(written: str, region: str | None) -> bool:
    import phonenumbers

    number = _parse_number(written, region)
    return number is not None and phonenumbers.is_valid_number(number)


def _is_valid_in(written: str, regions: Sequence[str]) -> bool:
    digits = "".join(_GROUP.findall(written))
    return any(_plan(region).fullmatch(digits) and _is_valid(written, region) for region in regions)


@cache
def _plan(region: str) -> re.Pattern[str]:
    """The numbers of a country as digits, with its prefix or without: a cheap first look."""
    from phonenumbers import PhoneMetadata

    metadata: Any = PhoneMetadata.metadata_for_region(region)
    prefix = metadata.national_prefix_for_parsing or metadata.national_prefix or ""
    pattern = metadata.general_desc.national_number_pattern
    # A prefix may be rewritten (Argentina's mobile numbers): the library decides on all of those.
    rewritten = metadata.national_prefix_transform_rule is not None
    return re.compile(rf"(?:{prefix})?(?:{pattern})" if not rewritten else "[0-9]+")


def _is_written_in(region: str, written: str, groups: list[str]) -> bool:
    """Whether a number is valid in a country and written in the groups of that country.

    Where the area code has three digits or more, the rest may be grouped otherwise.
    """
    import phonenumbers

    if not _plan(region).fullmatch("".join(groups)):
        return False
    number = _parse_number(written, region)
    if number is None or not phonenumbers.is_valid_number(number):
        return False
    national = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    known = _GROUP.findall(national)
    if groups in (known, ["1", *known]):
        return True
    if len(known) < 2 or len(known[0]) < _AREA_CODE:
        return False
    match = _SPACED_AREA.match(written)
    area = (match[1] or match[2]).replace(" ", "") if match else groups[0]
    return known[0] == area or (len(area) > _AREA_CODE and known[0].startswith(area))


def _parse_number(written: str, region: str | None) -> Any:
    """libphonenumber's reading; it knows not all blanks of typesetters."""
    import phonenumbers

    try:
        return phonenumbers.parse(re.sub(rf"[{SPACES}]", " ", written), region)
    except phonenumbers.NumberParseException:
        return None
