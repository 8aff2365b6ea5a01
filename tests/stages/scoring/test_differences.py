"""Paired differences: by hand, by scipy, and by simulation of the errors that they promise."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from stages.scoring.differences import adjust, mcnemar, paired_difference, tango
from stages.scoring.uncertainty import share_interval, wilson
from tests.benchmarks import coverage as simulation

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


def draws(interval, *arguments, seed):
    rng = np.random.default_rng(seed)
    return lambda: interval(rng, *arguments)


LEAST, MOST = 0.93 - 0.005, 0.97 + 2 * 0.005
"""2,000 simulations: the standard error of a coverage of .95 is .005, of .97 .004."""
SHARES = pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])


@SHARES
@pytest.mark.parametrize("n", [100, pytest.param(1000, marks=pytest.mark.full)])
def test_coverage_of_shares_and_of_their_paired_differences(n, p):
    seed = [n, int(100 * p)]
    assert LEAST <= simulation.covered(p, draws(simulation.share, n, p, seed=seed)) <= MOST
    same = draws(simulation.difference, n, p, seed=seed)
    assert LEAST <= simulation.covered(0.0, same) <= MOST
    apart = draws(simulation.difference, n, p, 0.2, seed=seed)
    assert LEAST <= simulation.covered(0.2 * (1 - p), apart) <= MOST


@SHARES
@pytest.mark.parametrize(
    "sizes",
    [
        simulation.equal_sizes(30),
        pytest.param(simulation.unequal_sizes(30), marks=pytest.mark.full),
        pytest.param(simulation.equal_sizes(125), marks=pytest.mark.full),
    ],
    ids=["30 of 8", "30 of 1 to 15", "125 of 8"],
)
def test_coverage_with_clusters_where_items_alone_would_be_too_sure(sizes, p):
    seed = [len(sizes), int(100 * p)]

    def naive(rng):
        return share_interval(simulation.clustered(rng, p, sizes))

    share = draws(simulation.share_of_clusters, sizes, p, seed=seed)
    assert LEAST <= simulation.covered(p, share) <= MOST + 0.01
    difference = draws(simulation.difference_of_clusters, sizes, p, seed=seed)
    assert LEAST <= simulation.covered(0.0, difference) <= 0.995
    assert simulation.covered(p, draws(naive, seed=seed)) < 0.93


@pytest.mark.parametrize("n", [5, 30, 100, pytest.param(1000, marks=pytest.mark.full)])
def test_coverage_of_bits_per_byte_where_a_few_documents_are_most_of_the_text(n):
    score = draws(simulation.bits, n, 1.0, seed=n)
    assert LEAST <= simulation.covered(1.5, score) <= MOST
    difference = draws(simulation.difference_of_bits, n, 1.0, seed=n)
    assert LEAST <= simulation.covered(0.0, difference) <= MOST


@pytest.mark.parametrize(
    ("compare", "units"),
    [
        (simulation.shares_apart, 200),
        (simulation.clusters_apart, 100),
        (simulation.bits_apart, 100),
        pytest.param(simulation.shares_apart, 1000, marks=pytest.mark.full),
        pytest.param(simulation.bits_apart, 1000, marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("comparisons", [1, pytest.param(10, marks=pytest.mark.full)])
def test_a_difference_of_the_detectable_size_is_seen_in_four_of_five(compare, units, comparisons):
    seen = simulation.power(compare(np.random.default_rng(units), units), comparisons)
    assert seen == pytest.approx(0.8, abs=0.03)


@pytest.mark.full
def test_of_few_clusters_a_detectable_difference_is_seen_rather_too_often():
    """Sums of 30 clusters that move as a whole are skewed: `seen from` is on the safe side."""
    assert simulation.power(simulation.clusters_apart(np.random.default_rng(4), 30)) > 0.77


def test_where_there_is_no_difference_few_families_report_one():
    """Ten comparisons a family, 2,000 families: at most 5 % and three standard errors."""
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(2000):
        values = []
        for n in [60, 100, 200, 400, 1000] * 2:
            count = rng.binomial(n, 0.2)
            gained = rng.binomial(count, 0.5)
            values.append(mcnemar(gained, count - gained))
        false += min(adjust(values)) < 0.05
    assert false / 2000 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.full
def test_few_families_of_clusters_and_texts_report_a_difference_where_there_is_none():
    rng = np.random.default_rng(6)
    family = [
        make(rng, units)
        for make in (simulation.clusters_apart, simulation.bits_apart, simulation.shares_apart)
        for units in (30, 100)
    ]
    assert simulation.false_families(family) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)
