"""The training loop, for every kind of training: pretraining, SFT, DPO.

A `Task` says what a training step sees and what its loss is; the loop accumulates over
micro-batches, clips, updates, measures, checkpoints and stops. Which data a step sees depends on
its number alone, so a resumed run needs the weights, the optimizer state and that number.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from artifacts_schema.errors import CorruptArtifact, IngotError
from artifacts_schema.kinds import Column
from stages.training.checkpointing import RollingCheckpoints, Saved, restore_random_state
from stages.training.config import AdamWConfig
from stages.training.monitor import HeldOut, RunLog, log_held_out
from stages.training.optimizer import load_optimizer, optimizer_tensors, set_learning_rate
from stages.training.prefetch import Prefetch
from stages.training.runtime import Runtime
from stages.training.schedule import Schedule

if TYPE_CHECKING:
    from stages.engine import Context


@dataclass(frozen=True)
class Share:
    """What one micro-batch contributes to a training step.

    `loss` is its part of the step's loss (already divided by the count over the whole step);
    `tokens` are those it read, padding not counted; `sums` are statistics that add up over
    micro-batches.
    """

    loss: Tensor
    tokens: int
    sums: Mapping[str, Tensor] = field(default_factory=dict)


class Task(ABC):
    """What a kind of training adds to the loop."""

    columns: tuple[Column, ...] = ()
    """Its columns of `metrics.parquet`."""

    def batch(self, training_step: int) -> Any:
        """What a training step (from 1) reads, a function of its number; by default the number.

        None for a step that is left out: it reads nothing and updates nothing. It is called ahead
        of the step, in another thread, and so computes nothing with the model.
        """
        return training_step

    @abstractmethod
    def shares(self, model: nn.Module, batch: Any) -> Iterator[Share]:
        """The micro-batches of a training step, of what `batch` gave for it."""

    @abstractmethod
    def measures(self, sums: Mapping[str, list[float]]) -> dict[str, Any]:
        """The values of `columns` from the step's summed statistics (flattened)."""

    @abstractmethod
    def held_out(self, model: nn.Module) -> list[HeldOut]:
        """Losses on held-out data; empty where there is none."""


@dataclass
class Progress:
    """How far a run is."""

    training_step: int = 0
    tokens: int = 0
    skipped: int = 0


