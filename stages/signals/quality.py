"""Quality of tokens and lines: Gopher's and FineWeb's signals, for a batch of texts.

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

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stages.signals.outputs import Signal, count, share
from stages.text.batch import LETTER, SYMBOL, Batch, split_texts, sum_before
from stages.text.characters import TERMINAL_PUNCTUATION
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

_BULLETS, ELLIPSES = ("•", "-"), ("...", "…")


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
    return measure_tokens(batch, np.unique(hash_strings(stop_words, splitter)))


def measure_tokens(
    batch: Batch, stops: NDArray[np.uint64]
) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """The same by the sorted hashes of the stop words."""
    tokens = batch.tokens
    marks = np.array([_count_marks(text) for text in batch.texts], dtype=np.int64)
    hashes, ellipses, lines, bullets, ends = marks.reshape(-1, 5).T
    is_word, has_letter = (tokens.kinds & SYMBOL) == 0, (tokens.kinds & LETTER) != 0
    words, word_characters, alphabetic = (
        np.diff(sum_before(values, tokens.offsets))
        for values in (is_word, tokens.lengths * is_word, has_letter)
    )
    all_tokens = np.diff(tokens.offsets)
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


def _count_marks(text: str) -> tuple[int, ...]:
    """Hash signs, ellipses, lines, lines with a bullet and lines with an ellipsis."""
    lines = text.splitlines()
    return (
        text.count("#"),
        sum(map(text.count, ELLIPSES)),
        len(lines),
        sum(line.lstrip().startswith(_BULLETS) for line in lines),
        sum(line.rstrip().endswith(ELLIPSES) for line in lines),
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


def measure_lines(
    texts: Sequence[str], tokens: NDArray[np.int64]
) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """The columns of the three groups above; shares of nothing are 0.

    `tokens` counts those of each text.
    """
    counts = np.array([_count_lines(text) for text in texts], dtype=np.int64).reshape(-1, 13).T
    sizes, feeds, lines, copies, copied, paragraphs, paragraph_copies, paragraph_copied = counts[:8]
    filled, filled_copied, ended, short, long = counts[8:]
    return {
        "duplicate_line_share": ratio(copies, lines),
        "duplicate_line_character_share": ratio(copied, sizes),
        "duplicate_paragraph_share": ratio(paragraph_copies, paragraphs),
        "duplicate_paragraph_character_share": ratio(paragraph_copied, sizes),
        "terminal_punctuation_line_share": ratio(ended, filled),
        "short_line_share": ratio(short, filled),
        "duplicate_filled_line_character_share": ratio(filled_copied, sizes - feeds),
        "newline_to_word_ratio": ratio(feeds, tokens),
        "filled_lines": filled,
        "lines_of_200_characters": long,
    }


def _count_lines(text: str) -> tuple[int, ...]:
    """What `measure_lines` divides, in its order."""
    # re.split("\n+", text) and re.split("\n{2,}", text.strip()), which take five times as long.
    first, *lines = text.split("\n")
    lines = [first, *filter(None, lines[:-1]), *lines[-1:]]
    pieces = (piece.lstrip("\n") for piece in text.strip().split("\n\n"))
    paragraphs = list(filter(None, pieces)) or [""]
    filled = [line for line in lines if line and not line.isspace()]
    return (
        len(text),
        text.count("\n"),
        *(len(lines), *_count_copies(lines)),
        *(len(paragraphs), *_count_copies(paragraphs)),
        *(len(filled), _count_copies(filled)[1]),
        sum(line[-1] in TERMINAL_PUNCTUATION for line in filled),
        sum(len(line) <= SHORT_LINE for line in filled),
        sum(len(line) >= LONG_LINE for line in lines),
    )


def _count_copies(pieces: Sequence[str]) -> tuple[int, int]:
    """Pieces that repeat an earlier one, and their characters."""
    distinct = set(pieces)
    return len(pieces) - len(distinct), sum(map(len, pieces)) - sum(map(len, distinct))


SENTENCE_SIGNALS = (
    count("sentences", "sentences", "spaCy's sentencizer", "Sentences, parted at their marks."),
)
