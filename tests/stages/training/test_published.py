"""Rolling checkpoints in a remote store: the furthest of all machines goes on."""

from __future__ import annotations

import dataclasses
import logging

import pytest
import torch

from artifacts_schema.errors import LeaseLost
from artifacts_schema.store import Store
from artifacts_schema.store.storage_errors import Unreachable
from stages.engine.state import State
from stages.training import monitor
from stages.training.checkpointing import OPTIMIZER, WEIGHTS, RollingCheckpoints, fetch_newest
from stages.training.monitor import RunLog


@pytest.fixture
def machine(s3_url, tmp_path):
    """`machine(name)`: its state folder, and the state as it sees it."""
    backend = Store.open(s3_url).backend
    return lambda name: State(backend, "a" * 64, "code", tmp_path / name, logging.getLogger("test"))


def train(state, *steps):
    """Measure and save each of these training steps, from the newest checkpoint on."""
    folder = state.folder / "checkpoints"
    fetch_newest(state, folder)
    log = RunLog(state.folder / "measurements")
    checkpoints = RollingCheckpoints(folder, log, state.log, state=state)
    saved = checkpoints.newest()
    log.restore(saved.position if saved else None)
    for step in steps:
        log.append("metrics", {"training_step": step})
        tensors = {WEIGHTS: {"w": torch.full((3,), float(step))}, OPTIMIZER: {}}
        checkpoints.save(step, tensors, {"training_step": step})
    checkpoints.settle()
    log.close()
    measured = [row["training_step"] for row in log.rows("metrics")]
    return (saved.state["training_step"] if saved else None), measured


def test_another_machine_goes_on_with_the_same_measurements(machine):
    assert train(machine("one"), 5, 10) == (None, [5, 10])
    assert train(machine("two"), 15) == (10, [5, 10, 15])


def test_a_machine_that_comes_back_takes_what_another_did_since(machine):
    train(machine("one"), 5, 10)
    train(machine("two"), 15, 20)
    assert train(machine("one")) == (20, [5, 10, 15, 20])


def test_a_machine_whose_own_checkpoint_is_newer_uses_it(machine, monkeypatch):
    one = machine("one")
    train(one, 5)
    with monkeypatch.context() as away:
        away.setattr(State, "publish", lambda *_: False)
        train(one, 10)
    with monkeypatch.context() as never:
        never.setattr(State, "fetch", None)
        assert train(one) == (10, [5, 10])
    assert train(machine("two")) == (10, [5, 10])


def test_the_last_two_stay_in_the_store(machine):
    one = machine("one")
    train(one, 5, 10, 15)
    assert one.published() == [f"training-step-{step:012d}" for step in (10, 15)]


@pytest.mark.full
def test_a_damaged_one_in_the_store_costs_one_step_back(machine):
    one = machine("one")
    train(one, 5, 10)
    (weights,) = [
        name
        for name in one.backend.files("work")
        if name.endswith("step-000000000010/model.safetensors")
    ]
    one.backend.replace(f"work/{weights}", b"damaged")
    assert train(machine("two"), 10) == (5, [5, 10])
    assert train(machine("three")) == (10, [5, 10])


def test_closed_parts_of_the_log_are_published_once(machine, monkeypatch):
    """A part ends after 60 bytes, two rows; the open one goes with each checkpoint."""
    monkeypatch.setattr(monitor, "PART_BYTES", 60)
    sent = []
    upload = State._upload
    monkeypatch.setattr(
        State,
        "_upload",
        lambda self, name, path: sent.append(path.name) or upload(self, name, path),
    )
    one = machine("one")
    train(one, *range(1, 10))
    parts = sorted(name for name in sent if name.endswith("jsonl") and name < "000004")
    closed = [name for name in one.published() if name.startswith("measurements-")]
    assert len(closed) == 4
    assert all(
        parts.count(f"{name[-6:]}.jsonl") <= 3 for name in closed
    )  # Twice while it was open.
    assert train(machine("two"), 10) == (9, list(range(1, 11)))
    monkeypatch.setattr(monitor, "PART_BYTES", 1 << 20)


