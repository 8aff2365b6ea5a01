"""Signals over the lines and paragraphs of a batch of texts: Gopher's, and FineWeb's.

Gopher's repetition signals (Rae et al. 2021, table A1) and FineWeb's rules (Penedo et al. 2024,
section 3.5) in datatrove's definitions: of equal pieces all but the first are duplicates. Gopher's
lines are the pieces between runs of line feeds, its paragraphs those of the stripped text between
blank lines; FineWeb's lines are those that are not blank.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.signals.character_classes import SPACE, TERMINAL, characters
from stages.signals.hashing import content_hash, empty_table, first_place, largest, mask_of
from stages.signals.quality import GOPHER, ratio
from stages.signals.signal import Signal, count, share
from stages.text.batch import Batch
from stages.text.native import compiled

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


def line_signals(batch: Batch) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """The columns of all signals of this module; shares of nothing are 0."""
    texts = len(batch.offsets) - 1
    classes = characters(batch.codes).classes
    feeds = line_feeds(batch.codes, batch.offsets)
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


@compiled
def line_feeds(codes: Any, offsets: Any) -> Any:
    """[texts] line feeds of each text."""
    feeds = np.zeros(offsets.size - 1, dtype=np.int64)
    for text in range(offsets.size - 1):
        found = 0
        for place in range(offsets[text], offsets[text + 1]):
            found += codes[place] == FEED
        feeds[text] = found
    return feeds


@compiled
def _count_lines(codes: Any, offsets: Any, feeds: Any, classes: Any, counts: Any) -> None:
    """Lines, copies, their characters; of filled lines the number, those that end a sentence, those
    that are short, and the characters of copies."""
    table = empty_table(largest(feeds) + 2)
    for text in range(offsets.size - 1):
        lines = copies = copied = filled = ended = short = filled_copied = long = 0
        start, end = offsets[text], offsets[text + 1]
        mask = mask_of(feeds[text] + 2)
        while True:
            stop = line_end(codes, start, end)
            size = stop - start
            key = content_hash(codes, start, stop)
            is_copy = first_place(table, mask, text + 1, key, lines) != lines
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
            start = past_feeds(codes, stop, end)
        counts[text, 0] = lines
        counts[text, 1] = copies
        counts[text, 2] = copied
        counts[text, 3] = filled
        counts[text, 4] = ended
        counts[text, 5] = short
        counts[text, 6] = filled_copied
        counts[text, 7] = long


@compiled
def _count_paragraphs(codes: Any, offsets: Any, feeds: Any, classes: Any, counts: Any) -> None:
    """Paragraphs, copies, their characters."""
    table = empty_table(largest(feeds) // 2 + 1)
    for text in range(offsets.size - 1):
        paragraphs = copies = copied = 0
        start, end = stripped(codes, offsets[text], offsets[text + 1], classes)
        mask = mask_of(feeds[text] // 2 + 1)
        while True:
            stop = blank_line(codes, start, end)
            key = content_hash(codes, start, stop)
            is_copy = first_place(table, mask, text + 1, key, paragraphs) != paragraphs
            paragraphs += 1
            copies += is_copy
            copied += (stop - start) * is_copy
            if stop == end:
                break
            start = past_feeds(codes, stop, end)
        counts[text, 0] = paragraphs
        counts[text, 1] = copies
        counts[text, 2] = copied


@compiled
def line_end(codes: Any, start: int, end: int) -> int:
    """The first line feed from `start` on, or `end`."""
    while start < end and codes[start] != FEED:
        start += 1
    return start


@compiled
def past_feeds(codes: Any, start: int, end: int) -> int:
    """The first place from `start` on that holds no line feed."""
    while start < end and codes[start] == FEED:
        start += 1
    return start


@compiled
def blank_line(codes: Any, start: int, end: int) -> int:
    """Where two line feeds in a row begin, from `start` on; `end` if nowhere."""
    for place in range(start, end - 1):
        if codes[place] == FEED and codes[place + 1] == FEED:
            return place
    return end


@compiled
def stripped(codes: Any, start: int, end: int, classes: Any) -> tuple[int, int]:
    """[start, end) without the white space at both ends (`str.strip`)."""
    while start < end and classes[codes[start]] & SPACE:
        start += 1
    while start < end and classes[codes[end - 1]] & SPACE:
        end -= 1
    return start, end


@compiled
def is_blank(codes: Any, start: int, end: int, classes: Any) -> bool:
    """Whether there is nothing but white space."""
    while start < end and classes[codes[start]] & SPACE:
        start += 1
    return start == end
