r"""RefinedWeb's line corrections (Penedo et al. 2023, appendix G.2), as DCLM runs them.

The steps and their order are those of DCLM's `dclm_baseline_refinedweb.yaml` with its modifiers
(`baselines/mappers/modifiers.py`). Lines end at line feeds; empty ones always stay.

1. drop lines of more than half capitals;
2. drop lines of digits alone (more than 0.999999 of the characters);
3. drop counters, such as "3 likes";
4. drop lines of fewer than 2 white-space separated words;
5. from lines of at most 10 words cut "items in cart", a final "Read more..." and a leading
   "Sign-in", in any case, with one white space before (behind "Sign-in"); what is then blank goes.
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

import numpy as np
from numpy.typing import NDArray

from stages.signals.line_rules.characters import classes_of
from stages.signals.line_rules.marks import KEPT, LABELS, WHITE_SPACE, Marks
from stages.signals.line_rules.refinedweb_lines import (
    ANYWHERE,
    LINE,
    PREFIX,
    SUFFIX,
    count_words,
    cut_piece,
    find_lines,
    is_counter,
    strip_page,
    words_left,
)
from stages.text.batch import Batch
from stages.text.characters import Table
from stages.text.native import compiled

VIEW = "refinedweb"
SOURCE = "Penedo et al. 2023 (RefinedWeb, arXiv 2306.01116), as DCLM computes it"

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

NAMES = (
    *LABELS,
    *("capitals", "digits", "counter", "few_words", "items_in_cart", "read_more", "sign_in"),
)
"""Labels of a cut."""

_CAPITALS, _DIGITS = NAMES.index("capitals"), NAMES.index("digits")
_COUNTER, _FEW_WORDS = NAMES.index("counter"), NAMES.index("few_words")
_FIRST_PIECE = NAMES.index("items_in_cart")

_COUNTERS = np.array(
    [list(word.ljust(max(map(len, COUNTERS)), "\0").encode()) for word in COUNTERS], dtype=np.uint8
)
_PIECES = tuple(np.array(list(text.encode()), dtype=np.uint8) for text, _ in PIECES)
_LOCATIONS = tuple(location for _, location in PIECES)


def refinedweb_marks(batch: Batch) -> Marks:
    """[characters] what becomes of each: labels of `NAMES`."""
    classes = classes_of(batch.codes)
    most = int(np.count_nonzero(batch.codes == ord("\n"))) + len(batch.offsets) - 1
    table = np.zeros(most, dtype=LINE)
    line_offsets = find_lines(batch.codes, batch.offsets, classes, table)
    marks = np.zeros(len(batch.codes), dtype=np.uint8)
    _correct(batch.codes, classes, table, line_offsets, _COUNTERS, marks)
    return marks


def removed_word_share(batch: Batch, marks: Marks) -> NDArray[np.float64]:
    """Words that are gone over words; 1 for a text without words, which DCLM drops as well.

    A cut may make a word of what was none, such as a number behind a line separator; where there
    are more than before the share is 0, which passes every bound that DCLM's negative one does.
    """
    words, left = count_words(batch.codes, batch.offsets, classes_of(batch.codes), marks)
    return np.where(words == 0, 1.0, np.maximum(words - left, 0) / np.maximum(words, 1))


@compiled
def _correct(
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
        _mark(table, all_begin, all_end, end, marks)


@compiled
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
            line.words = words_left(codes, classes, marks, line)
            if not line.words:
                line.label = label


@compiled
def _mark(table: NDArray[np.void], begin: int, end: int, kept_end: int, marks: Marks) -> None:
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
