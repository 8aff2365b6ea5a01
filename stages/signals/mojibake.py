"""Mojibake: UTF-8 that was read in a single-byte character set ("cafÃ©"), as spans that repair it.

ftfy (Speer 2019, doi 10.5281/zenodo.2591652) knows which sequences are never meant and what they
stood for, but it needs 140 ns a character to look. So a table lookup over UTF-16 units (2 to 5 ns)
first finds the lines that hold a UTF-8 sequence as one of ftfy's ten character sets would show it,
or a C1 control character; ftfy judges and repairs those lines alone. Text that is all ASCII is not
looked at. A line that ftfy would change without making it less bad stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from stages.signals.outputs import Span

LABEL = "mojibake"
LONGEST_STRETCH = 4_000
"""Characters that are judged together; a longer line is cut, at white space where there is any."""

CHARACTER_SETS = (
    "latin-1",
    "windows-1252",
    "windows-1251",
    "windows-1250",
    "windows-1253",
    "windows-1254",
    "windows-1257",
    "iso-8859-2",
    "macroman",
    "cp437",
)
"""The sets that ftfy undoes. Unassigned bytes are C1 controls, which are looked for anyway."""

_BEGINS, _A_HAT, _C1 = np.uint8(1), np.uint8(2), np.uint8(4)
_FOLLOWS = 4
"""Bits of a rough class: what a character may begin; shifted by this, what it may follow."""

_NOT_ASCII = re.compile("([^\\x00-\\x7f]+)")


def find_mojibake(texts: Sequence[str]) -> list[list[Span]]:
    """For each text the spans to replace, from left to right; none for most.

    Applied, they make of each stretch (a line, or a part of a long one) what `ftfy.fix_encoding`
    makes of it.
    """
    spans: list[list[Span]] = [[] for _ in texts]
    places = [place for place, text in enumerate(texts) if not text.isascii()]
    for number, suspects in _find_suspicious([texts[place] for place in places]).items():
        start = 0
        for line_number, line in enumerate(texts[places[number]].split("\n")):
            if line_number in suspects:
                for offset, stretch in _split_line(line):
                    spans[places[number]] += _repair(stretch, start + offset)
            start += len(line) + 1
    return spans


def _split_line(line: str) -> list[tuple[int, str]]:
    """A suspicious line; of a long one the suspicious pieces, cut after a space where possible."""
    if len(line) <= LONGEST_STRETCH:
        return [(0, line)]
    pieces, begin = [], 0
    while begin < len(line):
        end = begin + LONGEST_STRETCH
        if end < len(line):
            end = line.rfind(" ", begin + 1, end) + 1 or end
        pieces.append((begin, line[begin:end]))
        begin = end
    return [pieces[number] for number in _find_suspicious([piece for _, piece in pieces])]


def _find_suspicious(texts: Sequence[str]) -> dict[int, set[int]]:
    """Text → lines, by number, that hold UTF-8 as a single-byte set shows it, or C1; in order."""
    if not texts:
        return {}
    joined = "\n".join(texts).encode("utf-16-le", "surrogatepass") + bytes(4)
    units = np.frombuffer(joined, dtype=np.uint16)
    rough = _rough_classes()[units]
    marks = rough[:-1] & (rough[1:] >> _FOLLOWS) | rough[:-1] & _C1
    hits = np.flatnonzero(marks)
    # Only the few hits are compared with each character set.
    begins = marks[hits] == _BEGINS
    hits = hits[~begins | _is_sequence(units, hits)]
    if not len(hits):
        return {}
    lines = np.unique(np.searchsorted(np.flatnonzero(units == ord("\n")), hits))
    ends = np.cumsum([text.count("\n") + 1 for text in texts])
    numbers = np.searchsorted(ends, lines, side="right")
    first_lines = np.concatenate(([0], ends))[numbers]
    suspects: dict[int, set[int]] = {}
    for number, line in zip(numbers.tolist(), (lines - first_lines).tolist(), strict=True):
        suspects.setdefault(number, set()).add(line)
    return suspects


def _is_sequence(units: NDArray[np.uint16], places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the units at each place are a UTF-8 sequence as one of the sets shows it."""
    two, more, following = _classes_by_set()
    second, third = (
        following[units[places + 1]],
        following[units[np.minimum(places + 2, len(units) - 1)]],
    )
    first = units[places]
    return (two[first] & second | more[first] & second & third) != 0


def _repair(characters: str, start: int) -> list[Span]:
    """The span of a stretch that ftfy repairs, if it does."""
    from ftfy import fix_encoding
    from ftfy.badness import badness

    fixed = fix_encoding(characters)
    if fixed == characters or badness(fixed) >= badness(characters):
        return []
    return [
        span._replace(start=start + span.start, end=start + span.end)
        for span in _find_differences(characters, fixed)
    ]


def _find_differences(old: str, new: str) -> list[Span]:
    """The runs of non-ASCII characters that differ; one span if the ASCII between them does."""
    old_runs, new_runs = _NOT_ASCII.split(old), _NOT_ASCII.split(new)
    if old_runs[::2] != new_runs[::2]:
        return [_find_difference(old, new)]
    spans, start = [], 0
    for before, after in zip(old_runs, new_runs, strict=True):
        if before != after:
            spans.append(Span(start, start + len(before), LABEL, after))
        start += len(before)
    return spans


def _find_difference(old: str, new: str) -> Span:
    """What is left of `old` between the longest beginning and end that it shares with `new`."""
    shorter = min(len(old), len(new))
    head = _count_equal(old, new, shorter)
    tail = _count_equal(old[::-1], new[::-1], shorter - head)
    return Span(head, len(old) - tail, LABEL, new[head : len(new) - tail])


def _count_equal(one: str, other: str, most: int) -> int:
    """How many characters, up to `most`, two strings begin with alike."""
    return next((place for place in range(most) if one[place] != other[place]), most)


@cache
def _classes_by_set() -> tuple[NDArray[np.uint16], NDArray[np.uint16], NDArray[np.uint16]]:
    """Of each UTF-16 unit, by bits that stand for sets: begins two, begins more, follows."""
    two, more, following = (np.zeros(1 << 16, dtype=np.uint16) for _ in range(3))
    for number, name in enumerate(CHARACTER_SETS):
        for table, block in ((following, (0x80, 0xC0)), (two, (0xC2, 0xE0)), (more, (0xE0, 0xF5))):
            for character in bytes(range(*block)).decode(name, "ignore"):
                table[ord(character)] |= np.uint16(1 << number)
    return two, more, following


@cache
def _rough_classes() -> NDArray[np.uint8]:
    """Of each UTF-16 unit: what it begins and what it follows in any set; Â or Ã; C1."""
    two, more, following = _classes_by_set()
    table = np.where(two | more, _BEGINS, np.uint8(0))
    table |= np.where(following, _BEGINS << np.uint8(_FOLLOWS), np.uint8(0))
    table[[ord("Â"), ord("Ã")]] |= _A_HAT
    table[ord(" ")] |= _A_HAT << np.uint8(_FOLLOWS)
    table[0x80:0xA0] |= _C1
    return table
