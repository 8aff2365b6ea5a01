"""Paired differences: by hand, by scipy, and by simulation of the errors that they promise."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from stages.scoring.differences import adjust, mcnemar, paired_difference, tango
from stages.scoring.uncertainty import ratio, share_interval, wilson

Z = 1.959963984540054


def score_z(delta, gained, lost, n):
    """Tango's statistic with the probability of a loss by numerical maximum likelihood."""

    def minus_likelihood(q):
        both = n - gained - lost
        return -(
            gained * math.log(q + delta) + lost * math.log(q) + both * math.log(1 - 2 * q - delta)
        )

    span = max(0.0, -delta) + 1e-12, (1 - delta) / 2 - 1e-12
    q = optimize.minimize_scalar(
        minus_likelihood, bounds=span, method="bounded", options={"xatol": 1e-13}
    ).x
    return (gained - lost - n * delta) / math.sqrt(n * (2 * q + delta * (1 - delta)))


@pytest.mark.parametrize(("gained", "lost", "n"), [(86, 150, 1600), (12, 2, 50), (3, 9, 40)])
def test_of_shares_both_ends_are_just_not_rejected_by_the_score_test(gained, lost, n):
    """Tango (1998): at an end the statistic is 1.96; at no difference it is McNemar's."""
    low, high = tango(gained, lost, n)
    assert score_z(low, gained, lost, n) == pytest.approx(Z, abs=1e-4)
    assert score_z(high, gained, lost, n) == pytest.approx(-Z, abs=1e-4)
    mcnemars = (gained - lost) / math.sqrt(gained + lost)
    assert score_z(0.0, gained, lost, n) == pytest.approx(mcnemars, abs=1e-4)


def test_of_shares_the_interval_is_tangos():
    """The prime minister's ratings in Agresti (2002), table 10.1: 794, 150, 86 and 570 of 1,600."""
    a = [1.0] * 794 + [1.0] * 150 + [0.0] * 86 + [0.0] * 570
    b = [1.0] * 794 + [0.0] * 150 + [1.0] * 86 + [0.0] * 570
    one = paired_difference(a, b, [1.0] * 1600)
    assert (one.a, one.b, one.value) == pytest.approx((944 / 1600, 880 / 1600, -0.04))
    assert (one.low, one.high) == tango(86, 150, 1600)
    assert one.p == pytest.approx(2 * stats.norm.sf(64 / math.sqrt(236)))


def test_the_interval_ends_where_no_larger_difference_is_possible():
    assert tango(10, 0, 10)[1] == 1
    assert tango(0, 10, 10)[0] == -1
    low, high = tango(0, 0, 10)  # δ² n ≤ z² δ (1 - δ) for δ > 0: z² / (n + z²).
    assert (low, high) == pytest.approx((-(Z**2) / (10 + Z**2), Z**2 / (10 + Z**2)))


def test_of_ratios_it_is_students_t_over_documents():
    rng = np.random.default_rng(3)
    a, b = rng.normal(2, 0.3, 40), rng.normal(2.1, 0.3, 40)
    one = paired_difference(a, b, np.ones(40))
    test = stats.ttest_rel(b, a)
    ends = test.confidence_interval(0.95)
    assert one.p == pytest.approx(test.pvalue)
    assert (one.low, one.high) == (pytest.approx(ends.low), pytest.approx(ends.high))


def test_weights_make_it_the_difference_of_the_published_scores():
    """Bits per byte of 10 and 90 bytes: 2 and 1, then 3 and 1: 1.1 and 1.2."""
    one = paired_difference([2.0, 1.0], [3.0, 1.0], [10.0, 90.0])
    assert (one.a, one.b, one.value) == pytest.approx((1.1, 1.2, 0.1))


def test_clusters_are_the_units():
    """Four items in two clusters, alike within: the t test of two values."""
    one = paired_difference([0, 0, 1, 1], [1, 1, 1, 1], [1] * 4, ["p", "p", "q", "q"])
    expected = stats.ttest_1samp([1.0, 0.0], 0)
    assert (one.items, one.units, one.value) == (4, 2, 0.5)
    assert one.p == pytest.approx(expected.pvalue)


def test_one_unit_says_nothing():
    one = paired_difference([0.0, 1.0], [1.0, 1.0], [1.0, 1.0], ["p", "p"])
    assert (one.low, one.high, one.p, one.detectable()) == (None,) * 4


def test_equal_models_do_not_differ_and_still_have_a_width():
    one = paired_difference([1.0, 0.0] * 50, [1.0, 0.0] * 50, [1.0] * 100)
    assert (one.value, one.p) == (0, 1)
    assert one.low < 0 < one.high
    assert one.detectable() > 0


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (5, 0), (3, 9), (12, 12), (1, 23)])
def test_few_items_have_the_exact_test(gained, lost):
    expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert mcnemar(gained, lost) == pytest.approx(expected)


