"""Telemetry over ranks: spans of work and collectives, stragglers, profiles of two ranks."""

import json
from types import SimpleNamespace

import pytest
from parallel_training import CASES, Training
from ranks import run_ranks

from stages.parallel.layout import Layout
from stages.parallel.ranks import CPU, Ranks
from stages.training import telemetry_figures
from stages.training.callbacks import StepDone
from stages.training.hardware import Reading
from stages.training.rank_telemetry import (
    LINES,
    RankTelemetry,
    StepProfile,
    common,
    merge,
    profile_of,
    stragglers,
)
from stages.training.telemetry import read_lines


def event(name, start, end, shapes=(), dtypes=()):
    """An event as torch's profiler has it, with times in microseconds."""
    return SimpleNamespace(
        name=name,
        time_range=SimpleNamespace(start=start * 1e6, end=end * 1e6),
        input_shapes=[list(shape) for shape in shapes],
        input_dtypes=list(dtypes),
    )


def test_spans_merge():
    assert merge([(3, 4), (0, 1), (0.5, 2), (2, 2.5)]) == [(0, 2.5), (3, 4)]
    assert common([(0, 2), (4, 6)], [(1, 5)]) == 2


def test_a_collective_is_hidden_where_operations_run():
    events = [
        event("aten::mm", 0, 2),
        event("aten::add", 1, 2),  # Inside of it, as operations call others.
        event("gloo:all_gather", 1, 4, [(10, 3)], ["float"]),
        event("c10d::_allgather_base_", 1, 1.1, [(20, 3)], ["float"]),
        event("gloo:all_reduce", 6, 7, [(5,)], ["double"]),
        event("gloo:all_reduce", 6.5, 7.5, [(5,)], ["c10::BFloat16"]),
    ]
    found = profile_of(events, 3, 9.0, Reading(1000))
    assert (found.rank, found.seconds, found.process_bytes) == (3, 9.0, 1000)
    assert (found.work, found.hidden, found.exposed) == pytest.approx((2, 1, 3.5))
    assert found.collectives["all_gather"] == pytest.approx(
        {"calls": 1, "bytes": 120, "seconds": 3}
    )
    assert found.collectives["all_reduce"] == pytest.approx({"calls": 2, "bytes": 50, "seconds": 2})


def profiles(*work):
    return [StepProfile(rank, 1.0, one, 0, 0, 0, None, {}) for rank, one in enumerate(work)]


def test_a_straggler_works_longer_than_others_with_its_layers():
    ranks = Ranks(0, 4, CPU, Layout(data=4))
    assert stragglers(profiles(1.0, 1.1, 1.9, 1.0), ranks) == [2]
    assert stragglers(profiles(1.0, 1.1, 1.2, 1.0), ranks) == []
    # Stages of a pipeline have other layers, so they are not compared.
    assert (
        stragglers(profiles(1.0, 1.0, 3.0, 3.0), Ranks(0, 4, CPU, Layout(pipeline=2, data=2))) == []
    )


def profiled(folder, slow):
    """Four training steps, the last two of them profiled; rank `slow` has extra work."""
    import torch

    training = Training(Layout(data=2), CASES["adamw"])
    alerts = []
    telemetry = RankTelemetry(
        folder, training.ranks, every=2, sensors=lambda: Reading(1 << 20),
        alert=lambda step, text: alerts.append((step, text)),
    )  # fmt: skip
    telemetry.started(0, 4)
    for step in range(1, 5):
        training.step(step - 1)
        if training.ranks.rank == slow:
            for _ in range(40):
                torch.ones(400, 400) @ torch.ones(400, 400)
        telemetry.step_done(StepDone(step, 0, 0, 0.0, 0.0, 0.0, False, 0, 0.0, {}))
    telemetry.ended(None)
    return alerts


@pytest.mark.full
def test_two_ranks_are_profiled_and_the_slow_one_is_named(tmp_path):
    (alerts, none) = run_ranks(2, profiled, tmp_path, 1)
    rows = list(read_lines((tmp_path / LINES).read_bytes()))
    assert [(row["training_step"], row["rank"]) for row in rows] == [(2, 0), (2, 1), (4, 0), (4, 1)]
    assert none == []
    for row in rows:
        assert row["collectives"]["all_reduce"]["bytes"] > 0
        assert 0 < row["work"] <= row["seconds"]
    by_rank = {row["rank"]: row["work"] for row in rows if row["training_step"] == 4}
    assert by_rank[1] > by_rank[0]
    assert json.dumps(alerts).count("rank 1 is slow") <= 1


def test_the_report_has_ranks_and_collectives(monkeypatch):
    def row(step, rank, work):
        sums = {"calls": 4, "bytes": 2_000_000, "seconds": 0.5}
        return {
            "training_step": step, "rank": rank, "work": work, "exposed": 0.25, "hidden": 0.5,
            "process_bytes": (1 + rank) * 10**9, "device_peak_bytes": None,
            "collectives": {"all_gather": sums},
        }  # fmt: skip

    rows = [row(step, rank, step / 100 + rank) for step in (100, 200) for rank in range(3)]
    content = "".join(json.dumps(one) + "\n" for one in rows).encode() + b'{"cut'
    files = {"ranks.jsonl": content}
    monkeypatch.setattr(telemetry_figures, "_read", lambda artifact, name: files.get(name))
    ranks, collectives = telemetry_figures.rank_figures(None)
    assert [one[:2] for one in ranks.rows] == [
        ("rank 0", 1.5), ("rank 1", 2.5), ("rank 2", 3.5),
        ("least", 1.5), ("median", 2.5), ("most", 3.5),
    ]  # fmt: skip
    assert [one[-1] for one in ranks.rows] == [1, 2, 3, 1, 2, 3]
    assert [one[0] for one in collectives.rows] == ["all-gather"]
    assert collectives.rows[0][1:] == pytest.approx((4.0, 2.0, 0.5))
    # With 3 ranks, a gather of 2 MB each sends 4 MB through each link: 0.4 s at 10 MB a second.
    links = {"check": "links", "ranks": 3, "slowest_link_bytes_per_second": 10**7}
    files["preflight.json"] = json.dumps({"findings": [links]}).encode()
    _, collectives = telemetry_figures.rank_figures(None)
    assert collectives.rows[0][1:] == pytest.approx((4.0, 2.0, 0.5, 0.4))
    files.clear()
    assert telemetry_figures.rank_figures(None) == []
