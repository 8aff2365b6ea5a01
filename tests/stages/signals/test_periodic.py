"""Periodic repetition: the cases of dolma's own tests, and all runs of a text found one by one."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.signals.repetition import PERIODIC_SIGNALS, measure_periodic
from stages.text.batch import split_texts


def measured(texts: list[str]) -> list[tuple[int, int, float]]:
    """Runs, most repetitions of one, and the share of tokens in them."""
    columns = measure_periodic(split_texts(texts))
    assert list(columns) == [signal.name for signal in PERIODIC_SIGNALS]
    return list(zip(*(column.tolist() for column in columns.values()), strict=True))


def reference(tokens: list[str]) -> tuple[int, int, float]:
    """All longest stretches of each period, without those that lie in another."""
    runs, most = set(), 0
    for period in range(1, 14):
        start = 0
        for end in range(period, len(tokens) + 1):
            if end == len(tokens) or tokens[end] != tokens[end - period]:
                if end - start >= 3 * period:
                    runs.add((start, end))
                    most = max(most, (end - start) // period)
                start = end - period + 1
    outer = {
        run for run in runs if not any(o != run and o[0] <= run[0] and run[1] <= o[1] for o in runs)
    }
    inside = {place for start, end in outer for place in range(start, end)}
    return len(outer), most, len(inside) / len(tokens) if tokens else 0.0


# Sequences of digits, with the runs that dolma's tests/python/test_repetitions_utils.py expects of
# them for periods up to 13.
@pytest.mark.parametrize(
    ("digits", "runs", "most", "tokens"),
    [
        ("5000007", 1, 5, 5),
        ("501010127", 1, 3, 6),
        ("5301040104010401", 1, 3, 14),
        # Start 0, end 12, period 3, four times.
        ("04004004004030", 1, 4, 12),
        # 46 four times at 2..10, 550 three times at 13..22.
        ("004646464639955055055046550", 2, 4, 17),
        ("123456789", 0, 0, 0),
        ("112233445566778899", 0, 0, 0),
    ],
)
def test_dolmas_published_cases(digits: str, runs: int, most: int, tokens: int) -> None:
    assert measured([" ".join(digits)]) == [(runs, most, tokens / len(digits))]


UNITS = st.lists(st.sampled_from("ab"), min_size=1, max_size=15)
PIECES = st.tuples(UNITS, st.integers(1, 5), st.integers(0, 3)).map(
    lambda piece: (piece[0] * piece[1])[: len(piece[0]) * piece[1] - piece[2]]
)


@given(
    st.lists(st.lists(PIECES, max_size=5).map(lambda p: list(chain.from_iterable(p))), max_size=4)
)
@settings(deadline=None, max_examples=300)
def test_any_batch_equals_the_definition_text_by_text(texts: list[list[str]]) -> None:
    assert measured([" ".join(tokens) for tokens in texts]) == [reference(t) for t in texts]


@pytest.mark.parametrize(
    ("period", "times", "runs"), [(13, 3, 1), (13, 2, 0), (14, 3, 0), (1, 3, 1), (1, 2, 0)]
)
def test_periods_up_to_13_and_three_times(period: int, times: int, runs: int) -> None:
    text = " ".join(f"w{i}" for _ in range(times) for i in range(period))
    assert measured([text]) == [(runs, runs * times, float(runs))]


def test_a_run_does_not_go_on_in_the_next_text() -> None:
    assert measured(["", "a a", "a a", "a a a"]) == [(0, 0, 0), (0, 0, 0), (0, 0, 0), (1, 3, 1)]


def test_a_million_equal_tokens_are_one_run() -> None:
    assert measured(["a " * 1_000_000]) == [(1, 1_000_000, 1.0)]
