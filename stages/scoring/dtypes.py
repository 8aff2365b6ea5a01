"""The type that a model is measured in: part of the key, since scores move with it.

Settings import this, so torch is loaded when something is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from stages.training.config import Precision

if TYPE_CHECKING:
    import torch

Dtype = Literal["float32", "float64", "bfloat16", "float16"]
_PRECISIONS: dict[Dtype, Precision] = {
    "float32": "fp32", "float64": "fp32", "bfloat16": "bf16", "float16": "fp16"
}  # fmt: skip


def dtype_field() -> Any:
    """The field `dtype` of a stage that measures."""
    return Field(
        default="float32",
        description="Type that the model computes in. bfloat16 and float16, of matrix products "
        "alone, are faster on a GPU, and round: scores of near-equal choices may change. float64 "
        "is for comparisons with other programs.",
    )


def weights_type(dtype: Dtype) -> torch.dtype:
    """The type of the weights; smaller ones are that of matrix products."""
    import torch

    return torch.float64 if dtype == "float64" else torch.float32


@contextmanager
def arithmetic(device: torch.device, dtype: Dtype, threads: int) -> Iterator[None]:
    """Inside it, torch computes on this device, matrix products in `dtype`."""
    from stages.training.devices import current_device
    from stages.training.losses import autocast

    with (
        native_threads(threads),
        current_device(device),
        autocast(device, _PRECISIONS[dtype]),
    ):
        yield


@contextmanager
def native_threads(count: int) -> Iterator[None]:
    """Torch computes with `count` threads inside the block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
