from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from artifacts_schema.errors import UsageError
from stages.filter import presets
from stages.filter.config import FilterConfig, PersonalDataPolicy
from stages.filter.presets import PRESETS
from stages.filter.rules import PERSONAL_DATA_RULES, Rule
from stages.signals.columns import ColumnChoice, choose_signals

N_GRAMS = {
    "top_2_gram_character_share": [0.20],
    "top_3_gram_character_share": [0.18],
    "top_4_gram_character_share": [0.16],
    "duplicate_5_gram_character_share": [0.15],
    "duplicate_6_gram_character_share": [0.14],
    "duplicate_7_gram_character_share": [0.13],
    "duplicate_8_gram_character_share": [0.12],
    "duplicate_9_gram_character_share": [0.11],
    "duplicate_10_gram_character_share": [0.10],
}
REPETITION = {
    "duplicate_line_share": [0.30],
    "duplicate_paragraph_share": [0.30],
    "duplicate_line_character_share": [0.20],
    "duplicate_paragraph_character_share": [0.20],
    **N_GRAMS,
}
"""Rae et al. 2021, table A1."""
QUALITY = {
    "words": [50, 100_000],
    "mean_word_length": [3, 10],
    "hash_to_word_ratio": [0.1],
    "ellipsis_to_word_ratio": [0.1],
    "bullet_line_share": [0.9],
    "ellipsis_line_share": [0.3],
    "alphabetic_word_share": [0.8],
    "stop_words": [2],
}
"""Rae et al. 2021, appendix A.1.1, "Quality filtering"."""


def bounds(preset: str, rules: tuple[Rule, ...] = ()) -> dict[str, list[float]]:
    """Bounds by signal, the lower one first."""
    found: dict[str, list[float]] = {}
    for rule in rules or PRESETS[preset]:
        found.setdefault(rule.signal, []).append(rule.threshold)
    return found


def test_gopher_has_the_published_thresholds_under_both_definitions() -> None:
    assert bounds("gopher_quality@datatrove") == QUALITY
    assert bounds("gopher_repetition@datatrove") == REPETITION
    both = {**QUALITY, **REPETITION, "symbol_to_word_ratio": [0.1]}
    # symbol_ratio_filter: one limit for hash signs and ellipses together.
    del both["hash_to_word_ratio"], both["ellipsis_to_word_ratio"]
    assert bounds("gopher@dclm") == {f"{name}@dclm": found for name, found in both.items()}


def test_gopher_runs_in_the_order_of_fineweb() -> None:
    # datatrove examples/fineweb.py: GopherRepetitionFilter, then GopherQualityFilter.
    parts = PRESETS["gopher_repetition@datatrove"] + PRESETS["gopher_quality@datatrove"]
    assert PRESETS["gopher@datatrove"] == parts
    # gopher_repetition_filter.py checks paragraphs, lines, top n-grams, duplicate n-grams.
    signals = [rule.signal for rule in PRESETS["gopher_repetition@datatrove"]]
    assert signals[:4] == [
        "duplicate_paragraph_share",
        "duplicate_paragraph_character_share",
        "duplicate_line_share",
        "duplicate_line_character_share",
    ]
    assert signals[4:] == list(N_GRAMS)
    # content_filters.py massive_web_repetition_filters: lines, paragraphs, then by characters.
    assert [rule.signal for rule in PRESETS["gopher@dclm"]][9:13] == [
        "duplicate_line_share@dclm",
        "duplicate_paragraph_share@dclm",
        "duplicate_line_character_share@dclm",
        "duplicate_paragraph_character_share@dclm",
    ]


