"""The device meshes of a layout, and the groups of ranks along their dimensions.

Ranks are numbered as [pipeline, data, shard, context, tensor], the last dimension fastest: tensor
ranks talk most, so they are neighbours; pipeline ranks talk least.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import torch.distributed as dist

from stages.parallel.layout import Layout

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


@dataclass(frozen=True)
class Meshes:
    """Meshes of one layout; each rank of the default process group has a place in all of them."""

    dense: DeviceMesh
    """[pipeline, data, parts, tensor] What parameters outside of experts are spread over."""
    experts: DeviceMesh
    """[pipeline, copies, expert, tensor] What those of experts are: the same ranks, told apart by
    the experts that they hold."""
    context: dist.ProcessGroup
    """Ranks with other tokens of the same rows."""
    rows: dist.ProcessGroup
    """Ranks with the same layers and channels, and other tokens."""
    pipeline: dist.ProcessGroup
    """Ranks with other layers, first to last; sums go over it."""
    forwards: dist.ProcessGroup
    backwards: dist.ProcessGroup
    """The same ranks: states go over the first, gradients over the second, so that neither waits
    for the other."""

    @property
    def shared(self) -> DeviceMesh:
        """What `fully_shard` takes: [data, parts], or [parts] where there is one copy."""
        if self.dense.size(1) == 1:
            return self.dense["parts"]
        return self.dense["data", "parts"]


@cache
def meshes(layout: Layout, device: str) -> Meshes:
    """The meshes of a layout on this type of device; to be called first on all ranks at once."""
    from torch.distributed.device_mesh import init_device_mesh

    # It warns of each tensor that is cut along two dimensions of a mesh and made whole.
    logging.getLogger("torch.distributed.tensor._redistribute").setLevel(logging.ERROR)
    stages, tokens = layout.pipeline, layout.rows * layout.context
    dense = init_device_mesh(
        device,
        (stages, layout.data, layout.parts, layout.tensor),
        mesh_dim_names=("pipeline", "data", "parts", "tensor"),
    )
    experts = init_device_mesh(
        device,
        (stages, tokens // layout.expert, layout.expert, layout.tensor),
        mesh_dim_names=("pipeline", "copies", "expert", "tensor"),
    )
    rows = init_device_mesh(
        device,
        (stages, tokens, layout.tensor),
        mesh_dim_names=("pipeline", "tokens", "tensor"),
    )
    context = init_device_mesh(
        device,
        (stages * layout.rows, layout.context, layout.tensor),
        mesh_dim_names=("rows", "context", "tensor"),
    )
    columns = dense.mesh.flatten(1).T.tolist()
    forwards, _ = dist.new_subgroups_by_enumeration(columns)
    backwards, _ = dist.new_subgroups_by_enumeration(columns)
    return Meshes(
        dense,
        experts,
        context.get_group("context"),
        rows.get_group("tokens"),
        dense.get_group("pipeline"),
        forwards,
        backwards,
    )
