"""What a training step asks of a GPU: no waits before the clip, no needless matrices.

The host never waits for it between the start of a micro-batch and the clip. Shown on a device of
fake tensors (`tests/fake_gpu.py`); on a GPU torch itself says so.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from fake_gpu import SHAPES, decoder, rows_of, train

from stages.parallel.ranks import ALONE
from stages.training.config import OptimizerConfig, TrainingExecution
from stages.training.optimizer import Optimizer
from stages.training.runtime import place, runtime

SCRIPT = Path(__file__).parents[2] / "fake_gpu.py"


@pytest.fixture(scope="module")
def found():
    """Case → what was waited for, and how many copies there were."""
    done = subprocess.run([sys.executable, "-P", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("attention", ["varlen", "sdpa"])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_micro_batch_of_pretraining_waits(shape, attention, found):
    """Of two micro-batches, with z-loss, sums by source and bytes, backward passes and the clip."""
    case = found[f"pretrain {shape} {attention}"]
    assert case["waits"] == []
    assert case["copies"] > 10, "tokens, targets, documents, groups: nothing was tried"


def test_no_micro_batch_of_dpo_waits(found):
    assert found["dpo"]["waits"] == []
    assert found["dpo"]["copies"] > 10


def test_each_kind_of_wait_would_be_seen(found):
    assert found["reads a number"]["waits"] == ["aten._local_scalar_dense.default"]
    assert found["counts on the device"]["waits"] == ["aten.nonzero.default"]
    assert found["copies unpinned"]["waits"] == ["copy from cpu to gpu"]


def test_a_step_ends_with_one_transfer_of_all_its_sums(found):
    """One copy to the device, of what the host counted, that waits for nothing; one back."""
    assert found["ends a step"] == {"waits": ["copy from gpu to cpu"], "copies": 2}


@pytest.mark.parametrize("way", ["mean", "each"])
def test_the_gradient_of_the_output_matrix_is_summed_in_place(way, found):
    """Over 8 chunks: one float32 matrix of vocabulary times width is made, the sum itself."""
    assert (found[f"output layer {way}"]["made"], found[f"output layer {way}"]["most"]) == (1, 1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("compiled", ["off", "on"])
@pytest.mark.parametrize("shape", SHAPES)
def test_torch_finds_no_wait_on_a_gpu(shape, compiled):
    """In the third step: earlier ones compile, and fill the caches of memory."""
    model, rows = decoder(**SHAPES[shape]), rows_of()
    with runtime(TrainingExecution(device="cuda", compile=compiled), "bf16", 0) as how:
        place(model, TrainingExecution(compile=compiled), how, prefixes=False)
        optimizer = Optimizer(model, OptimizerConfig(), "bf16")
        try:
            for mode in ("default", "default", "error"):
                optimizer.zero_grad()
                torch.cuda.set_sync_debug_mode(mode)
                sums = train(model, how, optimizer.backward, rows)
                norm = optimizer.clip()
                torch.cuda.set_sync_debug_mode("default")
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert sums.floats(norm, ALONE)["step_tokens"] == [rows.tokens]
