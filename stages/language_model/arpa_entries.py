"""Lines of an ARPA section as arrays: one compiled pass over the bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.language_model.vocabulary import find_word
from stages.text.native import compiled

PROBLEMS = (
    "",
    "expected a number",
    "a log probability above zero",
    "a number that float32 does not hold",
    "too few words",
    "a word that the 1-grams do not list",
    "a back-off for an n-gram of the highest order",
    "more fields than an n-gram has",
)
_NUMBER, _POSITIVE, _RANGE, _FEW, _STRANGE, _BACKOFF, _MANY = range(1, 8)

_TAB, _NEWLINE, _RETURN, _SPACE, _BACKSLASH = (ord(char) for char in "\t\n\r \\")
_PLUS, _MINUS, _POINT, _ZERO, _NINE, _E, _SMALL_E = (ord(char) for char in "+-.09Ee")
_MOST_DIGITS = 18
_GREATEST = 3.4e38


@compiled
def _is_separator(byte: np.uint8) -> bool:
    return byte in (_SPACE, _TAB, _RETURN)


@compiled
def _field(data: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """(start, end) of the next field of the line; empty at the line's end."""
    while _is_separator(data[at]):
        at += 1
    end = at
    while data[end] != _NEWLINE and not _is_separator(data[end]):
        end += 1
    return at, end


@compiled
def _number(data: NDArray[np.uint8], at: int, end: int) -> tuple[float, int]:
    """(value, problem) of a decimal number."""
    negative = at < end and data[at] == _MINUS
    if at < end and (data[at] == _MINUS or data[at] == _PLUS):
        at += 1
    digits, mantissa, exponent, point = 0, np.int64(0), 0, False
    while at < end and (data[at] == _POINT or _ZERO <= data[at] <= _NINE):
        if data[at] == _POINT:
            if point:
                return 0.0, _NUMBER
            point = True
        else:
            digits += 1
            if mantissa < 10 ** (_MOST_DIGITS - 1):
                mantissa = mantissa * 10 + (np.int64(data[at]) - _ZERO)
                exponent -= point
            else:
                exponent += not point
        at += 1
    if not digits:
        return 0.0, _NUMBER
    if at < end and (data[at] == _E or data[at] == _SMALL_E):
        at += 1
        below = at < end and data[at] == _MINUS
        if at < end and (data[at] == _MINUS or data[at] == _PLUS):
            at += 1
        if at == end or end - at > 4:
            return 0.0, _NUMBER
        power = 0
        while at < end and _ZERO <= data[at] <= _NINE:
            power = power * 10 + int(np.int64(data[at]) - _ZERO)
            at += 1
        exponent += -power if below else power
    if at < end:
        return 0.0, _NUMBER
    value = np.float64(mantissa)
    if exponent < 0:
        value = value / 10.0 ** min(-exponent, 300)
    elif value > 0:
        value = value * 10.0 ** min(exponent, 300)
    return (-value if negative else value), (0 if value <= _GREATEST else _RANGE)


@compiled
def parse_entries(
    data: NDArray[np.uint8],
    at: int,
    last: bool,
    slots: NDArray[np.uint64],
    words: NDArray[np.int32],
    spans: NDArray[np.int64],
    weights: NDArray[np.float32],
) -> tuple[int, int, int]:
    """Parse lines from data[at:], which ends with a line's end, into rows of `words` [rows, order],
    `spans` [rows, 2] of the first word, `weights` [rows, 2].

    Stops at a blank line, at one that begins with a backslash, and when rows are full. `last`: the
    highest order. (rows, where the next line starts, problem: an index of `PROBLEMS`.) Words of
    unigrams are not looked up.
    """
    order, rows = words.shape[1], 0
    while at < len(data) and rows < len(words):
        start, end = _field(data, at)
        if start == end or data[start] == _BACKSLASH:
            break
        value, problem = _number(data, start, end)
        if problem or value > 0:
            return rows, at, problem or _POSITIVE
        weights[rows, 0], weights[rows, 1] = value, 0.0
        for place in range(order):
            start, end = _field(data, end)
            if start == end:
                return rows, at, _FEW
            if place == 0:
                spans[rows, 0], spans[rows, 1] = start, end
            words[rows, place] = find_word(slots, data, start, end) if order > 1 else 0
            if words[rows, place] < 0:
                return rows, at, _STRANGE
        start, end = _field(data, end)
        if start < end:
            value, problem = _number(data, start, end)
            if problem or (last and value):
                return rows, at, problem or _BACKOFF
            weights[rows, 1] = value
            start, end = _field(data, end)
            if start < end:
                return rows, at, _MANY
        at = end + 1
        rows += 1
    return rows, at, 0
