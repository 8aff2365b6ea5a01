"""Published rule sets as data: a named threshold on a signal, and where the number comes from.

A preset is named for its rules and for the implementation whose definitions the signals follow.
Rules stand in the order in which that implementation checks them, so the first failing rule is the
reason that it would give.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError


@dataclass(frozen=True)
class Rule:
    """A document fails where the signal lies below `minimum` or above `maximum`.

    The bound itself passes, and so does a document for which the signal has no value.
    """

    name: str
    signal: str
    source: str
    minimum: float | None = None
    maximum: float | None = None

    def __post_init__(self) -> None:
        assert (self.minimum is None) != (self.maximum is None), self.name

    @property
    def threshold(self) -> float:
        """The one bound that the rule has."""
        bound = self.maximum if self.minimum is None else self.minimum
        assert bound is not None
        return bound

    def at(self, threshold: float) -> Rule:
        """The same rule with another bound."""
        if self.minimum is None:
            return replace(self, maximum=threshold)
        return replace(self, minimum=threshold)


_QUALITY = "Rae et al. 2021 (arXiv 2112.11446), appendix A.1.1; datatrove gopher_quality_filter.py"
_REPETITION = "Rae et al. 2021, table A1; datatrove gopher_repetition_filter.py"
_FINEWEB = "Penedo et al. 2024 (arXiv 2406.17557), section 3.5; datatrove fineweb_quality_filter.py"
_FINEWEB_LANGUAGE = "Penedo et al. 2024 (arXiv 2406.17557), section 3.1: fastText score of English"
_REFINEDWEB = "Penedo et al. 2023 (RefinedWeb, arXiv 2306.01116), appendix G.1; lists are given"
_STARCODER = (
    "Kocetkov et al. 2022 (arXiv 2211.15533), Li et al. 2023 (StarCoder, arXiv 2305.06161); "
    "bigcode-dataset preprocessing/filtering.py, basic_filters"
)
_OPT_OUT = (
    "Ingot: noai, a refused AI crawler, or TDM reservation "
    "(https://www.w3.org/community/reports/tdmrep/CG-FINAL-tdmrep-20240202/)"
)
_ROBOTS = "Ingot: https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag"
_TRUNCATED = "Ingot: WARC-Truncated (WARC 1.1, section 5.13), or an archive that ends early"
_CODE = "Ingot: after the kinds of file that GitHub Linguist leaves out of its counts"
_OWN = "Ingot: a page decoded with the wrong character set keeps the marks of it"

PRESETS: dict[str, tuple[Rule, ...]] = {
    "gopher_quality@datatrove": (
        Rule("gopher_few_words", "words", _QUALITY, minimum=50),
        Rule("gopher_many_words", "words", _QUALITY, maximum=100_000),
        Rule("gopher_short_words", "mean_word_length", _QUALITY, minimum=3),
        Rule("gopher_long_words", "mean_word_length", _QUALITY, maximum=10),
        Rule("gopher_hashes", "hash_to_word_ratio", _QUALITY, maximum=0.1),
        Rule("gopher_ellipses", "ellipsis_to_word_ratio", _QUALITY, maximum=0.1),
        Rule("gopher_bullet_lines", "bullet_line_share", _QUALITY, maximum=0.9),
        Rule("gopher_ellipsis_lines", "ellipsis_line_share", _QUALITY, maximum=0.3),
        Rule("gopher_few_alphabetic_words", "alphabetic_word_share", _QUALITY, minimum=0.8),
        Rule("gopher_few_stop_words", "stop_words", _QUALITY, minimum=2),
    ),
    "gopher_repetition@datatrove": (
        Rule("gopher_duplicate_paragraphs", "duplicate_paragraph_share", _REPETITION, maximum=0.3),
        Rule(
            "gopher_duplicate_paragraph_characters",
            "duplicate_paragraph_character_share",
            _REPETITION,
            maximum=0.2,
        ),
        Rule("gopher_duplicate_lines", "duplicate_line_share", _REPETITION, maximum=0.3),
        Rule(
            "gopher_duplicate_line_characters",
            "duplicate_line_character_share",
            _REPETITION,
            maximum=0.2,
        ),
        *(
            Rule(f"gopher_top_{n}_gram", f"top_{n}_gram_character_share", _REPETITION, maximum=most)
            for n, most in ((2, 0.20), (3, 0.18), (4, 0.16))
        ),
        *(
            Rule(
                f"gopher_duplicate_{n}_grams",
                f"duplicate_{n}_gram_character_share",
                _REPETITION,
                maximum=most,
            )
            for n, most in ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.10))
        ),
    ),
    "fineweb@code": (
        Rule("fineweb_few_ended_lines", "terminal_punctuation_line_share", _FINEWEB, minimum=0.12),
        Rule("fineweb_short_lines", "short_line_share", _FINEWEB, maximum=0.67),
        Rule(
            "fineweb_duplicate_line_characters",
            "duplicate_filled_line_character_share",
            _FINEWEB,
            maximum=0.01,
        ),
        Rule("fineweb_newlines", "newline_to_word_ratio", _FINEWEB, maximum=0.3),
    ),
    "language_score@fineweb": (
        Rule("fineweb_language_score", "language_score", _FINEWEB_LANGUAGE, minimum=0.65),
    ),
    "url@refinedweb": (
        Rule("refinedweb_blocked_domain", "url_block_lists", _REFINEDWEB, maximum=0),
        Rule("refinedweb_strict_words", "url_strict_words", _REFINEDWEB, maximum=0),
        Rule("refinedweb_hard_words", "url_hard_words", _REFINEDWEB, maximum=0),
        Rule("refinedweb_soft_words", "url_soft_words", _REFINEDWEB, maximum=1),
    ),
    "opt_out": (
        Rule("opt_out_of_ai", "ai_opt_out_marks", _OPT_OUT, maximum=0),
        Rule("opt_out_of_robots", "robots_noindex", _ROBOTS, maximum=0),
    ),
    "truncated": (Rule("truncated_record", "is_truncated", _TRUNCATED, maximum=0),),
    "starcoder": (
        Rule("starcoder_long_line", "code_max_line_length", _STARCODER, maximum=1000),
        Rule("starcoder_long_lines", "code_mean_line_length", _STARCODER, maximum=100),
        Rule("starcoder_few_letters", "code_alphanumeric_share", _STARCODER, minimum=0.25),
    ),
    "code_marks": (
        Rule("code_near_binary", "near_binary_share", _CODE, maximum=0.5),
        Rule("code_minified", "minified", _CODE, maximum=0),
        Rule("code_generated", "generated", _CODE, maximum=0),
        Rule("code_vendored", "vendored", _CODE, maximum=0),
    ),
    "garbled": (
        Rule("garbled_replacement_characters", "replacement_character_share", _OWN, maximum=0.001),
    ),
}


def rules_of(presets: tuple[str, ...], thresholds: dict[str, float]) -> tuple[Rule, ...]:
    """The rules of `presets` in order, with the bounds that `thresholds` changes by rule name.

    UsageError if a preset is unknown or named twice.
    """
    for preset in presets:
        if preset not in PRESETS:
            raise UsageError(f"no rule preset '{preset}'{did_you_mean(preset, PRESETS)}")
    if len(set(presets)) < len(presets):
        raise UsageError(f"a rule preset is named twice: {', '.join(presets)}")
    rules = [rule for preset in presets for rule in PRESETS[preset]]
    return tuple(
        rule.at(thresholds[rule.name]) if rule.name in thresholds else rule for rule in rules
    )
