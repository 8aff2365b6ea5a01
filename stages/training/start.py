"""The model of the checkpoint that a run starts from.

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
