"""Gopher's quality and repetition rules, as datatrove and as DCLM ask for them.

The two measure other things under the same numbers: datatrove counts the further copies of a line,
DCLM every copy; datatrove counts different stop words and the tokens of spaCy, DCLM occurrences and
words by white space, and has one limit for hash signs and ellipses together. The names of the
signals say whose definition they follow.
"""

from __future__ import annotations

from stages.filter.presets.rule import Rule

_PAPER = "Rae et al. 2021 (arXiv 2112.11446)"
_QUALITY = f"{_PAPER}, appendix A.1.1; datatrove gopher_quality_filter.py"
_REPETITION = f"{_PAPER}, table A1; datatrove gopher_repetition_filter.py"
_DCLM = f"{_PAPER}; DCLM content_filters.py and dclm_baseline_refinedweb.yaml"

TOP_GRAMS = ((2, 0.20), (3, 0.18), (4, 0.16))
DUPLICATE_GRAMS = ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.10))
"""Most share of characters by words of the n-gram; table A1."""

QUALITY = (
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
)

_PARAGRAPHS = (
    ("gopher_duplicate_paragraphs", "duplicate_paragraph_share", 0.3),
    ("gopher_duplicate_paragraph_characters", "duplicate_paragraph_character_share", 0.2),
)
_LINES = (
    ("gopher_duplicate_lines", "duplicate_line_share", 0.3),
    ("gopher_duplicate_line_characters", "duplicate_line_character_share", 0.2),
)
_GRAMS = (
    *((f"gopher_top_{n}_gram", f"top_{n}_gram_character_share", most) for n, most in TOP_GRAMS),
    *(
        (f"gopher_duplicate_{n}_grams", f"duplicate_{n}_gram_character_share", most)
        for n, most in DUPLICATE_GRAMS
    ),
)

REPETITION = tuple(
    Rule(name, signal, _REPETITION, maximum=most)
    for name, signal, most in (*_PARAGRAPHS, *_LINES, *_GRAMS)
)

_DCLM_QUALITY = (
    Rule("gopher_few_words@dclm", "words@dclm", _DCLM, minimum=50),
    Rule("gopher_many_words@dclm", "words@dclm", _DCLM, maximum=100_000),
    Rule("gopher_short_words@dclm", "mean_word_length@dclm", _DCLM, minimum=3),
    Rule("gopher_long_words@dclm", "mean_word_length@dclm", _DCLM, maximum=10),
    Rule("gopher_symbols@dclm", "symbol_to_word_ratio@dclm", _DCLM, maximum=0.1),
    Rule("gopher_bullet_lines@dclm", "bullet_line_share@dclm", _DCLM, maximum=0.9),
    Rule("gopher_ellipsis_lines@dclm", "ellipsis_line_share@dclm", _DCLM, maximum=0.3),
    Rule("gopher_few_alphabetic_words@dclm", "alphabetic_word_share@dclm", _DCLM, minimum=0.8),
    Rule("gopher_few_stop_words@dclm", "stop_words@dclm", _DCLM, minimum=2),
)
_DCLM_ORDER = (_LINES[0], _PARAGRAPHS[0], _LINES[1], _PARAGRAPHS[1], *_GRAMS)
DCLM = (
    *_DCLM_QUALITY,
    *(
        Rule(f"{name}@dclm", f"{signal}@dclm", _DCLM, maximum=most)
        for name, signal, most in _DCLM_ORDER
    ),
)

PRESETS = {
    "gopher_quality@datatrove": QUALITY,
    "gopher_repetition@datatrove": REPETITION,
    "gopher@datatrove": (*REPETITION, *QUALITY),
    "gopher@dclm": DCLM,
}
