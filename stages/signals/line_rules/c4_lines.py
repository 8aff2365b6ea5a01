"""The lines of a batch of texts and all that C4's rules ask about them, found in one walk.

Lines are those of `str.splitlines`, without the white space at their ends. A citation is what
`\\[\\d*]|\\[edit]|\\[citation needed]` matches; the rules look at a line without its citations, but
measure its words, and in datatrove count them, with the citations in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.signals.line_rules.characters import BREAK, DECIMAL, SPACE, classes_of
from stages.signals.line_rules.phrases import KELVIN, automaton
from stages.text.batch import Batch
from stages.text.characters import Table
from stages.text.native import compiled

LOREM_IPSUM, JAVASCRIPT, CURLY_BRACE, POLICY, LONG_WORD = 1, 2, 4, 8, 16
END_MARK, END_APOSTROPHE, END_ELLIPSIS = 32, 64, 128
"""Bits of a line's flags: what it holds, and how it ends (one of . ? ! "; '; three full stops)."""

PHRASES = {
    "lorem ipsum": LOREM_IPSUM,
    "javascript": JAVASCRIPT,
    "{": CURLY_BRACE,
    "terms of use": POLICY,
    "privacy policy": POLICY,
    "cookie policy": POLICY,
    "uses cookies": POLICY,
    "use of cookies": POLICY,
    "use cookies": POLICY,
}
LONGEST_WORD = 1000
"""Characters of the longest word that a line may hold."""

LINE = np.dtype(
    [
        *((name, np.int64) for name in ("start", "end", "next", "content", "content_end")),
        *((name, np.int64) for name in ("first", "last", "words", "words_left")),
        *((name, np.int64) for name in ("citations", "citations_end", "flags")),
    ]
)
"""A line: characters [start, end) of the batch, up to `next` with its boundary;
[content, content_end) without white space at its ends; [first, last) the same once the citations
[citations, citations_end) are gone (empty where nothing is left); white-space separated words
before and after that; flags."""

_OPENING, _CLOSING, _CARRIAGE_RETURN, _LINE_FEED, _FULL_STOP = (ord(char) for char in "[]\r\n.")
_MARKS = tuple(ord(char) for char in '.?!"')
_APOSTROPHE, _SMALL_K = ord("'"), ord("k")
_EDIT = np.frombuffer(b"[edit]", dtype=np.uint8)
_NEEDED = np.frombuffer(b"[citation needed]", dtype=np.uint8)
_NEXT_STATES, _FOUND = automaton(PHRASES)


@dataclass(frozen=True, eq=False)
class Lines:
    """`table` [lines] of `LINE`; text d has the lines [offsets[d], offsets[d + 1]).

    Citation c holds the characters [citations[c, 0], citations[c, 1]) of the batch.
    """

    table: NDArray[np.void]
    offsets: NDArray[np.int64]
    citations: NDArray[np.int64]


def c4_lines(batch: Batch) -> Lines:
    """The lines of every text of a batch."""
    classes = classes_of(batch.codes)
    most_lines, most_citations = _bounds(batch.codes, classes)
    table = np.zeros(most_lines + len(batch.offsets) - 1, dtype=LINE)
    citations = np.empty((most_citations, 2), dtype=np.int64)
    offsets = np.zeros_like(batch.offsets)
    cited = _find_lines(
        batch.codes, batch.offsets, classes, _NEXT_STATES, _FOUND, table, citations, offsets
    )
    return Lines(table[: offsets[-1]], offsets, citations[:cited])


@compiled
def _bounds(codes: NDArray[np.uint32], classes: Table) -> tuple[int, int]:
    """Line boundaries and opening brackets."""
    breaks, brackets = 0, 0
    for i in range(len(codes)):
        breaks += (classes[codes[i]] & BREAK) != 0
        brackets += codes[i] == _OPENING
    return breaks, brackets


@compiled
def _find_lines(
    codes: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    classes: Table,
    next_states: NDArray[np.uint8],
    found: NDArray[np.uint16],
    table: NDArray[np.void],
    citations: NDArray[np.int64],
    line_offsets: NDArray[np.int64],
) -> int:
    """Fills the tables; returns how many citations there are."""
    lines, cited = 0, 0
    for text in range(len(offsets) - 1):
        i, stop = offsets[text], offsets[text + 1]
        while i < stop:
            line = table[lines]
            line.start, line.citations = i, cited
            cited = _walk(codes, classes, next_states, found, line, citations, stop)
            line.next = _behind_boundary(codes, line.end, stop)
            line.citations_end = cited
            if cited > line.citations:
                _walk_without_citations(codes, classes, next_states, found, line, citations)
            else:
                line.first, line.last = line.content, line.content_end
                line.words_left = line.words
                line.flags |= _ending(codes, line.content, line.content_end)
            lines += 1
            i = line.next
        line_offsets[text + 1] = lines
    return cited


@compiled
def _walk(
    codes: NDArray[np.uint32],
    classes: Table,
    next_states: NDArray[np.uint8],
    found: NDArray[np.uint16],
    line: Any,
    citations: NDArray[np.int64],
    stop: int,
) -> int:
    """The line from line.start to a boundary or `stop`; returns the citations found up to here."""
    cited, state, words, i = line.citations, 0, 0, line.start
    last_space = i - 1
    while i < stop:
        code = codes[i]
        bits = classes[code]
        if bits & SPACE:
            if bits & BREAK:
                break
            last_space = i
        else:
            if last_space == i - 1:
                words += 1
                if words == 1:
                    line.content = i
            elif i - last_space > LONGEST_WORD:
                line.flags |= LONG_WORD
            line.content_end = i + 1
            if code == _OPENING:
                length = _citation(codes, i, stop, classes)
                if length:
                    citations[cited, 0], citations[cited, 1] = i, i + length
                    cited += 1
        state = next_states[state, _column(code)]
        line.flags |= found[state]
        i += 1
    line.end = i
    line.words = words
    if not words:
        line.content = line.content_end = i
    return cited


@compiled
def _behind_boundary(codes: NDArray[np.uint32], i: int, stop: int) -> int:
    """Where the next line begins; both characters of CR LF are one boundary."""
    if i + 1 < stop and codes[i] == _CARRIAGE_RETURN and codes[i + 1] == _LINE_FEED:
        return i + 2
    return min(i + 1, stop)


@compiled
def _column(code: int) -> int:
    """The automaton's column of a character."""
    if code < 128:
        return code
    return _SMALL_K if code == KELVIN else 128


