"""Published rule sets as data: a named bound on a signal, and where the number comes from.

A preset is named for its rules and, after `@`, for the implementation whose definitions the signals
follow. Rules are in the order in which that implementation checks them, so the first failing rule
is the reason that it would give. Presets share rules: one name is one rule everywhere.

Gopher: datatrove and DCLM measure different things with the same thresholds: datatrove counts the
repeats of a line without its first occurrence, DCLM every occurrence; datatrove counts distinct
stop words and spaCy's tokens, DCLM occurrences and words separated by white space, and has one
limit for hash signs and ellipses together. The names of the signals say whose definition they
follow.

C4: sentences, braces and fillers are counted in the lines that its line rules leave; those line
rules are views, so each preset has signals of its own view. `c4@code` needs 5 words a line and
3 sentences, as the code that made the corpus; `c4@datatrove` needs 3 words and 5 sentences, as the
first version of the paper; `c4@fineweb` is the same without the rule on terminal punctuation.

NeMo Curator: its heuristics for English as far as Ingot measures their signals. Left out, because
there is no such signal: shares of symbols, digits, URLs, white space and parentheses, boilerplate
phrases, sentences without end mark, and the longest word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from stages.filter.fineweb_2 import FINEWEB_2_PRESETS
from stages.filter.rules import Rule

_GOPHER_PAPER = "Rae et al. 2021 (arXiv 2112.11446)"
_GOPHER = f"{_GOPHER_PAPER}, appendix A.1.1; datatrove gopher_quality_filter.py"
_GOPHER_TABLE = f"{_GOPHER_PAPER}, table A1; datatrove gopher_repetition_filter.py"
_DCLM_CODE = f"{_GOPHER_PAPER}; DCLM content_filters.py and dclm_baseline_refinedweb.yaml"

_TOP_GRAMS = ((2, 0.20), (3, 0.18), (4, 0.16))
_DUPLICATE_GRAMS = ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.10))
"""Most share of characters by words of the n-gram; table A1."""

_GOPHER_QUALITY = (
    Rule("gopher_few_words", "words", _GOPHER, minimum=50),
    Rule("gopher_many_words", "words", _GOPHER, maximum=100_000),
    Rule("gopher_short_words", "mean_word_length", _GOPHER, minimum=3),
    Rule("gopher_long_words", "mean_word_length", _GOPHER, maximum=10),
    Rule("gopher_hashes", "hash_to_word_ratio", _GOPHER, maximum=0.1),
    Rule("gopher_ellipses", "ellipsis_to_word_ratio", _GOPHER, maximum=0.1),
    Rule("gopher_bullet_lines", "bullet_line_share", _GOPHER, maximum=0.9),
    Rule("gopher_ellipsis_lines", "ellipsis_line_share", _GOPHER, maximum=0.3),
    Rule("gopher_few_alphabetic_words", "alphabetic_word_share", _GOPHER, minimum=0.8),
    Rule("gopher_few_stop_words", "stop_words", _GOPHER, minimum=2),
)

_PARAGRAPH_BOUNDS = (
    ("gopher_duplicate_paragraphs", "duplicate_paragraph_share", 0.3),
    ("gopher_duplicate_paragraph_characters", "duplicate_paragraph_character_share", 0.2),
)
_LINE_BOUNDS = (
    ("gopher_duplicate_lines", "duplicate_line_share", 0.3),
    ("gopher_duplicate_line_characters", "duplicate_line_character_share", 0.2),
)
_GRAM_BOUNDS = (
    *((f"gopher_top_{n}_gram", f"top_{n}_gram_character_share", most) for n, most in _TOP_GRAMS),
    *(
        (f"gopher_duplicate_{n}_grams", f"duplicate_{n}_gram_character_share", most)
        for n, most in _DUPLICATE_GRAMS
    ),
)

_GOPHER_REPETITION = tuple(
    Rule(name, signal, _GOPHER_TABLE, maximum=most)
    for name, signal, most in (*_PARAGRAPH_BOUNDS, *_LINE_BOUNDS, *_GRAM_BOUNDS)
)

_DCLM_QUALITY = (
    Rule("gopher_few_words@dclm", "words@dclm", _DCLM_CODE, minimum=50),
    Rule("gopher_many_words@dclm", "words@dclm", _DCLM_CODE, maximum=100_000),
    Rule("gopher_short_words@dclm", "mean_word_length@dclm", _DCLM_CODE, minimum=3),
    Rule("gopher_long_words@dclm", "mean_word_length@dclm", _DCLM_CODE, maximum=10),
    Rule("gopher_symbols@dclm", "symbol_to_word_ratio@dclm", _DCLM_CODE, maximum=0.1),
    Rule("gopher_bullet_lines@dclm", "bullet_line_share@dclm", _DCLM_CODE, maximum=0.9),
    Rule("gopher_ellipsis_lines@dclm", "ellipsis_line_share@dclm", _DCLM_CODE, maximum=0.3),
    Rule("gopher_few_alphabetic_words@dclm", "alphabetic_word_share@dclm", _DCLM_CODE, minimum=0.8),
    Rule("gopher_few_stop_words@dclm", "stop_words@dclm", _DCLM_CODE, minimum=2),
)
_DCLM_ORDER = (
    _LINE_BOUNDS[0],
    _PARAGRAPH_BOUNDS[0],
    _LINE_BOUNDS[1],
    _PARAGRAPH_BOUNDS[1],
    *_GRAM_BOUNDS,
)
_DCLM_RULES = (
    *_DCLM_QUALITY,
    *(
        Rule(f"{name}@dclm", f"{signal}@dclm", _DCLM_CODE, maximum=most)
        for name, signal, most in _DCLM_ORDER
    ),
)

_GOPHER_PRESETS = {
    "gopher_quality@datatrove": _GOPHER_QUALITY,
    "gopher_repetition@datatrove": _GOPHER_REPETITION,
    "gopher@datatrove": (*_GOPHER_REPETITION, *_GOPHER_QUALITY),
    "gopher@dclm": _DCLM_RULES,
}


_C4_CODE = "Raffel et al. 2020 (arXiv 1910.10683); tensorflow-datasets text/c4_utils.py"
_C4_DATATROVE = "Raffel et al. 2020, section 2.2; datatrove c4_filters.py"
_C4_CHAIN = "datatrove examples/fineweb.py: C4 without terminal punctuation"
_MC4 = "Xue et al. 2021 (mC4, arXiv 2010.11934), section 3.1; datatrove C4ParagraphFilter"


def _c4_line_rules(view: str, source: str, sentences: int) -> tuple[Rule, ...]:
    implementation = view.split("@")[1]
    return (
        Rule(f"c4_lorem_ipsum@{implementation}", f"{view}/lorem_ipsum_lines", source, maximum=0),
        Rule(f"c4_curly_braces@{implementation}", f"{view}/curly_brace_lines", source, maximum=0),
        Rule(f"c4_few_sentences@{implementation}", f"{view}/sentences", source, minimum=sentences),
    )


_C4_FINEWEB = _c4_line_rules("c4@fineweb", _C4_CHAIN, 5)

_C4_PRESETS = {
    "c4@code": (
        Rule("c4_long_page", "characters", _C4_CODE, maximum=190_000),
        *_c4_line_rules("c4@code", _C4_CODE, 3),
    ),
    "c4@datatrove": _c4_line_rules("c4@datatrove", _C4_DATATROVE, 5),
    "c4@fineweb": _C4_FINEWEB,
    "c4_bad_words": (Rule("c4_bad_words", "bad_words", _C4_CODE, maximum=0),),
    "mc4": (Rule("mc4_few_long_lines", "lines_of_200_characters", _MC4, minimum=3),),
}


_FINEWEB_PAPER = "Penedo et al. 2024 (FineWeb, arXiv 2406.17557)"
_FINEWEB_CODE = f"{_FINEWEB_PAPER}, section 3.5; datatrove fineweb_quality_filter.py"
_FINEWEB_BLOG = (
    f"{_FINEWEB_PAPER}, section 3.5: the share of duplicated lines as it is described, 0.1"
)
_FINEWEB_LANGUAGE = f"{_FINEWEB_PAPER}, section 3.1: fastText score of English"
_FINEWEB_CHAIN = (
    f"{_FINEWEB_PAPER}; datatrove examples/fineweb.py: on the text that C4's line rules leave"
)

_ENDED_LINES = Rule(
    "fineweb_few_ended_lines", "terminal_punctuation_line_share", _FINEWEB_CODE, minimum=0.12
)
_SHORT_LINES = Rule("fineweb_short_lines", "short_line_share", _FINEWEB_CODE, maximum=0.67)
_NEWLINES = Rule("fineweb_newlines", "newline_to_word_ratio", _FINEWEB_CODE, maximum=0.3)
_DUPLICATE_CHARACTERS = Rule(
    "fineweb_duplicate_line_characters",
    "duplicate_filled_line_character_share",
    _FINEWEB_CODE,
    maximum=0.01,
)
_DUPLICATE_CHARACTERS_BLOG = Rule(
    "fineweb_duplicate_line_characters@blog",
    "duplicate_filled_line_character_share",
    _FINEWEB_BLOG,
    maximum=0.1,
)
_FINEWEB_RULES = (_ENDED_LINES, _SHORT_LINES, _DUPLICATE_CHARACTERS, _NEWLINES)


def _after_c4(rule: Rule) -> Rule:
    """The rule on the text that C4's line rules leave."""
    signal = f"c4@fineweb/{rule.signal}"
    return replace(rule, name=f"{rule.name}@chain", signal=signal, source=_FINEWEB_CHAIN)


