"""FineWeb-2's rules: those of FineWeb and Gopher with other bounds for each language.

`fineweb_2.json` has the numbers of the languages that lid.176 names by two letters, derived from
the configs of FineWeb-2 at the commit named there. A language is known by its label in lid.176
(`de`) and in GlotLID (`deu_Latn`); FineWeb-2 took its language scores from GlotLID. `fineweb-2` has
the words of `signals.splitter`, and no rule on stop words: `stop_words` counts one list for all
languages. `fineweb-2@code` has the words of each language's own splitter, and its stop words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from stages.filter.rules import NOT_ASKED, Rule

_CONFIGS = "Penedo et al. 2025 (FineWeb2, arXiv 2506.20920); fineweb-2 configs/*.yml"
_PIPELINE = "Penedo et al. 2025 (FineWeb2); fineweb-2-pipeline.py"
_LANGUAGES: Mapping[str, Mapping[str, Any]] = json.loads(
    Path(__file__).with_name("fineweb_2.json").read_text()
)["languages"]


def _by_language(
    name: str, signal: str, setting: str, place: int | None = None, *, is_minimum: bool = False
) -> Rule:
    """The rule with each language's bound: the number of a setting, or the one at a place in it."""
    bounds: dict[str, float] = {}
    for label, numbers in _LANGUAGES.items():
        number = numbers[setting] if place is None else numbers[setting][place]
        bounds[label] = bounds[numbers["lid.176"]] = number
    if is_minimum:
        return Rule(name, signal, _CONFIGS, minimum=NOT_ASKED, by_language=bounds)
    return Rule(name, signal, _CONFIGS, maximum=NOT_ASKED, by_language=bounds)


_REPETITION = (
    *(
        _by_language(
            f"fineweb_2_top_{n}_gram", f"top_{n}_gram_character_share", "top_n_grams", n - 2
        )
        for n in (2, 3, 4)
    ),
    *(
        _by_language(
            f"fineweb_2_duplicate_{n}_grams",
            f"duplicate_{n}_gram_character_share",
            "dup_n_grams",
            n - 5,
        )
        for n in range(5, 11)
    ),
)
_WORDS = (
    Rule("fineweb_2_few_words", "words", _PIPELINE, minimum=50),
    Rule("fineweb_2_many_words", "words", _PIPELINE, maximum=100_000),
    _by_language(
        "fineweb_2_short_words", "mean_word_length", "min_avg_word_length", is_minimum=True
    ),
    _by_language("fineweb_2_long_words", "mean_word_length", "max_avg_word_length"),
    Rule("fineweb_2_hashes", "hash_to_word_ratio", _PIPELINE, maximum=0.1),
    Rule("fineweb_2_ellipses", "ellipsis_to_word_ratio", _PIPELINE, maximum=0.1),
)
_NEWLINES = _by_language("fineweb_2_newlines", "newline_to_word_ratio", "new_line_ratio")
_ALPHABETIC = _by_language(
    "fineweb_2_few_alphabetic_words",
    "alphabetic_word_share",
    "max_non_alpha_words_ratio",
    is_minimum=True,
)
_STOP_WORDS = Rule("fineweb_2_few_stop_words", "stop_words", _PIPELINE, minimum=2)


def _rules(by_own_words: Callable[[Rule], Rule]) -> tuple[Rule, ...]:
    """The rules in the order of the pipeline; `by_own_words` is applied to those about words."""
    return (
        _by_language(
            "fineweb_2_language_score", "language_score", "language_score", is_minimum=True
        ),
        _by_language("fineweb_2_duplicate_lines", "duplicate_line_share", "dup_line_frac"),
        *map(by_own_words, _REPETITION),
        _by_language(
            "fineweb_2_few_ended_lines",
            "terminal_punctuation_line_share",
            "line_punct_thr",
            is_minimum=True,
        ),
        Rule(
            "fineweb_2_duplicate_line_characters",
            "duplicate_filled_line_character_share",
            _PIPELINE,
            maximum=0.1,
        ),
        by_own_words(_NEWLINES),
        *map(by_own_words, _WORDS),
        Rule("fineweb_2_bullet_lines", "bullet_line_share", _PIPELINE, maximum=0.9),
        Rule("fineweb_2_ellipsis_lines", "ellipsis_line_share", _PIPELINE, maximum=0.3),
        by_own_words(_ALPHABETIC),
    )


def _by_language_words(rule: Rule) -> Rule:
    """The rule on the words of the language's own splitter."""
    return replace(rule, name=f"{rule.name}@code", signal=f"{rule.signal}@fineweb-2")


FINEWEB_2_PRESETS = {
    "fineweb-2": _rules(lambda rule: rule),
    "fineweb-2@code": (
        *_rules(_by_language_words),
        _by_language_words(_STOP_WORDS),
    ),
}
