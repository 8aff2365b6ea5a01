"""The training loop, for every kind of training: pretraining, SFT, DPO.

A `Task` says what a training step sees and what its loss is; the loop accumulates over
micro-batches, clips, updates, measures, checkpoints and stops. Which data a step sees depends on
its number alone, so a resumed run needs the weights, the optimizer state and that number. A `Guard`
judges each step before its update: an anomaly skips the update, several lead to a rollback.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from artifacts_schema.errors import IngotError, Stopped
from artifacts_schema.store.failpoints import hit_failpoint
from stages.engine import Context
from stages.model.experts import Router, reset_counts, update_balance
from stages.parallel.boxes import whole
from stages.parallel.ranks import Ranks
from stages.training.averages import Averages
from stages.training.callbacks import Callback, StepDone
from stages.training.checkpointing import (
    AVERAGES,
    OPTIMIZER,
    WEIGHTS,
    RollingCheckpoints,
    Saved,
    load_weights,
)
from stages.training.diagnosis import (
    abort_error,
    find_fault,
    format_steps,
    format_suspects,
    outlier_rows,
)
from stages.training.guard import ADVICE, Anomaly, Guard, Rollback, Rollbacks
from stages.training.monitor import log_event, log_held_out
from stages.training.optimizer import Optimizer
from stages.training.permanent import PermanentCheckpoints
from stages.training.prefetch import Prefetch
from stages.training.rows import on_device
from stages.training.runtime import restore_random_state
from stages.training.schedule import Schedule
from stages.training.task import MicroBatch, Task

LOSS_SCALE = "loss_scale"
"""Kind of the event of an update that float16's loss scale skipped."""


