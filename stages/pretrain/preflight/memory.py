"""Memory: what a training step needs by part, against what is free."""

from __future__ import annotations

import torch

from stages.engine.sizes import amount
from stages.pretrain.preflight.report import Finding, Level
from stages.training.out_of_memory import PARTS, StepMemory, savings
from stages.training.telemetry.sensors import Room, memory_room


def check_memory(step: StepMemory) -> list[Finding]:
    """The step that needs most, against the memory of its device; of a GPU the host's as well.

    What is surely needed (weights, gradients, optimizer) beyond all there is, is a refusal; an
    estimate beyond what is free is a warning.
    """
    found = [judged(step, memory_room(step.device))]
    if step.device.type == "cuda":
        found.append(judged_host(step, memory_room(torch.device("cpu"))))
    return found


def copy_bytes(step: StepMemory) -> int:
    """Bytes of the copy in the host's memory that a rolling checkpoint is written from."""
    return step.need.weights + step.need.optimizer


def judged(step: StepMemory, room: Room) -> Finding:
    """What to say of a step where there is so much room.

    On a CPU the copy that a checkpoint is written from lies in the same memory.
    """
    need = step.need
    copy = copy_bytes(step) if step.device.type == "cpu" else 0
    total, sure = need.total + copy, need.weights + need.gradients + need.optimizer
    copied = f", checkpoint being written {amount(copy)}" if copy else ""
    said = f"a training step takes {step.said()}{copied}; {amount(room.free)} free"
    numbers = {
        **{f"{name}_bytes": getattr(need, name) for name in PARTS},
        "checkpoint_copy_bytes": copy,
        "free_bytes": room.free,
        "total_bytes": room.total,
        "savings": {f"{one.setting}={one.value}": one.bytes for one in savings(step)},
    }
    if total <= room.free:
        return Finding("memory", "ok", said, numbers=numbers)
    level: Level = "refusal" if sure > room.total else "warning"
    helps = "; ".join(str(one) for one in savings(step))
    if level == "refusal":
        helps = f"the model is too large for {amount(room.total)}" + (f"; {helps}" if helps else "")
    return Finding("memory", level, said, helps, numbers)


def judged_host(step: StepMemory, room: Room) -> Finding:
    """What to say of the host's memory where a GPU's checkpoints are copied to it.

    The copy is page-locked; torch rounds each tensor of it up to a power of two, so that it takes
    at most twice its size.
    """
    copy = copy_bytes(step)
    said = (
        f"a checkpoint being written takes {amount(copy)} of page-locked memory of the host, "
        f"up to {amount(2 * copy)} as torch rounds it; {amount(room.free)} free"
    )
    numbers = {
        "checkpoint_copy_bytes": copy,
        "free_bytes": room.free,
        "total_bytes": room.total,
    }
    if 2 * copy <= room.free:
        return Finding("host memory", "ok", said, numbers=numbers)
    level: Level = "refusal" if copy > room.total else "warning"
    return Finding("host memory", level, said, "use a machine with more memory", numbers)
