import math

import numpy as np
import pytest

from stages.scoring.likelihood import unigram_nll
from stages.scoring.uncertainty import (
    Estimate,
    doubt_of_interval,
    mean,
    ratio,
    student_interval,
    wilson,
)


def test_standard_error_of_a_mean_is_that_of_lm_eval():
    # sample standard deviation over the square root of n: sqrt(0.3) / sqrt(5)
    estimate = mean([1, 0, 1, 1, 0])
    assert estimate.value == 0.6
    assert estimate.standard_error == pytest.approx(math.sqrt(0.3 / 5))


def test_a_ratio_of_equal_documents_is_their_mean():
    values = [3.0, 5.0, 4.0, 9.0]
    as_mean, as_ratio = mean(values), ratio(values, [1, 1, 1, 1])
    assert as_ratio.value == as_mean.value
    assert as_ratio.standard_error == pytest.approx(as_mean.standard_error)


def test_bits_per_byte_of_texts_of_unlike_length_is_sum_over_sum():
    # lm-eval: -sum ll / (bytes · ln 2) for (-120.5, 80 bytes) and (-33.25, 21 bytes) is 2.196182
    estimate = ratio([120.5 / math.log(2), 33.25 / math.log(2)], [80, 21])
    assert estimate.value == pytest.approx(2.196182, abs=1e-6)


def test_standard_error_of_a_ratio_agrees_with_the_bootstrap():
    rng = np.random.default_rng(0)
    y = rng.integers(50, 500, size=300)
    x = 1.5 * y + rng.normal(0, 60, size=300)
    draws = rng.integers(0, 300, size=(4000, 300))
    bootstrap = (x[draws].sum(axis=1) / y[draws].sum(axis=1)).std()
    assert ratio(x, y).standard_error == pytest.approx(bootstrap, rel=0.08)


def test_one_observation_has_no_standard_error():
    assert mean([1.0]).standard_error is None
    assert ratio([1.0], [2.0]).standard_error is None


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_of_a_share_is_wilsons(successes, count, low, high):
    # Newcombe (1998), Statistics in Medicine 17, table I, method 3
    assert wilson(successes, count) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_the_interval_of_all_or_none_has_a_width_and_ends_at_the_value():
    # Both ends solve |p - π| = z sqrt(π (1 - π) / n); for p = 1 that is π = n / (n + z²).
    low, high = wilson(4, 4)
    assert (low, high) == (pytest.approx(4 / (4 + 1.959963984540054**2)), 1.0)
    assert wilson(0, 4) == (0.0, pytest.approx(1 - low))


def test_the_interval_of_a_ratio_is_students_cut_at_zero():
    """t of 97.5 %: 2.262157 with 9 degrees of freedom, 1.959964 with infinitely many."""
    assert student_interval(Estimate(1.0, 0.1, 9.0)) == pytest.approx((0.7737843, 1.2262157))
    assert student_interval(Estimate(1.0, 0.1)) == pytest.approx((0.8040036, 1.1959964))
    assert student_interval(Estimate(0.1, 1.0), least=0.0)[0] == 0.0
    assert student_interval(Estimate(1.0, None)) is None
    assert student_interval(Estimate(1.0, math.nan)) is None


def test_a_long_document_counts_as_much_as_leaving_it_out_changes_the_score():
    """Jackknife by hand: 10 bits of 10 bytes, 30 of 20, 20 of 10; without each 5/3, 3/2 and 4/3.

    R is 1.5; sqrt(2/3 · ((1/6)² + 0 + (1/6)²)) = 0.1924501. Effective units: 40² / 600 = 8/3.
    """
    estimate = ratio([10.0, 30.0, 20.0], [10.0, 20.0, 10.0])
    assert estimate.value == 1.5
    assert estimate.standard_error == pytest.approx(0.1924501)
    assert estimate.freedom == pytest.approx(5 / 3)


def test_unigram_model_is_add_one_smoothed_and_sums_to_one():
    nll = unigram_nll(np.array([0, 3, 1], dtype=np.int64))
    np.testing.assert_allclose(np.exp(-nll), [1 / 7, 4 / 7, 2 / 7])


@pytest.mark.parametrize(
    ("outcomes", "clusters", "doubt"),
    [
        ([1.0] + [0.0] * 29, None, "one of 30"),
        ([0.0] + [1.0] * 29, None, "one of 30"),
        ([0.0] * 30, None, None),
        ([1.0, 1.0] + [0.0] * 28, None, None),
        ([1.2, 0.0, 0.0, 0.0, 0.0], None, None),
        ([2.5], None, "one unit"),
        ([1.0, 1.0, 0.0, 0.0] * 5, list("aabbb") * 4, "2 units"),
    ],
)
def test_intervals_that_may_be_too_narrow_are_doubted(outcomes, clusters, doubt):
    assert doubt_of_interval(outcomes, clusters) == doubt


def test_wilsons_interval_is_doubted_where_its_coverage_is_below_nine_in_ten():
    """Exact: of 30 items and a share of .0058 it covers 84 %, and is wrong where one is right."""
    n, p = 30, 0.0058
    ends = [wilson(k, n) for k in range(n + 1)]
    chances = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    missed = [k for k, (low, high) in enumerate(ends) if not low <= p <= high]
    covered = 1 - sum(chances[k] for k in missed)
    assert covered == pytest.approx(0.84, abs=0.01)
    assert missed[0] == 1
    assert chances[1] > 0.9 * (1 - covered)
