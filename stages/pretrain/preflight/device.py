"""The device: how fast a matrix product is on it, against its data sheet."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from stages.pretrain.preflight.report import Finding
from stages.training.telemetry.peaks import TERA

SIDE, TIMES = 8192, 8
"""Of the square matrices, in bfloat16: 8.8 · 10^12 operations in all, some 12 ms on an H100."""
LEAST = 0.5
"""Share of the peak below which a GPU is slower than any that is well: what is below is throttled,
shared, or not the part it says. Sound ones reach 70 to 85 % with zeros; random numbers draw more
power, which costs a GPU at its power limit some of that."""


def check_device(device: torch.device, name: str, peak: float | None) -> Finding:
    """The device's name, and of a GPU with a known peak the share of it that a product reaches.

    A GPU whose products are wrong is refused.
    """
    if device.type != "cuda":
        return Finding("device", "ok", f"{name}, {torch.get_num_threads()} threads")
    if not multiplies_rightly(device):
        said = f"{name}: a matrix product gives wrong numbers"
        return Finding("device", "refusal", said, "the device is defective; use another one")
    if peak is None:
        said = f"{name}: no peak is known, so there is no MFU"
        return Finding("device", "ok", said, "execution.peak_tflops gives one")
    return judged(name, measured_flops(device), peak)


def judged(name: str, reached: float, peak: float) -> Finding:
    """What to say of `reached` operations a second where `peak` are possible."""
    share = reached / peak
    said = f"{name}: {reached / TERA:,.0f} of {peak / TERA:,.0f} TFLOP/s in a matrix product"
    numbers = {"tflops": round(reached / TERA, 1), "share_of_peak": round(share, 3)}
    if share >= LEAST:
        return Finding("device", "ok", f"{said} ({share:.0%})", numbers=numbers)
    return Finding(
        "device",
        "warning",
        f"{said}: {share:.0%}, sound ones reach {LEAST:.0%} and more",
        "look for other programs on it, for its clock and temperature (nvidia-smi)",
        numbers,
    )


def multiplies_rightly(device: torch.device, side: int = SIDE) -> bool:
    """Whether a product with a permutation matrix gives the same numbers in another order.

    That is exact in any precision, and every row and column takes part in it.
    """
    one = random_matrix(device, side)
    order = torch.roll(torch.arange(side, device=device), side // 3)
    permutation = torch.zeros_like(one)
    permutation[order, torch.arange(side, device=device)] = 1
    return torch.equal(torch.mm(one, permutation), one[:, order])


def random_matrix(device: torch.device, side: int) -> torch.Tensor:
    """Numbers that switch transistors as a model's do; zeros would let a throttled GPU pass.

    Drawn by a generator of its own: the run's random state stays as it is.
    """
    generator = torch.Generator(device).manual_seed(side)
    return torch.randn(side, side, generator=generator, device=device).to(torch.bfloat16)


def measured_flops(
    device: torch.device, side: int = SIDE, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Operations a second of bfloat16 products of square matrices, the best of three rounds."""
    one = random_matrix(device, side)
    best = 0.0
    for _ in range(4):  # The first round warms up.
        began = _now(device, clock)
        for _ in range(TIMES):
            torch.mm(one, one)
        best = max(best, 2 * TIMES * side**3 / (_now(device, clock) - began))
    return best


def _now(device: torch.device, clock: Callable[[], float]) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return clock()
