"""C4's line rules (Raffel et al. 2020), as three programs run them.

`c4@code` is the code that made C4 (tensorflow/datasets, `text/c4_utils.py`): it keeps lines of at
least 5 words, counted without citations, that end in . ? ! or a quotation mark, but not in three
full stops, and wants 3 sentences of a page. `c4@datatrove` is datatrove's `C4QualityFilter`: at
least 3 words, counted with citations, an apostrophe ends a line too, and 5 sentences, as the
paper's first version says. `c4@fineweb` is the same without the rule about ends, as FineWeb ran it.

All drop a line with a word of more than 1,000 characters, one that names JavaScript, and one with a
phrase of cookie or privacy notices; all drop the page at the first line with "lorem ipsum" or an
opening curly brace that comes so far. The order of the checks decides what a line is dropped for:
`judge_lines` has that order. NLTK splits sentences in C4's own code, spaCy's rule does here.

Similar rules that differ: DCLM's `c4.yaml` splits lines at line feeds alone, lets an ellipsis
character end a line like three full stops, and does each check for the whole page before the next;
dolma's taggers `c4_v1` and `c4_v2` mark lines by their ends (three full stops count) and for fewer
than 3 words, and look for the phrases in the whole page.

Lines are those of `str.splitlines`, without the white space at their ends. A citation is what
`\\[\\d*]|\\[edit]|\\[citation needed]` matches; the rules look at a line without its citations, but
measure its words, and in datatrove count them, with the citations in place. All phrases are
searched together, in any case, by an automaton (Aho and Corasick 1975, doi 10.1145/360825.360855)
with the failures filled in: one table look-up a character.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.signals.counting import BREAK, DECIMAL, SPACE, classify
from stages.signals.outputs import KEPT, LABELS, LINE_BREAK, WHITE_SPACE, Marks
from stages.text.batch import Batch, sum_before
from stages.text.characters import Table

KELVIN = 0x212A
"""The sign whose lower case is the ASCII k: the one character outside ASCII with such a case."""


def build_automaton(phrases: Mapping[str, int]) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """(next states, found bits) for phrases of ASCII in lower case, each with its bits.

    next_states [states, 129]: from each state by ASCII code, by column 128 for all others; capital
    letters lead where small ones do. found [states]: bits of all phrases that end in a state.
    Begins in state 0. Raises ValueError for more than 256 states.
    """
    children: list[dict[int, int]] = [{}]
    flags = [0]
    for phrase, bits in phrases.items():
        state = 0
        for code in phrase.encode("ascii"):
            if code not in children[state]:
                children[state][code] = len(children)
                children.append({})
                flags.append(0)
            state = children[state][code]
        flags[state] |= bits
    if len(children) > 256:
        raise ValueError(f"the phrases need {len(children)} states, more than 256")

    next_states = np.zeros((len(children), 129), dtype=np.uint8)
    queue = deque([(0, 0)])
    while queue:
        state, failure = queue.popleft()
        flags[state] |= flags[failure]
        if state:
            next_states[state] = next_states[failure]
        followers = next_states[state].copy()
        for code, child in children[state].items():
            next_states[state, code] = child
            queue.append((child, int(followers[code])))
    next_states[:, ord("A") : ord("Z") + 1] = next_states[:, ord("a") : ord("z") + 1]
    return next_states, np.array(flags, dtype=np.uint16)


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
_NEXT_STATE, _STATE_FLAGS = build_automaton(PHRASES)


@dataclass(frozen=True, eq=False)
class Lines:
    """`table` [lines] of `LINE`; text d has the lines [offsets[d], offsets[d + 1]).

    Citation c holds the characters [citations[c, 0], citations[c, 1]) of the batch.
    """

    table: NDArray[np.void]
    offsets: NDArray[np.int64]
    citations: NDArray[np.int64]


def find_c4_lines(batch: Batch) -> Lines:
    """The lines of every text of a batch."""
    classes = classify(batch).classes
    breaks = np.count_nonzero(classes[batch.codes] & BREAK)
    table = np.zeros(breaks + len(batch.offsets) - 1, dtype=LINE)
    citations = np.empty((np.count_nonzero(batch.codes == _OPENING), 2), dtype=np.int64)
    offsets = np.zeros_like(batch.offsets)
    cited = _find_lines(
        batch.codes, batch.offsets, classes, _NEXT_STATE, _STATE_FLAGS, table, citations, offsets
    )
    return Lines(table[: offsets[-1]], offsets, citations[:cited])


@kernel
def _find_lines(
    codes: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    classes: Table,
    next_states: NDArray[np.uint8],
    state_flags: NDArray[np.uint16],
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
            cited = _scan_line(codes, classes, next_states, state_flags, line, citations, stop)
            line.next = _skip_boundary(codes, line.end, stop)
            line.citations_end = cited
            if cited > line.citations:
                _scan_without_citations(codes, classes, next_states, state_flags, line, citations)
            else:
                line.first, line.last = line.content, line.content_end
                line.words_left = line.words
                line.flags |= _ending_flags(codes, line.content, line.content_end)
            lines += 1
            i = line.next
        line_offsets[text + 1] = lines
    return cited


@kernel
def _scan_line(
    codes: NDArray[np.uint32],
    classes: Table,
    next_states: NDArray[np.uint8],
    state_flags: NDArray[np.uint16],
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
                length = _citation_length(codes, i, stop, classes)
                if length:
                    citations[cited, 0], citations[cited, 1] = i, i + length
                    cited += 1
        state = next_states[state, _column(code)]
        line.flags |= state_flags[state]
        i += 1
    line.end = i
    line.words = words
    if not words:
        line.content = line.content_end = i
    return cited


@kernel
def _skip_boundary(codes: NDArray[np.uint32], i: int, stop: int) -> int:
    """Where the next line begins; both characters of CR LF are one boundary."""
    if i + 1 < stop and codes[i] == _CARRIAGE_RETURN and codes[i + 1] == _LINE_FEED:
        return i + 2
    return min(i + 1, stop)


@kernel
def _column(code: int) -> int:
    """The automaton's column of a character."""
    if code < 128:
        return code
    return _SMALL_K if code == KELVIN else 128


