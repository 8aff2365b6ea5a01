from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import UsageError
from stages.filter.checks import Check, rule_checks, signal_hint
from stages.filter.config import FilterConfig
from stages.filter.presets import PRESETS
from stages.filter.rules import Rule

FINE = {rule.signal: 0.0 for rule in PRESETS["gopher@datatrove"]}
FINE |= {
    rule.signal: rule.minimum for rule in PRESETS["gopher@datatrove"] if rule.minimum is not None
}


def failing(config: FilterConfig, sources: list[str], **signals: Any) -> dict[str, list[int]]:
    """Rows that fail each rule that some row fails."""
    table = pa.table({"doc_id": [str(i) for i in range(len(sources))], **signals})
    found = rule_checks(config, pa.chunked_array([pa.array(sources, pa.string())]), table)
    return {check.name: check.rows.tolist() for check in found if len(check.rows)}


def columns(documents: int, **changed: Any) -> dict[str, Any]:
    """Signals that pass every Gopher rule, but for the changed ones."""
    return {**{name: [value] * documents for name, value in FINE.items()}, **changed}


def test_the_bound_itself_and_a_missing_value_pass() -> None:
    config = FilterConfig(rules=("gopher_quality@datatrove",))
    words = pa.array([49, 50, 100_000, 100_001, None, float("nan")], pa.float64())
    alphabetic = pa.array([None, 0.8, 0.8, 0.79, None, 0.8])
    found = failing(
        config, ["web"] * 6, **columns(6, words=words, alphabetic_word_share=alphabetic)
    )
    assert found == {
        "gopher_few_words": [0],
        "gopher_many_words": [3],
        "gopher_few_alphabetic_words": [3],
    }


def test_a_bound_of_zero_is_a_bound() -> None:
    config = FilterConfig(rules=("truncated",))
    assert failing(config, ["web"] * 2, is_truncated=[0, 1]) == {"truncated_record": [1]}
    config = FilterConfig(rules=("pretraining-guide",), thresholds={"guide_short": 0})
    empty = {"special_symbol_share": [0.0], "equal_lines_in_a_row": [0]}
    assert failing(config, ["web"], characters=[0], **empty) == {}


def test_labels_that_are_not_allowed_fail_and_a_missing_one_passes() -> None:
    buckets = ["head", "middle", "tail", None]
    rest = {"characters": [300] * 4, "language_score": [0.5] * 4, "perplexity_bucket": buckets}
    web = ["web"] * 4
    assert failing(FilterConfig(rules=("ccnet",)), web, **rest) == {"ccnet_tail": [2]}
    assert failing(FilterConfig(rules=("ccnet_head",)), web, **rest) == {"ccnet_not_head": [1, 2]}
    config = FilterConfig(rules=("ccnet",), rules_by_source={"code": ()})
    sources = ["web", "web", "code", "web"]
    assert failing(config, sources, **rest) == {}


def test_rules_hold_for_the_sources_that_have_them() -> None:
    config = FilterConfig(rules=("truncated", "garbled"), rules_by_source={"code": ("garbled",)})
    signals = {"is_truncated": [1, 1, 0], "replacement_character_share": [0.5, 0.5, None]}
    assert failing(config, ["web", "code", "web"], **signals) == {
        "truncated_record": [0],
        "garbled_replacement_characters": [0, 1],
    }


def test_a_language_has_presets_and_thresholds_of_its_own() -> None:
    config = FilterConfig(
        rules=("truncated",),
        rules_by_source={"code": ()},
        rules_by_language={"ja": ("garbled",)},
        thresholds={"garbled_replacement_characters": 0.2},
        thresholds_by_language={"de": {"truncated_record": 1}, "ja": {}},
    )
    sources = ["web", "web", "web", "web", "code", "web"]
    signals = {
        "language": ["en", "de", "ja", "ja", "ja", None],
        "is_truncated": [1, 1, 1, 1, 1, 1],
        "replacement_character_share": [0.9, 0.9, 0.9, 0.1, 0.9, 0.9],
    }
    assert failing(config, sources, **signals) == {
        "truncated_record": [0, 5],
        "garbled_replacement_characters": [2],
    }


