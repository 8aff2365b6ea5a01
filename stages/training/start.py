"""The model of the checkpoint that a run starts from, or measures.

One process reads it whole. Several ranks take its architecture alone, spread that, and then each
reads the part that it holds: no rank has room for the whole model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from stages.engine import Input
from stages.model.decoder import Decoder
from stages.model.files import WEIGHTS_FILE, build, check_weights, read_config
from stages.model.tensor_files import open_tensors
from stages.parallel.ranks import Ranks
from stages.parallel.shard_files import fill


class StartModel(NamedTuple):
    """A model, and its weights where they are still in files: `place` reads them.

    Without such weights, a model on the meta device is a new one, whose weights are drawn.
    """

    model: Decoder
    weights: Mapping[str, Tensor] | None = None


def read_start(checkpoint: Input, ranks: Ranks, name: str = WEIGHTS_FILE) -> StartModel:
    """The model of a checkpoint with the weights in its file `name`; to be called on all ranks.

    CorruptArtifact names the config field or the tensors that do not fit, before any is read.
    """
    config = read_config(checkpoint)
    where = f"checkpoint {checkpoint.key[:12]}/{name}"
    weights = open_tensors(checkpoint, name, ranks)
    if ranks.world == 1:
        with weights:
            return StartModel(build(config, weights, where=where))
    with torch.device("meta"):
        model = Decoder(config)
    check_weights(model, weights, where=where)
    return StartModel(model, weights)


def read_spread(checkpoint: Input, ranks: Ranks) -> Decoder:
    """The model of a checkpoint for forward passes alone; to be called on all of several ranks.

    With `shard`, a rank holds its part of each parameter, and others' parts while it computes with
    them; with `zero` 1 or 2, from the first forward pass on. Without, it holds the whole model.
    """
    from stages.parallel.data_parallel import spread_model

    model, weights = read_start(checkpoint, ranks)
    assert weights is not None, "one process has read them"
    if ranks.layout.shard > 1:
        # Autocast keeps a copy in its type of each weight that could have a gradient: all of them.
        model.requires_grad_(False)
        spread_model(model, ranks.layout, ranks.device, trained=False)
    model.to_empty(device=ranks.device)
    read_weights(model, weights)
    return model


@torch.no_grad()
def read_weights(model: Decoder, weights: Mapping[str, Tensor]) -> None:
    """Set the weights of a model whose memory holds anything; buffers that have none become 0."""
    for buffer in model.buffers():
        buffer.zero_()
    for name, tensor in model.state_dict().items():
        fill(tensor, weights, name)
