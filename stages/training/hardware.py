"""The machine: peak speed of a device, its sensors and memory, and what a training step needs.

The peak is the denominator of model FLOPs utilisation (MFU). Chowdhery et al. 2022 (PaLM), section
4.1: MFU is the tokens a second that were observed over those of a device at its peak that does
nothing but the model's own products. The peak is that of dense bfloat16 products (float16 where the
device has no bfloat16), whatever precision a run has, so that figures of runs can be compared.

A sensor that does not exist gives None: no driver, no `nvidia-ml-py`, a virtual GPU that hides it.
The pre-flight estimates the memory of a step before the first one; so does the error when memory
runs out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import psutil
import torch

from artifacts_schema.config import format_bytes
from artifacts_schema.errors import IngotError
from stages.engine.allotment import own_groups
from stages.model.config import ModelConfig
from stages.model.memory import TrainingMemory, training_memory
from stages.training.config import OptimizerConfig, TrainingExecution, TrainingPrecision
from stages.training.losses import most_logits

TERA = 1e12


class Peak(NamedTuple):
    """Dense 16-bit products of a device: 10^12 operations a second, and the source."""

    device: str
    """Pattern of the name that CUDA gives the device."""
    tflops: float
    source: str


PEAKS = (
    Peak(r"GB200", 2500, "NVIDIA GB200 NVL72 data sheet, half of the figure with sparsity"),
    Peak(r"B200", 2250, "NVIDIA HGX B200 data sheet, half of the figure with sparsity"),
    Peak(r"GH200", 989, "NVIDIA GH200 data sheet, half of 1,979 with sparsity"),
    Peak(r"H200 NVL", 835, "NVIDIA H200 data sheet, half of 1,671 with sparsity"),
    Peak(r"H200", 989, "NVIDIA H200 data sheet, half of 1,979 with sparsity"),
    Peak(r"H100 PCIe", 756, "NVIDIA H100 data sheet, half of 1,513 with sparsity"),
    Peak(r"H100 NVL", 835, "NVIDIA H100 NVL data sheet, half of 1,671 with sparsity"),
    Peak(r"H[18]00", 989, "NVIDIA H100 (SXM) data sheet, half of 1,979 with sparsity"),
    Peak(r"A[18]00", 312, "NVIDIA A100 data sheet"),
    Peak(r"A40", 149.7, "NVIDIA A40 data sheet"),
    Peak(r"A30", 165, "NVIDIA A30 data sheet"),
    Peak(r"A10", 125, "NVIDIA A10 data sheet"),
    Peak(r"L40S", 362, "NVIDIA L40S data sheet"),
    Peak(r"L40", 181, "NVIDIA L40 data sheet"),
    Peak(r"L4", 121, "NVIDIA L4 data sheet, half of 242 with sparsity"),
    Peak(r"RTX 5090", 209.5, "NVIDIA RTX Blackwell white paper, float32 accumulation"),
    Peak(r"RTX 4090", 165.2, "NVIDIA Ada white paper, float32 accumulation"),
    Peak(r"RTX 3090", 71, "NVIDIA GA102 white paper, float32 accumulation"),
    Peak(r"V100-SXM2", 125, "NVIDIA V100 data sheet, float16"),
    Peak(r"T4", 65, "NVIDIA T4 data sheet, float16"),
    Peak(r"MI300X", 1307.4, "AMD Instinct MI300X data sheet"),
)
"""Looked up by the first pattern that matches whole words of the name."""


def peak_flops(device: str, given_tflops: float | None = None) -> float | None:
    """Operations a second of a device at its peak: `given_tflops` · 10^12, or that of the table.

    None for a device that is not in the table, as a CPU.
    """
    if given_tflops is not None:
        return given_tflops * TERA
    for peak in PEAKS:
        if re.search(rf"(?<![A-Za-z0-9]){peak.device}(?![A-Za-z0-9])", device):
            return peak.tflops * TERA
    return None


def mfu(tokens_per_second: float, flops_per_token: float, peak: float | None) -> float | None:
    """Model FLOPs utilisation: a share of 1; None without a peak."""
    return None if peak is None else tokens_per_second * flops_per_token / peak


CGROUP, OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


@dataclass(frozen=True)
class Reading:
    """One look at the sensors; bytes, degrees Celsius, MHz of the multiprocessors, watts."""

    process_bytes: int
    device_bytes: int | None = None
    device_peak_bytes: int | None = None
    temperature: float | None = None
    clock_mhz: float | None = None
    power_watts: float | None = None


def read_sensors(device: torch.device) -> Reading:
    """The current values; `device_peak_bytes` is the most since the last reading."""
    process_bytes = int(psutil.Process().memory_info().rss)
    if device.type != "cuda":
        return Reading(process_bytes)
    peak = torch.cuda.max_memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    power = _read_sensor(lambda: torch.cuda.power_draw(device))
    return Reading(
        process_bytes,
        device_bytes=torch.cuda.memory_allocated(device),
        device_peak_bytes=peak,
        temperature=_read_sensor(lambda: torch.cuda.temperature(device)),
        clock_mhz=_read_sensor(lambda: torch.cuda.clock_rate(device)),
        power_watts=None if power is None else power / 1000,
    )


@dataclass(frozen=True)
class Room:
    """Bytes of memory: how many there are, and how many of them are free."""

    total: int
    free: int


def memory_room(device: torch.device) -> Room:
    """Of a GPU its own memory; of a CPU the machine's, or what its control group leaves of it."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return Room(int(total), int(free))
    memory = psutil.virtual_memory()
    rooms = [Room(int(memory.total), int(memory.available))]
    rooms += [room for folder in own_groups() if (room := group_room(folder)) is not None]
    return Room(min(room.total for room in rooms), min(room.free for room in rooms))