_FINEWEB_PRESETS = {
    "fineweb@code": _FINEWEB_RULES,
    "fineweb@blog": (_ENDED_LINES, _SHORT_LINES, _DUPLICATE_CHARACTERS_BLOG, _NEWLINES),
    "fineweb_chain@datatrove": (
        *_GOPHER_REPETITION,
        *_GOPHER_QUALITY,
        *_C4_FINEWEB,
        *(_after_c4(rule) for rule in _FINEWEB_RULES),
    ),
    "language_score@fineweb": (
        Rule("fineweb_language_score", "language_score", _FINEWEB_LANGUAGE, minimum=0.65),
    ),
}


_REFINEDWEB_PAPER = "Penedo et al. 2023 (RefinedWeb, arXiv 2306.01116)"
_REFINEDWEB_URLS = f"{_REFINEDWEB_PAPER}, appendix G.1; lists are given"
_HEURISTICS = f"{_REFINEDWEB_PAPER}; DCLM dclm_baseline_refinedweb.yaml"
_DCLM_CLASSIFIER = (
    "Li et al. 2024 (DCLM, arXiv 2406.11794); fasttext_filter.yaml: OpenHermes 2.5 and ELI5 "
    "against RefinedWeb"
)

_URL_RULES = (
    Rule("refinedweb_blocked_domain", "url_block_lists", _REFINEDWEB_URLS, maximum=0),
    Rule("refinedweb_strict_words", "url_strict_words", _REFINEDWEB_URLS, maximum=0),
    Rule("refinedweb_hard_words", "url_hard_words", _REFINEDWEB_URLS, maximum=0),
    Rule("refinedweb_soft_words", "url_soft_words", _REFINEDWEB_URLS, maximum=1),
)
_REFINEDWEB = (
    *_URL_RULES,
    Rule("refinedweb_language_score", "language_score", _HEURISTICS, minimum=0.65),
    *_DCLM_RULES,
    Rule("refinedweb_removed_words", "refinedweb/removed_word_share", _HEURISTICS, maximum=0.05),
)

