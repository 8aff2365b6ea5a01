"""From a stage's context to a trained model and its artifacts: what pretrain, sft and dpo share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from torch import Tensor

from artifacts_schema.errors import IngotError, Stopped
from artifacts_schema.identity import short
from artifacts_schema.store import Store
from stages.engine import Context, Input
from stages.engine.meter import note_checkpoint
from stages.model.decoder import Decoder
from stages.model.size import mfu_flops_per_token
from stages.tokens.chat import CHAT_TEMPLATE
from stages.tokens.chat_template import (
    TokenizerFiles,
    TokenizerWithTemplate,
    make_trained_record,
    read_template,
    read_template_record,
)
from stages.training.alerts import Alert, Alerts, BaselineRun
from stages.training.averages import Averages
from stages.training.callbacks import Callback, TolerantCallback, Watchdog, exit_on_hang
from stages.training.checkpointing import RollingCheckpoints, fetch_newest
from stages.training.config import (
    AdapterConfig,
    AveragesConfig,
    OptimizerConfig,
    StabilityConfig,
    TrainingExecution,
)
from stages.training.dashboards import FOLDER, TensorBoard
from stages.training.devices import device_name, explain_compile_error
from stages.training.diagnosis import excluded_table
from stages.training.guard import Guard, Rollbacks
from stages.training.hardware import StepMemory, explain_out_of_memory, peak_flops, read_sensors
from stages.training.loop import Progress, Trainer
from stages.training.monitor import NoLog, RunLog, events_table, held_out_table, metrics_table
from stages.training.optimizer import Optimizer, treatments
from stages.training.permanent import OUTPUT, PermanentCheckpoints, write_checkpoint_files
from stages.training.remote_dashboards import MlflowRun, RemoteDashboard, WandbRun
from stages.training.runtime import CompileWatch, Runtime, clip_function, place
from stages.training.schedule import Schedule
from stages.training.task import Task
from stages.training.telemetry import Telemetry, TelemetryFile

SUSPECTS = "suspects.txt"
"""In the work of a failed run: documents of training steps with an anomaly, one per line."""

UNGUARDED = StabilityConfig(enabled=False)
"""For short runs: updates that are not finite are skipped, and nothing else is judged."""

NO_AVERAGES = AveragesConfig()

_WHERE = "the input checkpoint"


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of a run from its stage's config."""

    schedule: Schedule
    optimizer: OptimizerConfig
    held_out_every: int
    averages: AveragesConfig = NO_AVERAGES
    stability: StabilityConfig = UNGUARDED


@dataclass(frozen=True)
class ResumeState:
    """The progress and states that a run takes over; those that are None start from scratch."""

    progress: Progress = field(default_factory=Progress)
    optimizer: Mapping[str, Tensor] | None = None
    averages: Mapping[str, Tensor] | None = None
    guard: Mapping[str, Any] | None = None

    def load_into(self, trainer: Trainer) -> None:
        """Restore the states; CorruptArtifact for tensors that do not fit the model."""
        trainer.begin = self.progress
        if self.optimizer:
            trainer.optimizer.load(self.optimizer, where=_WHERE)
        if self.averages:
            trainer.averages.load(self.averages, trainer.model, where=_WHERE)
        if self.guard:
            trainer.guard.restore(self.guard)


@dataclass(frozen=True)
class TrainedRun:
    """The trainer of a finished run with its model, how far it went, and its rows of events."""

    trainer: Trainer
    progress: Progress
    events: list[dict[str, Any]]

    @property
    def model(self) -> Decoder:
        """The trained model."""
        return cast(Decoder, self.trainer.model)

    @property
    def log(self) -> RunLog:
        """The log of measurements."""
        return self.trainer.checkpoints.run_log


