"""The training loop, for every kind of training: pretraining, SFT, DPO.

A `Task` says what a training step sees and what its loss is; the loop accumulates over
micro-batches, clips, updates, measures, checkpoints and stops. Which data a step sees depends on
its number alone, so a resumed run needs the weights, the optimizer state and that number. A `Guard`
judges each step before its update: one in trouble updates nothing, several lead back.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from artifacts_schema.errors import CorruptArtifact, IngotError, Stopped
from artifacts_schema.store.points import reached
from stages.model.experts import forget_counts, update_balance
from stages.training.averages import Averages
from stages.training.checkpointing import (
    Permanent,
    RollingCheckpoints,
    restore_random_state,
)
from stages.training.guard import ADVICE, Guard, Trouble
from stages.training.listener import Listener, Listeners, StepDone
from stages.training.monitor import log_event, log_held_out
from stages.training.optimizer import Optimizer
from stages.training.prefetch import Prefetch
from stages.training.replay import Fault, find_fault
from stages.training.rollback import Rollback, Rollbacks
from stages.training.schedule import Schedule
from stages.training.suspects import outstanding, told
from stages.training.task import Task, Total
from stages.training.verdict import listed, verdict

if TYPE_CHECKING:
    from stages.engine import Context


@dataclass
class Progress:
    """How far a run is; `not_finite` of the skipped updates were for such a loss or gradient."""

    training_step: int = 0
    tokens: int = 0
    skipped: int = 0
    not_finite: int = 0


@dataclass
class Trainer:
    """One model, one task, one schedule, in one process; it begins behind `begin`.

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
    listeners: Sequence[Listener] = ()
    permanent: Permanent | None = None
    begin: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self._told = Listeners(self.listeners)
        self._log = self.checkpoints.run_log

    def run(self) -> Progress:
        """Train to the end of the schedule, from the newest whole checkpoint if there is one.

        Raises Stopped when asked to stop (a checkpoint is saved first), IngotError with a verdict
        when the run cannot help itself, StoreError when a checkpoint cannot be written.
        """
        total = self.schedule.steps
        try:
            with Prefetch(self._batch, ahead=self.prefetch, last=total) as batches:
                progress = self._run(batches, total)
            self.checkpoints.settle()
        except BaseException as error:
            self.checkpoints.close()
            self._told.ended(error)
            raise
        self._told.ended(None)
        return progress

    def _run(self, batches: Callable[[int], Any], total: int) -> Progress:
        progress, anew = self._restore()
        started, first_tokens = time.monotonic(), progress.tokens
        self._told.started(progress.training_step, total)
        self._tell_restored(progress, anew)
        if anew:
            self._measure(progress)
            if self.guard.settings.enabled:
                self._save(progress)  # So that there is one to go back to from the first step on.
        while progress.training_step < total:
            self.checkpoints.check()
            batch = batches(progress.training_step + 1)
            done = None if batch is None else self._step(progress, batch)
            if done is None:
                progress.training_step += 1
            elif done.skipped and self.guard.gives_up():
                self._told.step_done(done)
                progress = self._roll_back(progress)
                continue
            self._after_step(progress, done, total)
        seconds = time.monotonic() - started
        if seconds > 0 and progress.tokens > first_tokens:
            self.context.telemetry(tokens_per_second=(progress.tokens - first_tokens) / seconds)
        return progress

    def _batch(self, step: int) -> Any:
        return None if self.rollbacks.leaves_out(step) else self.task.batch(step)

    def _after_step(self, progress: Progress, done: StepDone | None, total: int) -> None:
        """Average, keep, tell, measure, save and stop, where it is time to."""
        step = progress.training_step
        self.averages.update(self.model, step)
        if done is not None:
            self._told.step_done(done)
        if self.permanent is not None and self.permanent.is_due(step):
            self._keep(self.permanent, progress)
        self.context.progress(step, total, unit="training steps")
        if step % self.held_out_every == 0 or step == total:
            self._measure(progress)
        stopping = self.context.stopping
        if stopping or step % self.checkpoint_every == 0 or step == total:
            self._save(progress)
        if stopping:
            self.checkpoints.settle()
            self.context.check_stop()

    # One training step ---------------------------------------------------------------------------

    def _step(self, progress: Progress, batch: Any) -> StepDone:
        """Gradients of all micro-batches, then an update unless something speaks against it."""
        step, began = progress.training_step + 1, time.monotonic()
        self.optimizer.zero_grad()
        self.model.train()
        total = Total()
        for share in self.task.shares(self.model, batch):
            self.optimizer.backward(share.loss)
            total.add(share)
        sums = total.floats(self.optimizer.clip())
        loss, grad_norm = sums.pop("loss")[0], sums.pop("grad_norm")[0]
        progress.training_step = step
        progress.tokens += total.tokens
        rate, phase = self.schedule.rate(step), self.schedule.phase(step)
        skipped = self._overflowed(progress, loss, grad_norm)
        if not skipped:
            trouble = self.guard.judge(step, phase, loss, grad_norm)
            skipped = trouble is not None
            if trouble is not None:
                self._skip(progress, trouble, loss, grad_norm, batch)
        if skipped:
            forget_counts(self.model)
        else:
            self.optimizer.set_rate(rate)
            self.optimizer.step()
            update_balance(self.model)
            self.guard.check_moved(step, rate, self.model)
        row: dict[str, Any] = {
            "training_step": step,
            "tokens": progress.tokens,
            "phase": phase,
            "loss": loss,
            "grad_norm": grad_norm,
            "learning_rate": rate,
            "skipped": skipped,
        }
        values = self.task.measures(sums)
        self._log.append("metrics", {**row, **values})
        self.context.metric(**row)
        seconds = time.monotonic() - began
        return StepDone(**row, step_tokens=total.tokens, seconds=seconds, values=values)

    def _overflowed(self, progress: Progress, loss: float, grad_norm: float) -> bool:
        """Whether float16's scale of the loss was too large: that is in its nature, no trouble."""
        if math.isfinite(grad_norm) or not math.isfinite(loss) or not self.optimizer.overflowed():
            return False
        progress.skipped += 1
        self._event(progress, "loss_scale")
        return True

    def _skip(
        self, progress: Progress, trouble: Trouble, loss: float, grad_norm: float, batch: Any
    ) -> None:
        """Count and tell an update that is left out; IngotError if there were too many of them."""
        step = progress.training_step
        progress.skipped += 1
        said = f"training step {step} skipped: {trouble.what}"
        details: dict[str, Any] = {"loss": loss, "grad_norm": grad_norm, **trouble.details}
        if trouble.kind == "not_finite":
            progress.not_finite += 1
            fault = self._fault(batch)
            if fault is not None:
                said += f"; first not finite: {fault}"
                details["fault"] = {**asdict(fault), "text": str(fault)}
        with torch.no_grad():
            rows = outstanding(self.task.row_losses(self.model, batch))
        suspects = self.task.documents(step, rows)
        if suspects:
            said += f"; {told(suspects)}"
        self._event(progress, trouble.kind, said, **details, rows=rows, documents=len(suspects))
        if progress.not_finite > self.skip_limit:
            skipped = f"{progress.not_finite} updates skipped"
            raise IngotError(
                f"{skipped} for a loss or gradient that is not finite; {said}",
                where=f"training step {step}",
                hint=f"{ADVICE}; optimizer.skip_limit allows more",
            )

    def _fault(self, batch: Any) -> Fault | None:
        """Where the step first went not finite; None where that is not found."""
        try:
            return find_fault(self.model, self.task, batch)
        except RuntimeError as error:  # Uncompiled, a step may need more memory than there is.
            self.context.log.warning("could not look for what is not finite: %s", error)
            return None

    # Going back ----------------------------------------------------------------------------------

    def _roll_back(self, progress: Progress) -> Progress:
        """Leave out what led to the last strikes, from an earlier checkpoint on.

        The decision is on disk before anything follows from it.
        """
        settings, strikes = self.guard.settings, self.guard.strikes
        self.checkpoints.settle()
        if len(self.rollbacks.made) >= settings.rollbacks:
            raise verdict(self.rollbacks, strikes, self._log.rows("events"), self.task.documents)
        first = max(
            self.rollbacks.before(strikes[0], settings.margin), self.begin.training_step + 1
        )
        last = progress.training_step
        self._event(
            progress,
            "rollback",
            f"rollback {len(self.rollbacks.made) + 1} of {settings.rollbacks}: training steps "
            f"{first} to {last} are left out, for trouble at {listed(strikes)}",
            first=first,
            last=last,
            strikes=list(strikes),
        )
        lost = [row for row in self._log.rows("events") if row["training_step"] >= first]
        self.rollbacks.add(Rollback(first, last, strikes, tuple(lost)))
        reached("rollback decided")
        restored, anew = self._restore()
        if anew:
            raise Stopped(
                f"no checkpoint before training step {first} is left: the run begins anew",
                where="rollback",
                hint="run the same command to continue",
            )
        self._tell_restored(restored, anew)
        return restored

    # Measuring and saving ------------------------------------------------------------------------

    def _measure(self, progress: Progress) -> None:
        self.model.eval()
        with torch.no_grad(), self.averages.applied(self.model):
            measured = self.task.held_out(self.model)
        log_held_out(self._log, progress.training_step, progress.tokens, measured)
        for one in measured:
            if one.language is None:
                self.context.metric(
                    training_step=progress.training_step, **{f"held_out/{one.source}": one.loss}
                )
        self._told.measured(progress.training_step, progress.tokens, measured)

    def _event(self, progress: Progress, kind: str, text: str = "", **details: Any) -> None:
        """Write down what bears on the model, and tell everybody."""
        step = progress.training_step
        log_event(self._log, kind, step, progress.tokens, details)
        if text:
            self.context.alert(kind, text, training_step=step)
        self._told.event(kind, step, **details)

    def _state(self, progress: Progress) -> dict[str, Any]:
        """What a checkpoint says beside the tensors, JSON-ready."""
        return {
            **asdict(progress),
            "layout": dict(self.layout),
            "guard": self.guard.state(),
            "rollbacks": len(self.rollbacks.made),
            "left_out": [list(part) for part in self.rollbacks.left_out],
        }

    def _keep(self, permanent: Permanent, progress: Progress) -> None:
        """Commit a permanent checkpoint while training goes on."""
        began, step, tokens = time.monotonic(), progress.training_step, progress.tokens
        self.checkpoints.commit(
            step,
            self.model.state_dict(),
            self.optimizer.tensors(),
            self._state(progress),
            lambda saved: permanent.commit(step, tokens, saved),
            averages=self.averages.tensors(),
        )
        self._told.saved(step, time.monotonic() - began)

    def _save(self, progress: Progress) -> None:
        began, step = time.monotonic(), progress.training_step
        self.optimizer.zero_grad()
        self.checkpoints.save(
            step,
            self.model.state_dict(),
            self.optimizer.tensors(),
            self._state(progress),
            averages=self.averages.tensors(),
            horizon=self._horizon(step),
        )
        self._told.saved(step, time.monotonic() - began)

    def _horizon(self, step: int) -> int | None:
        """The first training step that any rollback to come may leave out; None if none may."""
        settings = self.guard.settings
        more = settings.rollbacks - len(self.rollbacks.made)
        if not settings.enabled or more <= 0:
            return None
        earliest = self.guard.strikes[0] if self.guard.strikes else step + 1
        return self.rollbacks.before(earliest, more * settings.margin)

    def _restore(self) -> tuple[Progress, bool]:
        """Where the newest checkpoint stands that holds nothing left out; or the begin, anew."""
        saved = self.checkpoints.newest(
            lambda step, state: self.rollbacks.usable(step, state["rollbacks"])
        )
        for made in self.rollbacks.made[saved.state["rollbacks"] if saved else 0 :]:
            if self.permanent is not None:
                self.permanent.rolled_back(made.first)
            reached("rollback cleared")
        self._log.restore(saved.position if saved else None)
        if saved is None:
            return Progress(**asdict(self.begin)), True
        state = saved.state
        progress = Progress(**{one.name: state[one.name] for one in fields(Progress)})
        where = f"checkpoint of training step {progress.training_step}"
        try:
            self.model.load_state_dict(saved.weights)
        except RuntimeError as error:
            raise CorruptArtifact(str(error), where=where) from None
        self.optimizer.load(saved.optimizer, where=where)
        self.averages.load(saved.averages, self.model, where=where)
        self.guard.restore(state["guard"])
        restore_random_state(state["random"])
        self.context.log.info("resumed at training step %d", progress.training_step)
        self._compare_layout(state["layout"])
        return progress, False

    def _tell_restored(self, progress: Progress, anew: bool) -> None:
        for name, why in self.checkpoints.refused:
            self._told.event("checkpoint_refused", progress.training_step, name=name, why=why)
        if not anew:
            self._told.event("resume", progress.training_step)
            noted = [row["details"] for row in self._log.rows("events")]
            for change in self.context.accepted_code:
                if json.dumps(change) not in noted:
                    self._event(progress, "accept_code", **change)

    def _compare_layout(self, layout: Mapping[str, Any]) -> None:
        if layout != self.layout:
            self.context.log.warning(
                "resumed in another layout (%s, now %s): numbers will differ in their last bits",
                layout,
                self.layout,
            )
