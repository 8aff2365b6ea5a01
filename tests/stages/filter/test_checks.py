from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import UsageError
from stages.filter.checks import (
    Check,
    contamination_check,
    findings,
    outside,
    plain_check,
    rule_checks,
)
from stages.filter.presets import Rule

LOW = Rule("low", "words", "-", minimum=50)
HIGH = Rule("high", "share", "-", maximum=0.3)


def test_the_bound_itself_and_a_missing_value_pass() -> None:
    words = np.array([49, 50, 51, np.nan])
    assert outside(words, LOW).tolist() == [True, False, False, False]
    share = np.array([0.3, 0.31, np.nan])
    assert outside(share, HIGH).tolist() == [False, True, False]


def test_a_bound_of_zero_is_a_bound() -> None:
    rule = Rule("none", "count", "-", maximum=0)
    assert outside(np.array([0.0, 1.0]), rule).tolist() == [False, True]
    assert LOW.at(0).minimum == 0


def test_rules_hold_for_the_sources_that_have_them() -> None:
    signals = pa.table({"words": [10, 10, 90], "share": pa.array([0.9, 0.9, None])})
    sources = pa.chunked_array([["web", "code", "web"]])
    checks = rule_checks(signals, sources, [LOW, HIGH], {"web": {"low", "high"}, "code": {"high"}})
    assert [check.name for check in checks] == ["low", "high"]
    assert checks[0].failing.tolist() == [True, False, False]
    assert checks[1].failing.tolist() == [True, True, False]


def test_a_rule_on_a_signal_that_was_not_measured_is_refused_by_name() -> None:
    sources = pa.chunked_array([["web"]])
    with pytest.raises(UsageError, match=r"rule 'low' needs signal 'words'.*did you mean 'wordz'"):
        rule_checks(pa.table({"wordz": [1]}), sources, [LOW], {"web": {"low"}})
    with pytest.raises(UsageError, match="no signals are given"):
        rule_checks(None, sources, [LOW], {"web": {"low"}})
    assert rule_checks(None, sources, [LOW], {"web": set()}) == []


def test_contamination_needs_the_count_and_the_share() -> None:
    ngrams, hit = np.array([100, 100, 100, 0]), np.array([1, 2, 5, 0])
    found = contamination_check(ngrams, hit, min_hit=2, min_share=0.05)
    assert found.failing.tolist() == [False, False, True, False]
    assert contamination_check(ngrams, hit, 1, 0.0).failing.tolist() == [True, True, True, False]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), max_size=8))
def test_findings_list_all_failing_checks_and_the_number_of_the_first(
    matrix: list[list[bool]],
) -> None:
    failing = np.array(matrix, dtype=bool).reshape(-1, 4)
    names = ["a", "unused", "b", "c", "d"]
    checks = [
        Check(name, failing[:, k], np.full(len(failing), 10.0 + k), k)
        for k, name in enumerate("abc")
    ]
    checks.append(plain_check("d", failing[:, 3]))
    found = findings(checks, names, len(failing))
    for document, fails in enumerate(matrix):
        codes = found.codes[found.offsets[document] : found.offsets[document + 1]]
        assert [names[code] for code in codes] == [
            n for n, f in zip("abcd", fails, strict=True) if f
        ]
        first = fails.index(True) if any(fails) else 3
        expected = (10.0 + first, first) if first < 3 else (np.nan, np.nan)
        np.testing.assert_equal((found.value[document], found.threshold[document]), expected)
