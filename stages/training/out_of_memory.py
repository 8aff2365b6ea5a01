"""Memory of a training step: what needs it, and which settings need less.

Asked before the first step by the pre-flight, and when memory runs out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from artifacts_schema.errors import IngotError
from stages.engine.sizes import amount
from stages.model.config import ModelConfig
from stages.model.memory import TrainingMemory, training_memory
from stages.training.config import OptimizerConfig, Precision, TrainingExecution
from stages.training.linear_cross_entropy import most_logits

PARTS = ("weights", "gradients", "optimizer", "activations", "logits")
SHOWN = 3
"""Settings that are named."""


@dataclass(frozen=True)
class StepMemory:
    """A training step by what decides its memory: `rows` sequences of `length` tokens at once.

    `averages` are further copies of the weights that are kept up; `attention` is the backend.
    """

    model: ModelConfig
    rows: int
    length: int
    precision: Precision
    optimizer: OptimizerConfig
    execution: TrainingExecution
    device: torch.device
    averages: int = 0
    attention: str = "sdpa"

    @property
    def need(self) -> TrainingMemory:
        """Bytes by part."""
        most = most_logits(self.device, self.execution.logits_in_memory)
        return training_memory(
            self.model,
            rows=self.rows,
            length=self.length,
            precision=self.precision,
            checkpointing=self.execution.activation_checkpointing,
            checkpointing_every=self.execution.activation_checkpointing_every,
            optimizer=self.optimizer.name,
            averages=self.averages,
            attention=self.attention,
            logits=min(most, self.rows * self.length * self.model.vocabulary_size),
        )

    def said(self) -> str:
        """The parts, largest first."""
        need = self.need
        parts = sorted(PARTS, key=lambda name: -getattr(need, name))
        shown = ", ".join(f"{name} {amount(getattr(need, name))}" for name in parts)
        return f"about {amount(need.total)}: {shown}"


@dataclass(frozen=True)
class Saving:
    """A setting at a value that needs fewer bytes."""

    setting: str
    value: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.setting}: {self.value} saves about {amount(self.bytes)}"


def savings(step: StepMemory) -> list[Saving]:
    """The settings that save most, at most three, each by itself, most first."""
    now = step.need.total
    found = [
        Saving(setting, value, now - changed.need.total) for setting, value, changed in _less(step)
    ]
    return sorted((one for one in found if one.bytes > 0), key=lambda one: -one.bytes)[:SHOWN]


def _less(step: StepMemory) -> Iterator[tuple[str, str, StepMemory]]:
    execution = step.execution

    def how(**changed: object) -> StepMemory:
        return replace(step, execution=execution.model_copy(update=changed))

    if step.rows > 1:
        fewer = step.rows // 2
        yield "execution.micro_batch", str(fewer), replace(step, rows=fewer)
    full = how(activation_checkpointing="full", activation_checkpointing_every=1)
    yield "execution.activation_checkpointing", "full", full
    if step.precision == "fp32":
        yield "precision", "bf16", replace(step, precision="bf16")
    logits = most_logits(step.device, execution.logits_in_memory) // 4
    if logits >= step.model.vocabulary_size:
        yield "execution.logits_in_memory", f"{logits:,}", how(logits_in_memory=logits)
    if step.optimizer.name == "adamw":
        muon = step.optimizer.model_copy(update={"name": "muon"})
        yield "optimizer.name", "muon", replace(step, optimizer=muon)


@contextmanager
def explaining_out_of_memory(step: StepMemory) -> Iterator[None]:
    """Where memory runs out inside the block, an IngotError that says for what, and what helps."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise explained(step) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch says that memory ran out; on a CPU it has no type of its own."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    said = str(error)
    return "can't allocate memory" in said or "not enough memory" in said


def explained(step: StepMemory) -> IngotError:
    """The error for a step that does not fit."""
    helps = "; ".join(str(one) for one in savings(step))
    return IngotError(
        f"out of memory: {step.rows} sequences of {step.length:,} tokens take {step.said()}",
        where=str(step.device),
        hint=helps or "take a smaller model, or a device with more memory",
    )