def test_parts_behind_the_checkpoint_that_goes_on_are_withdrawn(machine, monkeypatch):
    """After a rollback they would be of measurements that the run does not have any more."""
    monkeypatch.setattr(monitor, "PART_BYTES", 60)
    one = machine("one")
    train(one, *range(1, 10))
    checkpoints = sorted((one.folder / "checkpoints").iterdir())
    log = RunLog(one.folder / "measurements")
    rolling = RollingCheckpoints(one.folder / "checkpoints", log, one.log, state=one)
    saved = rolling.newest(lambda step, state: step < 9)
    log.restore(saved.position)
    kept = len(log.parts_until(saved.position))
    assert [name for name in one.published() if name.startswith("measurements-")] == [
        f"measurements-{number:06d}" for number in range(kept)
    ]
    assert len(checkpoints) == 2


def test_what_was_measured_after_the_last_checkpoint_is_not_published(machine, monkeypatch):
    """Closed parts of it would stand for what is measured again, and differ from that."""
    monkeypatch.setattr(monitor, "PART_BYTES", 60)
    one = machine("one")
    with monkeypatch.context() as killed:
        killed.setattr(State, "publish", lambda *_: False)
        train(one, 1, 2, 3)
        log = RunLog(one.folder / "measurements")
        for step in range(4, 10):
            log.append("metrics", {"training_step": step, "measured": "before the kill"})
        log.close()
    train(one)
    assert [name for name in one.published() if name.startswith("measurements-")] == [
        "measurements-000000"
    ]
    train(one, *range(4, 10))
    assert train(machine("two")) == (9, list(range(1, 10)))


# The store is away --------------------------------------------------------------------------------


@pytest.fixture
def outage():
    """`outage(state)`: the state while its store cannot be reached, until `end`."""

    class Outage:
        lost = False
        patches = pytest.MonkeyPatch()

        def __call__(self, state):
            for name in ("files", "read", "create", "replace", "remove"):
                self.patches.setattr(state.backend, name, self.away)
            return dataclasses.replace(state, check=self.check)

        def end(self):
            self.patches.undo()

        def away(self, path, *_):
            raise Unreachable("the store cannot be reached", where=path)

        def check(self, *, ask=True):
            if ask:
                self.away("lease")
            if self.lost:
                raise LeaseLost("another run took this key over")

    made = Outage()
    yield made
    made.end()


def test_while_the_store_is_away_checkpoints_go_on_here(machine, outage, caplog):
    one = machine("one")
    log = RunLog(one.folder / "measurements")
    checkpoints = RollingCheckpoints(one.folder / "checkpoints", log, one.log, state=one)

    def save(step):
        tensors = {WEIGHTS: {"w": torch.full((3,), float(step))}, OPTIMIZER: {}}
        checkpoints.save(step, tensors, {"training_step": step})
        checkpoints.settle()
        return [int(path.name[-12:]) for path in sorted(checkpoints.folder.iterdir())]

    save(5)
    save(10)
    checkpoints.state = outage(one)
    assert save(15) == [10, 15]
    assert save(20) == [15, 20]
    assert "training-step-000000000020 is kept on this machine only" in caplog.text
    outage.lost = True
    with pytest.raises(LeaseLost):
        save(25)
    outage.end()
    checkpoints.state = one
    save(25)
    assert one.published() == ["training-step-000000000025"]


def test_a_set_is_kept_here_where_the_lease_cannot_be_asked_for(machine, outage, caplog):
    one = outage(machine("one"))
    (one.folder / "list").parent.mkdir(parents=True)
    (one.folder / "list").write_text("1")
    assert not one.publish("list", one.folder / "list")
    assert "list is kept on this machine only" in caplog.text
