"""The chunked output layer beside torch's: forward and backward, CPU seconds and quotients.

    python -m tests.benchmarks.output_layer [--tokens 2048] [--width 192] [--rounds 3]

In turn, one thread, in bfloat16 and float32, for several vocabularies; medians over the rounds.

torch      all logits, then `F.cross_entropy`, under autocast
chunked    `F.linear_cross_entropy` of torch 2.13 with its own chunks: the sum alone
each       `linear_cross_entropy`: losses of tokens, each chunk's logits twice
mean       `mean_cross_entropy`: what training uses
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from stages.training.losses import OutputLayer, linear_cross_entropy, mean_cross_entropy

VOCABULARIES = (4_096, 32_768)


def ways(
    x_MD: Tensor, weight_VD: Tensor, targets_M: Tensor, dtype: torch.dtype
) -> dict[str, Callable[[], Tensor]]:
    """The loss of a step by each way, a sum over targets."""

    def plain() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            logits_MV = F.linear(x_MD, weight_VD)
        return F.cross_entropy(logits_MV.float(), targets_M, reduction="sum")

    def chunked() -> Tensor:
        given = (x_MD.to(dtype), weight_VD.to(dtype), targets_M)
        options = torch.nn.LinearCrossEntropyOptions()
        return F.linear_cross_entropy(*given, reduction="sum", options=options)

    layer = OutputLayer(weight_VD, dtype)
    return {
        "torch": plain,
        "chunked": chunked,
        "each": lambda: linear_cross_entropy(x_MD, layer, targets_M).sum(),
        "mean": lambda: mean_cross_entropy(x_MD, layer, targets_M, divisor=1.0).loss,
    }


def seconds(way: Callable[[], Tensor]) -> float:
    """CPU seconds of a forward and a backward pass."""
    begin = time.process_time()
    way().backward()  # type: ignore[no-untyped-call]
    return time.process_time() - begin


def measured(tokens: int, width: int, rounds: int) -> list[str]:
    """A line for each vocabulary and type."""
    lines = [f"{'vocabulary':>10} {'type':>9}  seconds (quotient to `mean`)"]
    draw = torch.Generator().manual_seed(0)
    for vocabulary in VOCABULARIES:
        x_MD = torch.randn(tokens, width, generator=draw).requires_grad_()
        weight_VD = (torch.randn(vocabulary, width, generator=draw) * 0.02).requires_grad_()
        targets_M = torch.randint(vocabulary, (tokens,), generator=draw)
        for dtype in (torch.bfloat16, torch.float32):
            found: dict[str, list[float]] = {}
            for _ in range(rounds + 1):  # The first warms up.
                for name, way in ways(x_MD, weight_VD, targets_M, dtype).items():
                    x_MD.grad = weight_VD.grad = None
                    found.setdefault(name, []).append(seconds(way))
            medians = {name: statistics.median(times[1:]) for name, times in found.items()}
            said = ", ".join(
                f"{name} {value:.3f} ({value / medians['mean']:.2f})"
                for name, value in medians.items()
            )
            lines.append(f"{vocabulary:>10} {str(dtype).removeprefix('torch.'):>9}  {said}")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    print("\n".join(measured(given.tokens, given.width, given.rounds)))


if __name__ == "__main__":
    main()
