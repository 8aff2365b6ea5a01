"""Every signal that this stage writes, in the order of its columns.

What the archive and the page say is copied from `pages` into the signals; rules compare numbers, so
marks that are words are counted as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from artifacts_schema.kinds.documents import PAGE_COLUMNS
from stages.signals import groups, quality, redpajama, repetition
from stages.signals.bad_words import BAD_WORD_SIGNALS
from stages.signals.code_files import CODE_SIGNALS
from stages.signals.config import GROUPS, LINE_VIEWS, SignalsConfig
from stages.signals.language_words import LANGUAGE_WORD_SIGNALS
from stages.signals.line_views import LINE_SIGNALS
from stages.signals.models import LINE_LANGUAGE, PERPLEXITY_SIGNALS
from stages.signals.outputs import Signal, count, share
from stages.signals.personal_data import PERSONAL_SIGNALS
from stages.signals.urls import URL_LIST_SIGNALS, URL_SIGNALS
from stages.text.splitters import LANGUAGE_LIBRARIES

PAGE_SOURCE = "the archive or the page, by ingest"
COPIED = {
    "http_status": "code",
    "truncated": "name",
    "sniffed_type": "name",
    "charset": "name",
    "charset_told_by": "name",
    "characters_repaired": "characters",
    "url_repeats": "records",
    "ai_opt_out": "name",
    "licence": "name",
    "programming_language": "name",
    "extractor": "name",
    "doubt": "share",
    "nodes": "nodes",
    "main_share": "share",
    "link_share": "share",
}
"""Columns of `pages` that become signals under their own name, and their units."""

_DESCRIBED = {column.name: column for column in PAGE_COLUMNS}
PAGE_SIGNALS: tuple[Signal, ...] = (
    *(
        Signal(name, _DESCRIBED[name].type, unit, PAGE_SOURCE, _DESCRIBED[name].description)
        for name, unit in COPIED.items()
    ),
    count("is_truncated", "0 or 1", PAGE_SOURCE, "Whether the record is marked as truncated."),
    count(
        "robots_noindex",
        "0 or 1",
        PAGE_SOURCE,
        "Whether robots directives hold `noindex` or `none`.",
    ),
    count("ai_opt_out_marks", "marks", PAGE_SOURCE, "Marks against use for AI."),
)
"""Signals of runs with `pages`."""


def copy_page_columns(pages: pa.Table) -> dict[str, Any]:
    """The columns of `PAGE_SIGNALS` for the rows of a pages table."""
    return {
        **{name: pages[name] for name in COPIED},
        "is_truncated": _count_each(pages["truncated"], lambda mark: 1),
        "robots_noindex": _count_each(pages["robots"], _noindex),
        "ai_opt_out_marks": _count_each(pages["ai_opt_out"], lambda marks: len(marks.split())),
    }


def _noindex(directives: str) -> int:
    return int(not {"noindex", "none"}.isdisjoint(directives.split()))


def _count_each(column: pa.ChunkedArray, count: Callable[[str], int]) -> Sequence[int]:
    """`count` of each string, 0 for null."""
    return [0 if value is None else count(value) for value in column.to_pylist()]


FASTTEXT = "Joulin et al. 2017 (arXiv 1607.01759)"
C4 = "Raffel et al. 2020 (C4)"
FTFY = "Speer 2019 (ftfy, doi 10.5281/zenodo.2591652)"
OWN = "Ingot"


@dataclass(frozen=True)
class ColumnChoice:
    """What a run measures besides the signals of every run."""

    groups: Collection[str] = GROUPS
    line_rules: Collection[str] = LINE_VIEWS
    language: bool = False
    url_lists: bool = False
    word_lists: bool = False
    ngram_models: bool = False
    classifiers: Sequence[str] = ()
    pages: bool = False
    language_splitters: bool = False


TEXT_SIGNALS: tuple[Signal, ...] = (
    count("characters", "characters", OWN, "Unicode code points of the text."),
    count("bytes", "bytes", OWN, "Bytes of the text in UTF-8."),
    *quality.QUALITY_SIGNALS,
    *quality.DUPLICATE_SIGNALS,
    *repetition.REPETITION_SIGNALS,
    *quality.FILLED_LINE_SIGNALS,
    *quality.LINE_COUNTS,
    *quality.SENTENCE_SIGNALS,
    count("lorem_ipsum_count", "occurrences", C4, "Occurrences of 'lorem ipsum' in any case."),
    count("curly_brace_count", "characters", C4, "Opening curly braces."),
    count("javascript_count", "occurrences", C4, "Occurrences of 'javascript' in any case."),
    Signal("script", "string?", "name", OWN, "Script of most letters and marks; null without any."),
    share("script_share", OWN, "Share of the letters and marks that are in that script."),
    share(
        "replacement_character_share", OWN, "Characters that are U+FFFD, left by failed decoding."
    ),
    *PERSONAL_SIGNALS,
    count("secret_count", "secrets", OWN, "Keys, tokens and passwords."),
    count(
        "mojibake_characters",
        "characters",
        FTFY,
        "Characters of UTF-8 read in a single-byte character set.",
    ),
)
"""Signals of every run that depend on the text alone."""

LANGUAGE_SIGNALS: tuple[Signal, ...] = (
    Signal("language", "string?", "label", FASTTEXT, "Most probable language; null without text."),
    Signal("language_score", "float64?", "probability", FASTTEXT, "Its probability."),
    LINE_LANGUAGE,
)
"""Signals of runs with a language model."""

GROUP_SIGNALS: dict[str, tuple[Signal, ...]] = {
    "dclm": groups.DCLM_SIGNALS,
    "guide": groups.GUIDE_SIGNALS,
    "periodic": repetition.PERIODIC_SIGNALS,
    "phrases": groups.PHRASE_SIGNALS,
    "redpajama-v2": redpajama.REDPAJAMA_SIGNALS,
}


def classifier_signal(name: str) -> Signal:
    """The column of a classifier."""
    return Signal(
        f"{name}_score", "float64", "probability", FASTTEXT, f"Of the classifier '{name}'."
    )


def choose_text_signals(groups: Collection[str], line_rules: Collection[str]) -> tuple[Signal, ...]:
    """The columns that texts alone bring, in order."""
    return (
        *TEXT_SIGNALS,
        *(signal for group in GROUPS if group in groups for signal in GROUP_SIGNALS[group]),
        *(signal for signal in LINE_SIGNALS if signal.view in line_rules),
    )


def choose_signals(choice: ColumnChoice = ColumnChoice()) -> tuple[Signal, ...]:
    """The columns of a run, in order."""
    return (
        *choose_text_signals(choice.groups, choice.line_rules),
        *URL_SIGNALS,
        *CODE_SIGNALS,
        *(LANGUAGE_SIGNALS if choice.language else ()),
        *(LANGUAGE_WORD_SIGNALS if choice.language_splitters else ()),
        *(URL_LIST_SIGNALS if choice.url_lists else ()),
        *(BAD_WORD_SIGNALS if choice.word_lists else ()),
        *(PERPLEXITY_SIGNALS if choice.ngram_models else ()),
        *map(classifier_signal, choice.classifiers),
        *(PAGE_SIGNALS if choice.pages else ()),
    )


def describe_columns(config: SignalsConfig, signals: Sequence[Signal]) -> dict[str, object]:
    """Content of `signals.json`: the columns in order, and the settings that bear on them."""
    columns = [asdict(signal) for signal in signals]
    settings: dict[str, object] = {
        "stop_words": list(config.stop_words),
        "splitter": config.splitter,
    }
    if config.language_splitters:
        settings["language_splitters"] = {
            language: LANGUAGE_LIBRARIES[language] for language in config.language_splitters
        }
    return {"columns": columns, **settings}
