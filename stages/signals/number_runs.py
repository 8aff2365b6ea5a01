"""Runs of digits and of what stands between the digits of a number: where numbers may be.

Phone, account and card numbers all have seven digits with nothing between them but blanks, dots,
hyphens, slashes and brackets. A text without such a run costs one look.
"""

from __future__ import annotations

import re

from stages.signals.byte_places import in_characters

FEWEST_DIGITS = 7
_BLANKS = " \u00a0\u2009\u202f"
_HYPHENS = "\u2010\u2011\u2012\u2013\u2014\u2212-"
_BETWEEN = f"+()./{_BLANKS}{_HYPHENS}"
_BEFORE = re.compile(r"(?:\(?\+ ?|\()\Z")
_RUN = re.compile(rf"[0-9][0-9{re.escape(_BETWEEN)}]*+")

# By bytes of UTF-8: what is a digit, what may stand between two (and parts of other characters).
_MARKS = bytes(
    ord("0") if byte in b"0123456789" else ord(" " if byte in _BETWEEN.encode() else "x")
    for byte in range(256)
)
_MARKED_RUN = re.compile(rb"0[0 ]{%d,}+" % (FEWEST_DIGITS - 1))

_OTHER_DIGITS = "\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\uff10-\uff19"
_LEADS = tuple({digit.encode()[:-1] for digit in "\u0660\u06f0\u0966\uff10"})
_HAS_OTHER = re.compile(f"[{_OTHER_DIGITS}]{{2}}")
_SIGNS = dict(
    zip(map(ord, "\uff0b\uff08\uff09\uff0d\uff0e\uff0f\u30fc\u3000"), "+()-./- ", strict=True)
)
_FOLDED = re.compile(f"[{_OTHER_DIGITS}{''.join(map(chr, _SIGNS))}]+")
_PLAIN = _SIGNS | {
    first + digit: str(digit) for first in (0x660, 0x6F0, 0x966, 0xFF10) for digit in range(10)
}


def with_plain_digits(text: str) -> str:
    """`text`, as long as it was, with Arabic, Persian, Devanagari and full-width digits as ASCII.

    The full-width signs of a number go with them. Unchanged where no two such digits stand
    together.
    """
    if text.isascii():
        return text
    encoded = text.encode("utf-8", "surrogatepass")
    if not any(lead in encoded for lead in _LEADS) or not _HAS_OTHER.search(text):
        return text
    return _FOLDED.sub(lambda match: match[0].translate(_PLAIN), text)


def number_runs(text: str) -> list[tuple[int, int]]:
    """Where runs with seven digits or more stand, with a plus or bracket before; plain digits."""
    encoded = text.encode("utf-8", "surrogatepass")
    places = [
        match.start()
        for match in _MARKED_RUN.finditer(encoded.translate(_MARKS))
        if match[0].count(b"0") >= FEWEST_DIGITS
    ]
    runs = []
    for place in in_characters(text, encoded, places):
        match, before = _RUN.match(text, place), _BEFORE.search(text, max(0, place - 3), place)
        if match is not None:
            runs.append((before.start() if before else place, match.end()))
    return runs
