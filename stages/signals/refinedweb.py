"""RefinedWeb's line corrections (Penedo et al. 2023, appendix G.2), as DCLM runs them.

The steps and their order are those of DCLM's `dclm_baseline_refinedweb.yaml` with its modifiers
(`baselines/mappers/modifiers.py`). Lines end at line feeds; empty ones always stay.

1. drop lines of more than half capitals;
2. drop lines of digits alone (more than 0.999999 of the characters);
3. drop counters, such as "3 likes";
4. drop lines of fewer than 2 white-space separated words;
5. from lines of at most 10 words cut "items in cart", a final "Read more..." and a leading
   "Sign-in", in any case, with one white space before (after "Sign-in"); what is then blank goes.
   The stops of "Read more..." stand for any character, since DCLM's pattern does not escape them.

After each step but the fourth the page is stripped, so a first or last line is judged without the
white space at the page's end. DCLM then drops a page of which more than 5 % of the words are gone
(`removed_word_share`); a word is one of fastText's tokens that begins with a letter or a digit.

datamap-rs (OLMo 3, `all_dressed_config.yaml`) runs the same list otherwise: it divides by bytes,
counts words by UAX #29, strips nothing, minds the case of the pieces, leaves a space where one was
cut, and its 10 words never apply, since the configuration says `max_length` where the program reads
`max_len`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.signals.counting import (
    ALPHANUMERIC,
    DECIMAL,
    DIGIT,
    SPACE,
    UPPER,
    WORD,
    classify,
)
from stages.signals.outputs import KEPT, LABELS, WHITE_SPACE, Marks
from stages.text.batch import Batch, sum_before
from stages.text.characters import Table

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


@kernel
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
                capitals += (bits & UPPER) != 0
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


@kernel
def strip_page(
    codes: NDArray[np.uint32],
    classes: Table,
    marks: Marks,
    table: NDArray[np.void],
    begin: int,
    end: int,
) -> tuple[int, int]:
    """What `strip` does to the page of the lines [begin, end): the lines that remain.

    Blank lines at both ends are dropped, the white space before the first character and after the
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


@kernel
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
    if i < end and lower_code(codes[i]) in (_SMALL_K, _SMALL_M, _SMALL_B):
        i += 1
    number_end = i
    while i < end and classes[codes[i]] & SPACE:
        i += 1
    if i == number_end:
        return False
    for counter in range(len(counters)):
        length = 0
        while (
            length < counters.shape[1]
            and counters[counter, length]
            and i + length < end
            and lower_code(codes[i + length]) == counters[counter, length]
        ):
            length += 1
        if length == counters.shape[1] or not counters[counter, length]:
            rest = i + length
            while rest < end and not classes[codes[rest]] & WORD:
                rest += 1
            if rest == end:
                return True
    return False


@kernel
def lower_code(code: int) -> int:
    """The lower case of a character where it is ASCII; the character itself otherwise."""
    if _CAPITAL_A <= code <= _CAPITAL_Z:
        return code + _TO_SMALL
    return _SMALL_K if code == _KELVIN else code


@kernel
def fold_code(code: int) -> int:
    """The small ASCII letter that a pattern which ignores case takes a character for, or itself."""
    if code == _LONG_S:
        return _SMALL_S
    if code in (_DOTTED_CAPITAL_I, _DOTLESS_I):
        return _SMALL_I
    return lower_code(code)


