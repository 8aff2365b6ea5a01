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
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.signals.counting import ALPHABETIC, ALPHANUMERIC, SPACE, SPECIAL, classify
from stages.signals.outputs import Signal, count, share
from stages.signals.quality import ratio
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

_NUL, _TAB, _RETURN, _BLANK = map(ord, "\0\t\r ")
_BULLETS, _ELLIPSES = ("●", "•", "*", "-"), ("...", ". . .", "…")


def measure_dclm(batch: Batch) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """The columns of `DCLM_SIGNALS`."""
    classes = classify(batch).classes
    counted = np.zeros((len(batch.texts), 5), dtype=np.int64)
    _count_words(batch.codes, batch.offsets, classes, counted)
    words, pieces, piece_characters, alphabetic, stops = counted.T
    marks = np.array([_count_marks(text) for text in batch.texts], dtype=np.int64)
    hashes, ellipses, bullets, ends, *repeats = marks.reshape(-1, 12).T
    lines, line_characters, copies, copied = repeats[:4]
    paragraphs, paragraph_characters, paragraph_copies, paragraph_copied = repeats[4:]
    return {
        "words@dclm": words,
        "mean_word_length@dclm": ratio(piece_characters, pieces),
        "hash_to_word_ratio@dclm": ratio(hashes, pieces),
        "ellipsis_to_word_ratio@dclm": ratio(ellipses, pieces),
        "symbol_to_word_ratio@dclm": ratio(hashes + ellipses, pieces),
        "bullet_line_share@dclm": ratio(bullets, lines),
        "ellipsis_line_share@dclm": ratio(ends, lines),
        "alphabetic_word_share@dclm": ratio(alphabetic, pieces),
        "stop_words@dclm": stops,
        "duplicate_line_share@dclm": ratio(copies, lines),
        "duplicate_line_character_share@dclm": ratio(copied, line_characters),
        "duplicate_paragraph_share@dclm": ratio(paragraph_copies, paragraphs),
        "duplicate_paragraph_character_share@dclm": ratio(paragraph_copied, paragraph_characters),
        **_ngram_shares(batch, classes),
    }


def _count_marks(text: str) -> tuple[int, ...]:
    """Hash signs, ellipses, lines with a bullet, lines with an ellipsis; repeats of lines and of
    paragraphs."""
    lines, paragraphs = _strip_pieces(text, "\n"), _strip_pieces(text, "\n\n")
    return (
        text.count("#"),
        sum(map(text.count, _ELLIPSES)),
        sum(line.startswith(_BULLETS) for line in lines),
        sum(line.endswith(_ELLIPSES) for line in lines),
        *_count_repeats(lines),
        *_count_repeats(paragraphs),
    )


def _strip_pieces(text: str, end: str) -> list[str]:
    return [stripped for piece in text.split(end) if (stripped := piece.strip())]


def _count_repeats(pieces: Sequence[str]) -> tuple[int, int, int, int]:
    """Pieces and their characters; pieces that occur more than once and theirs."""
    repeats = []
    if len(set(pieces)) < len(pieces):
        repeats = [(piece, times) for piece, times in Counter(pieces).items() if times > 1]
    return (
        len(pieces),
        sum(map(len, pieces)),
        sum(times for _, times in repeats),
        sum(len(piece) * times for piece, times in repeats),
    )


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
    """Words, words at white space, their characters, those with a letter, and stop words."""
    for text in range(offsets.size - 1):
        words = pieces = characters = alphabetic = stops = 0
        size = packed = 0
        lettered = False
        parted = True
        end = offsets[text + 1]
        for place in range(offsets[text], end):
            code = codes[place]
            bits = classes[code]
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
    return {
        "special_symbol_share": ratio(special, np.diff(batch.offsets)),
        "equal_lines_in_a_row": np.array(list(map(_longest_run, batch.texts)), dtype=np.int64),
    }


def _longest_run(text: str) -> int:
    """Lines of the longest run of equal ones."""
    lines = _strip_pieces(text, "\n")
    return max((sum(1 for _ in run) for _, run in groupby(lines)), default=0)


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
    # Few phrases occur in any of many texts, and one search through all of them finds these.
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