def fit(
    context: Context,
    model: Decoder,
    task: Task,
    settings: TrainingSettings,
    *,
    weights: Mapping[str, Tensor] | None = None,
    attention: str | None = None,
    start: ResumeState | None = None,
    permanent: PermanentCheckpoints | None = None,
    callbacks: Sequence[Callback] = (),
) -> TrainedRun:
    """Train `model` in place to the end of the schedule, from what an earlier run left in work.

    A run without earlier work begins at `start`. `weights` are those of `model` where it has none
    yet (see `StartModel`), `attention` is the backend of a model that is placed already;
    `callbacks` are called on every rank.
    """
    execution: TrainingExecution = context.execution
    runtime = task.runtime
    # Of the whole model: on several ranks each has a part of it.
    of_all = treatments(model, settings.optimizer)
    if attention is None:
        attention = place(model, execution, runtime, prefixes=task.prefixes, weights=weights)
    layout = {**runtime.layout(), "attention": attention}
    context.layout(**layout)
    if runtime.missing_for_compiling is not None:
        context.alert(
            "compile",
            "blocks are not compiled, and so slower: compiling needs "
            f"{runtime.missing_for_compiling}",
        )
    context.devices_held = runtime.ranks.world if runtime.device.type == "cuda" else 0
    if runtime.ranks.first:
        note_checkpoint(context.state, devices=context.devices_held)
    rollbacks, checkpoints = _open_work(context, runtime)
    trainer = Trainer(
        model=model,
        optimizer=Optimizer(
            model,
            settings.optimizer,
            runtime.precision,
            of_all=of_all,
            clip=clip_function(model, runtime),
        ),
        averages=Averages(settings.averages, settings.schedule.steps),
        task=task,
        schedule=settings.schedule,
        layout=layout,
        checkpoints=checkpoints,
        rollbacks=rollbacks,
        guard=Guard(settings.stability),
        context=context,
        checkpoint_every=execution.checkpoint_every,
        held_out_every=settings.held_out_every,
        skip_limit=settings.optimizer.skip_limit,
        prefetch=execution.prefetch,
        callbacks=(
            *callbacks,
            *(_callbacks(context, model, runtime, task.lengths) if runtime.ranks.first else ()),
            *_rank_callbacks(context, runtime),
        ),
        permanent=permanent,
    )
    (start or ResumeState()).load_into(trainer)
    memory = StepMemory(
        model.config,
        runtime.micro_batch,
        max(task.lengths, default=model.config.context),
        runtime.precision,
        settings.optimizer,
        execution,
        runtime.device,
        averages=settings.averages.kept,
        attention=attention,
    )
    try:
        with explain_out_of_memory(memory), explain_compile_error():
            progress = trainer.run()
    except IngotError as error:
        if not isinstance(error, Stopped) and runtime.ranks.first:
            _write_suspects(trainer)
        raise
    finally:
        checkpoints.run_log.close()
    context.count(training_steps=progress.training_step, tokens=progress.tokens)
    context.count(skipped_updates=progress.skipped, rollbacks=len(rollbacks.made))
    return TrainedRun(trainer, progress, _events(trainer))


def _open_work(context: Context, runtime: Runtime) -> tuple[Rollbacks, RollingCheckpoints]:
    """Rollbacks and checkpoints: from the stage's work, or as they were published last."""
    folder, decisions = context.work / "checkpoints", context.work / "rollbacks.json"
    ranks = runtime.ranks
    log: RunLog = NoLog()
    if ranks.first:
        fetch_newest(context.state, folder)
        log = RunLog(context.work / "measurements", partial(context.state.check, ask=False))
    ranks.share(None)  # Until the files are there.
    checkpoints = RollingCheckpoints(
        folder,
        log,
        context.log,
        state=context.state,
        sidecars=[decisions],
        ranks=ranks,
    )
    return Rollbacks(decisions, context.state.check, writes=ranks.first), checkpoints


def _events(trainer: Trainer) -> list[dict[str, Any]]:
    """The rows of `events.parquet`, with those that a rollback took out of the log."""
    return [*trainer.checkpoints.run_log.rows("events"), *trainer.rollbacks.events]


def _write_suspects(trainer: Trainer) -> None:
    """List the documents of anomalies in the work of a run that commits nothing."""
    context = trainer.context
    doc_ids = excluded_table(_events(trainer), trainer.task.documents)["doc_id"].to_pylist()
    if doc_ids:
        path = context.work / SUSPECTS
        path.write_text("".join(f"{doc_id}\n" for doc_id in doc_ids), encoding="utf-8")
        context.log.error(
            "%d documents of training steps with an anomaly: ingot forget --from %s",
            len(doc_ids),
            path,
        )


