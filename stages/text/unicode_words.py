"""Words as Unicode segments text: the default rules of UAX #29, without a dictionary.

A word is a segment between word boundaries (https://www.unicode.org/reports/tr29/, section 4.1)
that holds a letter or a digit. Where a script writes no spaces, the default rules part Han,
Hiragana and Thai letter by letter: only a dictionary could do better (section 4.1 says so), so
numbers by word compare texts of one language, never languages with each other.

The `regex` package knows the properties of characters, but its own boundaries, `(?w)\\b`, are not
these: it joins a flag with the word after it (against WB15 and WB16), and a quote with the vowel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import regex
from numpy.typing import NDArray

from stages.text.characters import CharacterTable, Table, code_points
from stages.text.native import compiled

Ints = NDArray[np.int64]

_CLASSES = (
    *("CR", "LF", "Newline", "Extend", "Format", "ZWJ"),
    *("ALetter", "Hebrew_Letter", "Numeric", "Katakana", "ExtendNumLet"),
    *("Single_Quote", "Double_Quote", "MidNumLet", "MidLetter", "MidNum"),
)
"""Values of Word_Break, as classes 1 to 16; 0 is any other character.

Spaces and flags are others here: what their rules join (WB3d, WB15, WB16) is never part of a word,
nor is a line's end (WB3).
"""

_CLASS, _PICTURE, _WORDLIKE = 31, 32, 64
_CR, _LF, _NEWLINE, _EXTEND, _FORMAT, _ZWJ = (1 << c for c in range(1, 7))
_A_LETTER, _HEBREW, _NUMERIC, _KATAKANA, _EXTEND_NUM_LET = (1 << c for c in range(7, 12))
_SINGLE, _DOUBLE, _MID_NUM_LET, _MID_LETTER, _MID_NUM = (1 << c for c in range(12, 17))

_LINE_END = _CR | _LF | _NEWLINE
_IGNORED = _EXTEND | _FORMAT | _ZWJ
_LETTER = _A_LETTER | _HEBREW
_IN_WORD = _LETTER | _NUMERIC | _KATAKANA
_BETWEEN_LETTERS = _MID_LETTER | _MID_NUM_LET | _SINGLE
_BETWEEN_DIGITS = _MID_NUM | _MID_NUM_LET | _SINGLE

_PATTERNS = (
    *((number, rf"\p{{WB={name}}}") for number, name in enumerate(_CLASSES, start=1)),
    (_PICTURE, r"\p{Extended_Pictographic}"),
    (_WORDLIKE, r"[\p{Alphabetic}\p{N}]"),
)
_FINDERS = [(value, regex.compile(pattern)) for value, pattern in _PATTERNS]


def _flags(chars: str) -> Iterator[tuple[int, Iterable[int]]]:
    for value, finder in _FINDERS:
        yield value, (match.start() for match in finder.finditer(chars))


_table = CharacterTable(_flags)


@dataclass(frozen=True)
class Words:
    """The words of several texts, which lie end to end; all arrays are int64."""

    texts: Ints
    """[texts + 1] code points at which each text starts, and the end of the last."""
    text: Ints
    """[words] the text of each word."""
    starts: Ints
    """[words] code points, counted through all the texts."""
    ends: Ints
    """[words]"""


def unicode_words(texts: Sequence[str]) -> Words:
    """The words of `texts`, in order."""
    codes = code_points("".join(texts))
    borders = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in texts], out=borders[1:])
    found = np.empty((3, len(codes)), dtype=np.int64)
    count = _find_words(codes, borders, _table.covering(codes), found)
    text, starts, ends = found[:, :count]
    return Words(borders, text, starts, ends)


@compiled
def _find_words(codes: NDArray[np.uint32], borders: Ints, table: Table, found: Ints) -> int:
    """Fill `found` ([text, start, end][word]); the number of words."""
    count = 0
    for text in range(len(borders) - 1):
        start, end = borders[text], borders[text + 1]
        wordlike = False
        # Classes as bits: of the character before, and, Extend, Format and ZWJ ignored (WB4), of
        # the one before and the one before that.
        raw, left, left_of_it = 0, 0, 0
        for i in range(borders[text], end):
            bits = table[codes[i]]
            this = 1 << (bits & _CLASS)
            ignored = this & _IGNORED != 0 and raw != 0 and raw & _LINE_END == 0
            if i > start and (
                not ignored and not _joined(raw, left, left_of_it, bits, codes, i, end, table)
            ):
                if wordlike:
                    found[0, count], found[1, count], found[2, count] = text, start, i
                    count += 1
                start, wordlike = i, False
            wordlike |= bits & _WORDLIKE != 0
            if not ignored:
                left_of_it, left = left, this
            raw = this
        if wordlike:
            found[0, count], found[1, count], found[2, count] = text, start, end
            count += 1
    return count


@compiled
def _joined(
    raw: int,
    left: int,
    left_of_it: int,
    bits: int,
    codes: NDArray[np.uint32],
    i: int,
    end: int,
    table: Table,
) -> bool:
    """Whether a rule of WB3c to WB13 but WB4 forbids a boundary before the character at `i`."""
    this = 1 << (bits & _CLASS)
    if (raw | this) & _LINE_END:
        return False
    if raw == _ZWJ and bits & _PICTURE != 0:
        return True
    if left & _IN_WORD:
        if left == _KATAKANA or this == _KATAKANA:
            return left == this or this == _EXTEND_NUM_LET
        if this & (_IN_WORD | _EXTEND_NUM_LET):
            return True
        if this & (_BETWEEN_LETTERS | _BETWEEN_DIGITS | _DOUBLE):
            if left == _HEBREW and this == _SINGLE:
                return True
            return _joins(left, this, _class_after(codes, i, end, table))
        return False
    if left & (_BETWEEN_LETTERS | _BETWEEN_DIGITS | _DOUBLE):
        return _joins(left_of_it, left, this)
    return left == _EXTEND_NUM_LET and this & (_IN_WORD | _EXTEND_NUM_LET) != 0


@compiled
def _joins(before: int, mark: int, after: int) -> bool:
    """Whether a mark between two characters lets them be one word (WB6, WB7, WB7b to WB12)."""
    if before & _LETTER and after & _LETTER and mark & _BETWEEN_LETTERS:
        return True
    if before == _HEBREW and after == _HEBREW and mark == _DOUBLE:
        return True
    return before == _NUMERIC and after == _NUMERIC and mark & _BETWEEN_DIGITS != 0


@compiled
def _class_after(codes: NDArray[np.uint32], i: int, end: int, table: Table) -> int:
    """Class of the next character behind `i` that WB4 does not ignore; 0 at the end."""
    for place in range(i + 1, end):
        this = 1 << (table[codes[place]] & _CLASS)
        if this & _IGNORED == 0:
            return this
    return 0
