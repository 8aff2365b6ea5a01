"""Memory against room that the test makes up."""

from __future__ import annotations

import pytest
import torch

from stages.model.config import ModelShape
from stages.pretrain.preflight.memory import judged
from stages.training.config import OptimizerConfig, TrainingExecution
from stages.training.out_of_memory import StepMemory
from stages.training.telemetry.sensors import Room

STEP = StepMemory(
    ModelShape(width=256, layers=4, heads=4, kv_heads=4).with_vocabulary(8000),
    rows=8,
    length=256,
    precision="fp32",
    optimizer=OptimizerConfig(),
    execution=TrainingExecution(device="cpu", threads=1),
    device=torch.device("cpu"),
)
NEED = STEP.need
COPY = NEED.weights + NEED.optimizer
SURE = NEED.weights + NEED.gradients + NEED.optimizer


@pytest.mark.parametrize(
    ("total", "free", "level"),
    [
        (10**12, NEED.total + COPY, "ok"),
        (10**12, NEED.total + COPY - 1, "warning"),
        (SURE, SURE, "warning"),
        (10**12, SURE - 1, "warning"),  # Others use it now; they may end.
        (SURE - 1, SURE - 1, "refusal"),
    ],
)
def test_an_estimate_is_warned_of_and_what_cannot_fit_is_refused(total, free, level):
    finding = judged(STEP, Room(total, free))
    assert finding.level == level
    assert ("saves about" in finding.hint) == (level != "ok")
    assert finding.numbers["checkpoint_copy_bytes"] == COPY
    assert finding.numbers["weights_bytes"] == NEED.weights
    assert len(finding.numbers["savings"]) == 3


def test_a_gpu_has_its_checkpoints_elsewhere():
    step = StepMemory(**{**vars(STEP), "device": torch.device("cuda")})
    room = Room(10**12, step.need.total)
    assert judged(step, room).level == "ok"
    assert judged(step, room).numbers["checkpoint_copy_bytes"] == 0