def group_room(folder: Path) -> Room | None:
    """What the control group (version 2) at `folder` allows; None where it sets no limit.

    Its file cache counts as free: the kernel gives it back.
    """
    try:
        limit, used = (
            (folder / name).read_text().strip() for name in ("memory.max", "memory.current")
        )
        cached = (folder / "memory.stat").read_text().split("inactive_file ")[1].split()[0]
        total = int(limit)
        return Room(total, max(0, min(total, total - int(used) + int(cached))))
    except (OSError, ValueError, IndexError):
        return None


def _read_sensor(read: Callable[[], float]) -> float | None:
    """A sensor's value. NVML's errors have no common base with those of a missing module."""
    try:
        return float(read())
    except Exception:
        return None


PARTS = ("weights", "gradients", "optimizer", "gathered", "activations", "logits")
MOST_SAVINGS = 3
"""Settings that are named."""


@dataclass(frozen=True)
class StepMemory:
    """A training step by what decides its memory: `rows` sequences of `length` tokens at once.

    `averages` are further copies of the weights that are kept up; `attention` is the backend. On
    several processes it is the step of the rank that needs most.
    """

    model: ModelConfig
    rows: int
    length: int
    precision: TrainingPrecision
    optimizer: OptimizerConfig
    execution: TrainingExecution
    device: torch.device
    averages: int = 0
    attention: str = "sdpa"

    @property
    def need(self) -> TrainingMemory:
        """Bytes by part, of one rank."""
        layout = self.execution.layout
        stages = [
            self._need(stage * layout.world // layout.pipeline) for stage in range(layout.pipeline)
        ]
        return max(stages, key=lambda one: one.total)

    def _need(self, rank: int) -> TrainingMemory:
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
            logits=most_logits(self.device, self.execution.logits_in_memory),
            layout=self.execution.layout,
            rank=rank,
        )

    def describe(self) -> str:
        """The sum and the parts, largest first."""
        need = self.need
        parts = [name for name in PARTS if name != "gathered" or need.gathered]
        parts.sort(key=lambda name: -getattr(need, name))
        parts_text = ", ".join(f"{name} {format_bytes(getattr(need, name))}" for name in parts)
        return f"about {format_bytes(need.total)}: {parts_text}"


@dataclass(frozen=True)
class Saving:
    """A setting at a value that needs fewer bytes."""

    setting: str
    value: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.setting}: {self.value} saves about {format_bytes(self.bytes)}"


def savings(step: StepMemory) -> list[Saving]:
    """The settings that save most, at most three, each by itself, most first."""
    now = step.need.total
    results = [
        Saving(setting, value, now - changed.need.total)
        for setting, value, changed in _smaller_steps(step)
        if changed.need.total < now
    ]
    return sorted(results, key=lambda one: -one.bytes)[:MOST_SAVINGS]


def _smaller_steps(step: StepMemory) -> Iterator[tuple[str, str, StepMemory]]:
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
    layout = execution.layout
    if layout.world > 1:
        more = how(layout=layout.model_copy(update={"shard": 2 * layout.shard}))
        yield "execution.layout.shard", str(2 * layout.shard), more
    if layout.parts > 1 and layout.zero < 3:
        yield "execution.layout.zero", "3", how(layout=layout.model_copy(update={"zero": 3}))
    if step.optimizer.name == "adamw":
        muon = step.optimizer.model_copy(update={"name": "muon"})
        yield "optimizer.name", "muon", replace(step, optimizer=muon)


@contextmanager
def explain_out_of_memory(step: StepMemory) -> Iterator[None]:
    """Where memory runs out inside the block, raise an IngotError with the needs and what helps."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # On a CPU, torch's error has no type of its own.
        texts = ("can't allocate memory", "not enough memory")
        if not (
            isinstance(error, MemoryError | torch.OutOfMemoryError)
            or any(text in str(error) for text in texts)
        ):
            raise
        helps = "; ".join(str(one) for one in savings(step))
        raise IngotError(
            f"out of memory: {step.rows} sequences of {step.length:,} tokens take "
            f"{step.describe()}",
            where=str(step.device),
            hint=helps or "take a smaller model, or a device with more memory",
        ) from error