def test_fineweb_2_asks_each_language_for_its_own_numbers() -> None:
    # fineweb-2 configs/deu_Latn.yml and jpn_Jpan.yml: dup_line_frac 0.263 and 0.328.
    rules = {rule.name: rule for rule in PRESETS["fineweb-2"]}
    fine: dict[str, Any] = {rule.signal: [None] * 4 for rule in rules.values()}
    fine = {name: pa.array(values, pa.float64()) for name, values in fine.items()}
    fine |= {"language": ["de", "jpn_Jpan", "en", None], "duplicate_line_share": [0.3] * 4}
    config = FilterConfig(rules=("fineweb-2",))
    assert failing(config, ["web"] * 4, **fine) == {"fineweb_2_duplicate_lines": [0]}
    config = FilterConfig(rules=("fineweb-2",), thresholds={"fineweb_2_duplicate_lines": 0.2})
    assert failing(config, ["web"] * 4, **fine) == {"fineweb_2_duplicate_lines": [0, 1, 2, 3]}
    with pytest.raises(UsageError, match="language_model"):
        rule_checks(config, pa.chunked_array([["web"]]), pa.table({"words": [1]}))


def test_the_threshold_in_the_ledger_is_the_one_that_was_asked() -> None:
    config = FilterConfig(
        rules=("truncated",), thresholds_by_language={"de": {"truncated_record": 1}}
    )
    table = pa.table({"language": ["en", "de"], "is_truncated": [3, 3]})
    (check,) = rule_checks(config, pa.chunked_array([["web", "web"]]), table)
    assert check.value.tolist() == [3, 3]
    assert check.threshold.tolist() == [0, 1]


def test_a_rule_on_a_signal_that_was_not_measured_is_refused_by_name() -> None:
    sources, config = pa.chunked_array([["web"]]), FilterConfig(rules=("truncated",))
    with pytest.raises(UsageError, match=r"'is_truncated'.*'is_trunc'"):
        rule_checks(config, sources, pa.table({"is_trunc": [1]}))
    with pytest.raises(UsageError, match="signals"):
        rule_checks(config, sources, None)
    assert rule_checks(FilterConfig(rules=()), sources, None) == []
    own = FilterConfig(rules=("truncated",), rules_by_source={"web": ()})
    assert rule_checks(own, sources, None) == []


@pytest.mark.parametrize(
    ("signal", "hint"),
    [
        ("language_score", "language_model"),
        ("line_perplexity", "ngram_model"),
        ("perplexity_bucket", "cutoffs"),
        ("quality_score", "classifier named 'quality'"),
        ("url_soft_words", "url_lists"),
        ("robots_noindex", "pages"),
        ("bad_words", "word_lists"),
        ("c4@fineweb/sentences", "view 'c4@fineweb'"),
        ("words", "run `signals` again"),
    ],
)
def test_a_missing_signal_says_what_brings_it(signal: str, hint: str) -> None:
    assert hint in signal_hint(signal)