def test_c4_asks_for_three_sentences_in_the_code_and_five_in_datatrove() -> None:
    # c4_utils.py: _MIN_NUM_SENTENCES 3, is_valid_length 1.9e5; c4_filters.py: min_num_sentences 5.
    assert bounds("c4@code") == {
        "characters": [190_000],
        "c4@code/lorem_ipsum_lines": [0],
        "c4@code/curly_brace_lines": [0],
        "c4@code/sentences": [3],
    }
    for view in ("c4@datatrove", "c4@fineweb"):
        found = bounds(view)
        assert found[f"{view}/sentences"] == [5]
        assert sorted(found) == [
            f"{view}/curly_brace_lines", f"{view}/lorem_ipsum_lines", f"{view}/sentences",
        ]  # fmt: skip
    # C4ParagraphFilter: three lines of at least 200 characters.
    assert bounds("mc4") == {"lines_of_200_characters": [3]}


def test_fineweb_has_the_numbers_of_its_code_and_of_its_paper() -> None:
    code = {
        "terminal_punctuation_line_share": [0.12],
        "short_line_share": [0.67],
        "duplicate_filled_line_character_share": [0.01],
        "newline_to_word_ratio": [0.3],
    }
    assert bounds("fineweb@code") == code
    paper = {**code, "duplicate_filled_line_character_share": [0.1]}
    assert bounds("fineweb@blog") == paper
    # examples/fineweb.py: repetition, quality, C4, FineWeb, the last on the text that C4 left.
    chain = PRESETS["fineweb_chain@datatrove"]
    assert chain[:23] == PRESETS["gopher@datatrove"]
    assert chain[23:26] == PRESETS["c4@fineweb"]
    assert bounds("", chain[26:]) == {f"c4@fineweb/{name}": found for name, found in code.items()}
    assert {rule.view for rule in chain[23:]} == {"c4@fineweb"}


def test_fineweb_2_has_the_numbers_of_its_configs() -> None:
    """configs/deu_Latn.yml at the commit that the table names."""
    german = {rule.name: rule.for_language("de") for rule in PRESETS["fineweb-2"]}
    expected = {
        "fineweb_2_language_score": 0.821,
        "fineweb_2_duplicate_lines": 0.263,
        "fineweb_2_top_2_gram": 0.169,
        "fineweb_2_top_3_gram": 0.153,
        "fineweb_2_top_4_gram": 0.137,
        "fineweb_2_duplicate_5_grams": 0.141,
        "fineweb_2_duplicate_10_grams": 0.098,
        "fineweb_2_few_ended_lines": 0.0,
        "fineweb_2_newlines": 0.152,
        "fineweb_2_short_words": 0,
        "fineweb_2_long_words": 15,
        "fineweb_2_few_alphabetic_words": 0.774,
        "fineweb_2_duplicate_line_characters": 0.1,
        "fineweb_2_few_words": 50,
    }
    assert {name: german[name].threshold for name in expected} == expected
    assert german == {rule.name: rule.for_language("deu_Latn") for rule in PRESETS["fineweb-2"]}
    english = [rule.for_language("en") for rule in PRESETS["fineweb-2"]]
    assert sum(math.isnan(rule.threshold) for rule in english) == 16
    table = json.loads(Path(presets.__file__).with_name("fineweb_2.json").read_text())
    assert table["licence"] == "Apache-2.0"
    labels = [numbers["lid.176"] for numbers in table["languages"].values()]
    assert len(set(labels)) == len(labels) > 90


def test_dclm_is_refinedweb_and_the_classifier() -> None:
    # dclm_baseline_refinedweb.yaml in its order; fasttext_filter.yaml: threshold 0.018112.
    found = PRESETS["refinedweb"]
    assert found[:4] == PRESETS["url@refinedweb"]
    assert bounds("", found[4:5]) == {"language_score": [0.65]}
    assert found[5:27] == PRESETS["gopher@dclm"]
    assert bounds("", found[27:]) == {"refinedweb/removed_word_share": [0.05]}
    assert PRESETS["dclm"][:-1] == found
    assert bounds("", PRESETS["dclm"][-1:]) == {"quality_score": [0.018112]}


