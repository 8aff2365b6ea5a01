"""Matrix products of blocks in eight bits: `precision: fp8`, by torchao's `Float8Linear`.

Operands of the three products of a linear layer (output, gradient of its input, gradient of its
matrix) are rounded to float8 (e4m3) just before they are multiplied; sums, weights, gradients,
attention, norms, experts, embedding and output layer stay as under `bf16`. Each row of an operand
has a scale of its own, a power of two, from its largest magnitude now (torchao's recipe `rowwise`):
no state is kept, so a run resumes to the same bits, and the scale of a token does not depend on
which tokens share its micro-batch. Formats: Micikevicius et al. 2022, arXiv 2209.05433.

A GPU needs compute capability 8.9 (Ada, Hopper, Blackwell). Elsewhere the products are emulated:
operands are rounded alike and multiplied in 32 bits, which shows what training does and is slow.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import torch
from torch import nn

from artifacts_schema.errors import UsageError

if TYPE_CHECKING:
    from stages.parallel.layout import Layout

DIVISOR = 16
"""What both sides of a matrix, and the tokens of a micro-batch, must be a multiple of."""
LEAST_CAPABILITY = (8, 9)
WHERE = "precision"


def use_float8(model: nn.Module, device: torch.device, layout: Layout) -> int:
    """Swap the linear layers of `model.blocks` for those in float8, in place; how many.

    Names and parameters stay as they are. Layers with a side that 16 does not divide keep their
    precision. Raises UsageError if none is left, if torchao is missing, or if the device or the
    layout cannot do it.
    """
    _check(device, layout)
    with quiet():
        from torchao.float8 import Float8LinearConfig, convert_to_float8_training
        from torchao.float8.float8_linear import Float8Linear

    recipe = replace(Float8LinearConfig.from_recipe_name("rowwise"), emulate=device.type != "cuda")

    def is_divisible(module: nn.Module, name: str) -> bool:
        return isinstance(module, nn.Linear) and not (
            module.in_features % DIVISOR or module.out_features % DIVISOR
        )

    convert_to_float8_training(model.blocks, module_filter_fn=is_divisible, config=recipe)
    swapped = sum(isinstance(module, Float8Linear) for module in model.modules())
    if not swapped:
        raise UsageError(
            f"no matrix of a block has two sides that {DIVISOR} divides",
            where=WHERE,
            hint="use bf16, or other widths",
        )
    return swapped


@contextmanager
def quiet() -> Iterator[None]:
    """Without what torchao says of its other kernels, where their libraries do not fit."""
    loggers = [logging.getLogger(name) for name in ("torchao", "torch.utils._pytree")]
    levels = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)


def _check(device: torch.device, layout: Layout) -> None:
    if find_spec("torchao") is None:
        raise UsageError(
            "fp8 needs torchao", where=WHERE, hint="pip install 'ingot[float8]', or use bf16"
        )
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < LEAST_CAPABILITY:
        raise UsageError(
            f"{torch.cuda.get_device_name(device)} has no float8",
            where=WHERE,
            hint="use bf16; fp8 needs compute capability 8.9 (Ada, Hopper) or later",
        )
    if layout.tensor > 1:
        raise UsageError(
            "fp8 cannot be combined with tensor parallelism",
            where="execution.layout.tensor",
            hint="use bf16, or layout.shard",
        )
