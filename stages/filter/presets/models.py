"""Rules of CCNet and RedPajama-V2, whose signals come from models and word lists in part."""

from __future__ import annotations

from stages.filter.presets.rule import Rule

_CCNET = "Wenzek et al. 2020 (CCNet, arXiv 1911.00359); cc_net mine.py, perplexity.py"
_REDPAJAMA = "Together 2023, RedPajama-V2 data card: rules after Gopher"
_REDPAJAMA_C4 = "Together 2023, RedPajama-V2 announcement: rules after C4"

_CCNET_RULES = (
    Rule("ccnet_short", "characters", _CCNET, minimum=300),
    Rule("ccnet_language_score", "language_score", _CCNET, minimum=0.5),
)

PRESETS = {
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
