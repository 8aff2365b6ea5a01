"""C4's line rules (Raffel et al. 2020), as three programs run them.

`c4@code` is the code that made C4 (tensorflow/datasets, `text/c4_utils.py`): it keeps lines of at
least 5 words, counted without citations, that end in . ? ! or a quotation mark, but not in three
full stops, and wants 3 sentences of a page. `c4@datatrove` is datatrove's `C4QualityFilter`: at
least 3 words, counted with citations, an apostrophe ends a line too, and 5 sentences, as the
paper's first version says. `c4@fineweb` is the same without the rule about ends, as FineWeb ran it.

All drop a line with a word of more than 1,000 characters, one that names JavaScript, and one with a
phrase of cookie or privacy notices; all drop the page at the first line with "lorem ipsum" or an
opening curly brace that comes so far. The order of the checks decides what a line is dropped for:
`_verdict` is that order. NLTK parts sentences in C4's own code, spaCy's rule does here.

Kindred rules that differ: DCLM's `c4.yaml` parts lines at line feeds alone, lets an ellipsis
character end a line like three full stops, and does each check for the whole page before the next;
dolma's taggers `c4_v1` and `c4_v2` mark lines by their ends (three full stops count) and for fewer
than 3 words, and look for the phrases in the whole page.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.signals.line_rules.c4_lines import (
    CURLY_BRACE,
    END_APOSTROPHE,
    END_ELLIPSIS,
    END_MARK,
    JAVASCRIPT,
    LONG_WORD,
    LOREM_IPSUM,
    POLICY,
    Lines,
)
from stages.signals.line_rules.marks import KEPT, LABELS, LINE_BREAK, WHITE_SPACE, Marks
from stages.text.native import compiled


@dataclass(frozen=True)
class C4:
    """What the programs do differently. `ends`: flags of the ends that keep a line, 0 for any."""

    view: str
    source: str
    ends: int
    min_words: int
    words_without_citations: bool = False


VARIANTS = (
    C4("c4@code", "tensorflow/datasets", END_MARK, 5, words_without_citations=True),
    C4("c4@datatrove", "datatrove", END_MARK | END_APOSTROPHE, 3),
    C4("c4@fineweb", "datatrove as FineWeb ran it", 0, 3),
)

NAMES = (
    *LABELS,
    *("citation", "long_word", "no_terminal_punctuation", "few_words"),
    *("lorem_ipsum", "javascript", "curly_brace", "policy"),
)
"""Labels of a cut."""

_CITATION = NAMES.index("citation")
_LONG_WORD = NAMES.index("long_word")
_NO_TERMINAL_PUNCTUATION = NAMES.index("no_terminal_punctuation")
_FEW_WORDS = NAMES.index("few_words")
_LOREM_IPSUM = NAMES.index("lorem_ipsum")
_JAVASCRIPT = NAMES.index("javascript")
_CURLY_BRACE = NAMES.index("curly_brace")
_POLICY = NAMES.index("policy")

_LINE_FEED = ord("\n")


def verdicts_of(lines: Lines, variant: C4) -> NDArray[np.uint8]:
    """[lines] KEPT, or the label of the first check that a line fails."""
    return _verdicts(lines.table, variant.ends, variant.min_words, variant.words_without_citations)


@compiled
def _verdicts(
    table: NDArray[np.void], ends: int, min_words: int, words_without_citations: bool
) -> NDArray[np.uint8]:
    verdicts = np.empty(len(table), dtype=np.uint8)
    for i in range(len(table)):
        line = table[i]
        words = line.words_left if words_without_citations else line.words
        verdicts[i] = _verdict(line.flags, words, ends, min_words)
    return verdicts


@compiled
def _verdict(flags: int, words: int, ends: int, min_words: int) -> int:
    if flags & LONG_WORD:
        return _LONG_WORD
    if ends and (not flags & ends or flags & END_ELLIPSIS):
        return _NO_TERMINAL_PUNCTUATION
    if words < min_words:
        return _FEW_WORDS
    if flags & LOREM_IPSUM:
        return _LOREM_IPSUM
    if flags & JAVASCRIPT:
        return _JAVASCRIPT
    if flags & CURLY_BRACE:
        return _CURLY_BRACE
    return _POLICY if flags & POLICY else KEPT


@compiled
def count_lines(
    line_offsets: NDArray[np.int64], verdicts: NDArray[np.uint8], line_sentences: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(kept lines, their sentences, lines with lorem ipsum, with a curly brace) of each text.

    A program drops the page for the first line of the last two sorts. So that rules on the two
    counts, in this order, give its reason, lines with lorem ipsum behind a brace do not count.
    """
    counts = np.zeros((4, len(line_offsets) - 1), dtype=np.int64)
    for text in range(len(line_offsets) - 1):
        for line in range(line_offsets[text], line_offsets[text + 1]):
            if verdicts[line] == KEPT:
                counts[0, text] += 1
                counts[1, text] += line_sentences[line]
            elif verdicts[line] == _LOREM_IPSUM:
                counts[2, text] += counts[3, text] == 0
            elif verdicts[line] == _CURLY_BRACE:
                counts[3, text] += 1
    return counts[0], counts[1], counts[2], counts[3]


