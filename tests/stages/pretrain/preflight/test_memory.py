"""Memory against room that the test makes up."""

from __future__ import annotations

import pytest
import torch

from stages.model.config import ModelShape
from stages.pretrain import preflight_checks
from stages.pretrain.preflight_checks import check_memory, judge_host_memory, judge_memory
from stages.training.config import OptimizerConfig, TrainingExecution
from stages.training.hardware import Room, StepMemory

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
    finding = judge_memory(STEP, Room(total, free))
    assert finding.level == level
    assert ("saves about" in finding.hint) == (level != "ok")
    assert finding.numbers["checkpoint_copy_bytes"] == COPY
    assert finding.numbers["weights_bytes"] == NEED.weights
    assert len(finding.numbers["savings"]) == 3


GPU = StepMemory(**{**vars(STEP), "device": torch.device("cuda")})


def test_a_gpu_has_the_copies_of_its_checkpoints_in_the_hosts_memory():
    room = Room(10**12, GPU.need.total)
    assert judge_memory(GPU, room).level == "ok"
    assert judge_memory(GPU, room).numbers["checkpoint_copy_bytes"] == 0


@pytest.mark.parametrize(
    ("total", "free", "level"),
    [
        (10**12, 2 * COPY, "ok"),  # torch rounds page-locked memory up to powers of two.
        (10**12, 2 * COPY - 1, "warning"),
        (COPY, COPY, "warning"),
        (COPY - 1, COPY - 1, "refusal"),
    ],
)
def test_the_host_must_hold_that_copy(total, free, level):
    finding = judge_host_memory(GPU, Room(total, free))
    assert (finding.check, finding.level) == ("host memory", level)
    assert finding.numbers["checkpoint_copy_bytes"] == COPY


def test_both_are_looked_at_where_there_is_a_gpu(monkeypatch):
    rooms = {"cuda": Room(10**12, 10**12), "cpu": Room(10**3, 10**3)}
    monkeypatch.setattr(preflight_checks, "memory_room", lambda device: rooms[device.type])
    assert [one.level for one in check_memory(GPU)] == ["ok", "refusal"]
    assert [one.check for one in check_memory(STEP)] == ["memory"]
