"""A run that is suspended for longer than its lease, succeeded, and wakes up: it changes nothing.

The suspended process says that it runs on another machine, so nobody can end it: what holds here is
fencing alone. Its successor waits at a point of its own until the woken one has ended.
"""

from __future__ import annotations

import json
import logging
import os
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from forks import LOST, ended, fork
from pipeline import faults
from pipeline.conftest import FURTHER_STEPS

from artifacts_schema.store import failpoints, lease
from artifacts_schema.store.gc import remove_artifact
from stages.engine.runner import run_stage
from stages.training.monitor import RunLog

pytestmark = pytest.mark.faults

WITHOUT_SHARDS = {
    "pretrain": "measured",
    "reference": "checkpoint files written",
    "preference": "checkpoint written",
    "reward": "checkpoint written",
    "packed_preference": "measured",
    "prompt_tuning": "checkpoint written",
    "import_scores": "payload written",
    "score": "payload written",
    "merge_checkpoints": "payload written",
    "export_gguf": "payload written",
    "judge": "answer kept",
}
"""Steps that map no shards, and where they are suspended; others with a shard written."""


def suspend_at(point: str, times: int) -> None:
    """From now on this process stops when it passes the point so many times."""
    left = [times]

    def strike(passed: str) -> None:
        left[0] -= passed == point
        if left[0] == 0:
            left[0] = -1
            os.kill(os.getpid(), signal.SIGSTOP)

    failpoints.on_failpoint = strike
    if point == "measured":
        append = RunLog.append

        def measured(self: RunLog, table: str, row: object) -> None:
            append(self, table, row)  # type: ignore[arg-type]
            strike("measured" if table == "metrics" else "")

        RunLog.append = measured  # type: ignore[method-assign, assignment]