@dataclass
class Trainer:
    """One model, one task, one schedule, in one process."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    settings: AdamWConfig
    task: Task
    schedule: Schedule
    runtime: Runtime
    checkpoints: RollingCheckpoints
    context: Context
    checkpoint_every: int
    held_out_every: int
    prefetch: int = 0

    def run(self) -> Progress:
        """Train to the end of the schedule, from the newest whole checkpoint if there is one.

        Raises Stopped when asked to stop (a checkpoint is saved first), IngotError when more
        updates than the limit had to be skipped, StoreError when a checkpoint cannot be written.
        """
        log, total = self.checkpoints.run_log, self.schedule.steps
        progress = self._restore(self.checkpoints.newest(), log)
        started, first_tokens = time.monotonic(), progress.tokens
        if progress.training_step == 0:
            self._measure(progress)
        with Prefetch(self.task.batch, ahead=self.prefetch, last=total) as batches:
            while progress.training_step < total:
                batch = batches(progress.training_step + 1)
                if batch is None:
                    progress.training_step += 1
                else:
                    self._step(progress, batch)
                self._after_step(progress, total)
        seconds = time.monotonic() - started
        if seconds > 0 and progress.tokens > first_tokens:
            self.context.telemetry(tokens_per_second=(progress.tokens - first_tokens) / seconds)
        return progress

    def _after_step(self, progress: Progress, total: int) -> None:
        """Measure, save and stop where it is time to."""
        step = progress.training_step
        self.context.progress(step, total, unit="training steps")
        if step % self.held_out_every == 0 or step == total:
            self._measure(progress)
        stopping = self.context.stopping
        if stopping or step % self.checkpoint_every == 0 or step == total:
            self._save(progress)
        if stopping:
            self.context.check_stop()

    def _step(self, progress: Progress, batch: Any) -> None:
        """Gradients of all micro-batches, then an update unless they are broken."""
        step = progress.training_step + 1
        self.optimizer.zero_grad(set_to_none=True)
        self.model.train()
        total = _Total()
        for share in self.task.shares(self.model, batch):
            share.loss.backward()  # type: ignore[no-untyped-call]
            total.add(share)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        sums = total.floats(norm)
        loss, grad_norm = sums.pop("loss")[0], sums.pop("grad_norm")[0]
        rate = self.schedule.rate(step)
        skipped = not (math.isfinite(loss) and math.isfinite(grad_norm))
        progress.training_step = step
        progress.tokens += total.tokens
        if skipped:
            self._skip(progress, loss, grad_norm)
        else:
            set_learning_rate(self.optimizer, rate)
            self.optimizer.step()
        row = {
            "training_step": step,
            "tokens": progress.tokens,
            "phase": self.schedule.phase(step),
            "loss": loss,
            "grad_norm": grad_norm,
            "learning_rate": rate,
            "skipped": skipped,
        }
        self.checkpoints.run_log.append("metrics", {**row, **self.task.measures(sums)})
        self.context.metric(**row)

    def _skip(self, progress: Progress, loss: float, grad_norm: float) -> None:
        progress.skipped += 1
        self.context.log.warning(
            "training step %d skipped: loss %s, gradient norm %s",
            progress.training_step,
            loss,
            grad_norm,
        )
        if progress.skipped > self.settings.skip_limit:
            raise IngotError(
                f"{progress.skipped} updates skipped for a loss or gradient that is not finite",
                where=f"training step {progress.training_step}",
                hint="lower the learning rate or clip harder, or raise optimizer.skip_limit",
            )

    def _measure(self, progress: Progress) -> None:
        self.model.eval()
        with torch.no_grad():
            measured = self.task.held_out(self.model)
        log_held_out(self.checkpoints.run_log, progress.training_step, progress.tokens, measured)
        for one in measured:
            self.context.metric(
                training_step=progress.training_step,
                **{f"held_out/{one.source}": one.loss},
            )

    def _save(self, progress: Progress) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        state = {**asdict(progress), "layout": self.runtime.layout()}
        self.checkpoints.save(
            progress.training_step,
            self.model.state_dict(),
            optimizer_tensors(self.optimizer),
            state,
        )

    def _restore(self, saved: Saved | None, log: RunLog) -> Progress:
        log.restore(saved.position if saved else None)
        if saved is None:
            return Progress()
        state = dict(saved.state)
        layout = state.pop("layout")
        restore_random_state(state.pop("random"))
        progress = Progress(**state)
        where = f"checkpoint of training step {progress.training_step}"
        try:
            self.model.load_state_dict(saved.weights)
        except RuntimeError as error:
            raise CorruptArtifact(str(error), where=where) from None
        load_optimizer(self.optimizer, saved.optimizer, where=where)
        self.context.log.info("resumed at training step %d", progress.training_step)
        if layout != self.runtime.layout():
            self.context.log.warning(
                "resumed in another layout (%s, now %s): numbers will differ in their last bits",
                layout,
                self.runtime.layout(),
            )
        return progress


class _Total:
    """Sums over the micro-batches of a training step, kept on the device until the step is over."""

    def __init__(self) -> None:
        self.tokens = 0
        self.sums: dict[str, Tensor] = {}

    def add(self, share: Share) -> None:
        self.tokens += share.tokens
        for name, value in {"loss": share.loss, **share.sums}.items():
            value = value.detach().to(share.loss.device, torch.float64).flatten()
            self.sums[name] = self.sums[name] + value if name in self.sums else value

    def floats(self, grad_norm: Tensor) -> dict[str, list[float]]:
        """All sums and the gradient norm, in one transfer."""
        self.sums["grad_norm"] = grad_norm.detach().double().flatten()
        names = list(self.sums)
        values = torch.cat([self.sums[name] for name in names]).tolist()
        result: dict[str, list[float]] = {}
        for name in names:
            size = self.sums[name].numel()
            result[name], values = values[:size], values[size:]
        return result
