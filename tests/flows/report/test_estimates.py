"""Estimates against their baseline, and of two runs against each other."""

from __future__ import annotations

import pytest

from flows.report.estimates import (
    Score,
    compare_scores,
    difference_interval,
)
from stages.engine.page import Axis, Estimate
from stages.scoring.uncertainty import wilson

ACCURACY, BITS = Axis("accuracy", format=".3f"), Axis("bits per byte", format=".3f")


def share(hits: int, count: int) -> Estimate:
    return Estimate("quiz", hits / count, *wilson(hits, count), baseline=0.25, count=count)


def score(estimate: Estimate, axis: Axis = ACCURACY) -> Score:
    return Score("evaluate", "pretrain", "float32", estimate, axis)


@pytest.mark.parametrize(
    ("a", "b", "low", "high"),
    [
        # Newcombe (1998), Statistics in Medicine 17, table II, method 10.
        ((48, 80), (56, 70), 0.0524, 0.3339),
        ((3, 10), (9, 10), 0.1705, 0.8090),
        ((0, 20), (10, 10), 0.6791, 1.0),
    ],
)
def test_the_difference_of_two_shares_is_newcombes(a, b, low, high):
    assert difference_interval(share(*a), share(*b)) == pytest.approx((low, high), abs=5e-5)


def test_the_difference_of_means_is_that_of_normal_estimates():
    """Half widths 3 and 4 add to 5."""
    a, b = Estimate("e", 10.0, 7.0, 13.0), Estimate("e", 20.0, 16.0, 24.0)
    assert difference_interval(a, b) == (5.0, 15.0)
    assert difference_interval(a, Estimate("e", 20.0)) is None


@pytest.mark.parametrize(
    ("axis", "ends", "outcome"),
    [
        (ACCURACY, (0.3, 0.4), "better"),
        (ACCURACY, (0.1, 0.2), "worse"),
        (BITS, (0.3, 0.4), "worse"),
        (BITS, (0.1, 0.2), "better"),
        (ACCURACY, (0.2, 0.25), "no different"),
        (ACCURACY, (None, None), "unknown"),
    ],
)
def test_a_score_stands_against_its_baseline_in_the_direction_of_its_measure(axis, ends, outcome):
    value = 0.25 if ends[0] is None else sum(ends) / 2
    assert score(Estimate("e", value, *ends, baseline=0.25), axis).outcome == outcome


def test_what_differs_beyond_chance_comes_first():
    a = [score(share(50, 100)), score(Estimate("held", 2.0, 1.9, 2.1, 3.0), BITS)]
    b = [score(share(52, 100)), score(Estimate("held", 1.5, 1.4, 1.6, 3.0), BITS)]
    first, second = compare_scores(a, b)
    assert (first.b.estimate.name, first.outcome) == ("held", "better")
    assert second.outcome == "no different"


def test_scores_of_different_measures_are_not_compared():
    assert compare_scores([score(share(1, 9), BITS)], [score(share(1, 9))]) == []
