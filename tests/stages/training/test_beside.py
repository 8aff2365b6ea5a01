"""Permanent checkpoints are written beside the training, in order with the rolling ones."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from artifacts_schema.errors import StoreError
from stages.training.callbacks import Callback
from stages.training.checkpointing import HostMemory
from stages.training.telemetry import Stopwatch

sys.path.insert(0, str(Path(__file__).parents[2]))
from line_run import assert_bit_equal, train

DUE = 10


class Killed(BaseException):
    """Stands for SIGKILL."""


@dataclass
class Permanent:
    """Notes what it is given; `during` is called in the middle of a commit."""

    due: tuple[int, ...] = (DUE,)
    during: object = lambda training_step: None
    made: dict = field(default_factory=dict)

    def is_due(self, training_step):
        return training_step in self.due

    def commit(self, training_step, tokens, saved):
        self.during(training_step)
        weights = {name: tensor.clone() for name, tensor in saved.weights.items()}
        self.made[training_step] = tokens, weights

    def rolled_back(self, first):
        pass


@dataclass
class Steps(Callback):
    """In the order in which the loop tells them."""

    told: list = field(default_factory=list)
    passed: dict = field(default_factory=dict)

    def step_done(self, done):
        self.told.append(("done", done.training_step))
        if done.training_step in self.passed:
            self.passed[done.training_step].set()

    def saved(self, training_step, seconds):
        self.told.append(("saved", training_step))


@pytest.fixture
def sealed(tmp_path):
    """Training steps of the rolling checkpoints that stand."""
    return lambda: sorted(
        int(path.parent.name[-12:]) for path in (tmp_path / "checkpoints").glob("*/sealed.json")
    )


def test_training_goes_on_while_one_is_written_and_it_holds_what_was_then(tmp_path):
    further = threading.Event()
    waited = []
    steps = Steps(passed={DUE + 3: further})
    beside = Permanent(during=lambda step: waited.append(further.wait(30)))
    train(tmp_path / "a", every=100, permanent=beside, callbacks=[steps])
    assert waited == [True]
    other = Permanent()
    train(tmp_path / "b", every=DUE, permanent=other)
    assert beside.made[DUE][0] == other.made[DUE][0]
    for name, tensor in other.made[DUE][1].items():
        assert beside.made[DUE][1][name].equal(tensor)


@pytest.mark.parametrize("every", [2, 5, 7])
def test_no_rolling_one_of_its_step_or_a_later_one_stands_before_it(tmp_path, sealed, every):
    """Else a run that is killed then would go on behind it, and never make it."""
    before = []
    permanent = Permanent((DUE, DUE + 1, 20), during=lambda step: before.append((step, sealed())))
    train(tmp_path, every=every, permanent=permanent)
    assert [step for step, _ in before] == [DUE, DUE + 1, 20]
    assert all(max(stand, default=0) < step for step, stand in before)


@pytest.mark.parametrize("every", [3, 5])
@pytest.mark.parametrize("fails", [StoreError("no space left"), Killed()])
def test_what_goes_wrong_in_it_ends_the_run_and_the_next_one_makes_it(
    tmp_path, sealed, every, fails
):
    def fail(step):
        raise fails

    with pytest.raises(type(fails)):
        train(tmp_path, every=every, permanent=Permanent(during=fail))
    assert max(sealed(), default=0) < DUE
    again = Permanent()
    resumed = train(tmp_path, every=every, permanent=again)
    assert list(again.made) == [DUE]
    whole = train(tmp_path / "whole", every=every, permanent=Permanent())
    assert_bit_equal(resumed, whole, "metrics", "held_out")


def test_the_time_that_training_stands_still_for_it_is_a_checkpoints(tmp_path):
    """Told after its training step, like a rolling one: then no step and no batch is charged."""
    steps = Steps()
    train(tmp_path, every=100, steps=12, permanent=Permanent(), callbacks=[steps])
    at = steps.told.index(("saved", DUE))
    assert steps.told[at - 1] == ("done", DUE)
    assert steps.told[at + 1] == ("done", DUE + 1)
    now = [0.0]
    watch = Stopwatch(lambda: now[0])
    now[0] = 3.0
    watch.saved(3.0)
    taken = watch.take()
    assert (taken.checkpoint_seconds, taken.data_seconds) == (3.0, 0.0)


def test_a_rolling_one_of_the_same_step_shares_its_copy(tmp_path, monkeypatch):
    copies = []
    real = HostMemory.copies
    monkeypatch.setattr(HostMemory, "copies", lambda *given: copies.append(1) or real(*given))
    train(tmp_path, every=5, steps=20, permanent=Permanent((5, 7, 10)))
    # 0 (so that there is one to go back to), 5, 7, 10, 15, 20.
    assert len(copies) == 6