class StepSums:
    """Sums over the micro-batches of a training step, in float64, each where its values are.

    Those on the device are read when the step is over, those on the host go there by then: before
    that nothing makes the host wait for the device.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self.sums: dict[str, Tensor] = {}

    def add(self, micro_batch: MicroBatch) -> None:
        """Add a micro-batch."""
        loss = micro_batch.loss
        self.tokens += micro_batch.tokens
        for name, value in {"loss": loss, **micro_batch.sums}.items():
            value = value.detach().double().flatten()
            self.sums[name] = self.sums[name] + value if name in self.sums else value

    def floats(self, grad_norm: Tensor, ranks: Ranks) -> dict[str, list[float]]:
        """All sums, over all ranks, and the gradient norm of all; in one transfer.

        The same bits on every rank, so that all judge alike.
        """
        norm = whole(grad_norm).double().flatten()
        counted = {"step_tokens": torch.tensor([self.tokens], dtype=torch.float64)}
        counted |= {name: v for name, v in self.sums.items() if v.device.type == "cpu"}
        sums = {**counted, **self.sums}
        sizes = [value.numel() for value in (*sums.values(), norm)]
        on_host = on_device(torch.cat(list(counted.values())), norm.device)
        summed = ranks.sum(torch.cat((on_host, *list(sums.values())[len(counted) :])))
        values = ranks.copy_first(torch.cat((summed, norm))).cpu().split(sizes)
        return {name: v.tolist() for name, v in zip((*sums, "grad_norm"), values, strict=True)}


@dataclass
class Progress:
    """How far a run is; `not_finite` of the skipped updates had such a loss or gradient."""

    training_step: int = 0
    tokens: int = 0
    skipped: int = 0
    not_finite: int = 0


@dataclass
class Trainer:
    """One model, one task, one schedule; it starts after `begin`.

    On several ranks each has one, which takes the same steps and the same decisions.

    `layout` is what bit-equality depends on besides these.
    """

    model: nn.Module
    optimizer: Optimizer
    averages: Averages
    task: Task
    schedule: Schedule
    layout: Mapping[str, Any]
    checkpoints: RollingCheckpoints
    rollbacks: Rollbacks
    guard: Guard
    context: Context
    checkpoint_every: int
    held_out_every: int
    skip_limit: int
    prefetch: int = 0
    callbacks: Sequence[Callback] = ()
    permanent: PermanentCheckpoints | None = None
    begin: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self.ranks = self.checkpoints.ranks
        self._log = self.checkpoints.run_log
        self._has_experts = any(isinstance(module, Router) for module in self.model.modules())

    def run(self) -> Progress:
        """Train to the end of the schedule, from the newest whole checkpoint if there is one.

        Raises Stopped when asked to stop (a checkpoint is saved first), IngotError with a reason
        when neither skips nor rollbacks help, StoreError when a checkpoint cannot be written.
        """
        try:
            with Prefetch(self._batch, ahead=self.prefetch, last=self.schedule.steps) as batches:
                progress = self._run(batches)
            self.checkpoints.settle()
        except BaseException as error:
            self.checkpoints.close()
            self._end_callbacks(error)
            raise
        self._end_callbacks(None)
        return progress

    def _end_callbacks(self, error: BaseException | None) -> None:
        """End every callback, also if one before it raises."""
        with ExitStack() as stack:
            for callback in reversed(self.callbacks):
                stack.callback(callback.ended, error)

    def _run(self, batches: Callable[[int], Any]) -> Progress:
        total = self.schedule.steps
        progress, is_new = self._restore()
        start_time, start_tokens = time.monotonic(), progress.tokens
        for callback in self.callbacks:
            callback.started(progress.training_step, total)
        self._report_restored(progress, is_new)
        if is_new:
            self._measure(progress)
            if self.guard.settings.enabled:
                self._save(progress)  # A rollback may go back to it from the first step on.
        while progress.training_step < total:
            self.checkpoints.check()
            batch = batches(progress.training_step + 1)
            if batch is None:
                progress.training_step += 1
            elif self._step(progress, batch).skipped and self.guard.gives_up():
                progress = self._roll_back(progress)
                continue
            self._end_step(progress)
        seconds = time.monotonic() - start_time
        if seconds > 0 and progress.tokens > start_tokens:
            self.context.telemetry(tokens_per_second=(progress.tokens - start_tokens) / seconds)
        return progress

    def _batch(self, step: int) -> Any:
        return None if self.rollbacks.excludes(step) else self.task.batch(step)

    # One training step ---------------------------------------------------------------------------

    def _step(self, progress: Progress, batch: Any) -> StepDone:
        """Gradients of all micro-batches, then an update unless the guard sees an anomaly."""
        step, start_time = progress.training_step + 1, time.monotonic()
        self.optimizer.zero_grad()
        self.model.train()
        sums = StepSums()
        for micro_batch in self.task.micro_batches(self.model, batch):
            self.optimizer.backward(micro_batch.loss)
            sums.add(micro_batch)
        values = sums.floats(self.optimizer.clip(), self.ranks)
        loss, grad_norm = values.pop("loss")[0], values.pop("grad_norm")[0]
        tokens = int(values.pop("step_tokens")[0])
        progress.training_step, progress.tokens = step, progress.tokens + tokens
        learning_rate, phase = self.schedule.rate(step), self.schedule.phase(step)

        anomaly = self._overflow(loss, grad_norm)
        if anomaly is None:
            anomaly = self.guard.judge(step, phase, loss, grad_norm)
        if anomaly is None:
            self.optimizer.set_rate(learning_rate)
            self.optimizer.step()
            if self._has_experts:
                update_balance(self.model, self.ranks.sum_same_layers)
            self.guard.check_moved(step, learning_rate, self.model, self.ranks)
        else:
            self._skip(progress, anomaly, loss, grad_norm, batch)
            if self._has_experts:
                reset_counts(self.model)

        done = StepDone(
            training_step=step,
            tokens=progress.tokens,
            phase=phase,
            loss=loss,
            grad_norm=grad_norm,
            learning_rate=learning_rate,
            skipped=anomaly is not None,
            step_tokens=tokens,
            seconds=time.monotonic() - start_time,
            values=self.task.measures(values),
        )
        for callback in self.callbacks:
            callback.step_done(done)
        self._log.append("metrics", {**done.metrics, **done.values})
        self.context.metric(**done.metrics)
        return done

    def _overflow(self, loss: float, grad_norm: float) -> Anomaly | None:
        """Gradients that overflowed because float16's loss scale was too large, as is normal."""
        if math.isfinite(grad_norm) or not math.isfinite(loss) or not self.optimizer.overflowed():
            return None
        return Anomaly(LOSS_SCALE, "")

    def _skip(
        self, progress: Progress, anomaly: Anomaly, loss: float, grad_norm: float, batch: Any
    ) -> None:
        """Count and report a skipped update; IngotError if there were too many of them."""
        step = progress.training_step
        progress.skipped += 1
        if anomaly.kind == LOSS_SCALE:
            self._event(progress, anomaly.kind)
            return
        message = f"training step {step} skipped: {anomaly.what}"
        details: dict[str, Any] = {"loss": loss, "grad_norm": grad_norm, **anomaly.details}
        if anomaly.kind == "not_finite":
            progress.not_finite += 1
            fault = None
            try:
                fault = find_fault(self.model, self.task, batch, self.ranks)
            except RuntimeError as error:  # Uncompiled, a step may need more memory.
                self.context.log.warning("could not look for what is not finite: %s", error)
            if fault is not None:
                message += f"; first not finite: {fault}"
                parts = asdict(fault)
                if self.ranks.world == 1:
                    del parts["rank"]
                details["fault"] = {**parts, "text": str(fault)}
        with torch.no_grad():
            rows = outlier_rows(self.task.sequence_losses(self.model, batch))
        suspects = self.task.documents(step, rows)
        if suspects:
            message += f"; {format_suspects(suspects)}"
        self._event(progress, anomaly.kind, message, **details, rows=rows, documents=len(suspects))
        if progress.not_finite > self.skip_limit:
            raise IngotError(
                f"{progress.not_finite} updates skipped for a loss or gradient that is not "
                f"finite; {message}",
                where=f"training step {step}",
                hint=f"{ADVICE}; optimizer.skip_limit allows more",
            )

    def _end_step(self, progress: Progress) -> None:
        """Run the end-of-step hooks: averages, permanent checkpoint, held-out loss, save, stop."""
        step, total = progress.training_step, self.schedule.steps
        self.averages.update(self.model, step)
        if self.permanent is not None and self.permanent.is_due(step):
            self._save(progress, permanent=self.permanent)
        self.context.progress(step, total, unit="training steps")
        if step % self.held_out_every == 0 or step == total:
            self._measure(progress)
        stopping = self.ranks.any(self.context.stopping)
        if stopping or step % self.checkpoint_every == 0 or step == total:
            self._save(progress)
        if stopping:
            self.checkpoints.settle()
            raise Stopped()

    # Rollback ------------------------------------------------------------------------------------

    def _roll_back(self, progress: Progress) -> Progress:
        """Exclude the training steps that led to the last skips; restore an earlier checkpoint.

        The decision is on disk before anything follows from it.
        """
        settings, skips = self.guard.settings, self.guard.skips
        self.checkpoints.settle()
        if len(self.rollbacks.made) >= settings.rollbacks:
            raise abort_error(self.rollbacks, skips, self._log.rows("events"), self.task.documents)
        first = max(self.rollbacks.before(skips[0], settings.margin), self.begin.training_step + 1)
        last = progress.training_step
        self._event(
            progress,
            "rollback",
            f"rollback {len(self.rollbacks.made) + 1} of {settings.rollbacks}: training steps "
            f"{first} to {last} are excluded, because of anomalies at {format_steps(skips)}",
            first=first,
            last=last,
            strikes=list(skips),
        )
        lost = [row for row in self._log.rows("events") if row["training_step"] >= first]
        self.rollbacks.add(Rollback(first, last, skips, tuple(lost)))
        hit_failpoint("rollback decided")
        restored, is_new = self._restore()
        if is_new:
            raise Stopped(
                f"no checkpoint before training step {first} is left: the run starts from scratch",
                where="rollback",
                hint="run the same command to continue",
            )
        self._report_restored(restored, is_new)
        return restored

    # Measuring and saving ------------------------------------------------------------------------

    def _measure(self, progress: Progress) -> None:
        self.model.eval()
        with torch.no_grad(), self.averages.applied(self.model):
            measured = self.task.held_out(self.model)
        log_held_out(self._log, progress.training_step, progress.tokens, measured)
        for loss in measured:
            if loss.language is None:
                self.context.metric(
                    training_step=progress.training_step, **{f"held_out/{loss.source}": loss.loss}
                )
        for callback in self.callbacks:
            callback.measured(progress.training_step, progress.tokens, measured)

    def _event(self, progress: Progress, kind: str, text: str = "", **details: Any) -> None:
        """Log what affects the model, alert if there is a text, and call the callbacks."""
        step = progress.training_step
        log_event(self._log, kind, step, progress.tokens, details)
        if text:
            self.context.alert(kind, text, training_step=step)
        self._call_event(kind, step, **details)

    def _call_event(self, kind: str, step: int, **details: Any) -> None:
        for callback in self.callbacks:
            callback.event(kind, step, **details)

    def _save(self, progress: Progress, permanent: PermanentCheckpoints | None = None) -> None:
        """Take a rolling checkpoint, or have a permanent one committed; training goes on."""
        start_time, step = time.monotonic(), progress.training_step
        self.optimizer.zero_grad()
        tensors = {
            WEIGHTS: self.model.state_dict(),
            OPTIMIZER: self.optimizer.tensors(),
            AVERAGES: self.averages.tensors(),
        }
        state = {
            **asdict(progress),
            "layout": dict(self.layout),
            "guard": self.guard.state(),
            "rollbacks": len(self.rollbacks.made),
            "left_out": [list(part) for part in self.rollbacks.excluded],
        }
        if permanent is None:
            self.checkpoints.save(step, tensors, state, horizon=self._horizon(step))
        else:
            commit = partial(permanent.commit, step, progress.tokens)
            self.checkpoints.commit(step, tensors, state, commit)
        for callback in self.callbacks:
            callback.saved(step, time.monotonic() - start_time)

    def _horizon(self, step: int) -> int | None:
        """The first training step that any later rollback may exclude; None if none may."""
        settings = self.guard.settings
        more = settings.rollbacks - len(self.rollbacks.made)
        if not settings.enabled or more <= 0:
            return None
        earliest = self.guard.skips[0] if self.guard.skips else step + 1
        return self.rollbacks.before(earliest, more * settings.margin)

    def _restore(self) -> tuple[Progress, bool]:
        """Load the newest checkpoint without excluded data; or return the begin, and True."""
        saved = self._newest()
        for rollback in self.rollbacks.made[saved.state["rollbacks"] if saved else 0 :]:
            if self.permanent is not None and self.ranks.first:
                self.permanent.rolled_back(rollback.first)
            hit_failpoint("rollback cleared")
        self._log.restore(saved.position if saved else None)
        if saved is None:
            return Progress(**asdict(self.begin)), True
        state = saved.state
        progress = Progress(**{part.name: state[part.name] for part in fields(Progress)})
        where = f"checkpoint of training step {progress.training_step}"
        load_weights(self.model, saved.weights, where=where)
        self.optimizer.load(saved.optimizer, where=where)
        self.averages.load(saved.averages, self.model, where=where)
        self.guard.restore(state["guard"])
        restore_random_state(state["random"])
        self.context.log.info("resumed at training step %d", progress.training_step)
        if state["layout"] != self.layout:
            self.context.log.warning(
                "resumed with another layout (%s, now %s): numbers will differ in their last bits",
                state["layout"],
                self.layout,
            )
        return progress, False

    def _newest(self) -> Saved | None:
        """The newest checkpoint without excluded data; rank 0 says which that is."""
        saved = None
        if self.ranks.first:
            saved = self.checkpoints.newest(
                lambda step, state: self.rollbacks.usable(step, state["rollbacks"])
            )
        known = self.ranks.share((saved.name, saved.state) if saved else None)
        if known is None or self.ranks.first:
            return saved
        return self.checkpoints.read(*known, None)

    def _report_restored(self, progress: Progress, is_new: bool) -> None:
        for name, why in self.checkpoints.refused:
            self._call_event("checkpoint_refused", progress.training_step, name=name, why=why)
        if is_new:
            return
        self._call_event("resume", progress.training_step)
        logged = [row["details"] for row in self._log.rows("events")]
        for change in self.context.accepted_code:
            if json.dumps(change) not in logged:
                self._event(progress, "accept_code", **change)
