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

from stages.parallel.layout import ONE_PROCESS, Layout

Value = TypeVar("Value")
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Ranks:
    """This process's number among `world`, its place in the layout, and what all have together.

    Places count from 0 along each dimension of the mesh; see `stages.parallel.mesh`.
    """

    rank: int = 0
    world: int = 1
    device: torch.device = CPU
    layout: Layout = ONE_PROCESS

    @classmethod
    def from_group(cls, device: torch.device, layout: Layout | None = None) -> Ranks:
        """The ranks of the default process group; one alone where there is none.

        Without a layout, as many copies of a model as there are ranks. ValueError for a layout of
        another number of ranks.
        """
        if not dist.is_initialized():
            return cls(device=device)
        world = dist.get_world_size()
        layout = layout or Layout(data=world)
        if layout.world != world:
            raise ValueError(f"{world} ranks, and a layout of {layout.world}")
        return cls(dist.get_rank(), world, device, layout)

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which writes files and reports."""
        return self.rank == 0

    @property
    def tensor(self) -> int:
        """Place among the ranks that share each matrix."""
        return self.rank % self.layout.tensor

    @property
    def context(self) -> int:
        """Place among the ranks that share the tokens of a row."""
        return self.rank // self.layout.tensor % self.layout.context

    @property
    def row(self) -> int:
        """Place among the `layout.rows` ranks with different rows of a batch."""
        return self.rank // (self.layout.tensor * self.layout.context) % self.layout.rows

    @property
    def stage(self) -> int:
        """Place in the pipeline."""
        return self.rank // (self.world // self.layout.pipeline)

    @property
    def counts(self) -> bool:
        """Whether this rank's losses and tokens are counted in sums: of ranks that see the same
        tokens, the one that does."""
        return self.tensor == 0 and self.stage == self.layout.pipeline - 1

    @property
    def first_of_stage(self) -> bool:
        """Whether it is the first rank with its layers, which writes what each of them has."""
        return self.rank % (self.world // self.layout.pipeline) == 0

    def sum(self, value: Tensor) -> Tensor:
        """The sum over ranks that saw different tokens, in place; the same bits on all ranks."""
        if self.world > 1:
            if not self.counts:
                value.zero_()
            dist.all_reduce(value)
        return value

    def sum_number(self, value: int) -> int:
        """The same of a whole number, between the hosts: no GPU is waited for."""
        if self.world == 1:
            return value
        return int(self.sum(torch.tensor(value)))

    def sum_float(self, value: float) -> float:
        """The same of a number that is not whole."""
        if self.world == 1:
            return value
        return float(self.sum(torch.tensor(value, dtype=torch.float64)))

    def sum_same_layers(self, value: Tensor) -> Tensor:
        """The sum over ranks that saw other tokens with the same layers, in place."""
        if self.world > 1:
            from stages.parallel.mesh import meshes

            dist.all_reduce(value, group=meshes(self.layout, self.device.type).rows)
        return value

    def sum_all(self, value: Tensor) -> Tensor:
        """The sum over all ranks, in place; the same bits on each."""
        if self.world > 1:
            dist.all_reduce(value)
        return value

    def copy_first(self, value: Tensor) -> Tensor:
        """The value of rank 0, in place."""
        if self.world > 1:
            dist.broadcast(value, 0)
        return value

    def any(self, flag: bool) -> bool:
        """Whether it is so on any rank."""
        if self.world == 1:
            return flag
        return bool(self.sum_all(torch.tensor(int(flag))))

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
