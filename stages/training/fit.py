"""From a stage's context to a trained model and its artifacts: what pretrain, sft and dpo share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import IngotError, Stopped
from stages.model.decoder import Decoder
from stages.text.chat import CHAT_TEMPLATE
from stages.text.chat_template import (
    TokenizerFiles,
    TokenizerWithTemplate,
    carried_record,
    chatml_record,
)
from stages.training.averages import Averages
from stages.training.checkpointing import Permanent, RollingCheckpoints, fetch_newest
from stages.training.compiled import CompileWatch
from stages.training.config import AveragesConfig, OptimizerConfig, TrainingExecution
from stages.training.guard import Guard
from stages.training.listener import Listener
from stages.training.loop import Progress, Trainer
from stages.training.monitor import RunLog, events_table, held_out_table, metrics_table
from stages.training.optimizer import Optimizer, build_optimizer
from stages.training.origin import Origin
from stages.training.out_of_memory import StepMemory, explaining_out_of_memory
from stages.training.permanent import TOKENIZER_FILES, CheckpointParts
from stages.training.placing import place
from stages.training.rollback import Rollbacks
from stages.training.runtime import Runtime, device_name
from stages.training.schedule import Schedule
from stages.training.stability_config import StabilityConfig
from stages.training.suspects import excluded_table
from stages.training.task import Task
from stages.training.telemetry.observers import observers
from stages.training.watchdog import Watchdog, ends_a_hang

if TYPE_CHECKING:
    from stages.engine import Context, Input

SUSPECTS = "suspects.txt"
"""In the work of a run that was stopped: documents of training steps in trouble, one a line."""

NOT_WATCHED = StabilityConfig(enabled=False)
"""For short runs: updates that are not finite are skipped, and that is all."""


@dataclass
class Fitted:
    """A trained model, how far it went, and what was measured on the way."""

    model: Decoder
    optimizer: Optimizer
    averages: Averages
    task: Task
    schedule: Schedule
    progress: Progress
    rollbacks: Rollbacks
    guard: Guard
    log: RunLog
    events: list[dict[str, Any]]


def fit(
    context: Context,
    *,
    model: Decoder,
    task: Task,
    schedule: Schedule,
    settings: OptimizerConfig,
    runtime: Runtime,
    held_out_every: int,
    averages: AveragesConfig | None = None,
    stability: StabilityConfig = NOT_WATCHED,
    origin: Origin | None = None,
    permanent: Permanent | None = None,
    listeners: Sequence[Listener] = (),
    lengths: Sequence[int] = (),
    prefixes: bool = False,
) -> Fitted:
    """Train `model` in place to the end of `schedule`, from what an earlier run left in work.

    A run that nothing was left of begins at `origin`. `lengths` are the tokens of a sequence by
    phase; `prefixes` says that some tokens see later ones.
    """
    execution: TrainingExecution = context.execution
    attention = place(model, execution, runtime, prefixes=prefixes)
    layout = {**runtime.layout(), "attention": attention}
    context.layout(**layout)
    context.devices_held = int(runtime.device.type == "cuda")
    optimizer = build_optimizer(model, settings, runtime.precision)
    kept, guard = Averages(averages or AveragesConfig(), schedule.steps), Guard(stability)
    origin = origin or Origin()
    origin.give(model, optimizer, kept, guard)
    work = _Work.of(context)
    trainer = Trainer(
        model=model,
        optimizer=optimizer,
        averages=kept,
        task=task,
        schedule=schedule,
        layout=layout,
        checkpoints=work.checkpoints,
        rollbacks=work.rollbacks,
        guard=guard,
        context=context,
        checkpoint_every=execution.checkpoint_every,
        held_out_every=held_out_every,
        skip_limit=settings.skip_limit,
        prefetch=execution.prefetch,
        listeners=(*listeners, *_looking_on(context, model, runtime, lengths)),
        permanent=permanent,
        begin=origin.progress,
    )
    step = _memory(execution, model, runtime, settings, kept, lengths, attention)
    progress = _trained(trainer, work, step)
    context.count(training_steps=progress.training_step, tokens=progress.tokens)
    context.count(skipped_updates=progress.skipped, rollbacks=len(work.rollbacks.made))
    told = work.rollbacks, guard, work.log, work.events()
    return Fitted(model, optimizer, kept, task, schedule, progress, *told)


def _trained(trainer: Trainer, work: _Work, step: StepMemory) -> Progress:
    """Train; an end that nobody asked for explains itself, and leaves what it suspects."""
    try:
        with explaining_out_of_memory(step):
            return trainer.run()
    except Stopped:
        raise
    except IngotError:
        _leave_suspects(trainer.context, work, trainer.task)
        raise
    finally:
        work.log.close()


def _memory(
    execution: TrainingExecution,
    model: Decoder,
    runtime: Runtime,
    settings: OptimizerConfig,
    averages: Averages,
    lengths: Sequence[int],
    attention: str,
) -> StepMemory:
    """What a training step needs, for when it does not fit."""
    return StepMemory(
        model.config,
        runtime.micro_batch,
        max(lengths, default=model.config.context),
        runtime.precision,
        settings,
        execution,
        runtime.device,
        (averages.settings.ema is not None) + (averages.settings.last > 0),
        attention,
    )


def _leave_suspects(context: Context, work: _Work, task: Task) -> None:
    """Where a run that commits nothing was in trouble, list its documents beside its work."""
    doc_ids = excluded_table(work.events(), task.documents)["doc_id"].to_pylist()
    if doc_ids:
        path = context.work / SUSPECTS
        path.write_text("".join(f"{doc_id}\n" for doc_id in doc_ids), encoding="utf-8")
        context.log.error(
            "%d documents of training steps in trouble: ingot forget --from %s", len(doc_ids), path
        )


@dataclass(frozen=True)
class _Work:
    """What a run keeps between kills."""

    log: RunLog
    rollbacks: Rollbacks
    checkpoints: RollingCheckpoints

    @classmethod
    def of(cls, context: Context) -> _Work:
        """What lies in the stage's work, or was published last."""
        folder, decisions = context.work / "checkpoints", context.work / "rollbacks.json"
        fetch_newest(context.state, folder)
        check = partial(context.state.check, ask=False)
        log = RunLog(context.work / "measurements", check)
        checkpoints = RollingCheckpoints(
            folder, log, context.log, state=context.state, beside=[decisions]
        )
        return cls(log, Rollbacks(decisions, context.state.check), checkpoints)

    def events(self) -> list[dict[str, Any]]:
        """The rows of `events.parquet`, those that a rollback took out of the log among them."""
        return [*self.log.rows("events"), *self.rollbacks.events]


