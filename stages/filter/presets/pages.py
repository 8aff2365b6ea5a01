"""Rules on what a page, an archive or a file of code says of itself, and on broken text."""

from __future__ import annotations

from stages.filter.presets.rule import Rule

_OPT_OUT = (
    "Ingot: noai, a refused AI crawler, or TDM reservation "
    "(https://www.w3.org/community/reports/tdmrep/CG-FINAL-tdmrep-20240202/)"
)
_ROBOTS = "Ingot: https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag"
_TRUNCATED = "Ingot: WARC-Truncated (WARC 1.1, section 5.13), or an archive that ends early"
_STARCODER = (
    "Kocetkov et al. 2022 (arXiv 2211.15533), Li et al. 2023 (StarCoder, arXiv 2305.06161); "
    "bigcode-dataset preprocessing/filtering.py, basic_filters"
)
_CODE = "Ingot: after the kinds of file that GitHub Linguist leaves out of its counts"
_GARBLED = "Ingot: a page decoded with the wrong character set keeps the marks of it"
_GUIDE = "Ingot: the three rules of the guide to pretraining that it began with"
_DOLMA = "Soldaini et al. 2024 (Dolma, arXiv 2402.00159); dolma configs/dolma-v1_6/mixing"

PRESETS = {
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
        Rule(
            "garbled_replacement_characters",
            "replacement_character_share",
            _GARBLED,
            maximum=0.001,
        ),
    ),
    "pretraining-guide": (
        Rule("guide_short", "characters", _GUIDE, minimum=200),
        Rule("guide_special_symbols", "special_symbol_share", _GUIDE, maximum=0.3),
        Rule("guide_equal_lines", "equal_lines_in_a_row", _GUIDE, maximum=2),
    ),
    "periodic_repetition": (
        Rule("dolma_periodic_repetition", "most_periodic_repetitions", _DOLMA, maximum=99),
    ),
}
