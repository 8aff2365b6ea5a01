"""FineWeb-2: the rules of FineWeb and Gopher with other bounds for each language.

`fineweb_2.json` has the numbers of the languages that lid.176 names by two letters, derived from
the configs of FineWeb-2 at the commit named there. A language is known by the label of lid.176
(`de`) and by that of GlotLID (`deu_Latn`); FineWeb-2 took its language scores from GlotLID.
Its stop words by language are left out: `stop_words` counts one list for all languages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stages.filter.presets.rule import NOT_ASKED, Rule

_SOURCE = "Penedo et al. 2025 (FineWeb2, arXiv 2506.20920); fineweb-2 configs/*.yml"
_PIPELINE = "Penedo et al. 2025 (FineWeb2); fineweb-2-pipeline.py"
_LANGUAGES: Mapping[str, Mapping[str, Any]] = json.loads(
    Path(__file__).with_name("fineweb_2.json").read_text()
)["languages"]


def _below(name: str, signal: str, setting: str, place: int | None = None) -> Rule:
    """The rule that drops what lies above each language's bound."""
    return Rule(name, signal, _SOURCE, maximum=NOT_ASKED, by_language=_bounds(setting, place))


def _above(name: str, signal: str, setting: str) -> Rule:
    """The rule that drops what lies below each language's bound."""
    return Rule(name, signal, _SOURCE, minimum=NOT_ASKED, by_language=_bounds(setting, None))


def _bounds(setting: str, place: int | None) -> dict[str, float]:
    bounds: dict[str, float] = {}
    for label, numbers in _LANGUAGES.items():
        number = numbers[setting] if place is None else numbers[setting][place]
        bounds[label] = bounds[numbers["lid.176"]] = number
    return bounds


PRESETS = {
    "fineweb-2": (
        _above("fineweb_2_language_score", "language_score", "language_score"),
        _below("fineweb_2_duplicate_lines", "duplicate_line_share", "dup_line_frac"),
        *(
            _below(f"fineweb_2_top_{n}_gram", f"top_{n}_gram_character_share", "top_n_grams", n - 2)
            for n in (2, 3, 4)
        ),
        *(
            _below(
                f"fineweb_2_duplicate_{n}_grams",
                f"duplicate_{n}_gram_character_share",
                "dup_n_grams",
                n - 5,
            )
            for n in range(5, 11)
        ),
        _above("fineweb_2_few_ended_lines", "terminal_punctuation_line_share", "line_punct_thr"),
        Rule(
            "fineweb_2_duplicate_line_characters",
            "duplicate_filled_line_character_share",
            _PIPELINE,
            maximum=0.1,
        ),
        _below("fineweb_2_newlines", "newline_to_word_ratio", "new_line_ratio"),
        Rule("fineweb_2_few_words", "words", _PIPELINE, minimum=50),
        Rule("fineweb_2_many_words", "words", _PIPELINE, maximum=100_000),
        _above("fineweb_2_short_words", "mean_word_length", "min_avg_word_length"),
        _below("fineweb_2_long_words", "mean_word_length", "max_avg_word_length"),
        Rule("fineweb_2_hashes", "hash_to_word_ratio", _PIPELINE, maximum=0.1),
        Rule("fineweb_2_ellipses", "ellipsis_to_word_ratio", _PIPELINE, maximum=0.1),
        Rule("fineweb_2_bullet_lines", "bullet_line_share", _PIPELINE, maximum=0.9),
        Rule("fineweb_2_ellipsis_lines", "ellipsis_line_share", _PIPELINE, maximum=0.3),
        _above(
            "fineweb_2_few_alphabetic_words",
            "alphabetic_word_share",
            "max_non_alpha_words_ratio",
        ),
    ),
}
