"""The device: what a measured speed means, and the measuring itself on a CPU."""

from __future__ import annotations

import pytest
import torch

from stages.pretrain import preflight_checks as module
from stages.pretrain.preflight_checks import (
    TIMES,
    check_device,
    is_product_exact,
    judge_processor,
    judge_speed,
    measure_flops,
    random_matrix,
    relative_speed,
)


def test_a_cpu_is_named():
    finding = check_device(torch.device("cpu"), "cpu", None)
    assert finding.level == "ok"
    assert finding.message.startswith("cpu, ")


@pytest.mark.parametrize(("speed", "level"), [(2.0, "ok"), (0.5, "ok"), (1 / 64, "warning")])
def test_a_processor_that_is_not_made_for_a_type_is_warned_of(speed, level):
    finding = judge_processor("AMD EPYC", torch.bfloat16, speed)
    assert finding.level == level
    slow = "a product in bfloat16 takes 64 times as long as one in float32"
    assert (slow in finding.message) == (level == "warning")


def test_the_speed_of_a_type_is_that_of_its_best_product_over_float32():
    """Each product takes as many ticks as the clock says; the first of each kind warms up."""
    ends = [9, 1, 1, 1, 90, 20, 30, 40]
    ticks = iter([tick for end in ends for tick in (0.0, float(end))])
    assert relative_speed(torch.bfloat16, side=8, clock=lambda: next(ticks)) == 1 / 20
    assert relative_speed(torch.float32, clock=None) == 1.0


@pytest.mark.parametrize(
    ("tflops", "level"), [(790, "ok"), (495, "ok"), (494, "warning"), (100, "warning")]
)
def test_a_gpu_below_half_of_its_peak_is_warned_of(tflops, level):
    """790 of 989 TFLOP/s is what large products reach on an H100 or H200 that is well."""
    finding = judge_speed("NVIDIA H200", tflops * 1e12, 989e12)
    assert finding.level == level
    assert finding.numbers["tflops"] == tflops


def test_operations_are_counted_by_the_shapes():
    ticks = iter(range(100))
    reached = measure_flops(torch.device("cpu"), side=16, clock=lambda: float(next(ticks)))
    assert reached == 2 * 16**3 * TIMES  # One second a round.


def test_what_is_multiplied_is_random_and_leaves_the_runs_random_state():
    before = torch.get_rng_state()
    matrix = random_matrix(torch.device("cpu"), 64)
    assert torch.equal(torch.get_rng_state(), before)
    assert matrix.dtype == torch.bfloat16
    assert matrix.float().std().item() == pytest.approx(1, abs=0.1)
    assert len(matrix.unique()) > 100


def test_one_wrong_number_in_a_product_is_found(monkeypatch):
    assert is_product_exact(torch.device("cpu"), side=32)
    mm = torch.mm

    def defective(one, two):
        product = mm(one, two)
        product[7, 9] += 1
        return product

    monkeypatch.setattr(module.torch, "mm", defective)
    assert not is_product_exact(torch.device("cpu"), side=32)


def test_a_gpu_that_multiplies_wrongly_is_refused(monkeypatch):
    monkeypatch.setattr(module, "is_product_exact", lambda device: False)
    assert check_device(torch.device("cuda"), "NVIDIA H100", 989e12).level == "refusal"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_reaches_a_share_of_its_peak():
    assert is_product_exact(torch.device("cuda"))
    assert measure_flops(torch.device("cuda")) > 0.1e12