@kernel
def _citation_length(codes: NDArray[np.uint32], i: int, stop: int, classes: Table) -> int:
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


@kernel
def _scan_without_citations(
    codes: NDArray[np.uint32],
    classes: Table,
    next_states: NDArray[np.uint8],
    state_flags: NDArray[np.uint16],
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
        flags |= state_flags[state]
    line.words_left = words
    line.flags = flags | _ending_flags(ending, 0, 3)


@kernel
def _ending_flags(codes: NDArray[np.uint32], start: int, end: int) -> int:
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


@dataclass(frozen=True)
class C4:
    """What the programs do differently. `ends`: flags of the ends that keep a line, 0 for any."""

    view: str
    source: str
    ends: int
    min_words: int
    words_without_citations: bool = False


C4_VARIANTS = (
    C4("c4@code", "tensorflow/datasets", END_MARK, 5, words_without_citations=True),
    C4("c4@datatrove", "datatrove", END_MARK | END_APOSTROPHE, 3),
    C4("c4@fineweb", "datatrove as FineWeb ran it", 0, 3),
)

C4_LABELS = (
    *LABELS,
    *("citation", "long_word", "no_terminal_punctuation", "few_words"),
    *("lorem_ipsum", "javascript", "curly_brace", "policy"),
)
"""Labels of a cut."""

_CITATION = C4_LABELS.index("citation")
_LONG_WORD = C4_LABELS.index("long_word")
_NO_TERMINAL_PUNCTUATION = C4_LABELS.index("no_terminal_punctuation")
_FEW_WORDS = C4_LABELS.index("few_words")
_LOREM_IPSUM = C4_LABELS.index("lorem_ipsum")
_JAVASCRIPT = C4_LABELS.index("javascript")
_CURLY_BRACE = C4_LABELS.index("curly_brace")
_POLICY = C4_LABELS.index("policy")

_C4_LINE_FEED = ord("\n")


def judge_lines(lines: Lines, variant: C4) -> NDArray[np.uint8]:
    """[lines] KEPT, or the label of the first check that a line fails."""
    flags = lines.table["flags"]
    words = lines.table["words_left" if variant.words_without_citations else "words"]
    ends_badly = ((flags & variant.ends) == 0) | ((flags & END_ELLIPSIS) != 0)
    checks = {
        _LONG_WORD: flags & LONG_WORD,
        _NO_TERMINAL_PUNCTUATION: ends_badly & (variant.ends != 0),
        _FEW_WORDS: words < variant.min_words,
        _LOREM_IPSUM: flags & LOREM_IPSUM,
        _JAVASCRIPT: flags & JAVASCRIPT,
        _CURLY_BRACE: flags & CURLY_BRACE,
        _POLICY: flags & POLICY,
    }
    fails = [failed.astype(np.bool_) for failed in checks.values()]
    return np.select(fails, [*checks], default=KEPT).astype(np.uint8)


def count_lines(
    offsets: NDArray[np.int64], verdicts: NDArray[np.uint8], line_sentences: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """[kept lines, their sentences, lines with lorem ipsum, with a curly brace] of each text.

    A program drops the page for the first line of the last two kinds. So that rules on the two
    counts, in this order, give its reason, lines with lorem ipsum after a brace do not count.
    """
    kept, braces = verdicts == KEPT, verdicts == _CURLY_BRACE
    braces_before = np.repeat(sum_before(braces, offsets[:-1]), np.diff(offsets))
    lorem_ipsum = (verdicts == _LOREM_IPSUM) & (np.cumsum(braces) == braces_before)
    counted = (kept, line_sentences * kept, lorem_ipsum, braces)
    return [np.diff(sum_before(values, offsets)) for values in counted]


def mark_lines(codes: NDArray[np.uint32], lines: Lines, verdicts: NDArray[np.uint8]) -> Marks:
    """[characters] what becomes of each: labels of `C4_LABELS`.

    What is left are the kept lines without citations, joined by line feeds and stripped.
    """
    marks = np.zeros(len(codes), dtype=np.uint8)
    _mark(codes, lines.table, lines.offsets, lines.citations, verdicts, marks)
    return marks


@kernel
def _mark(
    codes: NDArray[np.uint32],
    table: NDArray[np.void],
    line_offsets: NDArray[np.int64],
    citations: NDArray[np.int64],
    verdicts: NDArray[np.uint8],
    marks: Marks,
) -> None:
    for text in range(len(line_offsets) - 1):
        head, tail = _find_filled_lines(table, verdicts, line_offsets[text], line_offsets[text + 1])
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


@kernel
def _find_filled_lines(
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


@kernel
def _mark_boundary(
    codes: NDArray[np.uint32], start: int, end: int, is_last: bool, marks: Marks
) -> None:
    """The boundary of a kept line leaves one line feed, but for the last line's."""
    if is_last:
        marks[start:end] = WHITE_SPACE
    elif codes[end - 1] == _C4_LINE_FEED:
        marks[start : end - 1] = WHITE_SPACE
    else:
        marks[start:end] = LINE_BREAK