def marks_of(codes: NDArray[np.uint32], lines: Lines, verdicts: NDArray[np.uint8]) -> Marks:
    """[characters] what becomes of each: labels of `NAMES`.

    What is left are the kept lines without citations, joined by line feeds and stripped.
    """
    marks = np.zeros(len(codes), dtype=np.uint8)
    _mark(codes, lines.table, lines.offsets, lines.citations, verdicts, marks)
    return marks


@compiled
def _mark(
    codes: NDArray[np.uint32],
    table: NDArray[np.void],
    line_offsets: NDArray[np.int64],
    citations: NDArray[np.int64],
    verdicts: NDArray[np.uint8],
    marks: Marks,
) -> None:
    for text in range(len(line_offsets) - 1):
        head, tail = _filled_ends(table, verdicts, line_offsets[text], line_offsets[text + 1])
        for i in range(line_offsets[text], line_offsets[text + 1]):
            line = table[i]
            if verdicts[i] != KEPT:
                blank = line.content == line.content_end
                marks[line.start : line.next] = WHITE_SPACE if blank else verdicts[i]
                continue
            if i < head or i > tail:
                marks[line.start : line.next] = WHITE_SPACE
            else:
                first = line.first if i == head else line.content
                last = line.last if i == tail else line.content_end
                marks[line.start : first] = WHITE_SPACE
                marks[last : line.end] = WHITE_SPACE
                _mark_boundary(codes, line.end, line.next, i == tail, marks)
            for citation in range(line.citations, line.citations_end):
                marks[citations[citation, 0] : citations[citation, 1]] = _CITATION


@compiled
def _filled_ends(
    table: NDArray[np.void], verdicts: NDArray[np.uint8], begin: int, end: int
) -> tuple[int, int]:
    """The first and the last kept line with more than white space; (end, begin - 1) if none is."""
    head, tail = begin, end - 1
    while head < end and (verdicts[head] != KEPT or table[head].first == table[head].last):
        head += 1
    if head == end:
        return end, begin - 1
    while verdicts[tail] != KEPT or table[tail].first == table[tail].last:
        tail -= 1
    return head, tail


@compiled
def _mark_boundary(
    codes: NDArray[np.uint32], start: int, end: int, is_last: bool, marks: Marks
) -> None:
    """The boundary of a kept line leaves one line feed, but for the last line's."""
    if is_last:
        marks[start:end] = WHITE_SPACE
    elif codes[end - 1] == _LINE_FEED:
        marks[start : end - 1] = WHITE_SPACE
    else:
        marks[start:end] = LINE_BREAK
