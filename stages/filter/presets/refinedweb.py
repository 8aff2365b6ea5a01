"""RefinedWeb's rules as DCLM runs them, and DCLM-Baseline: the same and a classifier."""

from __future__ import annotations

from stages.filter.presets import gopher
from stages.filter.presets.rule import Rule

_PAPER = "Penedo et al. 2023 (RefinedWeb, arXiv 2306.01116)"
_URLS = f"{_PAPER}, appendix G.1; lists are given"
_HEURISTICS = f"{_PAPER}; DCLM dclm_baseline_refinedweb.yaml"
_CLASSIFIER = (
    "Li et al. 2024 (DCLM, arXiv 2406.11794); fasttext_filter.yaml: OpenHermes 2.5 and ELI5 "
    "against RefinedWeb"
)

_URL_RULES = (
    Rule("refinedweb_blocked_domain", "url_block_lists", _URLS, maximum=0),
    Rule("refinedweb_strict_words", "url_strict_words", _URLS, maximum=0),
    Rule("refinedweb_hard_words", "url_hard_words", _URLS, maximum=0),
    Rule("refinedweb_soft_words", "url_soft_words", _URLS, maximum=1),
)
_REFINEDWEB = (
    *_URL_RULES,
    Rule("refinedweb_language_score", "language_score", _HEURISTICS, minimum=0.65),
    *gopher.DCLM,
    Rule("refinedweb_removed_words", "refinedweb/removed_word_share", _HEURISTICS, maximum=0.05),
)

PRESETS = {
    "url@refinedweb": _URL_RULES,
    "refinedweb": _REFINEDWEB,
    "dclm": (
        *_REFINEDWEB,
        Rule("dclm_quality", "quality_score", _CLASSIFIER, minimum=0.018112),
    ),
}
