"""Quality of tokens and lines: Gopher's and FineWeb's signals, for a batch of texts at once.

Gopher's quality signals (Rae et al. 2021, appendix A.1.1) follow datatrove's
`gopher_quality_filter.py`: tokens that are punctuation only are no words for the count and the mean
length, but are counted where something is divided by "words". Lines end at every boundary of
`str.splitlines`.

Gopher's repetition signals over lines (table A1) and FineWeb's rules (Penedo et al. 2024, section
3.5) follow datatrove too: of equal pieces all but the first are duplicates. Gopher's lines are the
pieces between runs of line feeds, its paragraphs those of the stripped text between blank lines;
FineWeb's lines are those that are not blank. A text without tokens or lines has 0 in every
share.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.signals.counting import (
    SPACE,
    TERMINAL,
    classify,
    find_first,
    find_largest,
    hash_content,
    make_table,
    slot_mask,
)
from stages.signals.outputs import Signal, count, share
from stages.text.batch import LETTER, SYMBOL, Batch, count_sentences, split_texts, sum_before
from stages.text.splitters import Splitter

GOPHER = "Rae et al. 2021 (arXiv 2112.11446), as datatrove computes it"
_OWN = "Ingot"

QUALITY_SIGNALS: tuple[Signal, ...] = (
    count("lines", "lines", _OWN, "Pieces between line boundaries of any sort."),
    count("word_tokens", "tokens", _OWN, "Tokens of the word splitter: words, and symbols."),
    count("words", "words", GOPHER, "Tokens that are not punctuation only."),
    Signal("mean_word_length", "float64", "characters", GOPHER, "Mean length of those words."),
    share("hash_to_word_ratio", GOPHER, "Hash signs over tokens."),
    share("ellipsis_to_word_ratio", GOPHER, "Occurrences of '...' and '…' over tokens."),
    share("bullet_line_share", GOPHER, "Lines that begin with a bullet or a hyphen."),
    share("ellipsis_line_share", GOPHER, "Lines that end with an ellipsis."),
    share("alphabetic_word_share", GOPHER, "Tokens that hold at least one letter."),
    count("stop_words", "words", GOPHER, "Different words of the stop list that occur."),
)

_FEED, _HASH, _HYPHEN, _STOP, _BULLET, _ELLIPSIS = map(ord, "\n#-.•…")
_RETURN, _NEXT_LINE, _LINE_SEPARATOR = ord("\r"), 0x85, 0x2028


def ratio(
    part: NDArray[np.int64] | NDArray[np.float64], whole: NDArray[np.int64]
) -> NDArray[np.float64]:
    """part / whole, and 0 where the whole is 0."""
    parts, wholes = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    return np.divide(parts, wholes, out=np.zeros_like(parts), where=wholes != 0)


def measure_quality(
    batch: Batch, stop_words: Iterable[str], splitter: Splitter = "unicode"
) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """The columns of `QUALITY_SIGNALS`; `stop_words` are tokens of `splitter`, case and all."""
    tokens = batch.tokens
    marks = np.zeros((len(batch.texts), 5), dtype=np.int64)
    _count_marks(batch.codes, batch.offsets, classify(batch).classes, marks)
    hashes, ellipses, lines, bullets, ends = marks.T
    is_word, has_letter = (tokens.kinds & SYMBOL) == 0, (tokens.kinds & LETTER) != 0
    words, word_characters, alphabetic = (
        np.diff(sum_before(values, tokens.offsets))
        for values in (is_word, tokens.lengths * is_word, has_letter)
    )
    all_tokens = np.diff(tokens.offsets)
    stops = np.unique(hash_strings(stop_words, splitter))
    places = np.flatnonzero(np.isin(tokens.hashes, stops))
    texts = np.searchsorted(tokens.offsets, places, side="right") - 1
    occurs = np.zeros((len(batch.texts), len(stops)), dtype=np.bool_)
    occurs[texts, np.searchsorted(stops, tokens.hashes[places])] = True
    return {
        "lines": lines,
        "word_tokens": all_tokens,
        "words": words,
        "mean_word_length": ratio(word_characters, words),
        "hash_to_word_ratio": ratio(hashes, all_tokens),
        "ellipsis_to_word_ratio": ratio(ellipses, all_tokens),
        "bullet_line_share": ratio(bullets, lines),
        "ellipsis_line_share": ratio(ends, lines),
        "alphabetic_word_share": ratio(alphabetic, all_tokens),
        "stop_words": occurs.sum(axis=1),
    }


def hash_strings(strings: Iterable[str], splitter: Splitter = "unicode") -> NDArray[np.uint64]:
    """The `Tokens.hashes` that tokens equal to `strings` have; none for those that no token equals,
    which are empty or hold white space."""
    whole = [string for string in strings if string and not any(map(str.isspace, string))]
    tokens = split_texts(whole, splitter).tokens
    parts = list(zip(tokens.hashes.tolist(), tokens.powers.tolist(), strict=True))
    hashes = []
    for begin, end in pairwise(tokens.offsets.tolist()):
        value = 0
        for part, power in parts[begin:end]:
            value = (value * power + part) % 2**64
        hashes.append(value)
    return np.array(hashes, dtype=np.uint64)


@kernel
def _count_marks(codes: Any, offsets: Any, classes: Any, marks: Any) -> None:
    """Hash signs, ellipses, lines, lines with a bullet and lines with an ellipsis of each text."""
    for text in range(offsets.size - 1):
        end = offsets[text + 1]
        start = place = offsets[text]
        hashes = ellipses = lines = bullets = trailing = stops = 0
        while place < end:
            code = codes[place]
            if code == _STOP:
                stops += 1
                ellipses += stops % 3 == 0
            else:
                stops = 0
                hashes += code == _HASH
                ellipses += code == _ELLIPSIS
            place += 1
            if is_boundary(code) or place == end:
                last = place - 1 if is_boundary(code) else place
                if code == _RETURN and place < end and codes[place] == _FEED:
                    place += 1
                lines += 1
                bullets += _begins_with_bullet(codes, start, last, classes)
                trailing += ends_with_ellipsis(codes, start, last, classes)
                start = place
        marks[text, 0] = hashes
        marks[text, 1] = ellipses
        marks[text, 2] = lines
        marks[text, 3] = bullets
        marks[text, 4] = trailing


@kernel
def is_boundary(code: int) -> bool:
    """Whether `str.splitlines` ends a line there."""
    if code > 0x1E:
        return code in (_NEXT_LINE, _LINE_SEPARATOR, _LINE_SEPARATOR + 1)
    return _FEED <= code <= _RETURN or code >= 0x1C


@kernel
def _begins_with_bullet(codes: Any, start: int, end: int, classes: Any) -> bool:
    """Whether the line begins, after white space, with a bullet or a hyphen."""
    while start < end and classes[codes[start]] & SPACE:
        start += 1
    return start < end and (codes[start] == _BULLET or codes[start] == _HYPHEN)


@kernel
def ends_with_ellipsis(codes: Any, start: int, end: int, classes: Any) -> bool:
    """Whether the line ends, before white space, with '…' or '...'."""
    while start < end and classes[codes[end - 1]] & SPACE:
        end -= 1
    if start < end and codes[end - 1] == _ELLIPSIS:
        return True
    return (
        end - start >= 3
        and codes[end - 1] == _STOP
        and codes[end - 2] == _STOP
        and codes[end - 3] == _STOP
    )


FINEWEB = "Penedo et al. 2024 (FineWeb), as datatrove computes it"

MC4 = "Xue et al. 2021 (mC4, arXiv 2010.11934)"

SHORT_LINE, LONG_LINE = 30, 200
"""Characters of the longest line that FineWeb calls short, of the shortest that mC4 calls long."""

DUPLICATE_SIGNALS: tuple[Signal, ...] = (
    share("duplicate_line_share", GOPHER, "Lines that repeat an earlier one."),
    share("duplicate_line_character_share", GOPHER, "Characters of the text in such lines."),
    share("duplicate_paragraph_share", GOPHER, "Paragraphs that repeat an earlier one."),
    share("duplicate_paragraph_character_share", GOPHER, "Characters in such paragraphs."),
)
FILLED_LINE_SIGNALS: tuple[Signal, ...] = (
    share(
        "terminal_punctuation_line_share",
        FINEWEB,
        "Filled lines whose last character ends a sentence.",
    ),
    share("short_line_share", FINEWEB, "Filled lines of at most 30 characters."),
    share(
        "duplicate_filled_line_character_share",
        FINEWEB,
        "Characters in filled lines that repeat an earlier one, over characters but line feeds.",
    ),
    share("newline_to_word_ratio", FINEWEB, "Line feeds over tokens."),
)
LINE_COUNTS: tuple[Signal, ...] = (
    count("filled_lines", "lines", FINEWEB, "Lines that are not blank."),
    count("lines_of_200_characters", "lines", MC4, "Lines of at least 200 characters."),
)

FEED = ord("\n")


def measure_lines(batch: Batch) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """The columns of all signals of this module; shares of nothing are 0."""
    texts = len(batch.offsets) - 1
    classes = classify(batch).classes
    feeds = count_line_feeds(batch)
    line_counts = np.zeros((texts, 8), dtype=np.int64)
    _count_lines(batch.codes, batch.offsets, feeds, classes, line_counts)
    lines, copies, copied, filled, ended, short, filled_copied, long = line_counts.T
    paragraph_counts = np.zeros((texts, 3), dtype=np.int64)
    _count_paragraphs(batch.codes, batch.offsets, feeds, classes, paragraph_counts)
    paragraphs, paragraph_copies, paragraph_copied = paragraph_counts.T
    sizes = np.diff(batch.offsets)
    return {
        "duplicate_line_share": ratio(copies, lines),
        "duplicate_line_character_share": ratio(copied, sizes),
        "duplicate_paragraph_share": ratio(paragraph_copies, paragraphs),
        "duplicate_paragraph_character_share": ratio(paragraph_copied, sizes),
        "terminal_punctuation_line_share": ratio(ended, filled),
        "short_line_share": ratio(short, filled),
        "duplicate_filled_line_character_share": ratio(filled_copied, sizes - feeds),
        "newline_to_word_ratio": ratio(feeds, np.diff(batch.tokens.offsets)),
        "filled_lines": filled,
        "lines_of_200_characters": long,
    }


def count_line_feeds(batch: Batch) -> NDArray[np.int64]:
    """[texts] line feeds of each text."""
    return np.diff(sum_before(batch.codes == FEED, batch.offsets))


@kernel
def _count_lines(codes: Any, offsets: Any, feeds: Any, classes: Any, counts: Any) -> None:
    """Lines, copies, their characters; of filled lines the number, those that end a sentence, those
    that are short, and the characters of copies."""
    table = make_table(find_largest(feeds) + 2)
    for text in range(offsets.size - 1):
        lines = copies = copied = filled = ended = short = filled_copied = long = 0
        start, end = offsets[text], offsets[text + 1]
        mask = slot_mask(feeds[text] + 2)
        while True:
            stop = find_line_end(codes, start, end)
            size = stop - start
            key = hash_content(codes, start, stop)
            is_copy = find_first(table, mask, text + 1, key, lines) != lines
            lines += 1
            copies += is_copy
            copied += size * is_copy
            long += size >= LONG_LINE
            if not is_blank(codes, start, stop, classes):
                filled += 1
                ended += classes[codes[stop - 1]] & TERMINAL != 0
                short += size <= SHORT_LINE
                filled_copied += size * is_copy
            if stop == end:
                break
            start = skip_line_feeds(codes, stop, end)
        counts[text, 0] = lines
        counts[text, 1] = copies
        counts[text, 2] = copied
        counts[text, 3] = filled
        counts[text, 4] = ended
        counts[text, 5] = short
        counts[text, 6] = filled_copied
        counts[text, 7] = long


@kernel
def _count_paragraphs(codes: Any, offsets: Any, feeds: Any, classes: Any, counts: Any) -> None:
    """Paragraphs, copies, their characters."""
    table = make_table(find_largest(feeds) // 2 + 1)
    for text in range(offsets.size - 1):
        paragraphs = copies = copied = 0
        start, end = strip_span(codes, offsets[text], offsets[text + 1], classes)
        mask = slot_mask(feeds[text] // 2 + 1)
        while True:
            stop = find_blank_line(codes, start, end)
            key = hash_content(codes, start, stop)
            is_copy = find_first(table, mask, text + 1, key, paragraphs) != paragraphs
            paragraphs += 1
            copies += is_copy
            copied += (stop - start) * is_copy
            if stop == end:
                break
            start = skip_line_feeds(codes, stop, end)
        counts[text, 0] = paragraphs
        counts[text, 1] = copies
        counts[text, 2] = copied


@kernel
def find_line_end(codes: Any, start: int, end: int) -> int:
    """The first line feed from `start` on, or `end`."""
    while start < end and codes[start] != FEED:
        start += 1
    return start


@kernel
def skip_line_feeds(codes: Any, start: int, end: int) -> int:
    """The first place from `start` on that holds no line feed."""
    while start < end and codes[start] == FEED:
        start += 1
    return start


@kernel
def find_blank_line(codes: Any, start: int, end: int) -> int:
    """Where two line feeds in a row begin, from `start` on; `end` if nowhere."""
    for place in range(start, end - 1):
        if codes[place] == FEED and codes[place + 1] == FEED:
            return place
    return end


@kernel
def strip_span(codes: Any, start: int, end: int, classes: Any) -> tuple[int, int]:
    """[start, end) without the white space at both ends (`str.strip`)."""
    while start < end and classes[codes[start]] & SPACE:
        start += 1
    while start < end and classes[codes[end - 1]] & SPACE:
        end -= 1
    return start, end


@kernel
def is_blank(codes: Any, start: int, end: int, classes: Any) -> bool:
    """Whether there is nothing but white space."""
    while start < end and classes[codes[start]] & SPACE:
        start += 1
    return start == end


SENTENCE_SIGNALS = (
    count("sentences", "sentences", "spaCy's sentencizer", "Sentences, parted at their marks."),
)


def measure_sentences(batch: Batch) -> dict[str, NDArray[np.int64]]:
    """The sentences of each text."""
    return {"sentences": count_sentences(batch)}
