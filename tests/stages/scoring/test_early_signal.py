"""Criteria for early signal, by published vectors and by arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from stages.scoring.early_signal import (
    ItemScores,
    Signal,
    above_chance,
    above_chance_interval,
    kendall,
    mean_ordering,
    monotonicity,
    monotonicity_interval,
    ordering_interval,
    signal_interval,
    signal_to_noise,
    spearman,
)

SEEDS = [[0.25, 0.27, 0.26, 0.30, 0.33], [0.24, 0.26, 0.28, 0.29, 0.34]]
STEPS = [1, 2, 3, 4, 5]


def of_scores(scores):
    """A run of one item."""
    values = np.array([scores])
    return ItemScores(tuple(range(len(scores))), values, np.ones_like(values))


def test_monotonicity_is_spearmans_correlation_of_step_and_score():
    """One swap of neighbours among five: 1 - 6 · 2 / (5 · 24) = 0.9."""
    assert [spearman(STEPS, one) for one in SEEDS] == pytest.approx([0.9, 1.0])
    assert monotonicity([of_scores(one) for one in SEEDS]) == pytest.approx(0.95)
    assert spearman(STEPS, [0.5] * 5) is None


def test_signal_and_chance_are_measured_in_the_noise_between_seeds():
    """0.33 and 0.34: mean .335, std .00707107."""
    last = [one[-1] for one in SEEDS]
    assert signal_to_noise(last) == pytest.approx(47.376154, abs=1e-6)
    assert above_chance(last, 0.25) == pytest.approx(12.020815, abs=1e-6)
    assert signal_to_noise([0.3]) is None
    assert signal_to_noise([0.3, 0.3]) is None
    assert above_chance([0.33], 0.25, error=0.02) == pytest.approx(4.0)
    assert above_chance([0.33], 0.25) is None


def test_above_chance_has_the_ends_that_the_noncentral_t_leaves():
    """At each end 2.5 % of the noncentral t distribution (scipy's) lie beyond what was seen."""
    values = [0.30, 0.33, 0.31, 0.34]
    seen = above_chance(values, 0.25)
    low, high = above_chance_interval(values, 0.25)
    assert low < seen < high
    assert stats.nct.sf(2 * seen, 3, 2 * low) == pytest.approx(0.025, abs=1e-4)
    assert stats.nct.cdf(2 * seen, 3, 2 * high) == pytest.approx(0.025, abs=1e-4)
    assert above_chance_interval([0.33], 0.25, error=0.02) == pytest.approx((2.040036, 5.959964))
    assert above_chance_interval([0.33], 0.25) is None


def test_the_interval_of_an_order_is_wide_where_models_are_alike_and_none_where_they_are_not():
    """400 items; two models of .4 and .6 at each checkpoint, and two of .5."""
    rng = np.random.default_rng(5)

    def model(share):
        values = (rng.random((400, 3)) < share).astype(float)
        return [ItemScores((1, 2, 3), values, np.ones((400, 3)))]

    assert ordering_interval([model(0.4), model(0.6)]) == (1.0, 1.0)
    low, high = ordering_interval([model(0.5), model(0.5)])
    assert low < 0 < high
    assert ordering_interval([model(0.4)]) is None


def test_two_seeds_bound_the_noise_by_a_factor_of_seventy():
    """chi-squared of 1 degree of freedom: sqrt(.000982069) and sqrt(5.02389), any table."""
    low, high = signal_interval([0.33, 0.34])
    assert low == pytest.approx(47.376154 * 0.0313380, rel=1e-4)
    assert high == pytest.approx(47.376154 * 2.241403, rel=1e-4)


def test_the_interval_of_signal_over_noise_holds_the_truth_nineteen_times_in_twenty():
    """Five seeds around .4 with noise .01: the truth is 40; 2,000 simulations."""
    rng = np.random.default_rng(3)
    ends = [signal_interval(rng.normal(0.4, 0.01, 5)) for _ in range(2000)]
    assert 0.93 <= np.mean([low <= 40 <= high for low, high in ends]) <= 0.97


def test_ordering_is_kendalls_tau_between_checkpoints():
    """Of six pairs of four models one is turned: (5 - 1) / 6."""
    before, after = [0.30, 0.28, 0.35, 0.31], [0.33, 0.29, 0.34, 0.36]
    assert kendall(before, after) == pytest.approx(2 / 3)
    assert mean_ordering([before, after, after]) == pytest.approx((2 / 3 + 1) / 2)
    assert mean_ordering([[0.3], [0.4]]) is None
    assert kendall([0.3, 0.3], [0.1, 0.2]) is None


def test_items_drawn_again_disturb_an_order_that_few_items_made():
    """Four checkpoints, each .1 better: 20 items show it barely, 2,000 surely."""
    rng = np.random.default_rng(1)

    def run(items):
        values = (rng.random((items, 4)) < [0.3, 0.4, 0.5, 0.6]).astype(float)
        return ItemScores((1, 2, 3, 4), values, np.ones_like(values))

    few, many = (monotonicity_interval([run(items)]) for items in (20, 2000))
    assert few[0] < 0.8
    assert many == (1.0, 1.0)
    values = run(50)
    assert monotonicity_interval([values]) == monotonicity_interval([values]), "it is seeded"
    assert monotonicity_interval([run(1)]) is None


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "trust"),
        ({"signal": None}, "trust (one seed)"),
        ({"signal": 12.0}, "noisy between seeds"),
        ({"signal": 12.0, "free_form": True}, "trust"),
        ({"monotonicity": 0.4}, "does not follow training"),
        ({"monotonicity": None}, "does not follow training"),
        ({"above_chance": 2.0}, "at chance"),
        ({"above_chance": None}, "trust"),
        ({"checkpoints": 3}, "fewer than 4 checkpoints"),
        (
            {"above_chance": -1.0, "monotonicity": -0.2},
            "at chance; does not follow training",
        ),
    ],
)
def test_verdicts_are_plain_and_name_every_doubt(change, verdict):
    usual = {
        "checkpoints": 5, "monotonicity": 0.9, "signal": 40.0, "above_chance": 5.0, "ordering": 0.7,
    }  # fmt: skip
    assert Signal(**{**usual, **change}).verdict == verdict
