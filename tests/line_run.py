"""A training run small enough to be done a hundred times: a linear map fits points.

The points of a training step are a function of its number, and so is what is wrong with them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from artifacts_schema.errors import Stopped
from stages.training.averages import Averages
from stages.training.callbacks import Callback
from stages.training.checkpointing import RollingCheckpoints
from stages.training.config import (
    AveragesConfig,
    LearningRate,
    OptimizerConfig,
    StabilityConfig,
    TrainingExecution,
)
from stages.training.diagnosis import excluded_table
from stages.training.guard import Guard, Rollbacks
from stages.training.loop import Progress, Trainer
from stages.training.monitor import HeldOut, RunLog, events_table, held_out_table, metrics_table
from stages.training.optimizer import Optimizer
from stages.training.runtime import runtime
from stages.training.schedule import schedule
from stages.training.task import MicroBatch, Suspect, Task

WATCHED = StabilityConfig(window=8, strikes=3, margin=4, rollbacks=2, stall=10)


class Killed(BaseException):
    """Stands for SIGKILL: nothing of the loop catches it."""


@dataclass
class Lines(Task):
    """The sum of three numbers is learnt; in `bad` training steps a sum of others."""

    bad: Collection[int] = ()
    broken: Collection[int] = ()
    left_out: Collection[int] = ()
    dies: int | None = None
    drawn: list[int] = field(default_factory=list)

    def batch(self, training_step: int) -> tuple[int, Tensor] | None:
        if training_step in self.left_out:
            return None
        drawn = torch.randn(16, 3, generator=torch.Generator().manual_seed(training_step))
        return training_step, drawn

    def micro_batches(self, model: nn.Module, batch: tuple[int, Tensor]) -> Iterator[MicroBatch]:
        step, points = batch
        self.drawn.append(step)
        scale = 100.0 if step in self.bad else 1.0
        wanted = scale * points.sum(1, keepdim=True) + 1
        loss = (model(points) - wanted).abs().mean()
        if step in self.broken:
            loss = loss * float("nan")
        yield MicroBatch(loss, len(points))
        if step == self.dies:
            raise Killed

    def measures(self, sums: Mapping[str, list[float]]) -> dict[str, Any]:
        return {}

    def held_out(self, model: nn.Module) -> list[HeldOut]:
        return [HeldOut("all", model(torch.ones(1, 3)).item(), None)]

    def documents(self, training_step: int, rows: Sequence[int] = ()) -> list[Suspect]:
        return [Suspect("web", f"{training_step:032x}"), Suspect("code", "f" * 32)]


@dataclass
class Watched:
    """The part of `stages.engine.Context` that the loop uses; asks to stop at a given step."""

    accepted_code = ()

    stop_at: int | None = None
    done: float = -1
    alerts: list[tuple[str, str]] = field(default_factory=list)
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("test"))

    def progress(self, done: float, total: float, unit: str = "") -> None:
        self.done = done

    def metric(self, **numbers: Any) -> None:
        pass

    def telemetry(self, **values: Any) -> None:
        pass

    def alert(self, kind: str, text: str, **values: Any) -> None:
        self.alerts.append((kind, text))

    @property
    def stopping(self) -> bool:
        return self.stop_at is not None and self.done >= self.stop_at

    def check_stop(self) -> None:
        if self.stopping:
            raise Stopped("stopped on request")


@dataclass(frozen=True)
class Line:
    """All that is to be bit-equal of a run, and how it came about."""

    progress: Progress
    tensors: dict[str, Tensor]
    tables: dict[str, Any]
    rollbacks: Rollbacks
    task: Lines
    context: Watched


def train(
    work: Path,
    *,
    steps: int = 40,
    every: int = 5,
    peak: float = 0.01,
    stability: StabilityConfig = WATCHED,
    context: Watched | None = None,
    callbacks: Sequence[Callback] = (),
    permanent: Any = None,
    skip_limit: int = 100,
    prefetch: int = 0,
    model: nn.Module | None = None,
    task: Lines | None = None,
    **how_it_goes: Any,
) -> Line:
    """Train to the end, or to what stops it."""
    context, task = context or Watched(), task or Lines(**how_it_goes)
    with runtime(TrainingExecution(device="cpu", threads=1), "fp32", seed=1) as how:
        model = model or nn.Linear(3, 1)
        optimizer = Optimizer(model, OptimizerConfig())
        averages = Averages(AveragesConfig(ema=0.9), steps)
        log, rollbacks = RunLog(work / "log"), Rollbacks(work / "rollbacks.json")
        trainer = Trainer(
            model=model,
            optimizer=optimizer,
            averages=averages,
            task=task,
            schedule=schedule([(steps, LearningRate(peak=peak))], where="phases"),
            layout=how.layout(),
            checkpoints=RollingCheckpoints(work / "checkpoints", log, context.log),
            rollbacks=rollbacks,
            guard=Guard(stability),
            context=context,  # type: ignore[arg-type]
            checkpoint_every=every,
            held_out_every=7,
            skip_limit=skip_limit,
            prefetch=prefetch,
            callbacks=callbacks,
            permanent=permanent,
        )
        try:
            progress = trainer.run()
        finally:
            log.close()
            assert not [one for one in threading.enumerate() if one.name == "checkpoints"]
        tensors = {**model.state_dict(), **optimizer.tensors(), **averages.tensors()}
        events = [*log.rows("events"), *rollbacks.events]
        tables = {
            "metrics": metrics_table(log, ()),
            "held_out": held_out_table(log, ()),
            "events": events_table(events),
            "excluded": excluded_table(events, task.documents),
        }
    return Line(
        progress,
        {name: tensor.clone() for name, tensor in tensors.items()},
        tables,
        rollbacks,
        task,
        context,
    )


def assert_bit_equal(one: Line, two: Line, *tables: str) -> None:
    """Weights, moments, averages, progress, and these tables; by default all."""
    assert one.progress == two.progress
    assert one.tensors.keys() == two.tensors.keys()
    for name, tensor in one.tensors.items():
        assert torch.equal(tensor, two.tensors[name]), name
    for name in tables or one.tables:
        left, right = (repr(run.tables[name].to_pylist()) for run in (one, two))
        assert left == right, name  # As text, so that NaN is equal to itself.
