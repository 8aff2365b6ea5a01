"""NeMo Curator's heuristics for English, as far as Ingot measures what they ask for.

Left out, for there is no such signal: shares of symbols, digits, URLs, white space and parentheses,
boilerplate phrases, sentences without end mark, and the longest word.
"""

from __future__ import annotations

from stages.filter.presets.gopher import DUPLICATE_GRAMS, TOP_GRAMS
from stages.filter.presets.rule import Rule

_SOURCE = "NeMo Curator heuristic_filter_english_pipeline.yaml"

# Curator keeps unique shares of at least 0.7 and 0.8; the signals are shares of further copies.
PRESETS = {
    "curator-english": (
        Rule("curator_duplicate_lines", "duplicate_line_share", _SOURCE, maximum=0.3),
        Rule("curator_duplicate_paragraphs", "duplicate_paragraph_share", _SOURCE, maximum=0.3),
        Rule(
            "curator_duplicate_line_characters",
            "duplicate_line_character_share",
            _SOURCE,
            maximum=0.2,
        ),
        Rule(
            "curator_duplicate_paragraph_characters",
            "duplicate_paragraph_character_share",
            _SOURCE,
            maximum=0.2,
        ),
        Rule("curator_few_words", "words", _SOURCE, minimum=50),
        Rule("curator_many_words", "words", _SOURCE, maximum=100_000),
        Rule("curator_few_alphabetic_words", "alphabetic_word_share", _SOURCE, minimum=0.8),
        Rule("curator_few_common_words", "stop_words@dclm", _SOURCE, minimum=2),
        Rule("curator_short_words", "mean_word_length", _SOURCE, minimum=3),
        Rule("curator_long_words", "mean_word_length", _SOURCE, maximum=10),
        Rule("curator_ellipsis_lines", "ellipsis_line_share", _SOURCE, maximum=0.3),
        *(
            Rule(f"curator_top_{n}_gram", f"top_{n}_gram_character_share", _SOURCE, maximum=most)
            for n, most in TOP_GRAMS
        ),
        *(
            Rule(
                f"curator_duplicate_{n}_grams",
                f"duplicate_{n}_gram_character_share",
                _SOURCE,
                maximum=most,
            )
            for n, most in DUPLICATE_GRAMS
        ),
        Rule("curator_bullet_lines", "bullet_line_share", _SOURCE, maximum=0.9),
    ),
}
