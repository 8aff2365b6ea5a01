"""How the loop draws what its steps read: ahead of them, in order, and some left out."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

import pytest
import torch

from artifacts_schema.errors import InputError, Stopped
from stages.training.averages import Averages
from stages.training.checkpointing import RollingCheckpoints
from stages.training.config import AveragesConfig, LearningRate, OptimizerConfig, TrainingExecution
from stages.training.fit import UNGUARDED
from stages.training.guard import Guard, Rollbacks
from stages.training.loop import Trainer
from stages.training.monitor import RunLog, metrics_table
from stages.training.optimizer import Optimizer
from stages.training.runtime import runtime
from stages.training.schedule import schedule
from stages.training.task import MicroBatch, Task

STEPS = 8


@dataclass
class Lines(Task):
    """A line through points that are a function of the step; some steps are left out."""

    left_out: tuple[int, ...] = ()
    broken: int | None = None
    drawn: list[int] = field(default_factory=list)
    drawers: set[str] = field(default_factory=set)

    def batch(self, training_step):
        self.drawn.append(training_step)
        self.drawers.add(threading.current_thread().name)
        if training_step == self.broken:
            raise InputError("a shard is gone")
        if training_step in self.left_out:
            return None
        return torch.randn(4, 3, generator=torch.Generator().manual_seed(training_step))

    def micro_batches(self, model, batch):
        yield MicroBatch((model(batch) - batch.sum(1, keepdim=True)).square().mean(), 4)

    def measures(self, sums):
        return {}

    def held_out(self, model):
        return []


class Watched:
    """The part of `stages.engine.Context` that the loop uses; asks to stop at a given step."""

    accepted_code = ()

    def __init__(self, stop_at):
        self.stop_at, self.done, self.log = stop_at, 0, logging.getLogger("test")

    def progress(self, done, total, unit=""):
        self.done = done

    def metric(self, **numbers):
        pass

    def telemetry(self, **values):
        pass

    @property
    def stopping(self):
        return self.done == self.stop_at

    def check_stop(self):
        if self.stopping:
            raise Stopped("stopped on request")


def train(work, *, prefetch, stop_at=None, **task):
    """Weights, progress, rows of metrics and the task."""
    with runtime(TrainingExecution(device="cpu", threads=1), "fp32", seed=1) as how:
        model = torch.nn.Linear(3, 1)
        context, log = Watched(stop_at), RunLog(work / "log")
        given = Lines(**task)
        trainer = Trainer(
            model=model,
            optimizer=Optimizer(model, OptimizerConfig()),
            averages=Averages(AveragesConfig(), STEPS),
            task=given,
            schedule=schedule([(STEPS, LearningRate(peak=0.1))], where="phases"),
            layout=how.layout(),
            checkpoints=RollingCheckpoints(work / "checkpoints", log, context.log),
            rollbacks=Rollbacks(work / "rollbacks.json"),
            guard=Guard(UNGUARDED),
            skip_limit=0,
            context=context,
            checkpoint_every=100,
            held_out_every=100,
            prefetch=prefetch,
        )
        try:
            progress = trainer.run()
        finally:
            log.close()
            assert [t.name for t in threading.enumerate() if t.name == "prefetch"] == []
        weights = torch.cat([p.detach().flatten() for p in model.parameters()])
        return weights, progress, metrics_table(log, ()).to_pylist(), given


@pytest.mark.parametrize("prefetch", [1, 2, 50])
def test_what_is_drawn_ahead_changes_nothing(tmp_path, prefetch):
    plain, ahead = (train(tmp_path / str(k), prefetch=k) for k in (0, prefetch))
    assert torch.equal(plain[0], ahead[0])
    assert plain[1:3] == ahead[1:3]
    assert plain[3].drawn == ahead[3].drawn == list(range(1, STEPS + 1))
    assert (plain[3].drawers, ahead[3].drawers) == ({"MainThread"}, {"prefetch"})


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_step_that_is_left_out_updates_nothing_and_has_no_row(tmp_path, prefetch):
    weights, progress, rows, _ = train(tmp_path / "a", prefetch=prefetch, left_out=(1, 4, 5))
    assert progress.training_step == STEPS
    assert [row["training_step"] for row in rows] == [2, 3, 6, 7, 8]
    assert progress.tokens == 4 * 5
    whole = train(tmp_path / "b", prefetch=prefetch)
    assert not torch.equal(weights, whole[0])
    late = train(tmp_path / "c", prefetch=prefetch, left_out=(6, 7, 8))[2]
    assert [row["loss"] for row in late] == [row["loss"] for row in whole[2][:5]]


@pytest.mark.parametrize("prefetch", [0, 2, 9])
def test_an_error_of_a_batch_comes_at_its_step(tmp_path, prefetch):
    with pytest.raises(InputError, match="a shard is gone"):
        train(tmp_path, prefetch=prefetch, broken=5)
    lines = (tmp_path / "log" / "000000.jsonl").read_text().splitlines()
    rows = [line for line in lines if "loss" in line]
    assert len(rows) == 4


@pytest.mark.parametrize("prefetch", [0, 3])
def test_stopped_and_started_again_it_draws_on_from_where_it_was(tmp_path, prefetch):
    with pytest.raises(Stopped):
        train(tmp_path, prefetch=prefetch, stop_at=3)
    weights, _, rows, task = train(tmp_path, prefetch=prefetch)
    assert task.drawn == list(range(4, STEPS + 1))
    assert [row["training_step"] for row in rows] == list(range(1, STEPS + 1))
    whole = train(tmp_path / "whole", prefetch=prefetch)
    assert torch.equal(weights, whole[0])