def test_holms_adjustment():
    """Holm (1979); R: p.adjust(c(.01, .04, .03, .005), "holm") is .03 .06 .06 .02."""
    assert adjust([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert adjust([]) == []


def test_a_share_with_clusters_has_the_interval_of_agresti_and_coull_over_clusters():
    """Clusters of four equal items: 20 of 50 clusters, so 22 of 54, ± 1.96 of its error."""
    units = np.array([1.0] * 20 + [0.0] * 30)
    names = [str(i) for i in range(50) for _ in range(4)]
    p = 22 / 54
    width = Z * math.sqrt(p * (1 - p) / 53)
    assert share_interval(np.repeat(units, 4), names) == pytest.approx((p - width, p + width))
    assert share_interval(units) == wilson(20, 50)
    low, high = share_interval(np.ones(200), names)
    assert high == 1
    assert low == pytest.approx(wilson(50, 50)[0], abs=0.02)


def clustered(rng, p, units, size, shared=0.5):
    """Outcomes of probability `p`; in a share of the clusters all items are alike."""
    own = rng.random((units, size)) < p
    alike = rng.random(units) < shared
    own[alike] = (rng.random(alike.sum()) < p)[:, None]
    return own.astype(float).ravel(), [str(i) for i in range(units) for _ in range(size)]


def coverage(intervals, truth):
    return np.mean([low <= truth <= high for low, high in intervals])


RUNS = 2000
"""Simulations: the standard error of a coverage of .95 is .005."""
LEAST, MOST = 0.93, 0.97 + 2 * 0.005


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("n", [100, pytest.param(1000, marks=pytest.mark.full)])
def test_coverage_of_shares_and_of_their_paired_differences(n, p):
    rng = np.random.default_rng([n, int(100 * p)])
    shares = [wilson(rng.binomial(n, p), n) for _ in range(RUNS)]
    assert LEAST <= coverage(shares, p) <= MOST
    differences = []
    for _ in range(RUNS):
        a = (rng.random(n) < p).astype(float)
        b = np.where(rng.random(n) < 0.7, a, rng.random(n) < p).astype(float)
        one = paired_difference(a, b, np.ones(n))
        differences.append((one.low, one.high))
    assert LEAST <= coverage(differences, 0.0) <= MOST


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize(
    ("units", "size"),
    [(30, 8), *(pytest.param(*c, marks=pytest.mark.full) for c in [(33, 3), (125, 8)])],
)
def test_coverage_with_clusters_where_items_alone_would_be_too_sure(units, size, p):
    rng = np.random.default_rng([units, size, int(100 * p)])
    shares, ends, naive = [], [], []
    for _ in range(RUNS):
        outcomes, names = clustered(rng, p, units, size)
        shares.append(share_interval(outcomes, names))
        naive.append(share_interval(outcomes))
        other, _ = clustered(rng, p, units, size)
        one = paired_difference(outcomes, other, np.ones(len(other)), names)
        ends.append((one.low, one.high))
    assert LEAST <= coverage(shares, p) <= MOST
    assert LEAST <= coverage(ends, 0.0) <= MOST
    assert coverage(naive, p) < 0.93


@pytest.mark.full
def test_coverage_of_bits_per_byte_and_of_their_difference():
    rng = np.random.default_rng(11)
    scores, differences = [], []
    for _ in range(RUNS):
        y = rng.integers(50, 500, 100).astype(float)
        x, z = 1.5 * y + rng.normal(0, 60, 100), 1.5 * y + rng.normal(0, 60, 100)
        one = ratio(x, y)
        scores.append((one.value - Z * one.standard_error, one.value + Z * one.standard_error))
        two = paired_difference(x / y, z / y, y)
        differences.append((two.low, two.high))
    assert LEAST <= coverage(scores, 1.5) <= MOST
    assert LEAST <= coverage(differences, 0.0) <= MOST


@pytest.mark.parametrize("n", [200, 1000])
def test_a_difference_of_the_detectable_size_is_seen_in_four_of_five(n):
    """Items that one alone has right: 20 % in all; the planted difference is the detectable one."""
    rng = np.random.default_rng(n)
    size = (Z + 0.8416212335729143) * math.sqrt(0.2 / n)
    for _ in range(20):  # The error depends on the difference itself.
        size = (Z + 0.8416212335729143) * math.sqrt((0.2 - size**2) / n)
    seen = 0
    for _ in range(RUNS):
        gained, lost, _ = rng.multinomial(n, [(0.2 + size) / 2, (0.2 - size) / 2, 0.8])
        seen += mcnemar(gained, lost) < 0.05
    assert seen / RUNS == pytest.approx(0.8, abs=0.03)


def test_where_there_is_no_difference_few_families_report_one():
    """Ten comparisons a family, 2,000 families: at most 5 % and three standard errors."""
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(RUNS):
        values = []
        for n in [60, 100, 200, 400, 1000] * 2:
            count = rng.binomial(n, 0.2)
            gained = rng.binomial(count, 0.5)
            values.append(mcnemar(gained, count - gained))
        false += min(adjust(values)) < 0.05
    assert false / RUNS <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / RUNS)
