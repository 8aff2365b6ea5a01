"""Memory of the host that copies of tensors are made into, again and again.

Page-locked where they come from a GPU: such copies run at the speed of the bus, and locking pages
takes longer than copying, so the memory is kept for the next time.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


class HostMemory:
    """As much as the largest copy so far has needed."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Tensor] = {}

    def copies(self, groups: Mapping[str, Mapping[str, Tensor]]) -> dict[str, dict[str, Tensor]]:
        """Copies of all tensors, whole when it returns; they hold until the next call."""
        copied: dict[str, dict[str, Tensor]] = {}
        on_gpu = False
        for group, tensors in groups.items():
            copied[group] = {}
            for name, tensor in tensors.items():
                source = tensor.detach()
                target = self._place((group, name), source)
                target.copy_(source, non_blocking=source.is_cuda)
                copied[group][name] = target
                on_gpu |= source.is_cuda
        if on_gpu:
            torch.cuda.synchronize()
        return copied

    def _place(self, key: tuple[str, str], like: Tensor) -> Tensor:
        kept = self._kept.get(key)
        if kept is None or kept.shape != like.shape or kept.dtype != like.dtype:
            kept = torch.empty(like.shape, dtype=like.dtype, pin_memory=like.is_cuda)
            self._kept[key] = kept
        return kept
