"""Arrays of the host as tensors on the device."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


def on_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """The array on `device`; on the CPU they share memory.

    A copy to a GPU leaves from pinned memory, or the host would wait for all that the GPU has
    still to do before it could give it more.
    """
    tensor = torch.from_numpy(array)
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)