_REFINEDWEB_PRESETS = {
    "url@refinedweb": _URL_RULES,
    "refinedweb": _REFINEDWEB,
    "dclm": (
        *_REFINEDWEB,
        Rule("dclm_quality", "quality_score", _DCLM_CLASSIFIER, minimum=0.018112),
    ),
}


_CCNET = "Wenzek et al. 2020 (CCNet, arXiv 1911.00359); cc_net mine.py, perplexity.py"
_REDPAJAMA = "Together 2023, RedPajama-V2 data card: rules after Gopher"
_REDPAJAMA_C4 = "Together 2023, RedPajama-V2 announcement: rules after C4"

_CCNET_RULES = (
    Rule("ccnet_short", "characters", _CCNET, minimum=300),
    Rule("ccnet_language_score", "language_score", _CCNET, minimum=0.5),
)

_MODEL_PRESETS = {
    "ccnet": (
        *_CCNET_RULES,
        Rule("ccnet_tail", "perplexity_bucket", _CCNET, allowed=("head", "middle")),
    ),
    "ccnet_head": (
        *_CCNET_RULES,
        Rule("ccnet_not_head", "perplexity_bucket", _CCNET, allowed=("head",)),
    ),
    "redpajama-v2": (
        Rule("redpajama_few_words", "rps_doc_word_count", _REDPAJAMA, minimum=50),
        Rule("redpajama_many_words", "rps_doc_word_count", _REDPAJAMA, maximum=10_000),
        Rule("redpajama_short_words", "rps_doc_mean_word_length", _REDPAJAMA, minimum=3),
        Rule("redpajama_long_words", "rps_doc_mean_word_length", _REDPAJAMA, maximum=10),
        Rule("redpajama_symbols", "rps_doc_symbol_to_word_ratio", _REDPAJAMA, maximum=0.1),
        Rule("redpajama_bullets", "rps_lines_start_with_bulletpoint", _REDPAJAMA, maximum=0.9),
        Rule("redpajama_top_2_gram", "rps_doc_frac_chars_top_2gram", _REDPAJAMA, maximum=0.2),
    ),
    "redpajama-v2_c4": (
        Rule("redpajama_few_sentences", "rps_doc_num_sentences", _REDPAJAMA_C4, minimum=3),
        Rule("redpajama_bad_words", "bad_words", _REDPAJAMA_C4, maximum=0),
        Rule("redpajama_lorem_ipsum", "rps_doc_lorem_ipsum", _REDPAJAMA_C4, maximum=0),
    ),
}


