"""The processes that train one model together, and what they tell each other.

One process alone is the same with one rank: nothing is sent. What all ranks must decide alike is
decided by rank 0 and shared (`share`, `any`), so that a difference in the last bit, or a signal
that reaches one rank first, never sends them different ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

Value = TypeVar("Value")
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Ranks:
    """This process's number among `world`, and sums, choices and lists over all of them."""

    rank: int = 0
    world: int = 1
    device: torch.device = CPU

    @classmethod
    def from_group(cls, device: torch.device) -> Ranks:
        """The ranks of the default process group; one alone where there is none."""
        if not dist.is_initialized():
            return cls(device=device)
        return cls(dist.get_rank(), dist.get_world_size(), device)

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which writes files and reports."""
        return self.rank == 0

    def sum(self, value: Tensor) -> Tensor:
        """The sum over all ranks, in place; the same bits on each."""
        if self.world > 1:
            dist.all_reduce(value)
        return value

    def sum_number(self, value: int) -> int:
        """The sum of a whole number over all ranks."""
        if self.world == 1:
            return value
        return int(self.sum(torch.tensor(value, device=self.device)))

    def copy_first(self, value: Tensor) -> Tensor:
        """The value of rank 0, in place."""
        if self.world > 1:
            dist.broadcast(value, 0)
        return value

    def any(self, flag: bool) -> bool:
        """Whether it is so on any rank."""
        if self.world == 1:
            return flag
        count = torch.tensor(int(flag), device=self.device)
        return bool(self.sum(count))

    def share(self, value: Value) -> Value:
        """What rank 0 has; other ranks' values are not read."""
        if self.world == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values, device=self.device)
        return values[0]

    def gather(self, value: Value) -> Sequence[Value]:
        """The value of each rank, in their order."""
        if self.world == 1:
            return [value]
        values: list[Value | None] = [None] * self.world
        dist.all_gather_object(values, value)
        return values  # type: ignore[return-value]


ALONE = Ranks()
"""One process."""
