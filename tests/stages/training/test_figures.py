"""Curves of hand-made training runs; numbers follow from the rows that are given."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from artifacts_schema.store import layout
from stages.engine.page import Artifact, Mark
from stages.training import figures
from stages.training.figures import Telemetry, TrainingRun, kept_rows, smoothed

NAN = math.nan


def metric(step, time, tokens=None, **more):
    read = {} if tokens is None else {"tokens": tokens}
    return {"type": "metric", "time": time, "training_step": step, **read, **more}


STARTED = {"type": "started", "time": 0.0, "stage": "pretrain", "key": "x"}


def row(step, **changes):
    return {
        "training_step": step,
        "tokens": 100 * step,
        "phase": 0,
        "loss": 5.0 - step,
        "grad_norm": 1.0,
        "learning_rate": 0.1,
        "skipped": 0.0,
        **changes,
    }


@pytest.fixture
def made(given, store):
    """`made(rows, held_out, events, **account)` → an artifact that holds such a training run."""

    def make(rows, held_out=(), events=None, **account):
        known = {"training_steps": len(rows), "tokens": 0, "skipped_updates": 0, **account}
        manifest, _ = given(
            "training_run",
            {"metrics.parquet": rows, "held_out.parquet": list(held_out), "run.json": known},
        )
        folder = layout.payload(manifest.stage, manifest.key, manifest.attempt, "telemetry")
        store.backend.remove(folder)
        if events is not None:
            lines = [e if isinstance(e, bytes) else json.dumps(e).encode() for e in events]
            store.backend.replace(f"{folder}/events.jsonl", b"\n".join(lines) + b"\n")
        return Artifact(store, manifest)

    return make


# Shapes of curves --------------------------------------------------------------------------------


def test_a_running_mean_shrinks_at_the_ends_and_steps_over_what_is_not_finite():
    values = np.array([1.0, 2.0, NAN, 4.0, 10.0])
    assert smoothed(values, 3).tolist() == [1.5, 1.5, 3.0, 7.0, 7.0]


def test_a_running_mean_weighs_every_target_alike():
    values, targets = np.array([2.0, 8.0]), np.array([3.0, 1.0])
    assert smoothed(values, 3, targets).tolist() == [3.5, 3.5]


def test_a_running_mean_of_nothing_is_nothing():
    found = smoothed(np.array([NAN, NAN, NAN, 1.0]), 3, np.array([1.0, 0.0, 1.0, 1.0]))
    assert np.isnan(found[:2]).all()
    assert found[2:].tolist() == [1.0, 1.0]


def test_a_short_curve_keeps_every_row():
    assert kept_rows([np.zeros(7)], most=7).tolist() == list(range(7))


def test_a_long_curve_keeps_its_ends_spikes_and_gaps_within_the_limit():
    curve = np.sin(np.arange(200_000) / 1000)
    curve[123_456], curve[77_777], curve[150_001] = 50.0, -50.0, NAN
    rows = kept_rows([curve, np.zeros(200_000)], most=5_000)
    assert len(rows) <= 5_000
    assert {0, 199_999, 123_456, 77_777, 150_001} <= set(rows.tolist())
    assert (np.diff(rows) > 0).all()


# Curves of a run ---------------------------------------------------------------------------------


def test_phases_and_skipped_updates_are_marked_and_leave_gaps(made):
    rows = [row(1), row(2, loss=NAN, grad_norm=math.inf, skipped=1.0), row(3), row(4, phase=1)]
    run = TrainingRun(made(rows), "tokens")
    assert run.marks == (Mark(200.0, "update skipped"), Mark(400.0, "phase 2"))
    (loss,) = figures.loss(run, "Loss", "")
    assert loss.series[0].y == (4.0, None, 2.0, 1.0)
    assert loss.series[0].x == (100.0, 200.0, 300.0, 400.0)
    (norm,) = figures.gradient_norm(run)
    assert norm.series[0].y == (1.0, None, 1.0, 1.0)
    assert norm.y.scale == "log"


def test_where_a_rollback_left_steps_out_is_marked_behind_them(made):
    rows = [row(step) for step in (1, 2, 3, 7, 8)]
    run = TrainingRun(made(rows, left_out_training_steps=[[4, 6]]), "training_step")
    assert run.marks == (Mark(7.0, "rolled back"),)


def test_going_back_takes_no_tokens_from_the_speed():
    """Ten tokens a second: steps 1 to 3, back to 2, which is done anew at the same speed."""
    steps = [(1, 1.0, 10), (2, 2.0, 20), (3, 3.0, 30), (2, 10.0, 20), (3, 11.0, 30), (4, 12.0, 40)]
    told = Telemetry.from_events(iter([STARTED, *(metric(*one) for one in steps)]), 4)
    assert set(told.tokens_per_second) == {10.0}


def test_a_norm_of_zero_has_no_place_on_a_logarithmic_axis(made):
    run = TrainingRun(made([row(1, grad_norm=0.0), row(2, grad_norm=3.0)]), "training_step")
    (norm,) = figures.gradient_norm(run)
    assert norm.series[0].y == (None, 3.0)


def test_a_run_whose_losses_are_all_broken_draws_no_loss(made):
    run = TrainingRun(made([row(1, loss=NAN), row(2, loss=NAN)]), "tokens")
    assert figures.loss(run, "Loss", "") == []
    facts = dict(figures.run_facts(run).rows)
    assert facts["loss at the end, nats"] == "not finite"


def test_the_clipping_threshold_is_drawn_where_the_config_names_it(made):
    artifact = made([row(1), row(2)])
    config = {"optimizer": {"clip": 0.5}}
    artifact = Artifact(artifact.store, artifact.manifest.model_copy(update={"config": config}))
    (norm,) = figures.gradient_norm(TrainingRun(artifact, "training_step"))
    assert (norm.series[-1].x, norm.series[-1].y) == ((1.0, 2.0), (0.5, 0.5))


def test_loss_by_source_is_drawn_for_several_sources_only(made):
    two = [
        row(step, **{"loss/a": 1.0, "targets/a": 2.0, "loss/b": None, "targets/b": 0.0})
        for step in (1, 2)
    ]
    two[1] |= {"loss/b": 3.0, "targets/b": 1.0}
    (drawn,) = figures.loss_by_source(TrainingRun(made(two), "tokens"))
    assert {series.name: series.y for series in drawn.series} == {"a": (1.0, 1.0), "b": (None, 3.0)}
    one = [row(1, **{"loss/a": 1.0, "targets/a": 2.0})]
    assert figures.loss_by_source(TrainingRun(made(one), "tokens")) == []


def held(step, source, loss, bits=None):
    return {
        "training_step": step,
        "tokens": 100 * step,
        "source": source,
        "loss": loss,
        "bits_per_byte": bits,
        "language": None,
    }


def test_held_out_loss_stands_beside_the_training_loss(made):
    measured = [held(0, "all", 6.0), held(0, "web", 6.0), held(2, "all", 3.0), held(2, "web", 3.0)]
    run = TrainingRun(made([row(1), row(2)], measured), "training_step")
    (loss,) = figures.loss(run, "Loss", "")
    assert (loss.series[-1].name, loss.series[-1].x) == ("held out", (0.0, 2.0))
    # One source is all there is, so it is not drawn twice; without bytes there are no bits.
    assert list(run.held_out("loss")) == ["all"]
    assert run.held_out("bits_per_byte") == {}


def test_of_several_sources_the_loss_figure_shows_held_out_loss_of_all(made):
    measured = [held(2, name, loss) for name, loss in (("all", 3.0), ("a", 2.0), ("b", 4.0))]
    run = TrainingRun(made([row(1), row(2)], measured), "training_step")
    (loss,) = figures.loss(run, "Loss", "")
    assert [series.name for series in loss.series] == ["loss of a step", "held out"]
    assert {name: series.y for name, series in run.held_out("loss").items()} == {
        "a": (2.0,),
        "all": (3.0,),
        "b": (4.0,),
    }


def test_a_run_without_held_out_data_draws_its_training_loss_alone(made):
    (loss,) = figures.loss(TrainingRun(made([row(1), row(2)]), "training_step"), "Loss", "")
    assert [series.name for series in loss.series] == ["loss of a step"]


def test_a_long_run_is_thinned_to_the_limit_and_the_note_says_so(made, monkeypatch):
    monkeypatch.setattr(figures, "POINTS", 90)
    rows = [row(step, loss=9.0 if step == 333 else 1.0) for step in range(1, 1001)]
    (loss,) = figures.loss(TrainingRun(made(rows), "training_step"), "Loss", "Nats.")
    points = dict(zip(loss.series[0].x, loss.series[0].y, strict=True))
    assert len(points) <= 90
    assert points[333.0] == 9.0
    assert f"{len(points)} of 1,000" in loss.note
    assert len(loss.table().rows) == len(points)


# Telemetry ---------------------------------------------------------------------------------------


def test_speed_counts_the_time_of_steps_and_not_of_measurement():
    events = [
        STARTED,
        metric(0, 10.0, **{"held_out/all": 8.0}),
        metric(1, 12.0, 100),
        metric(2, 13.0, 300),
        metric(2, 99.0, **{"held_out/all": 7.0}),
        metric(3, 103.0, 700),
    ]
    found = Telemetry.from_events(iter(events), 3)
    assert found.tokens_per_second == (50.0, 200.0, 100.0)
    assert found.last_steps == (1, 2, 3)
    assert found.resumed_at == ()


def test_a_resumed_run_is_marked_where_it_went_on_and_its_pause_costs_no_speed():
    events = [
        STARTED,
        metric(0, 1.0, **{"held_out/all": 8.0}),
        metric(1, 2.0, 100),
        metric(2, 3.0, 200),
        metric(3, 4.0, 300),
        STARTED,  # killed; the newest checkpoint is of step 1
        metric(2, 1000.0, 200),
        metric(3, 1002.0, 300),
    ]
    found = Telemetry.from_events(iter(events), 3)
    assert found.resumed_at == (2,)
    # Step 3 ran twice, in 1 s and in 2 s; of step 2's second run the start is not known.
    assert found.tokens_per_second == (100.0, 100.0, 200 / 3)


def test_a_run_that_began_anew_counts_no_time_before_its_start():
    events = [STARTED, metric(1, 1.0, 100), metric(2, 2.0, 200)]
    events += [STARTED, metric(1, 1000.0, 100), metric(2, 1004.0, 200)]
    found = Telemetry.from_events(iter(events), 2)
    assert found.tokens_per_second == (200 / 5,)
    assert found.resumed_at == (1,)


def test_tokens_before_the_first_step_of_a_resumed_run_are_not_guessed():
    events = [STARTED, metric(1, 1.0, 100), metric(2, 2.0, 200), metric(3, 3.0, 300)]
    events += [STARTED, metric(1, 50.0, **{"held_out/all": 1.0}), metric(2, 60.0, 200)]
    assert Telemetry.from_events(iter(events), 3).tokens_per_second == (100.0, 100.0)


def test_a_start_that_made_no_step_is_not_told_twice():
    events = [STARTED, metric(1, 1.0, 100), STARTED, STARTED, metric(2, 2.0, 200)]
    assert Telemetry.from_events(iter(events), 2).resumed_at == (2,)


def test_speed_is_averaged_over_windows_of_a_long_run():
    events = [STARTED, metric(0, 0.0, loss=1.0)]
    events += [metric(step, float(step), 10 * step) for step in range(1, 1001)]
    found = Telemetry.from_events(iter(events), 1000)
    assert found.window == 5
    assert found.last_steps == tuple(range(5, 1001, 5))
    assert set(found.tokens_per_second) == {10.0}


def test_a_clock_set_back_makes_no_negative_speed():
    events = [STARTED, metric(0, 8.0, loss=1.0), metric(1, 9.0, 100), metric(2, 5.0, 200)]
    # Of 400 steps, two make a window: the first took a second, of the other nothing is known.
    assert Telemetry.from_events(iter(events), 400).tokens_per_second == (100.0,)


def test_events_cut_by_a_kill_are_stepped_over(made):
    events = [
        STARTED,
        metric(1, 1.0, 100),
        b'{"type": "metric", "time": 2.0, "training_st' + json.dumps(STARTED).encode(),
        metric(2, 3.0, 200),
        metric(3, 4.0, 300),
        b'{"type": "metric", "time": 5.0, "trai',
    ]
    run = TrainingRun(made([row(1), row(2), row(3)], events=events), "tokens")
    (speed,) = figures.throughput(run)
    assert (speed.series[0].x, speed.series[0].y) == ((300.0,), (100.0,))
    assert speed.marks == (Mark(200.0, "resumed"),)


def test_without_events_there_is_no_speed_and_no_word_on_resumption(made):
    run = TrainingRun(made([row(1), row(2)]), "tokens")
    assert figures.throughput(run) == []
    assert "times resumed" not in dict(figures.run_facts(run).rows)


def test_lines_are_whole_however_the_file_is_cut_into_blocks():
    assert list(figures._lines([b"ab", b"c\nd", b"\n\nef"])) == [b"abc", b"d", b"", b"ef"]
