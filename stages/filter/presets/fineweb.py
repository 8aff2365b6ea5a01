"""FineWeb's rules, alone and in the chain that made FineWeb."""

from __future__ import annotations

from dataclasses import replace

from stages.filter.presets import c4, gopher
from stages.filter.presets.rule import Rule

_PAPER = "Penedo et al. 2024 (FineWeb, arXiv 2406.17557)"
_CODE = f"{_PAPER}, section 3.5; datatrove fineweb_quality_filter.py"
_BLOG = f"{_PAPER}, section 3.5: the share of duplicated lines as it is described, 0.1"
_LANGUAGE = f"{_PAPER}, section 3.1: fastText score of English"
_CHAIN = f"{_PAPER}; datatrove examples/fineweb.py: on the text that C4's line rules leave"

_ENDED = Rule("fineweb_few_ended_lines", "terminal_punctuation_line_share", _CODE, minimum=0.12)
_SHORT = Rule("fineweb_short_lines", "short_line_share", _CODE, maximum=0.67)
_NEWLINES = Rule("fineweb_newlines", "newline_to_word_ratio", _CODE, maximum=0.3)
_DUPLICATES = Rule(
    "fineweb_duplicate_line_characters",
    "duplicate_filled_line_character_share",
    _CODE,
    maximum=0.01,
)
_DUPLICATES_BLOG = Rule(
    "fineweb_duplicate_line_characters@blog",
    "duplicate_filled_line_character_share",
    _BLOG,
    maximum=0.1,
)
_CODE_RULES = (_ENDED, _SHORT, _DUPLICATES, _NEWLINES)


def _after_c4(rule: Rule) -> Rule:
    """The rule on the text that C4's line rules leave."""
    signal = f"c4@fineweb/{rule.signal}"
    return replace(rule, name=f"{rule.name}@chain", signal=signal, source=_CHAIN)


PRESETS = {
    "fineweb@code": _CODE_RULES,
    "fineweb@blog": (_ENDED, _SHORT, _DUPLICATES_BLOG, _NEWLINES),
    "fineweb_chain@datatrove": (
        *gopher.REPETITION,
        *gopher.QUALITY,
        *c4.FINEWEB,
        *(_after_c4(rule) for rule in _CODE_RULES),
    ),
    "language_score@fineweb": (
        Rule("fineweb_language_score", "language_score", _LANGUAGE, minimum=0.65),
    ),
}
