"""Weights written one after the other, so that memory holds one tensor and not the model.

The bytes are those of `safetensors.torch.save`: a header padded to eight bytes, then the tensors,
all of one type here, by name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from torch import Tensor

_BYTES = 4


class Writer(Protocol):
    """What bytes go to."""

    def write(self, data: Any) -> int:
        """Append."""


def write_safetensors(
    file: Writer,
    shapes: Mapping[str, tuple[int, ...]],
    tensor: Callable[[str], Tensor],
) -> None:
    """Write a float32 tensor for each name of `shapes`; `tensor(name)` is called once, in order."""
    header: dict[str, Any] = {}
    end = 0
    for name in sorted(shapes):
        start, end = end, end + _BYTES * math.prod(shapes[name])
        header[name] = {"dtype": "F32", "shape": list(shapes[name]), "data_offsets": [start, end]}
    written = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    written += b" " * (-len(written) % 8)
    file.write(len(written).to_bytes(8, "little"))
    file.write(written)
    for name in header:
        weight = tensor(name)
        assert tuple(weight.shape) == tuple(shapes[name]), name
        file.write(weight.contiguous().numpy().reshape(-1).view("u1"))
