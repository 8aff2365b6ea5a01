"""Links between ranks: measured in a ring, judged by their kind, modelled as a ring."""

import time

import pytest
from ranks import run_ranks

from stages.parallel import links as measurement
from stages.parallel.links import Link, Links, _phases, measure_links, ring_seconds
from stages.parallel.ranks import CPU, Ranks
from stages.pretrain.preflight_checks import Finding, judge_links, merge_findings


@pytest.mark.parametrize("world", range(2, 10))
def test_a_ring_is_measured_in_phases_in_which_no_rank_has_two_links(world):
    phases = _phases(world)
    for pairs in phases:
        ranks = [rank for pair in pairs for rank in pair]
        assert len(ranks) == len(set(ranks))
    ring = {frozenset((rank, (rank + 1) % world)) for rank in range(world)}
    measured = [frozenset(pair) for pairs in phases for pair in pairs]
    assert set(measured) == ring
    assert len(measured) == len(ring)


def test_ring_times_are_those_of_nccl_tests():
    """Its doc/PERFORMANCE.md: factors 2 (n - 1) / n and (n - 1) / n of the size of all parts."""
    n, size, rate = 8, 1e9, 1e10
    assert ring_seconds("all_reduce", size, n, rate) == pytest.approx(2 * 7 / 8 * 0.1)
    assert ring_seconds("reduce_scatter", size, n, rate) == pytest.approx(7 / 8 * 0.1)
    # What a rank gives is an eighth of all.
    assert ring_seconds("_all_gather_base", size / 8, n, rate) == pytest.approx(7 / 8 * 0.1)
    assert ring_seconds("barrier", 0, n, rate) is None


def _measure(slow):
    ranks = Ranks.from_group(CPU)
    multiply = measurement._multiply

    def held_up(device):
        time.sleep(0.2 if ranks.rank == slow else 0)
        return multiply(device)

    measurement._multiply = held_up
    return measure_links(ranks)


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_measure_the_same_and_the_slow_one_is_named(world):
    measured = run_ranks(world, _measure, world - 1)
    assert all(one == measured[0] for one in measured)
    links = measured[0]
    assert len(links.ring) == (1 if world == 2 else 3)
    assert all(link.rate > 0 and link.local for link in links.ring)
    assert links.all_reduce > 0
    assert links.work[world - 1] >= 0.2
    if world > 2:  # Of two, none is the usual one.
        assert links.slow_ranks() == [world - 1]


def ring(rates, machines, work=None):
    size = len(rates)
    links = [
        Link(one, (one + 1) % size, rate, machines[one] == machines[(one + 1) % size])
        for one, rate in enumerate(rates)
    ]
    return Links(machines, work or [1.0] * size, links, 5e9)


def test_a_link_between_machines_is_not_slow_beside_those_within_one():
    two = ["a"] * 4 + ["b"] * 4
    links = ring([9e9, 9e9, 9e9, 1e9, 9e9, 9e9, 9e9, 1e9], two)
    assert judge_links(links).level == "ok"
    links = ring([9e9, 9e9, 9e9, 1e9, 9e9, 2e9, 9e9, 1e9], two)
    finding = judge_links(links)
    assert finding.level == "warning"
    assert "between rank 5 (b) and rank 6 (b) is slow" in finding.message
    assert finding.numbers["slowest_link_bytes_per_second"] == 10**9


def test_a_slow_rank_is_named_with_its_machine():
    links = ring([1e9] * 4, ["a", "a", "b", "b"], [1.0, 1.1, 0.9, 3.9])
    assert judge_links(links).message.startswith("rank 3 (b) computes slowly; ")


def test_of_a_check_of_all_ranks_the_worst_is_reported():
    ok, warning, refusal = (
        Finding("memory", level, level) for level in ("ok", "warning", "refusal")
    )
    device = Finding("device", "ok", "cpu")
    merged = merge_findings([[device, ok], [device, warning], [device, refusal], [device, ok]])
    assert [(one.check, one.level, one.message) for one in merged] == [
        ("device", "ok", "cpu"),
        ("memory", "refusal", "rank 2: refusal"),
    ]