_CURATOR = "NeMo Curator heuristic_filter_english_pipeline.yaml"

# Curator keeps unique shares of at least 0.7 and 0.8; the signals are shares of further copies.
_CURATOR_PRESETS = {
    "curator-english": (
        Rule("curator_duplicate_lines", "duplicate_line_share", _CURATOR, maximum=0.3),
        Rule("curator_duplicate_paragraphs", "duplicate_paragraph_share", _CURATOR, maximum=0.3),
        Rule(
            "curator_duplicate_line_characters",
            "duplicate_line_character_share",
            _CURATOR,
            maximum=0.2,
        ),
        Rule(
            "curator_duplicate_paragraph_characters",
            "duplicate_paragraph_character_share",
            _CURATOR,
            maximum=0.2,
        ),
        Rule("curator_few_words", "words", _CURATOR, minimum=50),
        Rule("curator_many_words", "words", _CURATOR, maximum=100_000),
        Rule("curator_few_alphabetic_words", "alphabetic_word_share", _CURATOR, minimum=0.8),
        Rule("curator_few_common_words", "stop_words@dclm", _CURATOR, minimum=2),
        Rule("curator_short_words", "mean_word_length", _CURATOR, minimum=3),
        Rule("curator_long_words", "mean_word_length", _CURATOR, maximum=10),
        Rule("curator_ellipsis_lines", "ellipsis_line_share", _CURATOR, maximum=0.3),
        *(
            Rule(f"curator_top_{n}_gram", f"top_{n}_gram_character_share", _CURATOR, maximum=most)
            for n, most in _TOP_GRAMS
        ),
        *(
            Rule(
                f"curator_duplicate_{n}_grams",
                f"duplicate_{n}_gram_character_share",
                _CURATOR,
                maximum=most,
            )
            for n, most in _DUPLICATE_GRAMS
        ),
        Rule("curator_bullet_lines", "bullet_line_share", _CURATOR, maximum=0.9),
    ),
}


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
_CODE_MARKS = "Ingot: after the kinds of file that GitHub Linguist leaves out of its counts"
_GARBLED = "Ingot: a page decoded with the wrong character set keeps the marks of it"
_GUIDE = "Ingot: the three rules of the guide to pretraining that it began with"
_DOLMA = "Soldaini et al. 2024 (Dolma, arXiv 2402.00159); dolma configs/dolma-v1_6/mixing"

_PAGE_PRESETS = {
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
        Rule("code_near_binary", "near_binary_share", _CODE_MARKS, maximum=0.5),
        Rule("code_minified", "minified", _CODE_MARKS, maximum=0),
        Rule("code_generated", "generated", _CODE_MARKS, maximum=0),
        Rule("code_vendored", "vendored", _CODE_MARKS, maximum=0),
    ),
    "garbled": (
        Rule(
            "garbled_replacement_characters", "replacement_character_share", _GARBLED, maximum=0.001
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


PRESETS: dict[str, tuple[Rule, ...]] = {
    **_GOPHER_PRESETS,
    **_C4_PRESETS,
    **_FINEWEB_PRESETS,
    **FINEWEB_2_PRESETS,
    **_REFINEDWEB_PRESETS,
    **_MODEL_PRESETS,
    **_CURATOR_PRESETS,
    **_PAGE_PRESETS,
}

PRESET_NOTES: Mapping[str, str] = {
    "fineweb-2": "outside English, words are not split as FineWeb-2's authors split them. They "
    "took datatrove's splitter of each language (jieba for Chinese, Sudachi for Japanese, Kiwi for "
    "Korean, PyThaiNLP for Thai, Stanza or spaCy for others); signals are of `signals.splitter`, "
    "by default Unicode's rules, where each Han, Hiragana, Thai, Lao, Khmer or Myanmar letter is a "
    "word. Bounds on words, word length and n-grams therefore act differently there; "
    "`fineweb-2@code` asks for words as they had them",
    "fineweb-2@code": "needs `language_splitters` of `signals` (extra `splitters`): a document in "
    "a language that is not named there is judged by the words of `signals.splitter`, without the "
    "rule on stop words",
}
"""Preset → what to know before it is used; shown by `ingot presets` and docs/stages/filter.md."""


def preset_rules(name: str) -> tuple[Rule, ...]:
    """The rules of a preset in order. UsageError for an unknown name."""
    if name not in PRESETS:
        raise UsageError(f"no rule preset '{name}'{did_you_mean(name, PRESETS)}")
    return PRESETS[name]