def test_ccnet_and_redpajama_have_the_published_thresholds() -> None:
    # cc_net mine.py: min_len 300, lang_threshold 0.5; RedPajama-V2 keeps head and middle.
    short, score, tail = PRESETS["ccnet"]
    assert (short.signal, short.minimum) == ("characters", 300)
    assert (score.signal, score.minimum) == ("language_score", 0.5)
    assert tail.allowed == ("head", "middle")
    # The data card's gopher_rules_pass and the announcement's c4_rules_pass.
    assert bounds("redpajama-v2") == {
        "rps_doc_word_count": [50, 10_000],
        "rps_doc_mean_word_length": [3, 10],
        "rps_doc_symbol_to_word_ratio": [0.1],
        "rps_lines_start_with_bulletpoint": [0.9],
        "rps_doc_frac_chars_top_2gram": [0.2],
    }
    assert bounds("redpajama-v2_c4") == {
        "rps_doc_num_sentences": [3],
        "bad_words": [0],
        "rps_doc_lorem_ipsum": [0],
    }


def test_the_guide_and_the_repetitions_of_dolma() -> None:
    assert bounds("pretraining-guide") == {
        "characters": [200],
        "special_symbol_share": [0.3],
        "equal_lines_in_a_row": [2],
    }
    # dolma configs/dolma-v1_6/mixing: dropped at 100 repetitions in a row or more.
    assert bounds("periodic_repetition") == {"most_periodic_repetitions": [99]}


def test_curator_has_the_thresholds_of_its_english_pipeline() -> None:
    # heuristic_filter_english_pipeline.yaml; unique shares of 0.7, 0.8 leave copies 0.3, 0.2.
    common = {"stop_words@dclm": [2], **REPETITION}
    words = ("words", "mean_word_length", "bullet_line_share", "ellipsis_line_share")
    quality = {name: QUALITY[name] for name in (*words, "alphabetic_word_share")}
    assert bounds("curator-english") == {**common, **quality}


def test_refinedweb_drops_on_a_list_one_strict_or_hard_word_or_two_soft_ones() -> None:
    # Penedo et al. 2023 (arXiv 2306.01116), appendix G.1.
    assert bounds("url@refinedweb") == {
        "url_block_lists": [0],
        "url_strict_words": [0],
        "url_hard_words": [0],
        "url_soft_words": [1],
    }


def test_starcoder_has_the_published_thresholds() -> None:
    # Kocetkov et al. 2022 (arXiv 2211.15533) and bigcode-dataset's basic filters.
    assert bounds("starcoder") == {
        "code_max_line_length": [1000],
        "code_mean_line_length": [100],
        "code_alphanumeric_share": [0.25],
    }


def test_marks_of_pages_and_files_drop_by_one() -> None:
    for preset in ("opt_out", "truncated"):
        assert set(map(tuple, bounds(preset).values())) == {(0,)}
    assert bounds("code_marks") == {
        "near_binary_share": [0.5],
        "minified": [0],
        "generated": [0],
        "vendored": [0],
    }


def test_every_rule_asks_for_a_signal_that_a_run_can_measure() -> None:
    """With all groups and all that `signals` may be given; one classifier is named in presets."""
    everything = ColumnChoice(
        language=True, url_lists=True, word_lists=True, ngram_models=True,
        classifiers=("quality",), pages=True, language_splitters=True,
    )  # fmt: skip
    measured = {signal.name: signal for signal in choose_signals(everything)}
    rules = [rule for of in (*PRESETS.values(), PERSONAL_DATA_RULES.values()) for rule in of]
    assert [rule.name for rule in rules if rule.signal not in measured] == []
    for rule in rules:
        signal = measured[rule.signal]
        assert signal.view == (rule.view or "text"), rule.name
        assert signal.type.startswith("string") == bool(rule.allowed), rule.name


def test_one_name_is_one_rule_everywhere() -> None:
    found: dict[str, Rule] = {}
    for rules in PRESETS.values():
        assert len({rule.name for rule in rules}) == len(rules)
        for rule in rules:
            assert found.setdefault(rule.name, rule) == rule
            assert rule.source
    assert not set(PERSONAL_DATA_RULES) & set(found)


