from __future__ import annotations

import numpy as np
import pytest

from artifacts_schema.errors import UsageError
from stages.filter.checks import outside
from stages.filter.config import FilterConfig
from stages.filter.presets import PRESETS, rules_of
from stages.signals.columns import signals_of


def bounds(preset: str) -> dict[str, list[float]]:
    """Bounds by signal, the lower one first."""
    found: dict[str, list[float]] = {}
    for rule in PRESETS[preset]:
        found.setdefault(rule.signal, []).append(rule.threshold)
    return found


def test_gopher_quality_has_the_published_thresholds() -> None:
    # Rae et al. 2021, appendix A.1.1, "Quality filtering".
    assert bounds("gopher_quality@datatrove") == {
        "words": [50, 100_000],
        "mean_word_length": [3, 10],
        "hash_to_word_ratio": [0.1],
        "ellipsis_to_word_ratio": [0.1],
        "bullet_line_share": [0.9],
        "ellipsis_line_share": [0.3],
        "alphabetic_word_share": [0.8],
        "stop_words": [2],
    }


def test_gopher_repetition_has_the_published_thresholds() -> None:
    # Rae et al. 2021, table A1.
    assert bounds("gopher_repetition@datatrove") == {
        "duplicate_line_share": [0.30],
        "duplicate_paragraph_share": [0.30],
        "duplicate_line_character_share": [0.20],
        "duplicate_paragraph_character_share": [0.20],
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
    """0 passes, 1 fails, and so does no document without a value: prose has no `minified`."""
    values = np.array([0.0, 1.0, np.nan])
    for preset in ("opt_out", "truncated", "code_marks"):
        for rule in PRESETS[preset]:
            failing = [False, rule.threshold < 1, False]
            assert outside(values, rule).tolist() == failing
    assert bounds("code_marks")["near_binary_share"] == [0.5]


def test_every_rule_has_its_own_name_and_a_signal_that_is_measured() -> None:
    rules = [rule for preset in PRESETS.values() for rule in preset]
    assert len({rule.name for rule in rules}) == len(rules)
    assert {rule.signal for rule in rules} <= {
        signal.name
        for signal in signals_of(with_language=True, with_pages=True, with_url_lists=True)
    }
    assert all(rule.source for rule in rules)


def test_a_threshold_moves_the_bound_that_the_rule_has() -> None:
    few, many, *_ = rules_of(("gopher_quality@datatrove",), {"gopher_few_words": 30})
    assert (few.minimum, few.maximum) == (30, None)
    assert (many.minimum, many.maximum) == (None, 100_000)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"rules": ["gopher_qality@datatrove"]}, "did you mean 'gopher_quality@datatrove'"),
        ({"rules_by_source": {"code": ["c5"]}}, "no rule preset 'c5'"),
        ({"thresholds": {"gopher_few_word": 3}}, "did you mean 'gopher_few_words'"),
        ({"rules": [], "thresholds": {"gopher_few_words": 3}}, "no chosen preset has a rule"),
        ({"rules": ["garbled", "garbled"]}, "named twice"),
        ({"duplicates": {"threshold": 1.5}}, "duplicates.threshold"),
        ({"duplicate": {}}, "did you mean 'duplicates'"),
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
    assert config.rules_for("books") == PRESETS["garbled"]
    assert config.rule_order() == PRESETS["garbled"] + PRESETS["fineweb@code"]
