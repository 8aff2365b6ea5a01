"""Distances of distributions, and what they say beyond chance, on drawn data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ks_2samp

from flows.analysis.drift import compare_distributions
from tests.benchmarks.drift import false_alarms

HALF = 100


def sides(count: int = HALF) -> np.ndarray:
    """So many earlier documents, then as many new ones."""
    return np.repeat([False, True], count)


def test_the_distance_is_that_of_kolmogorov_and_smirnov_ties_included():
    draw = np.random.default_rng(1)
    values = {
        "score": draw.normal(0, 1, 2 * HALF),
        "count": draw.poisson(2.0, 2 * HALF).astype(float),
        "zeros": np.where(draw.random(2 * HALF) < 0.7, 0.0, draw.random(2 * HALF)),
    }
    is_new = sides()
    drifts = compare_distributions(values, is_new, np.arange(2 * HALF))
    for one in drifts:
        column = values[one.name]
        assert one.distance == pytest.approx(ks_2samp(column[is_new], column[~is_new]).statistic)
    assert [one.distance for one in drifts] == sorted((o.distance for o in drifts), reverse=True)


def test_of_a_label_the_distance_is_the_difference_of_its_shares():
    is_new = sides()
    label = np.concatenate([np.arange(HALF) < 30, np.arange(HALF) < 75]).astype(float)
    (one,) = compare_distributions({"language = de": label}, is_new, np.arange(2 * HALF))
    assert one.is_label
    assert (one.earlier, one.new) == ((0.30,), (0.75,))
    assert one.distance == pytest.approx(0.45)
    assert one.beyond_chance


def test_unknown_values_count_on_neither_side_and_constants_are_left_out():
    is_new = sides()
    values = np.tile(np.arange(HALF, dtype=float), 2)
    half_known = np.where(np.arange(2 * HALF) % 2 == 0, values, np.nan)
    columns = {
        "all": values,
        "half": half_known,
        "constant": np.ones(2 * HALF),
        "unknown where new": np.where(is_new, np.nan, values),
    }
    drifts = {one.name: one for one in compare_distributions(columns, is_new, np.arange(200))}
    assert set(drifts) == {"all", "half"}
    assert drifts["all"].distance == drifts["half"].distance == 0.0
    assert drifts["half"].earlier[2] == pytest.approx(49.0)  # The median of 0, 2, …, 98.


def test_a_shift_is_found_among_many_signals_and_its_interval_holds_the_true_distance():
    draw = np.random.default_rng(2)
    is_new, count = sides(600), 1200
    values = {f"same {i}": draw.normal(0, 1, count) for i in range(30)}
    values["moved"] = draw.normal(0, 1, count) + is_new
    drifts = compare_distributions(values, is_new, np.arange(count))
    assert [one.name for one in drifts if one.beyond_chance] == ["moved"]
    # Two normals one standard deviation apart differ most in the middle: 2 Φ(1/2) − 1.
    assert drifts[0].low <= math.erf(0.5 / math.sqrt(2)) <= drifts[0].high


def test_pages_of_a_site_are_drawn_together_so_that_ten_signals_raise_no_alarm_by_chance():
    # At 5 % for all ten signals, more than 6 alarms in 40 trials have a chance below 0.4 %.
    assert false_alarms(40, 1000, by_site=True) <= 6
    assert false_alarms(10, 1000, by_site=False) == 10, "as independent documents they would"
