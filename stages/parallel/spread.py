"""A model on all ranks of a layout: which part each has, and how micro-batches pass through it.

    cut_model      layers, experts, matrices, rows: what a rank computes
    spread_model   parts of that on ranks with other tokens, and their gradients (data_parallel)

Between the two, blocks may be compiled and checkpointed, collectives included.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from stages.parallel.context_parallel import ContextAttention
from stages.parallel.data_parallel import (
    clip_by_global_norm,
    global_norm,
    spread_model,
)
from stages.parallel.expert_parallel import cut_experts
from stages.parallel.mesh import meshes
from stages.parallel.pipeline_parallel import cut_layers, sum_tied_embedding
from stages.parallel.ranks import Ranks
from stages.parallel.tensor_parallel import cut_matrices

__all__ = ["clip_on_ranks", "cut_model", "materialise", "spread_model"]


def cut_model(model: Any, ranks: Ranks) -> None:
    """Leave what this rank computes of a `Decoder`, in place, whose attention backend is set.

    UsageError for a model that the layout cannot divide.
    """
    layout, mesh = ranks.layout, meshes(ranks.layout, ranks.device.type)
    layout.check_model(model.config, ())
    if layout.pipeline > 1:
        model.names = frozenset(model.state_dict())
        cut_layers(model, layout, ranks.stage)
    if layout.expert > 1:
        cut_experts(model, mesh.experts)
    if layout.tensor > 1:
        cut_matrices(model, mesh.dense["tensor"])
    if layout.context > 1:
        model.attend_by(ContextAttention(model.backend, mesh.context))


def materialise(model: Any, device: torch.device) -> None:
    """Give a spread model on the meta device memory, and its first weights."""
    if any(parameter.is_meta for parameter in model.parameters()):
        model.to_empty(device=device)
        model.initialise()


def clip_on_ranks(model: Any, ranks: Ranks) -> Callable[[list[Tensor], float], Tensor]:
    """What clips gradients by their norm over all ranks, and gives that norm."""
    return partial(_clip, model, ranks)


def _clip(model: Any, ranks: Ranks, parameters: list[Tensor], limit: float) -> Tensor:
    layout, group = ranks.layout, None
    if layout.pipeline > 1:
        group = meshes(layout, ranks.device.type).pipeline
        sum_tied_embedding(model, layout, ranks.stage)
    tied = layout.pipeline > 1 and ranks.stage > 0 and model.embedding is not None
    counted = [p for p in parameters if not (tied and p is model.embedding.weight)]
    norm = global_norm(counted, group)
    clip_by_global_norm(parameters, limit, norm)
    return norm