NUMBERS = st.one_of(st.none(), st.just(float("nan")), st.floats(-1, 2))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["de", "ja", None]), NUMBERS, NUMBERS),
        max_size=12,
    )
)
def test_vectors_agree_with_asking_one_document_after_the_other(
    rows: list[tuple[str, str | None, float | None, float | None]],
) -> None:
    """The reference reads the config's rules for a document and compares one number."""
    config = FilterConfig(
        rules=("garbled", "truncated"),
        rules_by_source={"b": ("truncated",)},
        rules_by_language={"ja": ("garbled",)},
        thresholds={"truncated_record": 0.5},
        thresholds_by_language={"de": {"garbled_replacement_characters": 0.7}},
    )
    names = ("replacement_character_share", "is_truncated")
    table = pa.table(
        {
            "language": pa.array([row[1] for row in rows], pa.string()),
            names[0]: pa.array([row[2] for row in rows], pa.float64(), from_pandas=False),
            names[1]: pa.array([row[3] for row in rows], pa.float64(), from_pandas=False),
        }
    )
    sources = pa.chunked_array([pa.array([row[0] for row in rows], pa.string())])
    found = _pairs(rule_checks(config, sources, table))
    expected = set()
    for place, (source, language, *values) in enumerate(rows):
        for rule in config.rules_for(source, language):
            value = values[names.index(rule.signal)]
            if value is not None and value > rule.threshold:
                expected.add((rule.name, place))
    assert found == expected


def _pairs(checks: list[Check]) -> set[tuple[str, int]]:
    return {(check.name, row) for check in checks for row in check.rows.tolist()}


def test_a_rule_has_one_of_its_three_forms() -> None:
    for wrong in ({}, {"minimum": 1, "maximum": 2}, {"minimum": 1, "allowed": ("a",)}):
        with pytest.raises(AssertionError):
            Rule("r", "s", "-", **wrong)  # type: ignore[arg-type]
    assert np.isnan(Rule("r", "s", "-", allowed=("a",)).threshold)


def test_a_rule_of_the_recipe_applies_to_its_sources_and_languages() -> None:
    short = {"name": "short", "signal": "words", "minimum": 10}
    config = FilterConfig.parse(
        {
            "rules": [{**short, "languages": ["de"]}, {**short, "name": "few", "sources": ["a"]}],
            "rules_by_source": {"c": [{**short, "minimum": 3}]},
            "thresholds_by_language": {"en": {"few": 4}},
        },
        where="filter",
    )
    table = pa.table({"words": [5, 5, 5, 5, 2], "language": ["de", "en", "de", "en", "en"]})
    sources = pa.chunked_array([["a", "a", "b", "b", "c"]])
    found = {check.name: check for check in rule_checks(config, sources, table)}
    failing = {
        name: list(zip(check.rows.tolist(), check.threshold.tolist(), strict=True))
        for name, check in found.items()
    }
    assert failing == {"short": [(0, 10), (2, 10), (4, 3)], "few": [(0, 10)]}


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({}, "`minimum`"),
        ({"minimum": 1, "maximum": 2}, "'short'"),
        ({"minimum": float("inf")}, "finite"),
        ({"maximum": 1, "name": "exclusion"}, "'exclusion'"),
        ({"maximum": 1, "name": "personal_data_email"}, "'personal_data_email'"),
        ({"maximun": 1}, "'maximum'"),
    ],
)
def test_a_rule_that_cannot_be_applied_is_refused(rule: dict[str, object], value: str) -> None:
    with pytest.raises(UsageError, match=value):
        FilterConfig.parse({"rules": [{"name": "short", "signal": "words", **rule}]}, where="x")


def test_two_rules_of_one_name_differ_in_their_bound_only() -> None:
    rule = {"name": "short", "signal": "words", "minimum": 1}
    for other in ({**rule, "signal": "lines"}, {"name": "short", "signal": "words", "maximum": 1}):
        with pytest.raises(UsageError, match="'short'"):
            FilterConfig.parse({"rules": [rule], "rules_by_source": {"a": [other]}}, where="x")
    with pytest.raises(UsageError, match="'short'"):
        FilterConfig.parse({"rules": [rule, {**rule, "minimum": 2}]}, where="x")


def test_a_bound_on_labels_is_refused() -> None:
    config = FilterConfig(rules=({"name": "short", "signal": "script", "minimum": 1},))
    with pytest.raises(UsageError, match="'script'"):
        rule_checks(config, pa.chunked_array([["a"]]), pa.table({"script": ["Latin"]}))
