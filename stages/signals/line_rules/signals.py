"""The signals on what line rules leave: one column each, named by its view."""

from __future__ import annotations

from stages.signals.line_rules import c4, refinedweb
from stages.signals.line_rules.fineweb import FINEWEB_VIEW
from stages.signals.signal import Signal

_C4 = "Raffel et al. 2020 (C4), in {}"
_FINEWEB = "Penedo et al. 2024 (FineWeb), as datatrove computes it"

_OF_C4 = (
    ("sentences", "int64", "sentences", "Sentences of the kept lines, each counted alone."),
    ("lorem_ipsum_lines", "int64", "lines", "Lines with 'lorem ipsum' before any with a brace."),
    ("curly_brace_lines", "int64", "lines", "Otherwise good lines with an opening curly brace."),
    ("kept_line_share", "float64", "share", "Lines that are kept."),
)
_OF_FINEWEB = (
    (
        "terminal_punctuation_line_share",
        "float64",
        "share",
        "Filled lines whose last character ends a sentence.",
    ),
    ("short_line_share", "float64", "share", "Filled lines of at most 30 characters."),
    (
        "duplicate_filled_line_character_share",
        "float64",
        "share",
        "Characters in filled lines that repeat an earlier one, over characters but line feeds.",
    ),
    ("newline_to_word_ratio", "float64", "share", "Line feeds over tokens."),
    ("filled_lines", "int64", "lines", "Lines that are not blank."),
)

LINE_SIGNALS: tuple[Signal, ...] = (
    *(
        Signal(
            f"{variant.view}/{name}",
            type_,
            unit,
            _C4.format(variant.source),
            description,
            variant.view,
        )
        for variant in c4.VARIANTS
        for name, type_, unit, description in _OF_C4
    ),
    *(
        Signal(f"{FINEWEB_VIEW}/{name}", type_, unit, _FINEWEB, description, FINEWEB_VIEW)
        for name, type_, unit, description in _OF_FINEWEB
    ),
    Signal(
        f"{refinedweb.VIEW}/removed_word_share",
        "float64",
        "share",
        refinedweb.SOURCE,
        "Words that the line corrections take; 1 for a text without words.",
        refinedweb.VIEW,
    ),
)
"""In the order of their views, for the columns of a run with all of `LINE_VIEWS`."""