def suspended(step, store, point: str, times: int) -> int:
    """A fork that runs the step, as if elsewhere, up to where it is suspended."""

    def action() -> None:
        lease._machine = lambda: "elsewhere"
        suspend_at(point, times)
        run_stage(store, step.spec)

    child = fork(action)
    _, status = os.waitpid(child, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    return child


class Successor:
    """A fork that takes the lease over soon, and stops at a point until it is told to go on."""

    def __init__(self, step, store, point: str, times: int = 1) -> None:
        lease.Lease.take.__func__.__kwdefaults__["dead_after"] = 0.3  # In this test's process too.
        said, say = os.pipe()
        hear, self._go = os.pipe()
        left = [times]

        def wait_at(passed: str) -> None:
            left[0] -= passed == point
            if left[0] == 0:
                left[0] = -1
                os.write(say, b".")
                os.read(hear, 1)

        def action() -> None:
            failpoints.on_failpoint = wait_at
            run_stage(store, step.spec)

        self.child = fork(action)
        os.close(say)
        assert os.read(said, 1) == b"."

    def go_on(self) -> int:
        os.write(self._go, b".")
        return ended(self.child)


@pytest.fixture(autouse=True)
def limits():
    """The lease's limit is as before afterwards."""
    defaults = lease.Lease.take.__func__.__kwdefaults__
    before = dict(defaults)
    yield
    defaults.update(before)


def wake(child: int) -> int:
    os.kill(child, signal.SIGCONT)
    return ended(child)


@pytest.mark.parametrize(
    ("point", "place"),
    [
        ("measured", "local"),
        pytest.param("checkpoint files written", "local", marks=pytest.mark.full),
        ("checkpoint written", "local"),
        pytest.param("interim written", "local", marks=pytest.mark.full),
        pytest.param("interim committed", "local", marks=pytest.mark.full),
        pytest.param("state files published", "s3", marks=pytest.mark.full),
    ],
)
def test_a_woken_trainer_finds_that_it_was_succeeded(copy, without, point):
    """In a step, in a checkpoint, or in a permanent one; its successor is further on by then."""
    step, before = without("pretrain")
    store = copy.store
    for manifest in list(store.manifests()):
        if manifest.interim_of is not None:  # A commit of what exists already passes no point.
            remove_artifact(store, manifest)
    zombie = suspended(step, store, point, 1 if "interim" in point else 2)
    successor = Successor(step, store, "checkpoint written", times=2)
    assert wake(zombie) == LOST
    assert successor.go_on() == 0
    faults.is_same_artifact(store, step, before)
    manifest = store.manifest(step.stage, step.key)
    folder = Path(store.backend.full(f"data/pretrain/{step.key}/{manifest.attempt}/training_run"))
    if store.backend.local:
        steps = pq.read_table(folder / "metrics.parquet")["training_step"].to_pylist()
        assert steps == list(range(1, len(steps) + 1))
        run = json.loads((folder / "run.json").read_text())
        assert run["training_steps"] == len(steps)
    assert not store.work_state(step.key).exists


@pytest.mark.full
def test_the_checkpoints_of_a_successor_stay_usable(copy, without, monkeypatch):
    """It is killed after the woken one has ended; the next run goes on from its last checkpoint."""
    step, before = without("pretrain")
    store = copy.store
    zombie = suspended(step, store, "measured", 7)
    successor = Successor(step, store, "checkpoint written", times=3)
    assert wake(zombie) == LOST
    os.kill(successor.child, signal.SIGKILL)
    assert ended(successor.child) == faults.KILLED
    logged: list[str] = []
    monkeypatch.setattr(logging.Logger, "info", lambda self, *a: logged.append(a[0] % a[1:]))
    run_stage(store, step.spec)
    every = step.spec.execution["checkpoint_every"]
    # The first took one at its begin and at step 5; the second 10, 15 and 20.
    assert f"resumed at training step {4 * every}" in logged
    faults.is_same_artifact(store, step, before)


@pytest.mark.full
@pytest.mark.parametrize("instance", ["signals[web]", "pretrain", *FURTHER_STEPS])
def test_one_that_wakes_up_after_its_successor_has_committed_leaves_nothing(
    copy, without, instance
):
    step, before = without(instance)
    store = copy.store
    point = WITHOUT_SHARDS.get(instance, "shard written")
    zombie = suspended(step, store, point, 1)
    Successor(step, store, "manifest linked").go_on()
    assert wake(zombie) == LOST
    faults.is_same_artifact(store, step, before)
    assert store.backend.folders(f"data/{step.stage}/{step.key}") == [
        store.manifest(step.stage, step.key).attempt
    ]
    assert not store.work_state(step.key).running


@pytest.mark.full
@pytest.mark.parametrize("instance", ["reference", "preference", "judge"])
def test_one_that_wakes_up_while_its_successor_works_changes_nothing(copy, without, instance):
    """The successor has taken over what it left, and is further on by then."""
    step, before = without(instance)
    store = copy.store
    point = WITHOUT_SHARDS[instance]
    zombie = suspended(step, store, point, 1)
    successor = Successor(step, store, point)
    assert wake(zombie) == LOST
    assert successor.go_on() == 0
    faults.is_same_artifact(store, step, before)
    assert not store.work_state(step.key).exists


@pytest.mark.parametrize(
    "instance",
    [
        "signals[web]",
        *(
            pytest.param(step, marks=pytest.mark.full)
            for step in FURTHER_STEPS
            if step not in WITHOUT_SHARDS
        ),
    ],
)
def test_only_the_holder_of_the_lease_records_shards(copy, without, instance):
    """The woken one has a shard ready; its successor finds only records of its own."""
    step, before = without(instance)
    store = copy.store
    zombie = suspended(step, store, "shard written", 1)
    successor = Successor(step, store, "shard recorded")
    recorded = store.backend.listing(f"work/{step.key}/done")
    assert wake(zombie) == LOST
    assert store.backend.listing(f"work/{step.key}/done") == recorded
    assert successor.go_on() == 0
    faults.is_same_artifact(store, step, before)