@kernel
def cut_piece(
    codes: NDArray[np.uint32],
    classes: Table,
    marks: Marks,
    line: Any,
    piece: NDArray[np.uint8],
    location: int,
    label: int,
) -> bool:
    """Cuts a piece from a line, with one white space before it (after it for a prefix).

    `piece` is ASCII in lower case; 0 stands for any character. True if something was cut.
    """
    if location == ANYWHERE:
        cut, i = False, line.first
        while i + len(piece) <= line.last:
            if _match_piece(codes, marks, i, line.last, piece) == i + len(piece):
                before = i > line.first and not marks[i - 1] and classes[codes[i - 1]] & SPACE
                marks[i - (before != 0) : i + len(piece)] = label
                cut = True
                i += len(piece)
            else:
                i += 1
        return cut
    if location == PREFIX:
        start = line.first
        end = _match_piece(codes, marks, start, line.last, piece)
        if end < 0:
            return False
        while end < line.last and marks[end]:
            end += 1
        if end < line.last and classes[codes[end]] & SPACE:
            end += 1
    else:
        start = line.last
        for _ in range(len(piece)):
            start = _previous_kept(marks, start, line.first)
        if start < line.first or _match_piece(codes, marks, start, line.last, piece) < 0:
            return False
        end = line.last
        before = _previous_kept(marks, start, line.first)
        if before >= line.first and classes[codes[before]] & SPACE:
            start = before
    for i in range(start, end):
        if not marks[i]:
            marks[i] = label
    return True


@kernel
def _previous_kept(marks: Marks, i: int, first: int) -> int:
    """The last character before i that is not cut; first - 1 if there is none."""
    i -= 1
    while i >= first and marks[i]:
        i -= 1
    return max(i, first - 1)


@kernel
def _match_piece(
    codes: NDArray[np.uint32], marks: Marks, i: int, end: int, piece: NDArray[np.uint8]
) -> int:
    """After the piece that begins with the first character from i on not cut; -1 if none does."""
    for k in range(len(piece)):
        while i < end and marks[i]:
            i += 1
        if i == end or (piece[k] and fold_code(codes[i]) != piece[k]):
            return -1
        i += 1
    return i


@kernel
def count_words_left(codes: NDArray[np.uint32], classes: Table, marks: Marks, line: Any) -> int:
    """White-space separated words of a line without what was cut from it."""
    words, after_space = 0, True
    for i in range(line.first, line.last):
        if marks[i]:
            continue
        space = (classes[codes[i]] & SPACE) != 0
        words += after_space and not space
        after_space = space
    return words


def count_words(
    codes: NDArray[np.uint32], offsets: NDArray[np.int64], classes: Table
) -> NDArray[np.int64]:
    """[texts] the words of each text.

    A word is a run without NUL and ASCII white space, as fastText splits, that begins with a letter
    or digit.
    """
    divides = (codes == 0) | (codes == 32) | ((codes >= 9) & (codes <= 13))
    follows = np.concatenate(([True], divides))
    follows[offsets] = True
    begins = follows[:-1] & ~divides & ((classes[codes] & ALPHANUMERIC) != 0)
    return np.diff(sum_before(begins, offsets))


REFINEDWEB_VIEW = "refinedweb"
REFINEDWEB_SOURCE = "Penedo et al. 2023 (RefinedWeb, arXiv 2306.01116), as DCLM computes it"

CAPITAL_SHARE, DIGIT_SHARE = 0.5, 0.999999
"""Shares of a line's characters above which it is dropped."""
MIN_WORDS = 2
SHORT_LINE = 10
"""Words of the longest line that pieces are cut from."""

COUNTERS = (
    *("likes", "shares", "comments", "retweets", "reposts", "quotes", "bookmarks", "upvotes"),
    *("downvotes", "downloads", "views", "followers"),
)
PIECES = (("items in cart", ANYWHERE), ("read more\0\0\0", SUFFIX), ("sign-in", PREFIX))
"""What is cut, in this order, and where; NUL stands for any character."""

REFINEDWEB_LABELS = (
    *LABELS,
    *("capitals", "digits", "counter", "few_words", "items_in_cart", "read_more", "sign_in"),
)
"""Labels of a cut."""

_CAPITALS, _DIGITS = REFINEDWEB_LABELS.index("capitals"), REFINEDWEB_LABELS.index("digits")
_COUNTER, _FEW_WORDS = REFINEDWEB_LABELS.index("counter"), REFINEDWEB_LABELS.index("few_words")
_FIRST_PIECE = REFINEDWEB_LABELS.index("items_in_cart")

_COUNTERS = np.array(
    [list(word.ljust(max(map(len, COUNTERS)), "\0").encode()) for word in COUNTERS], dtype=np.uint8
)
_PIECES = tuple(np.array(list(text.encode()), dtype=np.uint8) for text, _ in PIECES)
_LOCATIONS = tuple(location for _, location in PIECES)


