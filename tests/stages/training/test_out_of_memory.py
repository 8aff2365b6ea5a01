"""What is said when memory runs out: the parts, and settings that need less, each by arithmetic."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from artifacts_schema.errors import IngotError
from stages.model.config import ModelShape
from stages.model.memory import training_memory
from stages.parallel.layout import Layout
from stages.training.config import OptimizerConfig, TrainingExecution
from stages.training.hardware import PARTS, StepMemory, explain_out_of_memory, savings

SHAPE = {"width": 512, "layers": 8, "heads": 8, "kv_heads": 8, "context": 2048}
STEP = StepMemory(
    ModelShape(**SHAPE).with_vocabulary(32_000),
    rows=16,
    length=2048,
    precision="bf16",
    optimizer=OptimizerConfig(),
    execution=TrainingExecution(device="cpu", threads=1),
    device=torch.device("cpu"),
)


def test_parts_are_told_largest_first_and_sum_up():
    need = STEP.need
    assert sum(getattr(need, name) for name in PARTS) == need.total
    said = STEP.describe()
    assert said.startswith(f"about {need.total / 1e9:.1f} GB: activations ")
    assert {name for name in PARTS if name not in said} == {"gathered"}  # One process: nothing.


def test_of_several_processes_it_is_one_rank_and_layouts_help():
    layout = Layout(shard=4, zero=1, pipeline=2)
    step = replace(STEP, rows=1, execution=STEP.execution.model_copy(update={"layout": layout}))
    ranks = [
        training_memory(
            step.model,
            rows=1,
            length=2048,
            logits=2**21,  # On a CPU, by default.
            layout=layout,
            rank=rank,
        )
        for rank in range(8)
    ]
    assert step.need.total == max(one.total for one in ranks)
    assert "gathered" in step.describe()
    found = {one.setting: one for one in savings(step)}
    assert found["execution.layout.zero"].value == "3"
    assert found["execution.layout.shard"].value == "8"


def test_three_settings_are_named_by_what_they_save():
    found = savings(STEP)
    assert [one.bytes for one in found] == sorted((one.bytes for one in found), reverse=True)
    named = {one.setting: one for one in found}
    assert len(found) == len(named) == 3
    assert named["execution.activation_checkpointing"].value == "full"
    fewer = named["execution.micro_batch"]
    assert (fewer.value, fewer.bytes) == (
        "8",
        STEP.need.total - replace(STEP, rows=8).need.total,
    )
    # Half of the rows keep half of what autograd keeps, but for casts that no row changes.
    need = STEP.need
    assert fewer.bytes == pytest.approx((need.kept - need.casts) / 2, rel=0.2)


def test_a_setting_that_is_used_already_is_not_named():
    execution = STEP.execution.model_copy(update={"activation_checkpointing": "full"})
    settings = {one.setting for one in savings(replace(STEP, rows=1, execution=execution))}
    assert settings.isdisjoint({"execution.activation_checkpointing", "execution.micro_batch"})
    assert "precision" not in {one.setting for one in savings(STEP)}


def test_half_precision_is_named_where_the_run_has_none():
    found = {one.setting: one for one in savings(replace(STEP, precision="fp32", rows=1))}
    assert found["precision"].value == "bf16"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate "
            "memory: you tried to allocate 4398046511104 bytes."
        ),
    ],
)
def test_an_error_of_memory_says_for_what_and_what_helps(error):
    with pytest.raises(IngotError) as caught, explain_out_of_memory(STEP):
        raise error
    said = str(caught.value)
    assert said.startswith("cpu: out of memory: 16 sequences of 2,048 tokens take about ")
    assert said.count("saves about") == 3
    assert "execution.micro_batch: 8 saves about" in said
    assert caught.value.__cause__ is error


def test_torch_says_what_is_looked_for():
    with pytest.raises(IngotError, match="out of memory"), explain_out_of_memory(STEP):
        torch.empty(2**50, dtype=torch.uint8)


def test_other_errors_stay_as_they_are():
    with pytest.raises(RuntimeError, match="shape"), explain_out_of_memory(STEP):
        raise RuntimeError("shape mismatch")
