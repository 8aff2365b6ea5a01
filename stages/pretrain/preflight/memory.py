"""Memory: what a training step needs by part, against what is free."""

from __future__ import annotations

from stages.engine.sizes import amount
from stages.pretrain.preflight.report import Finding, Level
from stages.training.out_of_memory import PARTS, StepMemory, savings
from stages.training.telemetry.sensors import Room, memory_room


def check_memory(step: StepMemory) -> Finding:
    """The step that needs most, against the memory of its device.

    What is surely needed (weights, gradients, optimizer) beyond all there is, is a refusal; an
    estimate beyond what is free is a warning.
    """
    return judged(step, memory_room(step.device))


def judged(step: StepMemory, room: Room) -> Finding:
    """What to say of a step where there is so much room.

    On a CPU the copy that a checkpoint is written from lies in the same memory.
    """
    need = step.need
    copy = need.weights + need.optimizer if step.device.type == "cpu" else 0
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
