"""Metrics against arithmetic and published definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.quality_models.metrics import (
    Curve,
    calibration,
    f1_interval,
    roc_auc,
    score_card,
    share,
)

POSITIVE = np.array([0.9, 0.8, 0.8, 0.3])
NEGATIVE = np.array([0.8, 0.2, 0.1, 0.1, 0.05])


def test_wilson_interval_of_the_textbook():
    """Brown, Cai and DasGupta 2001: 0 of 10 is [0, z²/(n+z²)] = [0, 0.2775]; 5 of 10 by hand."""
    assert share(0, 10) == {"value": 0.0, "low": 0.0, "high": 0.277533, "count": 10}
    # Middle 0.5, half width z/(1+z²/n) · √(0.025 + z²/400) = 1.95996/1.384146 · 0.185964.
    half = share(5, 10)
    assert half is not None
    assert (half["low"], half["high"]) == pytest.approx((0.236593, 0.763407), abs=1e-6)
    assert share(0, 0) is None


def test_the_area_is_how_often_a_positive_is_above():
    pairs = [(p > n) + 0.5 * (p == n) for p, n in itertools.product(POSITIVE, NEGATIVE)]
    assert roc_auc(POSITIVE, NEGATIVE)["value"] == pytest.approx(sum(pairs) / 20)


def test_the_interval_of_the_area_is_delongs():
    """DeLong et al. 1988, eq. 4-7, from the table of all pairs."""
    table = np.array([[(p > n) + 0.5 * (p == n) for n in NEGATIVE] for p in POSITIVE])
    error = np.sqrt(table.mean(1).var(ddof=1) / 4 + table.mean(0).var(ddof=1) / 5)
    found = roc_auc(POSITIVE, NEGATIVE)
    assert found["low"] == pytest.approx(table.mean() - 1.959964 * error, abs=1e-6)
    assert found["high"] == 1.0  # 0.875 + 1.96 · 0.156 is above.


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=12),
    st.lists(st.integers(0, 6), min_size=1, max_size=12),
)
@settings(max_examples=50, deadline=None)
def test_every_card_is_finite_and_the_area_has_its_mirror(positive, negative):
    a, b = np.array(positive) / 6, np.array(negative) / 6
    forth, back = roc_auc(a, b)["value"], roc_auc(b, a)["value"]
    assert forth + back == pytest.approx(1, abs=2e-6)
    card = score_card(a, b, Curve.from_scores(a, b).best_f1(), seed=1)

    def numbers(value):
        if isinstance(value, dict):
            return [n for one in value.values() for n in numbers(one)]
        if isinstance(value, list):
            return [n for one in value for n in numbers(one)]
        return [] if value is None else [value]

    assert np.isfinite(numbers(card)).all()


def test_precision_and_recall_at_every_threshold():
    curve = Curve.from_scores(POSITIVE, NEGATIVE)
    assert curve.thresholds.tolist() == [0.9, 0.8, 0.3, 0.2, 0.1, 0.05]
    assert curve.precision.tolist() == pytest.approx([1, 3 / 4, 4 / 5, 4 / 6, 4 / 8, 4 / 9])
    assert curve.recall.tolist() == pytest.approx([1 / 4, 3 / 4, 1, 1, 1, 1])
    assert curve.best_f1() == 0.3  # 2 · 0.8 · 1 / 1.8 is the greatest.


def test_the_cutoff_keeps_no_more_of_the_contrast_than_was_said():
    curve = Curve.from_scores(POSITIVE, NEGATIVE)
    assert curve.keeping(0.2) == 0.3  # One of five, 0.8, is above; at 0.2 it would be two.
    assert curve.keeping(0.4) == 0.2
    assert curve.keeping(0.39) == 0.3
    tied = Curve.from_scores(np.array([1.0, 0.5]), np.array([1.0, 1.0]))
    assert tied.keeping(0.1) > 1.0  # Half of it has the highest score: nothing can be kept.


def test_calibration_by_hand_with_classes_weighing_alike():
    """The bin of 0.9 holds weights 1/4 + 1/4 of positives and 1/4 of negatives."""
    found = calibration(np.array([0.9, 0.9]), np.array([0.9, 0.1]))
    low, high = found["bins"]
    assert (low["documents"], low["score"], low["reference_share"]) == (1, 0.1, 0)
    assert (high["documents"], high["score"]) == (3, 0.9)
    assert high["reference_share"] == pytest.approx(2 / 3, abs=1e-6)
    assert found["expected_error"] == pytest.approx(0.75 * (0.9 - 2 / 3) + 0.25 * 0.1)
    assert found["brier"] == pytest.approx((0.01 + 0.01 + 0.81 + 0.01) / 4)


def test_more_documents_of_one_class_do_not_change_the_calibration():
    once = calibration(POSITIVE, NEGATIVE)
    thrice = calibration(POSITIVE, np.tile(NEGATIVE, 3))
    assert once["expected_error"] == thrice["expected_error"]
    assert once["brier"] == thrice["brier"]


def test_f1_and_its_interval():
    found = f1_interval(80, 10, 100, 100, seed=1)
    assert found["value"] == pytest.approx(160 / 190, abs=1e-6)
    assert found == f1_interval(80, 10, 100, 100, seed=1)
    assert found != f1_interval(80, 10, 100, 100, seed=2)
    # Delta method: of F1 = 2h/(h+a+100), Var = (2(a+100)/s²)²·16 + (2h/s²)²·9 at s = 190.
    error = ((220 / 190**2) ** 2 * 16 + (160 / 190**2) ** 2 * 9) ** 0.5
    assert found["high"] - found["low"] == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_a_constant_score_is_worth_a_coin():
    same = np.full(10, 0.5)
    card = score_card(same, same, Curve.from_scores(same, same).keeping(0.1), seed=1)
    assert card["roc_auc"]["value"] == 0.5
    assert card["at_cutoff"]["precision"] is None
    assert card["at_cutoff"]["recall"]["value"] == 0
