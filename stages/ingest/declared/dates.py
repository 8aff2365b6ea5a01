"""Dates that pages declare, in the many ways that they write them, as ISO 8601 dates.

The date is taken as written, in the page's own time zone: it is never moved by a conversion. A date
that can be read in two ways (`03/04/2021`) is none.
"""

from __future__ import annotations

import re
from datetime import date

EARLIEST, LATEST = 1900, 2100
"""Years between which a date is believed; `0001-01-01` is what programs write for no date."""
_DEFAULTS = frozenset({"1970-01-01", "1969-12-31", "1900-01-01", "1901-01-01", "2000-01-01"})
"""Zeros of clocks and of databases."""
_LONGEST = 64
_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH_NAMES = {name[:3]: number for number, name in enumerate(_MONTHS, 1)}
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)", re.ASCII)
_BASIC = re.compile(r"(\d{4})(\d{2})(\d{2})(?:$|T|Z|\d{6}|[ _-]\d)", re.ASCII)
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})(?!\d)", re.ASCII)
_NAMED = re.compile(  # Tue, 05 Sep 2011 10:00:00 GMT; 5th September 2011; 05-Sep-2011
    r"(?:[a-z]{3,9},?\s+)?(\d{1,2})(?:st|nd|rd|th)?[\s.-]+([a-z]{3,9})[\s.,-]+(\d{4})(?!\d)",
    re.ASCII | re.IGNORECASE,
)
_NAMED_FIRST = re.compile(  # September 5, 2011; Tue Sep 5 2011; Tue Sep 5 10:00:00 UTC 2011
    r"(?:[a-z]{3,9},?\s+)?([a-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+"
    r"(?:\d{1,2}:\d{2}(?::\d{2})?\s+(?:[a-z]{1,5}\s+)?)?(\d{4})(?!\d)",
    re.ASCII | re.IGNORECASE,
)


def iso_date(value: str | None) -> str | None:
    """The calendar date that `value` begins with, as `YYYY-MM-DD`; None if it has none.

    Read are ISO 8601 (extended and basic), RFC 2822, English month names, `D.M.Y`, and `D/M/Y` or
    `M/D/Y` where the day is above 12 or equals the month.
    """
    if value is None:
        return None
    value = value.strip()[:_LONGEST]
    if found := _YEAR_FIRST.match(value):
        return _checked(int(found[1]), int(found[3]), int(found[4]))
    if found := _BASIC.match(value):
        return _checked(int(found[1]), int(found[2]), int(found[3]))
    if found := _YEAR_LAST.match(value):
        return _year_last(int(found[1]), int(found[3]), int(found[4]), found[2])
    if found := _NAMED.match(value):
        return _named(found[2], found[1], found[3])
    if found := _NAMED_FIRST.match(value):
        return _named(found[1], found[2], found[3])
    return None


def _year_last(first: int, second: int, year: int, mark: str) -> str | None:
    if mark == "." or first > 12 or first == second:
        return _checked(year, second, first)
    return _checked(year, first, second) if second > 12 else None


def _named(month: str, day: str, year: str) -> str | None:
    name = month.lower()
    number = _MONTH_NAMES.get(name[:3], 0)
    if not number or (name != "sept" and not _MONTHS[number - 1].startswith(name)):
        return None
    return _checked(int(year), number, int(day))


def _checked(year: int, month: int, day: int) -> str | None:
    if not EARLIEST <= year <= LATEST:
        return None
    try:
        found = date(year, month, day).isoformat()
    except ValueError:
        return None
    return None if found in _DEFAULTS else found
