"""From a stage's context to a trained model and its artifacts: what pretrain, sft and dpo share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save

from stages.model.decoder import Decoder
from stages.model.files import model_files
from stages.training.checkpointing import OPTIMIZER, STATE, RollingCheckpoints, fetch_newest
from stages.training.config import AdamWConfig, TrainingExecution
from stages.training.loop import Progress, Task, Trainer
from stages.training.monitor import RunLog, held_out_table, metrics_table
from stages.training.optimizer import adamw, load_optimizer, optimizer_tensors
from stages.training.runtime import Runtime
from stages.training.schedule import Schedule

if TYPE_CHECKING:
    from torch import Tensor

    from stages.engine import Context, Input

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


@dataclass
class Fitted:
    """A trained model, how far it went, and what was measured on the way."""

    model: Decoder
    optimizer: torch.optim.Optimizer
    task: Task
    schedule: Schedule
    progress: Progress
    log: RunLog


def fit(
    context: Context,
    *,
    model: Decoder,
    task: Task,
    schedule: Schedule,
    settings: AdamWConfig,
    runtime: Runtime,
    held_out_every: int,
    optimizer_state: Mapping[str, Tensor] | None = None,
) -> Fitted:
    """Train `model` in place to the end of `schedule`, from what an earlier run left in work."""
    execution: TrainingExecution = context.execution
    context.layout(**runtime.layout())
    model.to(runtime.device)
    optimizer = adamw(model, settings)
    if optimizer_state:
        load_optimizer(optimizer, optimizer_state, where="optimizer state of the checkpoint")
    folder = context.work / "checkpoints"
    fetch_newest(context.state, folder)
    log = RunLog(context.work / "measurements.jsonl")
    trainer = Trainer(
        model=model,
        optimizer=optimizer,
        settings=settings,
        task=task,
        schedule=schedule,
        runtime=runtime,
        checkpoints=RollingCheckpoints(folder, log, context.log, state=context.state),
        context=context,
        checkpoint_every=execution.checkpoint_every,
        held_out_every=held_out_every,
        prefetch=execution.prefetch,
    )
    try:
        progress = trainer.run()
    finally:
        log.close()
    context.count(training_steps=progress.training_step, tokens=progress.tokens)
    context.count(skipped_updates=progress.skipped)
    return Fitted(model, optimizer, task, schedule, progress, log)


def write_checkpoint(
    context: Context, fitted: Fitted, tokenizer: Input, *, keep_optimizer: bool
) -> None:
    """Write the output `checkpoint`; `tokenizer` is whatever carries the tokenizer's files."""
    for name, content in model_files(fitted.model).items():
        context.write_bytes("checkpoint", name, content)
    for name in TOKENIZER_FILES:
        context.write_bytes("checkpoint", name, tokenizer.read_bytes(name))
    if keep_optimizer:
        tensors = {
            name: tensor.detach().cpu().contiguous()
            for name, tensor in optimizer_tensors(fitted.optimizer).items()
        }
        context.write_bytes("checkpoint", OPTIMIZER, save(tensors))
    step = fitted.progress.training_step
    state = {
        "stage": context.attempt.stage,
        "training_step": step,
        "tokens": fitted.progress.tokens,
        "phase": fitted.schedule.phase(step),
        "skipped_updates": fitted.progress.skipped,
    }
    context.write_json("checkpoint", STATE, state)


def write_run(context: Context, fitted: Fitted, account: Mapping[str, Any]) -> None:
    """Write the output `training_run`: both tables, and `account` with the run's phases as JSON."""
    metrics, held_out = metrics_table(fitted.log, fitted.task.columns), held_out_table(fitted.log)
    context.write_table("training_run", "metrics.parquet", metrics)
    context.write_table("training_run", "held_out.parquet", held_out)
    context.write_json(
        "training_run",
        "run.json",
        {
            "training_steps": fitted.progress.training_step,
            "tokens": fitted.progress.tokens,
            "skipped_updates": fitted.progress.skipped,
            **account,
        },
    )