def _looking_on(
    context: Context, model: Decoder, runtime: Runtime, lengths: Sequence[int]
) -> list[Listener]:
    """Who looks on at every training run, as its execution says."""
    execution: TrainingExecution = context.execution
    device = device_name(runtime.device)
    found = observers(context, model.config, runtime.device, device, lengths)
    if runtime.compiled:
        found.append(CompileWatch(context.log, context))
    if execution.watchdog is not None:
        found.append(Watchdog(execution.watchdog, ends_a_hang(context)))
    return found


def write_checkpoint(
    context: Context,
    fitted: Fitted,
    tokenizer: TokenizerFiles,
    *,
    keep_optimizer: bool,
    state_at: Callable[[int], Mapping[str, Any]] | None = None,
) -> None:
    """Write the output `checkpoint`; `tokenizer` is whatever carries the tokenizer's files.

    `state_at(training_step)` is what `state.json` says beside how far the run went.
    """
    step = fitted.progress.training_step
    left_out = [list(part) for part in fitted.rollbacks.left_out]
    parts = CheckpointParts(
        config=fitted.model.config,
        weights=fitted.model.state_dict(),
        optimizer=fitted.optimizer.tensors() if keep_optimizer else None,
        averages=fitted.averages.tensors() if keep_optimizer else None,
        state={
            "stage": context.attempt.stage,
            "training_step": step,
            "tokens": fitted.progress.tokens,
            "phase": fitted.schedule.phase(step),
            "learning_rate": fitted.schedule.rate(step),
            "skipped_updates": fitted.progress.skipped,
            **({"left_out": left_out} if left_out else {}),
            **({"guard": fitted.guard.state()} if fitted.guard.settings.enabled else {}),
            **(state_at(step) if state_at is not None else {}),
        },
        output=fitted.averages.settings.output,
    )
    for name, content in parts.files():
        context.write_bytes("checkpoint", name, content)
    for name in TOKENIZER_FILES:
        context.write_bytes("checkpoint", name, tokenizer.read_bytes(name))


def write_tuned_checkpoint(context: Context, fitted: Fitted, start: Input) -> None:
    """Write the output `checkpoint` of a stage that trained `start` on conversations in ChatML."""
    before = carried_record(start)
    record = chatml_record(context.attempt.stage, before)
    if before is not None and before["format"] != record["format"]:
        context.log.warning(
            "the chat template of %s is replaced by ChatML, which this stage trains with",
            before["source"],
        )
    write_checkpoint(
        context,
        fitted,
        TokenizerWithTemplate(start, CHAT_TEMPLATE),
        keep_optimizer=False,
        state_at=lambda training_step: {"chat_template": record},
    )


def write_run(context: Context, fitted: Fitted, account: Mapping[str, Any]) -> None:
    """Write the output `training_run`: its tables, and `account` with the run's phases as JSON."""
    log, events = fitted.log, fitted.events
    for name, table in {
        "metrics.parquet": metrics_table(log, fitted.task.columns),
        "held_out.parquet": held_out_table(log),
        "events.parquet": events_table(events),
        "excluded.parquet": excluded_table(events, fitted.task.documents),
    }.items():
        context.write_table("training_run", name, table)
    context.write_json(
        "training_run",
        "run.json",
        {
            "training_steps": fitted.progress.training_step,
            "tokens": fitted.progress.tokens,
            "skipped_updates": fitted.progress.skipped,
            "left_out_training_steps": [list(part) for part in fitted.rollbacks.left_out],
            **account,
        },
    )
