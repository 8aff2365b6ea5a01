"""The device: what a measured speed means, and the measuring itself on a CPU."""

from __future__ import annotations

import pytest
import torch

from stages.pretrain.preflight.device import TIMES, check_device, judged, measured_flops


def test_a_cpu_is_named():
    finding = check_device(torch.device("cpu"), "cpu", None)
    assert finding.level == "ok"
    assert finding.said.startswith("cpu, ")


@pytest.mark.parametrize(
    ("tflops", "level"), [(790, "ok"), (594, "ok"), (593, "warning"), (100, "warning")]
)
def test_a_gpu_below_six_tenths_of_its_peak_is_warned_of(tflops, level):
    """790 of 989 TFLOP/s is what large products reach on an H100 or H200 that is well."""
    finding = judged("NVIDIA H200", tflops * 1e12, 989e12)
    assert finding.level == level
    assert finding.numbers["tflops"] == tflops


def test_operations_are_counted_by_the_shapes():
    ticks = iter(range(100))
    reached = measured_flops(torch.device("cpu"), side=16, clock=lambda: float(next(ticks)))
    assert reached == 2 * 16**3 * TIMES  # One second a round.


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_reaches_a_share_of_its_peak():
    assert measured_flops(torch.device("cuda")) > 0.1e12
