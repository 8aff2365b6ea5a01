"""A run seen from outside: what its events say, how it ended, and what goes on without it."""

from __future__ import annotations

import json

import pytest

from artifacts_schema.store import layout
from artifacts_schema.store.lease import Lease, this_process
from artifacts_schema.store.runs import Run, RunStep, find_run, new_run_id, write_run
from flows.cli.progress import format_live
from flows.recipe.execute import execute
from flows.recipe.observers import POINTS, LiveProgress, RunWatcher

KEY = "ab" * 32


def progress(done, time, total=100):
    return {"type": "progress", "time": time, "done": done, "total": total, "unit": "steps"}


def metric(tokens, time, loss=2.0):
    return {"type": "metric", "time": time, "tokens": tokens, "loss": loss}


def test_rate_and_time_left_are_those_of_the_last_half_minute_and_of_this_attempt():
    live = LiveProgress()
    for event in (progress(5, 0.0), {"type": "started", "time": 100.0}, progress(10, 100.0)):
        live.add(event)
    assert live.seconds_left is None
    live.add(progress(30, 110.0))
    assert live.seconds_left == pytest.approx(70 / 2)  # 20 steps in 10 s, 70 to go.
    for tokens, time in ((0, 50.0), (1_000, 100.0), (5_000, 110.0), (11_000, 120.0)):
        live.add(metric(tokens, time))
    assert live.tokens_per_second == pytest.approx(500.0)  # 10,000 tokens in the last 20 s.


def test_a_rollback_begins_the_rate_again():
    live = LiveProgress()
    for tokens, time in ((8_000, 50.0), (9_000, 51.0), (4_000, 60.0)):
        live.add(metric(tokens, time))
    assert live.tokens_per_second is None
    live.add(metric(4_500, 61.0))
    assert live.tokens_per_second == pytest.approx(500.0)


def test_a_long_curve_is_thinned_and_keeps_its_whole_span():
    live = LiveProgress()
    for step in range(10 * POINTS):
        live.add(metric(step, float(step), loss=float(step)))
    assert POINTS / 2 <= len(live.losses) <= POINTS
    assert live.losses[0] == 0.0
    assert live.losses[-1] > 9.9 * POINTS


@pytest.fixture
def running(store):
    """A run record of this process with one step that runs, and a writer of its events."""
    me = this_process()
    step = RunStep(instance="train", stage="pretrain", key=KEY, state="running")
    run = Run(
        id=new_run_id(), recipe="demo", state="running", started="2026-01-01T00:00:00Z",
        updated="2026-01-01T00:00:00Z", steps=(step,), machine=me.machine, process=me.process,
        process_started=me.started,
    )  # fmt: skip
    write_run(store, run)
    path = store.backend.local_path(layout.work(KEY, "events.jsonl"))
    path.parent.mkdir(parents=True, exist_ok=True)

    def tell(text: str) -> None:
        with path.open("a") as file:
            file.write(text)

    return RunWatcher(store, run), tell


def test_events_are_read_once_and_only_whole_lines(running):
    watched, tell = running
    line = json.dumps(metric(7, 1.0, loss=3.5))
    tell(line[:20])
    assert watched.look().steps[0].live.losses == []
    tell(line[20:] + "\n")
    assert watched.look().steps[0].live.losses == [3.5]
    assert watched.look().steps[0].live.losses == [3.5]


def test_a_run_whose_process_is_gone_is_over_and_its_child_may_work_on(running, store):
    watched, _ = running
    assert not watched.look().is_over
    write_run(store, watched.run.model_copy(update={"process_started": "1"}))
    view = watched.look()
    assert (view.lost, view.is_over) == (True, True)
    assert watched.still_working(view) == []
    lease = Lease.take(store.backend, KEY)
    assert watched.still_working(view) == ["train"]
    lease.release()


def test_a_run_on_another_machine_is_not_called_lost(running, store):
    watched, _ = running
    write_run(store, watched.run.model_copy(update={"machine": "elsewhere", "process": 1}))
    assert not watched.look().lost


def test_a_step_whose_heartbeat_stands_still_gives_no_sign_of_life(running, store):
    """On another machine nobody can ask whether its process exists; by the watcher's clock."""
    watched, tell = running
    write_run(store, watched.run.model_copy(update={"machine": "elsewhere", "process": 1}))
    now = [0.0]
    watched.now = lambda: now[0]

    def silent_at(second):
        now[0] = second
        return watched.look().steps[0].live.silent_seconds

    assert [silent_at(0.0), silent_at(100.0)] == [0.0, 0.0]  # A job that is queued has no lease.
    lease = Lease.take(store.backend, KEY)
    assert [silent_at(110.0), silent_at(130.0), silent_at(145.0)] == [0.0, 0.0, 35.0]
    lease.release()
    assert silent_at(150.0) == 0.0
    lease = Lease.take(store.backend, KEY)
    assert [silent_at(160.0), silent_at(191.0)] == [0.0, 31.0]
    tell(json.dumps({"type": "progress", "time": 1.0, "done": 3, "total": 10, "unit": "shards"}))
    tell("\n")
    text = format_live(watched.look().steps[0].live)
    assert text == "no sign of life for 31.0 s, 3 of 10 shards"
    lease.release()


def test_a_finished_run_shows_what_every_step_kept(open_pipeline, inline, store):
    execute(open_pipeline(), dispatch=inline)
    view = RunWatcher(store, find_run(store, "demo")).look()
    assert view.is_over
    accounts = {v.step.instance: v.manifest.conservation for v in view.steps}
    assert accounts["choose"].records_in > accounts["choose"].out
