"""Digits that are no phone number by their form: dates, versions, addresses, times, other codes.

`is_other_number` decides where a word names the number, too; `is_number_of_other_kind` only where
none does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

SPACES = " \u00a0\u2002\u2003\u2007\u2009\u200a\u202f"
BETWEEN = rf"[{SPACES}./\u2010-\u2014\u2212-]"
"""What may stand between the digits of a number besides brackets."""

_DIGIT = re.compile(r"[0-9]")
_DATE = re.compile(
    rf"(?:(?:19|20)[0-9]{{2}}{BETWEEN}[01]?[0-9]{BETWEEN}[0-3]?[0-9]"
    rf"|[0-3]?[0-9]{BETWEEN}[0-3]?[0-9]{BETWEEN}(?:19|20)[0-9]{{2}}|[0-3]?[0-9]/[0-3]?[0-9]"
    rf"|(?:1[5-9]|20)[0-9]{{2}}{BETWEEN}{{1,3}}(?:1[5-9]|20)[0-9]{{2}})(?![0-9])"
    r"|(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])\Z"
)
_OCTET = r"(?:1?[0-9]{1,2}|2[0-4][0-9]|25[0-5])"
_DECIMAL_OR_IP = re.compile(
    rf"\+?[0-9]+\.[0-9]+\Z|{_OCTET}(?:\.{_OCTET}){{3}}(?:/[0-9]{{1,2}})?(?: [0-9]{{2,5}})?\Z"
    r"|[0-9]\.[0-9]\.|.*\.\."
)
"""Also with the size of its network or a port behind it, a version, and a range `60001..60513`."""

AREA_POINT = re.compile(r"0[0-9]{1,4}\.[0-9]{5,8}\Z|3[0-9]{2}\.[0-9]{6,7}\Z")
_REGISTERED = re.compile(r"\+[1-9][0-9]{0,2}\.[0-9]{6,12}\Z")
"""As registries of domains write a number (RFC 5733): `+1.7035555555`."""

_CHANGED_LINES = re.compile(r"\+[0-9]{1,5} -[0-9]{1,5}\Z")
"""Lines that a change adds and removes: `+6907 -348`."""

_COUNTED_DIGITS = frozenset(
    (
        *("1234567", "12345678", "123456789", "1234567890", "12345678901", "0123456789"),
        *("9876543210", "2147483647", "2147483648", "4294967295"),
    )
)
"""What people type who need any number, and the limits of whole numbers of 32 bits."""

_UNIX_TIME = re.compile(r"1[0-9]{9}\Z")
"""Seconds since 1970; no country has numbers of ten digits that begin so."""

NOBODYS = re.compile(
    r"(?:1 )?555 [0-9]{3} [0-9]{4}\Z|1 ?500 ?555 ?0[0-9]{3}\Z|[0-9]{1,4}(?: 0+){2,}\Z"
    r"|(?:[1-9] ?){1,3}0(?: ?0){6,}\Z"
    r"|(?:[1-9] ?){0,4}([1-9])(?: ?\1){8}\Z|1? ?234 ?567 ?8?(?:9(?:[0 ]{0,2}|01)|90[01])\Z"
)
"""No area has the code 555; Twilio's numbers for tests; the mask of a field; digits in order."""

NO_SHORT = re.compile(
    r"[^.]*\.[^.]*\Z|[^.]*\.[^ ]* |[^ ]* [^.]*\.|1[0-9]([ .-])[0-9]{2}\1[0-9]{2}\1"
)
"""Seven or eight digits with a point, with points and blanks, or as a date or time in pairs."""

YEAR_OR_SUM = re.compile(
    r"(?:1[5-9]|20)[0-9]{2}(?![0-9]|(?<!20..)[ -](?!20|1[5-9])[0-9]{4}\Z)"
    r"|[1-9][0-9]{0,2}(?:[ .][0-9]{3})+\Z"
)


def is_other_number(written: str) -> bool:
    """Whether digits are a date, a decimal, an IP address or one digit many times."""
    if _DECIMAL_OR_IP.match(written):
        return not (AREA_POINT.match(written) or _REGISTERED.match(written))
    if len(set(_DIGIT.findall(written))) < 2 or _CHANGED_LINES.match(written):
        return True
    return "+" not in written[:2] and (
        _DATE.match(written) is not None or written in _COUNTED_DIGITS
    )


_ZIP = re.compile(r"[0-9]{5}-[0-9]{3,4}\Z|[0-9]{3}([ .-])[0-9]{2}\1[0-9]{4}\Z")
"""Postal codes, and social security numbers of the United States."""

_ACCOUNT_BEFORE = re.compile(r"(?<![A-Z0-9])[A-Z]{2}[0-9]{2} ?[0-9A-Z]{4}[ -]\Z")
"""The beginning of an IBAN: its check digits are wrong, or it would be one."""


_MODES = re.compile(r"0[0-7]{3}(?: 0[0-7]{3})+\Z")
"""Permissions of files: `0644 0755`."""

_COMPANY = re.compile(r"[01][0-9]{3}\.[0-9]{3}\.[0-9]{3}\Z")
_COMPANY_BEFORE = re.compile(r"(?<![A-Z])BE ?\Z")
"""The number of a company in Belgium."""

_TAX_BEFORE = re.compile(r"(?-i:TFN|tfn)[\W_]{1,4}\Z|tax file number[\W_]{1,4}\Z", re.IGNORECASE)
"""Australia's tax file number, which Spain's and Sweden's word for a telephone begins alike."""

_THREE_GROUPS = re.compile(r"[1-5][0-9]{2} [0-9]{3} [0-9]{3}\Z")

_LAST_BALL = 50


def _is_draw(groups: Sequence[str]) -> bool:
    """Whether pairs of digits rise as the numbers of a lottery do: `04 11 23 31 38`."""
    numbers = [int(group) for group in groups]
    return (
        len(numbers) > 4
        and all(len(group) == 2 for group in groups)
        and numbers[-1] <= _LAST_BALL
        and all(a < b for a, b in pairwise(numbers))
    )


def _is_counted(groups: Sequence[str]) -> bool:
    """Whether groups count upwards: `01 02 03 04 05`."""
    numbers = [int(group) for group in groups]
    return len(numbers) > 3 and len({b - a for a, b in pairwise(numbers)}) == 1


def is_number_of_other_kind(written: str, groups: Sequence[str], before: str) -> bool:
    """Whether digits that nothing names count up, or are a time, a code or part of an account."""
    return (
        _is_counted(groups)
        or _is_draw(groups)
        or _MODES.match(written) is not None
        or (_COMPANY.match(written) is not None and _COMPANY_BEFORE.search(before) is not None)
        or _ZIP.match(written) is not None
        or _UNIX_TIME.match(written) is not None
        or _ACCOUNT_BEFORE.search(before) is not None
    )


def is_tax_number(written: str, before: str) -> bool:
    """Whether a number named so has the form of Australia's tax file numbers, or is one."""
    from stdnum.au import tfn

    return _TAX_BEFORE.search(before) is not None and (
        _THREE_GROUPS.match(written) is not None or bool(tfn.is_valid(written))
    )
