"""Weights written one after the other, so that memory holds one tensor and not the model.

The bytes are those of `safetensors.torch.save`: a header padded to eight bytes, then the tensors,
larger types first, those of one type by name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

_NAMES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}
_ORDER = list(_NAMES)
"""As safetensors sorts its types."""


class Writer(Protocol):
    """What bytes go to."""

    def write(self, data: Any) -> int:
        """Append."""


@dataclass(frozen=True)
class TensorSpec:
    """Type and shape of a tensor that is still to be made."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Size of its data."""
        return self.dtype.itemsize * math.prod(self.shape)


def write_safetensors(
    file: Writer,
    specs: Mapping[str, TensorSpec],
    tensor: Callable[[str], Tensor],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a tensor for each name of `specs`, in float32, bfloat16 or float16.

    `tensor(name)` is called once for each, in the order of the file. Give at most one entry of
    `metadata`: safetensors itself would write several in random order.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    order = sorted(specs, key=lambda name: (_ORDER.index(specs[name].dtype), name))
    end = 0
    for name in order:
        spec = specs[name]
        start, end = end, end + spec.bytes
        header[name] = {
            "dtype": _NAMES[spec.dtype],
            "shape": list(spec.shape),
            "data_offsets": [start, end],
        }
    written = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    written += b" " * (-len(written) % 8)
    file.write(len(written).to_bytes(8, "little"))
    file.write(written)
    for name in order:
        weight = tensor(name)
        assert (weight.dtype, tuple(weight.shape)) == (specs[name].dtype, specs[name].shape), name
        # NumPy has no bfloat16, so the bytes are viewed before it sees them.
        file.write(weight.contiguous().reshape(-1).view(torch.uint8).numpy())