@compiled
def _citation(codes: NDArray[np.uint32], i: int, stop: int, classes: Table) -> int:
    """Characters of the citation that begins at character i; 0 if none does."""
    end = i + 1
    while end < stop and classes[codes[end]] & DECIMAL:
        end += 1
    if end < stop and codes[end] == _CLOSING:
        return end + 1 - i
    for words in (_EDIT, _NEEDED):
        if i + len(words) <= stop:
            same = 0
            while same < len(words) and codes[i + same] == words[same]:
                same += 1
            if same == len(words):
                return same
    return 0


@compiled
def _walk_without_citations(
    codes: NDArray[np.uint32],
    classes: Table,
    next_states: NDArray[np.uint8],
    found: NDArray[np.uint16],
    line: Any,
    citations: NDArray[np.int64],
) -> None:
    """What a line with citations is without them. No white space is stripped again."""
    flags, state, words, after_space = line.flags & LONG_WORD, 0, 0, True
    line.first = line.last = line.content_end
    ending = np.zeros(3, dtype=np.uint32)
    citation, i = line.citations, line.content
    while i < line.content_end:
        if citation < line.citations_end and i == citations[citation, 0]:
            i = citations[citation, 1]
            citation += 1
            continue
        code = codes[i]
        ending[0], ending[1], ending[2] = ending[1], ending[2], code
        i += 1
        space = (classes[code] & SPACE) != 0
        if not space:
            words += after_space
            line.first = min(line.first, i - 1)
            line.last = i
        after_space = space
        state = next_states[state, _column(code)]
        flags |= found[state]
    line.words_left = words
    line.flags = flags | _ending(ending, 0, 3)


@compiled
def _ending(codes: NDArray[np.uint32], start: int, end: int) -> int:
    """Flags of how the characters [start, end) end."""
    if start == end:
        return 0
    last = codes[end - 1]
    if last == _APOSTROPHE:
        return END_APOSTROPHE
    if last not in _MARKS:
        return 0
    three = end - start >= 3 and codes[end - 2] == _FULL_STOP and codes[end - 3] == _FULL_STOP
    return END_MARK | END_ELLIPSIS if three and last == _FULL_STOP else END_MARK