def test_presets_that_share_a_rule_ask_it_once_in_its_first_place() -> None:
    shared = FilterConfig(rules=("gopher_quality@datatrove", "gopher@datatrove")).rule_order()
    assert shared == PRESETS["gopher_quality@datatrove"] + PRESETS["gopher_repetition@datatrove"]
    config = FilterConfig(rules=("gopher@datatrove", "fineweb_chain@datatrove"))
    assert config.rule_order() == PRESETS["fineweb_chain@datatrove"]


def test_a_threshold_moves_the_bound_that_the_rule_has() -> None:
    config = FilterConfig(
        rules=("gopher_quality@datatrove",),
        thresholds={"gopher_few_words": 30},
        thresholds_by_language={"de": {"gopher_few_words": 20, "gopher_many_words": 9}},
    )
    few, many, *_ = config.rules_for("web")
    assert (few.minimum, few.maximum) == (30, None)
    assert (many.minimum, many.maximum) == (None, 100_000)
    assert [rule.threshold for rule in config.rules_for("web", "de")[:2]] == [20, 9]
    assert config.rules_for("web", "fr") == config.rules_for("web")


def test_personal_data_that_drops_documents_is_a_rule_for_every_source() -> None:
    policy = PersonalDataPolicy(iban="drop", secret="drop", email="keep")
    config = FilterConfig(rules=("garbled",), rules_by_source={"code": ()}, personal_data=policy)
    names = ("personal_data_iban", "personal_data_secret")
    assert tuple(rule.name for rule in config.rules_for("code")) == names
    assert tuple(rule.signal for rule in config.rules_for("code")) == ("iban_count", "secret_count")
    assert tuple(rule.name for rule in config.rule_order()[1:]) == names
    assert policy.kept() == {"email"}
    assert PersonalDataPolicy().rules() == ()


def test_views_that_rules_take_for_made_are_known() -> None:
    chain = FilterConfig(rules=("fineweb_chain@datatrove", "garbled"))
    assert chain.views_presumed() == ("c4@fineweb",)
    made = FilterConfig(
        rules=("fineweb_chain@datatrove",), views=("c4@fineweb", "personal_data", "secrets")
    )
    assert made.views_presumed() == ()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"rules": ["gopher_qality@datatrove"]}, "'gopher_quality@datatrove'"),
        ({"rules_by_source": {"code": ["c5"]}}, "'c5'"),
        ({"thresholds": {"gopher_few_word": 3}}, "'gopher_few_words'"),
        ({"rules": [], "thresholds": {"gopher_few_words": 3}}, "'gopher_few_words'"),
        ({"rules": ["garbled", "garbled"]}, "'garbled'"),
        ({"duplicates": {"threshold": 1.5}}, "duplicates.threshold"),
        ({"duplicate": {}}, "'duplicates'"),
        ({"rules_by_language": {"de": ["c4@cod"]}}, "'c4@code'"),
        (
            {"thresholds_by_language": {"de": {"gopher_few_word": 3}}},
            "thresholds_by_language.de.*'gopher_few_words'",
        ),
        ({"rules": ["ccnet"], "thresholds": {"ccnet_tail": 1}}, "'ccnet_tail'"),
        ({"personal_data": {"iban": "hide"}}, "personal_data.iban"),
        ({"personal_data": {"visa": "drop"}}, "visa"),
    ],
)
def test_wrong_settings_are_refused_by_name(config: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        FilterConfig.parse(config, where="filter")


def test_a_source_has_its_own_rules_or_those_of_all() -> None:
    config = FilterConfig(
        rules=("garbled",), rules_by_source={"code": (), "web": ("fineweb@code",)}
    )
    assert config.rules_for("code") == ()
    assert config.rules_for("web") == PRESETS["fineweb@code"]
    assert config.rules_for("web", "de") == PRESETS["fineweb@code"]
    assert config.rules_for("books") == PRESETS["garbled"]
    assert config.rule_order() == PRESETS["garbled"] + PRESETS["fineweb@code"]