def mark_refinedweb(batch: Batch) -> Marks:
    """[characters] what becomes of each: labels of `REFINEDWEB_LABELS`."""
    classes = classify(batch).classes
    most = int(np.count_nonzero(batch.codes == ord("\n"))) + len(batch.offsets) - 1
    table = np.zeros(most, dtype=LINE)
    line_offsets = find_lines(batch.codes, batch.offsets, classes, table)
    marks = np.zeros(len(batch.codes), dtype=np.uint8)
    _correct_lines(batch.codes, classes, table, line_offsets, _COUNTERS, marks)
    return marks


def measure_removed_words(batch: Batch, marks: Marks) -> NDArray[np.float64]:
    """Words that are gone over words; 1 for a text without words, which DCLM drops as well.

    A cut may make a word of what was none, such as a number after a line separator; where there
    are more than before the share is 0, which passes every bound that DCLM's negative one does.
    """
    classes, kept = classify(batch).classes, marks == KEPT
    words = count_words(batch.codes, batch.offsets, classes)
    left = count_words(batch.codes[kept], sum_before(kept, batch.offsets), classes)
    return np.where(words == 0, 1.0, np.maximum(words - left, 0) / np.maximum(words, 1))


@kernel
def _correct_lines(
    codes: NDArray[np.uint32],
    classes: Table,
    table: NDArray[np.void],
    line_offsets: NDArray[np.int64],
    counters: NDArray[np.uint8],
    marks: Marks,
) -> None:
    for text in range(len(line_offsets) - 1):
        all_begin, all_end = line_offsets[text], line_offsets[text + 1]
        begin, end = all_begin, all_end
        for i in range(begin, end):
            line = table[i]
            if line.capitals > 0 and line.capitals / (line.end - line.start) > CAPITAL_SHARE:
                line.label = _CAPITALS
        begin, end = strip_page(codes, classes, marks, table, begin, end)
        for i in range(begin, end):
            line = table[i]
            digits = line.digits if line.label == KEPT else 0
            if digits > 0 and digits / (line.last - line.first) > DIGIT_SHARE:
                line.label = _DIGITS
        begin, end = strip_page(codes, classes, marks, table, begin, end)
        for i in range(begin, end):
            line = table[i]
            if line.label == KEPT and is_counter(codes, classes, line.first, line.last, counters):
                line.label = _COUNTER
        begin, end = strip_page(codes, classes, marks, table, begin, end)
        for i in range(begin, end):
            line = table[i]
            if line.label == KEPT and line.words < MIN_WORDS and line.first < line.last:
                line.label = _FEW_WORDS
        for piece in range(len(_PIECES)):
            _cut_pieces(codes, classes, marks, table, begin, end, piece)
            begin, end = strip_page(codes, classes, marks, table, begin, end)
        _mark_lines(table, all_begin, all_end, end, marks)


@kernel
def _cut_pieces(
    codes: NDArray[np.uint32],
    classes: Table,
    marks: Marks,
    table: NDArray[np.void],
    begin: int,
    end: int,
    piece: int,
) -> None:
    text, location, label = _PIECES[piece], _LOCATIONS[piece], _FIRST_PIECE + piece
    for i in range(begin, end):
        line = table[i]
        if line.label != KEPT or line.words > SHORT_LINE:
            continue
        if cut_piece(codes, classes, marks, line, text, location, label):
            line.words = count_words_left(codes, classes, marks, line)
            if not line.words:
                line.label = label


@kernel
def _mark_lines(table: NDArray[np.void], begin: int, end: int, kept_end: int, marks: Marks) -> None:
    """Marks dropped lines, each with its line feed, and what the strips took."""
    for i in range(begin, end):
        line = table[i]
        line_end = line.end + (i + 1 < end)
        if line.label != KEPT:
            marks[line.start : line_end] = line.label
            continue
        for k in range(line.start, line.first):
            marks[k] = marks[k] or WHITE_SPACE
        for k in range(line.last, line_end if i + 1 == kept_end else line.end):
            marks[k] = marks[k] or WHITE_SPACE