def _callbacks(
    context: Context, model: Decoder, runtime: Runtime, lengths: Sequence[int]
) -> list[Callback]:
    """The callbacks of every training run, by its execution settings.

    `lengths` are the tokens of a sequence by phase. Raises UsageError for a run to compare with
    that does not exist, and for W&B or MLflow without its package.
    """
    execution: TrainingExecution = context.execution
    folder, every = context.telemetry_folder, execution.telemetry_every
    dashboards: list[TolerantCallback | RemoteDashboard] = []
    if execution.tensorboard:
        dashboards.append(TolerantCallback(TensorBoard(folder / FOLDER, every=every), context.log))
    baseline = None
    if execution.compare_with is not None:
        store = Store(context.attempt.backend.url)
        baseline = BaselineRun.read(store, execution.compare_with)
    run_id = f"{context.attempt.stage}-{short(context.attempt.key)}"
    config = context.config.plain()
    if execution.wandb != "off":
        dashboards.append(WandbRun(execution, run_id, folder, config=config, log=context.log))
    if execution.mlflow is not None:
        dashboards.append(MlflowRun(execution, run_id, config=config, log=context.log))
    name = device_name(runtime.device)
    telemetry = Telemetry(
        TelemetryFile(folder),
        every=every,
        sensors=lambda: read_sensors(runtime.device),
        flops_per_token=[
            mfu_flops_per_token(model.config, length)
            for length in lengths or (model.config.context,)
        ],
        peak=peak_flops(name, execution.peak_tflops),
        readers=[dashboard.telemetry for dashboard in dashboards],
    )

    def report(training_step: int, alert: Alert) -> None:
        text = f"{'no more of: ' if alert.over else ''}{alert.kind}: {alert.text}"
        context.alert(alert.kind, text, over=alert.over, training_step=training_step)
        for dashboard in dashboards:
            if isinstance(dashboard, RemoteDashboard):
                dashboard.alert(alert.kind, text)

    callbacks: list[Callback] = [*dashboards]
    callbacks += [TolerantCallback(telemetry, context.log), Alerts(report, baseline)]
    if runtime.compiled:
        callbacks.append(CompileWatch(context.log, context))
    if execution.watchdog is not None and runtime.ranks.world == 1:  # Else `stages.engine.hangs`.
        callbacks.append(Watchdog(execution.watchdog, exit_on_hang(context)))
    return callbacks


def _rank_callbacks(context: Context, runtime: Runtime) -> list[Callback]:
    """The callbacks of every rank of several."""
    every = context.execution.profile_ranks_every
    if runtime.ranks.world == 1 or every is None:
        return []
    from stages.training.rank_telemetry import RankTelemetry

    return [
        RankTelemetry(
            context.telemetry_folder,
            runtime.ranks,
            every=every,
            sensors=lambda: read_sensors(runtime.device),
            alert=lambda step, text: context.alert("straggler", text, training_step=step),
        )
    ]


def write_checkpoint(
    context: Context,
    run: TrainedRun,
    tokenizer: TokenizerFiles,
    *,
    keep_optimizer: bool,
    state_at: Callable[[int], Mapping[str, Any]] | None = None,
    adapter: AdapterConfig | None = None,
) -> None:
    """Write the output `checkpoint`; `tokenizer` carries the tokenizer's files.

    `state_at(training_step)` is added to `state.json`. To be called on all ranks: tensors are
    gathered one at a time, and rank 0 writes each.
    """
    trainer, step = run.trainer, run.progress.training_step
    excluded = [list(part) for part in trainer.rollbacks.excluded]
    write_checkpoint_files(
        partial(context.open, OUTPUT),
        run.model.config,
        run.model.state_dict(),
        {
            "stage": context.attempt.stage,
            "training_step": step,
            "tokens": run.progress.tokens,
            "phase": trainer.schedule.phase(step),
            "learning_rate": trainer.schedule.rate(step),
            "skipped_updates": run.progress.skipped,
            **({"left_out": excluded} if excluded else {}),
            **({"guard": trainer.guard.state()} if trainer.guard.settings.enabled else {}),
            **(state_at(step) if state_at is not None else {}),
        },
        tokenizer,
        optimizer=trainer.optimizer.tensors() if keep_optimizer else None,
        averages=trainer.averages.tensors() if keep_optimizer else None,
        output=trainer.averages.settings.output,
        adapter=adapter,
        ranks=trainer.ranks,
    )


def write_tuned_checkpoint(
    context: Context, run: TrainedRun, start: Input, adapter: AdapterConfig | None = None
) -> None:
    """Write the output `checkpoint` of a stage that trained `start` on what its own chat template
    writes, or ChatML where it has none."""
    template = read_template(start)
    if template is None:
        template = CHAT_TEMPLATE
    record = make_trained_record(context.attempt.stage, read_template_record(start), template)
    write_checkpoint(
        context,
        run,
        TokenizerWithTemplate(start, template),
        keep_optimizer=False,
        state_at=lambda training_step: {"chat_template": record},
        adapter=adapter,
    )


def write_run(context: Context, run: TrainedRun, account: Mapping[str, Any]) -> None:
    """Write the output `training_run`: its tables, and `account` with the run's phases as JSON."""
    trainer, log, events = run.trainer, run.log, run.events
    if not trainer.ranks.first:
        return
    for name, table in {
        "metrics.parquet": metrics_table(log, trainer.task.columns),
        "held_out.parquet": held_out_table(log, trainer.task.held_out_columns),
        "events.parquet": events_table(events),
        "excluded.parquet": excluded_table(events, trainer.task.documents),
    }.items():
        context.write_table("training_run", name, table)
    context.write_json(
        "training_run",
        "run.json",
        {
            "training_steps": run.progress.training_step,
            "tokens": run.progress.tokens,
            "skipped_updates": run.progress.skipped,
            "left_out_training_steps": [list(part) for part in trainer.rollbacks.excluded],
            **account,
        },
    )
