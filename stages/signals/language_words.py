"""FineWeb-2's signals on words: what its rules ask of the tokens of a language's own splitter.

FineWeb-2 (Penedo et al. 2025, arXiv 2506.20920) ran datatrove's Gopher and FineWeb filters with
datatrove's splitter of the language and a stop list of the language. These signals are those of
`quality.py` and `repetition.py` over such tokens. A document in a language that is not split so has
the values of the run's own splitter, and no count of stop words. Stop lists are those of the
languages in `LANGUAGE_LIBRARIES`, from the configs of FineWeb-2 at the commit that
`fineweb_2_stop_words.json` names. A language is known by its label in lid.176 (`zh`, also `zh-TW`)
or in GlotLID (`cmn_Hani`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.signals.outputs import Signal
from stages.signals.quality import FILLED_LINE_SIGNALS, QUALITY_SIGNALS, measure_tokens, ratio
from stages.signals.repetition import REPETITION_SIGNALS, measure_repetition
from stages.text.batch import batches, place_tokens
from stages.text.language_splitters import find_language_tokens

FINEWEB_2 = "Penedo et al. 2025 (FineWeb2, arXiv 2506.20920), as datatrove computes it"
SUFFIX = "@fineweb-2"

_TOKEN_SIGNALS = (
    *(one for one in QUALITY_SIGNALS if "line" not in one.name and one.name != "word_tokens"),
    *REPETITION_SIGNALS,
    *(one for one in FILLED_LINE_SIGNALS if one.name == "newline_to_word_ratio"),
)
"""What depends on tokens among the signals that FineWeb-2's rules use."""

_STOP_WORDS = "stop_words"

LANGUAGE_WORD_SIGNALS: tuple[Signal, ...] = tuple(
    replace(
        one,
        name=f"{one.name}{SUFFIX}",
        type="int64?" if one.name == _STOP_WORDS else one.type,
        source=FINEWEB_2,
        description="Different words of the language's stop list; null where the language is not "
        "split by its own splitter."
        if one.name == _STOP_WORDS
        else f"{one.description.rstrip('.')}, by the language's own splitter.",
    )
    for one in _TOKEN_SIGNALS
)
"""Signals of runs with `language_splitters`, in the order of their columns."""

_BATCH_CHARACTERS = 1 << 17


def measure_language_words(
    texts: Sequence[str],
    languages: Sequence[str | None],
    columns: Mapping[str, Any],
    split_languages: Collection[str],
) -> dict[str, Any]:
    """The columns of `LANGUAGE_WORD_SIGNALS`.

    `languages` are those of the texts, `columns` the signals of the run's own splitter.
    `split_languages` are of `LANGUAGE_LIBRARIES`. UsageError if a library is not installed.
    """
    values: dict[str, Any] = {one.name: np.array(columns[one.name]) for one in _TOKEN_SIGNALS}
    stop_words: list[int | None] = [None] * len(texts)
    rows_by_language: dict[str, list[int]] = {}
    for row, spoken in enumerate(languages):
        language = find_split_language(spoken)
        if language is not None and language in split_languages:
            rows_by_language.setdefault(language, []).append(row)
    for language, rows in rows_by_language.items():
        for part in batches([len(texts[row]) for row in rows], _BATCH_CHARACTERS):
            own = rows[part]
            for name, numbers in _measure([texts[row] for row in own], language).items():
                values[name][own] = numbers
            for row in own:
                stop_words[row] = int(values[_STOP_WORDS][row])
    values[_STOP_WORDS] = stop_words
    return {f"{name}{SUFFIX}": numbers for name, numbers in values.items()}


def find_split_language(spoken: str | None) -> str | None:
    """The language of `LANGUAGE_LIBRARIES` that a label names; None if there is none."""
    if spoken is None:
        return None
    by_label = _stop_lists()
    primary = re.split("[-_]", spoken, maxsplit=1)[0].lower()
    row = by_label.get(spoken) or by_label.get(primary)
    return row[0] if row else None


def _measure(texts: list[str], language: str) -> dict[str, NDArray[Any]]:
    """The signals of texts in one language, by the name of the run's own splitter."""
    batch = place_tokens(texts, [find_language_tokens(text, language) for text in texts])
    feeds = np.array([text.count("\n") for text in texts], dtype=np.int64)
    measured: dict[str, NDArray[Any]] = {
        **measure_tokens(batch, _stop_hashes(language)),
        **measure_repetition(batch),
        "newline_to_word_ratio": ratio(feeds, np.diff(batch.tokens.offsets)),
    }
    return {one.name: measured[one.name] for one in _TOKEN_SIGNALS}


@cache
def _stop_lists() -> dict[str, tuple[str, list[str]]]:
    """Label → language and its stop list."""
    path = Path(__file__).with_name("fineweb_2_stop_words.json")
    languages = json.loads(path.read_text(encoding="utf-8"))["languages"]
    lists = {}
    for label, row in languages.items():
        lists[label] = lists[row["lid.176"]] = (row["lid.176"], row["stop_words"])
    return lists


@cache
def _stop_hashes(language: str) -> NDArray[np.uint64]:
    words = _stop_lists()[language][1]
    return np.unique(place_tokens(words, [[(0, len(word))] for word in words]).tokens.hashes)
