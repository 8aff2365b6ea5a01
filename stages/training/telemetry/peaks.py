"""What a device can do at most: the denominator of model FLOPs utilisation (MFU).

Chowdhery et al. 2022 (PaLM), section 4.1: MFU is the tokens a second that were observed over those
of a device at its peak that does nothing but the model's own products. The peak is that of dense
bfloat16 products (float16 where the device has no bfloat16), whatever precision a run has, so that
figures of runs can be compared.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TERA = 1e12


class Peak(NamedTuple):
    """Dense 16-bit products of a device: 10^12 operations a second, and who says so."""

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
"""By the first pattern that stands in the name as words of its own."""


def known_peak(device: str) -> Peak | None:
    """The peak of a device by its name; None for one that is not in the table, a CPU above all."""
    for peak in PEAKS:
        if re.search(rf"(?<![A-Za-z0-9]){peak.device}(?![A-Za-z0-9])", device):
            return peak
    return None


def peak_flops(device: str, given_tflops: float | None = None) -> float | None:
    """Operations a second of a device at its peak: `given_tflops` · 10^12, or that of the table."""
    if given_tflops is not None:
        return given_tflops * TERA
    peak = known_peak(device)
    return None if peak is None else peak.tflops * TERA


def mfu(tokens_per_second: float, flops_per_token: float, peak: float | None) -> float | None:
    """Model FLOPs utilisation: a share of 1; None without a peak."""
    return None if peak is None else tokens_per_second * flops_per_token / peak
