"""The compiled part of RefinedWeb's line corrections: one walk for the lines, one pass a rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.signals.line_rules.characters import (
    ALPHANUMERIC,
    CAPITAL,
    DECIMAL,
    DIGIT,
    SPACE,
    WORD,
)
from stages.signals.line_rules.marks import KEPT, WHITE_SPACE, Marks
from stages.text.characters import Table
from stages.text.native import compiled

ANYWHERE, SUFFIX, PREFIX = 0, 1, 2
"""Where in a line a piece is cut."""

LINE = np.dtype(
    [
        *((name, np.int64) for name in ("start", "end", "first", "last")),
        *((name, np.int64) for name in ("capitals", "digits", "words", "label")),
    ]
)
"""A line between line feeds: characters [start, end) of the batch; [first, last) without what the
strips of the whole page took; capitals and digits; white-space separated words; KEPT or the label
of the rule that dropped it."""

_LINE_FEED, _COMMA, _FULL_STOP, _SMALL_K = (ord(char) for char in "\n,.k")
_CAPITAL_A, _CAPITAL_Z, _TO_SMALL = ord("A"), ord("Z"), ord("a") - ord("A")
_KELVIN, _LONG_S, _DOTTED_CAPITAL_I, _DOTLESS_I = 0x212A, 0x17F, 0x130, 0x131
_SMALL_S, _SMALL_I, _SMALL_M, _SMALL_B = (ord(char) for char in "simb")


@compiled
def find_lines(
    codes: NDArray[np.uint32], offsets: NDArray[np.int64], classes: Table, table: NDArray[np.void]
) -> NDArray[np.int64]:
    """Fills `table`; text d has the lines [offsets[d], offsets[d + 1]) of the answer."""
    lines = 0
    line_offsets = np.zeros_like(offsets)
    for text in range(len(offsets) - 1):
        i, stop = offsets[text], offsets[text + 1]
        while i <= stop:
            start, capitals, digits, words, after_space = i, 0, 0, 0, True
            while i < stop and codes[i] != _LINE_FEED:
                bits = classes[codes[i]]
                space = (bits & SPACE) != 0
                capitals += (bits & CAPITAL) != 0
                digits += (bits & DIGIT) != 0
                words += after_space and not space
                after_space = space
                i += 1
            line = table[lines]
            line.start, line.end, line.first, line.last = start, i, start, i
            line.capitals, line.digits, line.words = capitals, digits, words
            lines += 1
            i += 1
        line_offsets[text + 1] = lines
    return line_offsets


@compiled
def strip_page(
    codes: NDArray[np.uint32],
    classes: Table,
    marks: Marks,
    table: NDArray[np.void],
    begin: int,
    end: int,
) -> tuple[int, int]:
    """What `strip` does to the page of the lines [begin, end): the lines that remain.

    Blank lines at both ends are dropped, the white space before the first character and behind the
    last one is left out of [first, last).
    """
    while begin < end and (table[begin].label != KEPT or not table[begin].words):
        if table[begin].label == KEPT:
            table[begin].label = WHITE_SPACE
        begin += 1
    while begin < end and (table[end - 1].label != KEPT or not table[end - 1].words):
        if table[end - 1].label == KEPT:
            table[end - 1].label = WHITE_SPACE
        end -= 1
    if begin < end:
        head, tail = table[begin], table[end - 1]
        while marks[head.first] or classes[codes[head.first]] & SPACE:
            head.first += 1
        while marks[tail.last - 1] or classes[codes[tail.last - 1]] & SPACE:
            tail.last -= 1
    return begin, end


@compiled
def is_counter(
    codes: NDArray[np.uint32], classes: Table, i: int, end: int, counters: NDArray[np.uint8]
) -> bool:
    r"""Whether a line is `^\W*\d(?:,|\.|\d)*[kmb]?\s+COUNTER\W*$` in lower case.

    No step can go two ways, so one walk decides what the pattern finds.
    """
    while i < end and not classes[codes[i]] & WORD:
        i += 1
    if i == end or not classes[codes[i]] & DECIMAL:
        return False
    while i < end and (classes[codes[i]] & DECIMAL or codes[i] in (_COMMA, _FULL_STOP)):
        i += 1
    if i < end and lower(codes[i]) in (_SMALL_K, _SMALL_M, _SMALL_B):
        i += 1
    behind_number = i
    while i < end and classes[codes[i]] & SPACE:
        i += 1
    if i == behind_number:
        return False
    for counter in range(len(counters)):
        length = 0
        while (
            length < counters.shape[1]
            and counters[counter, length]
            and i + length < end
            and lower(codes[i + length]) == counters[counter, length]
        ):
            length += 1
        if length == counters.shape[1] or not counters[counter, length]:
            behind = i + length
            while behind < end and not classes[codes[behind]] & WORD:
                behind += 1
            if behind == end:
                return True
    return False


@compiled
def lower(code: int) -> int:
    """The lower case of a character where it is ASCII; the character itself otherwise."""
    if _CAPITAL_A <= code <= _CAPITAL_Z:
        return code + _TO_SMALL
    return _SMALL_K if code == _KELVIN else code


@compiled
def folded(code: int) -> int:
    """The small ASCII letter that a pattern which ignores case takes a character for, or itself."""
    if code == _LONG_S:
        return _SMALL_S
    if code in (_DOTTED_CAPITAL_I, _DOTLESS_I):
        return _SMALL_I
    return lower(code)


@compiled
def cut_piece(
    codes: NDArray[np.uint32],
    classes: Table,
    marks: Marks,
    line: Any,
    piece: NDArray[np.uint8],
    location: int,
    label: int,
) -> bool:
    """Cuts a piece from a line, with one white space before it (behind it for a prefix).

    `piece` is ASCII in lower case; 0 stands for any character. True if something was cut.
    """
    if location == ANYWHERE:
        cut, i = False, line.first
        while i + len(piece) <= line.last:
            if _matches(codes, marks, i, line.last, piece) == i + len(piece):
                before = i > line.first and not marks[i - 1] and classes[codes[i - 1]] & SPACE
                marks[i - (before != 0) : i + len(piece)] = label
                cut = True
                i += len(piece)
            else:
                i += 1
        return cut
    if location == PREFIX:
        start = line.first
        end = _matches(codes, marks, start, line.last, piece)
        if end < 0:
            return False
        while end < line.last and marks[end]:
            end += 1
        if end < line.last and classes[codes[end]] & SPACE:
            end += 1
    else:
        start = line.last
        for _ in range(len(piece)):
            start = _previous(marks, start, line.first)
        if start < line.first or _matches(codes, marks, start, line.last, piece) < 0:
            return False
        end = line.last
        before = _previous(marks, start, line.first)
        if before >= line.first and classes[codes[before]] & SPACE:
            start = before
    for i in range(start, end):
        if not marks[i]:
            marks[i] = label
    return True


@compiled
def _previous(marks: Marks, i: int, first: int) -> int:
    """The last character before i that is not cut; first - 1 if there is none."""
    i -= 1
    while i >= first and marks[i]:
        i -= 1
    return max(i, first - 1)


@compiled
def _matches(
    codes: NDArray[np.uint32], marks: Marks, i: int, end: int, piece: NDArray[np.uint8]
) -> int:
    """Behind the piece that begins with the first character from i on not cut; -1 if none does."""
    for k in range(len(piece)):
        while i < end and marks[i]:
            i += 1
        if i == end or (piece[k] and folded(codes[i]) != piece[k]):
            return -1
        i += 1
    return i


@compiled
def words_left(codes: NDArray[np.uint32], classes: Table, marks: Marks, line: Any) -> int:
    """White-space separated words of a line without what was cut from it."""
    words, after_space = 0, True
    for i in range(line.first, line.last):
        if marks[i]:
            continue
        space = (classes[codes[i]] & SPACE) != 0
        words += after_space and not space
        after_space = space
    return words


@compiled
def count_words(
    codes: NDArray[np.uint32], offsets: NDArray[np.int64], classes: Table, marks: Marks
) -> NDArray[np.int64]:
    """[2, texts] the words of each text and of what is left of it.

    A word is a run without NUL and ASCII white space, as fastText splits, that begins with a letter
    or digit.
    """
    counts = np.zeros((2, len(offsets) - 1), dtype=np.int64)
    for text in range(len(offsets) - 1):
        parted, left_parted = True, True
        for i in range(offsets[text], offsets[text + 1]):
            code = codes[i]
            parts = code == 0 or code == 32 or (9 <= code <= 13)
            begins = not parts and (classes[code] & ALPHANUMERIC) != 0
            counts[0, text] += parted and begins
            parted = parts
            if marks[i] == KEPT:
                counts[1, text] += left_parted and begins
                left_parted = parts
    return counts
