"""RedPajama-V2's quality signals that need neither a model nor a list (Weber et al. 2024).

Names and definitions are those of `app/src/core/quality_signals` in its repository, the rounding
to eight digits too; what is null there, for want of words or lines, is 0. Some signals look at the
raw text, parted as NLTK's WordPunctTokenizer did with Python's `re` (`\\w+|[^\\w\\s]+`), others at
the normalised one: ASCII punctuation deleted, lower case, decomposed (NFD), words at white space.
Lines end with their line feed; what is said of each line there is the mean over lines here.

`rps_doc_lorem_ipsum` there also counts spellings with a dotless i or a long s, though only beside a
plain one; they are not counted here.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stages.signals.counting import UPPER, classify, make_hash_set
from stages.signals.outputs import Signal, count, share
from stages.signals.quality import ELLIPSES, ratio
from stages.signals.redpajama_words import (
    count_raw_words,
    count_vocabulary,
    find_normalised_words,
    hash_word,
)
from stages.signals.repetition import DUPLICATE_NGRAMS, TOP_NGRAMS, count_repeated_ngrams
from stages.text.batch import Batch, sum_before

REDPAJAMA = "Weber et al. 2024 (RedPajama-V2, arXiv 2411.12372)"

DIGITS = 8
_END_MARKS, _BULLETS = tuple(".!?”"), tuple("•‣▶◀◦■□▪▫–")

REDPAJAMA_SIGNALS: tuple[Signal, ...] = (
    count("rps_doc_word_count", "words", REDPAJAMA, "Words of the normalised text."),
    Signal("rps_doc_mean_word_length", "float64", "characters", REDPAJAMA, "Their mean length."),
    share("rps_doc_symbol_to_word_ratio", REDPAJAMA, "'#', '...' and '…' over raw words."),
    share("rps_doc_frac_lines_end_with_ellipsis", REDPAJAMA, "Lines that end with '...' or '…'."),
    share("rps_doc_frac_no_alph_words", REDPAJAMA, "Raw words without a letter from A to Z."),
    share("rps_doc_frac_unique_words", REDPAJAMA, "Different normalised words over all."),
    Signal(
        "rps_doc_unigram_entropy",
        "float64",
        "nats",
        REDPAJAMA,
        "Entropy of the distribution of normalised words.",
    ),
    share("rps_doc_stop_word_fraction", REDPAJAMA, "Raw words that are in its stop list."),
    Signal(
        "rps_doc_num_sentences",
        "int64",
        "sentences",
        REDPAJAMA,
        "Pieces between runs of '.', '!' and '?' that hold a letter or digit.",
    ),
    share("rps_doc_curly_bracket", REDPAJAMA, "Curly braces over characters."),
    share(
        "rps_doc_lorem_ipsum",
        REDPAJAMA,
        "Occurrences of 'lorem ipsum' over characters, both of the normalised text.",
    ),
    share("rps_doc_frac_all_caps_words", REDPAJAMA, "Raw words in capital letters."),
    *(
        share(
            f"rps_doc_frac_chars_top_{n}gram",
            REDPAJAMA,
            f"Characters of the most common normalised {n}-gram times its occurrences, over those "
            "of all words; 0 if none repeats.",
        )
        for n in TOP_NGRAMS
    ),
    *(
        share(
            f"rps_doc_frac_chars_dupe_{n}grams",
            REDPAJAMA,
            f"Characters of normalised words in {n}-grams that occur more than once.",
        )
        for n in DUPLICATE_NGRAMS
    ),
    share(
        "rps_lines_ending_with_terminal_punctution_mark",
        REDPAJAMA,
        "Lines that end with '.', '!', '?' or '”'.",
    ),
    Signal(
        "rps_lines_javascript_counts",
        "float64",
        "words",
        REDPAJAMA,
        "Normalised words 'javascript', mean over lines.",
    ),
    Signal(
        "rps_lines_num_words", "float64", "words", REDPAJAMA, "Normalised words, mean over lines."
    ),
    share(
        "rps_lines_numerical_chars_fraction",
        REDPAJAMA,
        "Numeric characters of the normalised line, mean over lines.",
    ),
    share("rps_lines_start_with_bulletpoint", REDPAJAMA, "Lines that begin with a bullet point."),
    share(
        "rps_lines_uppercase_letter_fraction",
        REDPAJAMA,
        "Upper-case characters of the line, mean over lines.",
    ),
)


def measure_redpajama(
    batch: Batch, language: str = "en"
) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """The columns of `REDPAJAMA_SIGNALS`, with the stop words of `language`, if it has a list."""
    raw = count_raw_words(batch, _stop_hashes(language))
    raw_words, alphabetic, capitals, stops, symbols, braces, sentences = raw.T
    line_counts = np.array([_count_lines(text) for text in batch.texts], dtype=np.int64)
    lines, ellipsis_lines, ended_lines, bullet_lines = line_counts.reshape(-1, 4).T
    words = find_normalised_words(batch, hash_word("javascript"))
    unique, entropy = count_vocabulary(words.offsets, words.hashes)
    counted = np.diff(words.offsets)
    size = np.diff(sum_before(words.lengths, words.offsets))
    lengths = size + np.maximum(counted - 1, 0)
    columns = {
        "rps_doc_mean_word_length": ratio(size, counted),
        "rps_doc_symbol_to_word_ratio": ratio(symbols, raw_words),
        "rps_doc_frac_lines_end_with_ellipsis": ratio(ellipsis_lines, lines),
        "rps_doc_frac_no_alph_words": (raw_words > 0) - ratio(alphabetic, raw_words),
        "rps_doc_frac_unique_words": ratio(unique, counted),
        "rps_doc_unigram_entropy": entropy,
        "rps_doc_stop_word_fraction": ratio(stops, raw_words) * (counted > 0),
        "rps_doc_curly_bracket": ratio(braces, np.diff(batch.offsets)),
        "rps_doc_lorem_ipsum": ratio(words.lorem, lengths),
        "rps_doc_frac_all_caps_words": ratio(capitals, raw_words),
        "rps_lines_ending_with_terminal_punctution_mark": ratio(ended_lines, lines),
        "rps_lines_javascript_counts": ratio(words.matches, lines),
        "rps_lines_num_words": ratio(counted, lines),
        "rps_lines_numerical_chars_fraction": ratio(words.numeric, lines),
        "rps_lines_start_with_bulletpoint": ratio(bullet_lines, lines),
        "rps_lines_uppercase_letter_fraction": ratio(_sum_upper_shares(batch), lines),
    }
    ngrams = count_repeated_ngrams(words.offsets, words.hashes, words.lengths)
    for column, n in enumerate(TOP_NGRAMS):
        times = ngrams.occurrences[:, column]
        columns[f"rps_doc_frac_chars_top_{n}gram"] = ratio(
            ngrams.first[:, column] * times * (times > 1), size
        )
    for column, n in enumerate(DUPLICATE_NGRAMS):
        columns[f"rps_doc_frac_chars_dupe_{n}grams"] = ratio(ngrams.within[:, column], size)
    return {
        "rps_doc_word_count": counted,
        "rps_doc_num_sentences": sentences,
        **{name: np.round(values, DIGITS) for name, values in columns.items()},
    }


def _count_lines(text: str) -> tuple[int, ...]:
    """Lines, those that end with an ellipsis, with an end mark, those that begin with a bullet."""
    lines = text.split("\n")
    stripped = [line.strip() for line in (lines if lines[-1] else lines[:-1])]
    return (
        len(stripped),
        sum(line.endswith(ELLIPSES) for line in stripped),
        sum(line.endswith(_END_MARKS) for line in stripped),
        sum(line.startswith(_BULLETS) for line in stripped),
    )


def _sum_upper_shares(batch: Batch) -> NDArray[np.float64]:
    """[texts] the sum over the lines of their share of upper-case characters."""
    borders = np.union1d(np.flatnonzero(batch.codes == ord("\n")) + 1, batch.offsets)
    is_upper = classify(batch).classes[batch.codes] & UPPER != 0
    shares = np.diff(sum_before(is_upper, borders)) / np.diff(borders)
    texts = np.searchsorted(batch.offsets, borders[:-1], side="right") - 1
    sums = np.bincount(texts, weights=shares, minlength=len(batch.texts))
    return sums.astype(np.float64, copy=False)


@lru_cache(maxsize=8)
def _stop_hashes(language: str) -> NDArray[np.uint64]:
    return make_hash_set(
        np.array([hash_word(word) for word in load_stop_words(language)], dtype=np.uint64)
    )


def load_stop_words(language: str) -> list[str]:
    """RedPajama's stop words of a language, a code such as `en`."""
    lists = json.loads(Path(__file__).with_name("redpajama_stop_words.json").read_text("utf-8"))
    words: list[str] = lists["words"].get(language, [])
    return words
