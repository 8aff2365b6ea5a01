"""Groups of signals that a run may leave out: `dclm`, `guide` and `phrases`.

`periodic` is in `repetition.py`, `redpajama-v2` in `redpajama.py`.

DCLM (Li et al. 2024, arXiv 2406.11794) computes Gopher's rules with other values. The definitions
are those of `baselines/mappers/filters/content_filters.py`, with the settings of
`dclm_baseline_refinedweb.yaml`. Lines and paragraphs are stripped and empty ones left out; of equal
ones every copy counts, the first too. Words are split in three ways: for the count as fastText does
(ASCII white space and NUL) and only those that begin with a letter or a digit; for their mean
length, the symbols, the letters and the stop words as `str.split` does; for n-grams by uniseg, for
which we take the tokens of our splitter that begin with a letter or a digit. Both follow UAX #29;
ours splits "end.Next", "EU:s" and words with soft hyphens or joiners, and does not split Katakana
from letters and digits. A most common n-gram that occurs once counts nothing here, among equals the
longest counts, and characters are divided by those of the words. All signals of a text without
words are 0.

The pretraining guide's three rules (at least 200 characters, at most 30 % special symbols, fewer
than 3 equal lines in a row) leave open what a symbol and a line are; the descriptions of the
columns say what they are here.

Phrases are marks of machine translation and of spam for search engines. Widgets and tools of
translation name themselves, in the language of the page; pages made for search engines sell the
same things in the same words, and fill lines with links and repeated keys. The phrases are our own
collection, in `phrase_marks.json`; an ordinary page may hold one of them, so a rule asks for
several different ones.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.signals.counting import (
    ALPHABETIC,
    ALPHANUMERIC,
    SPACE,
    SPECIAL,
    classify,
    find_first,
    find_largest,
    hash_content,
    make_table,
    slot_mask,
)
from stages.signals.outputs import Signal, count, share
from stages.signals.quality import (
    count_line_feeds,
    ends_with_ellipsis,
    find_blank_line,
    find_line_end,
    ratio,
    strip_span,
)
from stages.signals.repetition import DUPLICATE_NGRAMS, TOP_NGRAMS, count_repeated_ngrams
from stages.text.batch import Batch, sum_before

DCLM = "Li et al. 2024 (DCLM, arXiv 2406.11794), content_filters.py"

DCLM_SIGNALS: tuple[Signal, ...] = (
    count(
        "words@dclm", "words", DCLM, "Words at ASCII white space that begin with a letter or digit."
    ),
    Signal("mean_word_length@dclm", "float64", "characters", DCLM, "Of words at white space."),
    share("hash_to_word_ratio@dclm", DCLM, "Hash signs over those words."),
    share("ellipsis_to_word_ratio@dclm", DCLM, "'...', '. . .' and '…' over those words."),
    share("symbol_to_word_ratio@dclm", DCLM, "The sum of both, on which DCLM sets one limit."),
    share("bullet_line_share@dclm", DCLM, "Filled lines that begin with ●, •, * or a hyphen."),
    share("ellipsis_line_share@dclm", DCLM, "Filled lines that end with '...', '. . .' or '…'."),
    share("alphabetic_word_share@dclm", DCLM, "Words at white space with at least one letter."),
    count("stop_words@dclm", "words", DCLM, "Occurrences of Gopher's eight stop words, any case."),
    share("duplicate_line_share@dclm", DCLM, "Filled lines that occur more than once."),
    share("duplicate_line_character_share@dclm", DCLM, "Characters of filled lines in such lines."),
    share("duplicate_paragraph_share@dclm", DCLM, "Paragraphs that occur more than once."),
    share("duplicate_paragraph_character_share@dclm", DCLM, "Characters in such paragraphs."),
    *(
        share(
            f"top_{n}_gram_character_share@dclm",
            DCLM,
            f"Characters of the most common {n}-gram times its occurrences, 0 if none repeats.",
        )
        for n in TOP_NGRAMS
    ),
    *(
        share(
            f"duplicate_{n}_gram_character_share@dclm",
            DCLM,
            f"Characters of the words in {n}-grams that occur more than once.",
        )
        for n in DUPLICATE_NGRAMS
    ),
)

_STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
_PACKED = tuple(int.from_bytes(word.encode(), "big") for word in _STOP_WORDS)
_LONGEST = max(map(len, _STOP_WORDS))

_NUL, _TAB, _RETURN, _BLANK, _HASH, _STAR, _HYPHEN, _STOP = map(ord, "\0\t\r #*-.")
_BULLET, _BLACK_CIRCLE, _ELLIPSIS = map(ord, "•●…")


def measure_dclm(batch: Batch) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """The columns of `DCLM_SIGNALS`."""
    classes = classify(batch).classes
    texts = len(batch.texts)
    counted = np.zeros((texts, 7), dtype=np.int64)
    _count_words(batch.codes, batch.offsets, classes, counted)
    words, pieces, piece_characters, alphabetic, stops, hashes, ellipses = counted.T
    lines, paragraphs = (np.zeros((texts, 6), dtype=np.int64) for _ in range(2))
    feeds = count_line_feeds(batch)
    _count_pieces(batch.codes, batch.offsets, feeds, classes, False, lines)
    _count_pieces(batch.codes, batch.offsets, feeds, classes, True, paragraphs)
    return {
        "words@dclm": words,
        "mean_word_length@dclm": ratio(piece_characters, pieces),
        "hash_to_word_ratio@dclm": ratio(hashes, pieces),
        "ellipsis_to_word_ratio@dclm": ratio(ellipses, pieces),
        "symbol_to_word_ratio@dclm": ratio(hashes + ellipses, pieces),
        "bullet_line_share@dclm": ratio(lines[:, 4], lines[:, 0]),
        "ellipsis_line_share@dclm": ratio(lines[:, 5], lines[:, 0]),
        "alphabetic_word_share@dclm": ratio(alphabetic, pieces),
        "stop_words@dclm": stops,
        "duplicate_line_share@dclm": ratio(lines[:, 2], lines[:, 0]),
        "duplicate_line_character_share@dclm": ratio(lines[:, 3], lines[:, 1]),
        "duplicate_paragraph_share@dclm": ratio(paragraphs[:, 2], paragraphs[:, 0]),
        "duplicate_paragraph_character_share@dclm": ratio(paragraphs[:, 3], paragraphs[:, 1]),
        **_ngram_shares(batch, classes),
    }


def _ngram_shares(batch: Batch, classes: NDArray[np.uint16]) -> dict[str, NDArray[np.float64]]:
    tokens = batch.tokens
    kept = classes[batch.codes[tokens.starts]] & ALPHANUMERIC != 0
    offsets = sum_before(kept, tokens.offsets)
    lengths = tokens.lengths[kept]
    ngrams = count_repeated_ngrams(offsets, tokens.hashes[kept], lengths)
    total = np.diff(sum_before(lengths, offsets))
    columns = {}
    for column, n in enumerate(TOP_NGRAMS):
        times = ngrams.occurrences[:, column]
        columns[f"top_{n}_gram_character_share@dclm"] = ratio(
            ngrams.longest[:, column] * times * (times > 1), total
        )
    for column, n in enumerate(DUPLICATE_NGRAMS):
        columns[f"duplicate_{n}_gram_character_share@dclm"] = ratio(ngrams.within[:, column], total)
    return columns


@kernel
def _count_words(codes: Any, offsets: Any, classes: Any, counted: Any) -> None:
    """Words, words at white space, their characters, those with a letter, stop words, hash signs
    and ellipses of each text."""
    for text in range(offsets.size - 1):
        words = pieces = characters = alphabetic = stops = hashes = 0
        size = packed = 0
        lettered = False
        parted = True
        end = offsets[text + 1]
        for place in range(offsets[text], end):
            code = codes[place]
            bits = classes[code]
            hashes += code == _HASH
            words += parted and bits & ALPHANUMERIC != 0
            parted = code in (_NUL, _BLANK) or _TAB <= code <= _RETURN
            if not bits & SPACE:
                size += 1
                lettered |= bits & ALPHABETIC != 0
                packed = packed << 8 | (code | 0x20 if code < 0x80 else 0x7F)
                if place + 1 < end:
                    continue
            if size:
                pieces += 1
                characters += size
                alphabetic += lettered
                stops += size <= _LONGEST and packed in _PACKED
                size = packed = 0
                lettered = False
        counted[text, 0] = words
        counted[text, 1] = pieces
        counted[text, 2] = characters
        counted[text, 3] = alphabetic
        counted[text, 4] = stops
        counted[text, 5] = hashes
        counted[text, 6] = _count_ellipses(codes, offsets[text], end)


@kernel
def _count_ellipses(codes: Any, start: int, end: int) -> int:
    """Occurrences of '...', of '. . .' and of '…', those of each without overlap."""
    ellipses = free = spaced = 0
    for place in range(start, end):
        if codes[place] == _ELLIPSIS:
            ellipses += 1
        elif codes[place] == _STOP:
            if place >= free and _begins_ellipsis(codes, place, end, 1):
                ellipses += 1
                free = place + 3
            if place >= spaced and _begins_ellipsis(codes, place, end, 2):
                ellipses += 1
                spaced = place + 5
    return ellipses


@kernel
def _begins_ellipsis(codes: Any, start: int, end: int, step: int) -> bool:
    """Whether '...' begins at a stop, or '. . .' where the step is 2."""
    if start + 2 * step >= end or codes[start + step] != _STOP or codes[start + 2 * step] != _STOP:
        return False
    return step == 1 or (codes[start + 1] == _BLANK and codes[start + 3] == _BLANK)


@kernel
def _count_pieces(
    codes: Any, offsets: Any, feeds: Any, classes: Any, paragraphs: bool, counts: Any
) -> None:
    """Filled pieces and their characters; pieces that occur more than once and theirs; pieces that
    begin with a bullet; pieces that end with an ellipsis."""
    table = make_table(find_largest(feeds) + 1)
    occurrences = np.empty(find_largest(feeds) + 1, dtype=np.int64)
    for text in range(offsets.size - 1):
        place, end = offsets[text], offsets[text + 1]
        mask = slot_mask(feeds[text] + 1)
        pieces = 0
        while place < end:
            stop = (
                find_blank_line(codes, place, end)
                if paragraphs
                else find_line_end(codes, place, end)
            )
            left, right = strip_span(codes, place, stop, classes)
            place = stop + 1
            if left == right:
                continue
            size = right - left
            key = hash_content(codes, left, right)
            first = find_first(table, mask, text + 1, key, pieces)
            if first == pieces:
                occurrences[pieces] = 0
            occurrences[first] += 1
            if occurrences[first] > 1:
                copies = 2 if occurrences[first] == 2 else 1  # The second brings in the first.
                counts[text, 2] += copies
                counts[text, 3] += copies * size
            pieces += 1
            counts[text, 1] += size
            counts[text, 4] += _is_bullet(codes[left])
            counts[text, 5] += ends_with_ellipsis(codes, left, right, classes) or (
                size >= 5
                and codes[right - 5] == _STOP
                and _begins_ellipsis(codes, right - 5, right, 2)
            )
        counts[text, 0] = pieces


@kernel
def _is_bullet(code: int) -> bool:
    return code in (_HYPHEN, _STAR, _BULLET, _BLACK_CIRCLE)


GUIDE = "Pretraining guide"

GUIDE_SIGNALS: tuple[Signal, ...] = (
    share(
        "special_symbol_share",
        GUIDE,
        "Characters that are neither letters, digits or other numbers, marks nor white space.",
    ),
    count(
        "equal_lines_in_a_row",
        "lines",
        GUIDE,
        "Longest run of equal lines: between line feeds, without white space at their ends, blank "
        "ones left out; 1 where no line equals the one before.",
    ),
)


def measure_guide(batch: Batch) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """The columns of `GUIDE_SIGNALS`; both are 0 for a blank text."""
    classes = classify(batch).classes
    special = np.diff(sum_before((classes[batch.codes] & SPECIAL) != 0, batch.offsets))
    longest = np.zeros(len(batch.texts), dtype=np.int64)
    _measure_equal_lines(batch.codes, batch.offsets, classes, longest)
    return {
        "special_symbol_share": ratio(special, np.diff(batch.offsets)),
        "equal_lines_in_a_row": longest,
    }


@kernel
def _measure_equal_lines(codes: Any, offsets: Any, classes: Any, longest: Any) -> None:
    """The longest run of equal lines of each text."""
    for text in range(offsets.size - 1):
        place, end = offsets[text], offsets[text + 1]
        run = 0
        before = np.uint64(0)
        while place < end:
            stop = find_line_end(codes, place, end)
            left, right = strip_span(codes, place, stop, classes)
            place = stop + 1
            if left < right:
                key = hash_content(codes, left, right)
                run = run + 1 if run and key == before else 1
                before = key
                longest[text] = max(longest[text], run)


_OWN = "Ingot"
PHRASE_SIGNALS: tuple[Signal, ...] = (
    count(
        "machine_translation_marks",
        "phrases",
        _OWN,
        "Different phrases by which tools of machine translation name themselves.",
    ),
    count("seo_spam_marks", "phrases", _OWN, "Different phrases of pages made to be found."),
)


def measure_phrases(lowered: Sequence[str]) -> dict[str, list[int]]:
    """The columns of `PHRASE_SIGNALS` for texts in lower case."""
    # Few phrases stand anywhere in many texts, and one search through all of them says which.
    together = "\n".join(lowered)
    columns = {}
    for signal in PHRASE_SIGNALS:
        there = [phrase for phrase in load_phrases(signal.name) if phrase in together]
        columns[signal.name] = [sum(phrase in text for phrase in there) for text in lowered]
    return columns


@lru_cache(maxsize=2)
def load_phrases(name: str) -> tuple[str, ...]:
    """The phrases of a mark, none of which holds another."""
    path = Path(__file__).with_name("phrase_marks.json")
    groups_by_mark = json.loads(path.read_text(encoding="utf-8"))
    return tuple(phrase for group in groups_by_mark[name].values() for phrase in group)
