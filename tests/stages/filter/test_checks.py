from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.filter.checks import Check, collect_findings, contamination_check, mask_check


def test_contamination_needs_the_count_and_the_share() -> None:
    ngrams, hit = np.array([100, 100, 100, 0]), np.array([1, 2, 5, 0])
    found = contamination_check(ngrams, hit, min_hit=2, min_share=0.05)
    assert (found.rows.tolist(), found.value.tolist(), found.threshold.tolist()) == ([2], [5], [2])
    assert contamination_check(ngrams, hit, 1, 0.0).rows.tolist() == [0, 1, 2]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), max_size=8))
def test_findings_list_all_failing_checks_and_the_number_of_the_first(
    matrix: list[list[bool]],
) -> None:
    failing = np.array(matrix, dtype=bool).reshape(-1, 4)
    names = ["a", "unused", "b", "c", "d"]
    checks = []
    for k, name in enumerate("abc"):
        rows = np.flatnonzero(failing[:, k])
        checks.append(Check(name, rows, rows + 10.0 * k, np.full(len(rows), float(k))))
    checks.append(mask_check("d", failing[:, 3]))
    found = collect_findings(checks, names, len(failing))
    assert found.passes.tolist() == [not any(fails) for fails in matrix]
    for document, fails in enumerate(matrix):
        codes = found.codes[found.offsets[document] : found.offsets[document + 1]]
        assert [names[code] for code in codes] == [
            n for n, f in zip("abcd", fails, strict=True) if f
        ]
        first = fails.index(True) if any(fails) else 3
        expected = (document + 10.0 * first, first) if first < 3 else (np.nan, np.nan)
        np.testing.assert_equal((found.value[document], found.threshold[document]), expected)
