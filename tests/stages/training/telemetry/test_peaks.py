"""The table of peaks, by the names that CUDA gives devices; MFU by hand."""

from __future__ import annotations

import pytest

from stages.training.hardware import PEAKS, mfu, peak_flops


@pytest.mark.parametrize(
    ("name", "tflops"),
    [
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA H100 NVL", 835),
        ("NVIDIA H200", 989),
        ("NVIDIA H200 NVL", 835),
        ("NVIDIA GH200 480GB", 989),
        ("NVIDIA B200", 2250),
        ("NVIDIA GB200", 2500),
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA A800-SXM4-80GB", 312),
        ("NVIDIA L4", 121),
        ("NVIDIA L40S", 362),
        ("NVIDIA A10", 125),
        ("NVIDIA GeForce RTX 4090", 165.2),
        ("Tesla V100-SXM2-32GB", 125),
        ("Tesla T4", 65),
    ],
)
def test_a_device_has_the_peak_of_its_data_sheet(name, tflops):
    assert peak_flops(name) == tflops * 1e12


@pytest.mark.parametrize(
    "name", ["cpu", "NVIDIA A10G", "NVIDIA RTX A4000", "NVIDIA T400", "NVIDIA XH100", "L4x"]
)
def test_a_device_that_is_not_in_the_table_has_none_unless_one_is_given(name):
    assert peak_flops(name) is None
    assert peak_flops(name) is None
    assert peak_flops(name, 0.5) == 0.5e12


def test_a_given_peak_wins_and_every_entry_says_its_source():
    assert peak_flops("NVIDIA H200", 800) == 800e12
    assert all(peak.source for peak in PEAKS)


def test_mfu_of_a_published_run():
    """nanochat d24 on 8 H100 (dev/LEADERBOARD.md): 4.33e19 operations in 10,949 s are 50.0 %."""
    assert mfu(4.33e19 / 8 / 10_949, 1.0, peak_flops("NVIDIA H100 80GB HBM3")) == pytest.approx(
        0.50, abs=0.001
    )
    assert mfu(1000.0, 1e6, None) is None
