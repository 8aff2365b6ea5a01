"""A decoder as files and back: JSON for its config, safetensors for its weights, nothing else.

Equal weights give equal bytes: sorted JSON, tensors in the order that safetensors fixes by type
and name, and no metadata (several entries would be written in random order). Weights are in one
file or in several, see `stages.model.tensor_files`; they are read one at a time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import torch
from safetensors.torch import save
from tokenizers import Tokenizer
from torch import Tensor

from artifacts_schema.errors import CorruptArtifact, UsageError
from stages.engine import Input
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.tensor_files import open_tensors
from stages.parallel.shard_files import ShardFiles, shape_of

CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE = "model.json", "model.safetensors", "tokenizer.json"


def model_files(model: Decoder) -> dict[str, bytes]:
    """The files of `model` by name: `model.json` and `model.safetensors`."""
    state = model.state_dict()
    weights = {name: weight.detach().cpu().contiguous() for name, weight in state.items()}
    config = json.dumps(model.config.plain(), indent=2, sort_keys=True) + "\n"
    return {CONFIG_FILE: config.encode("utf-8"), WEIGHTS_FILE: save(weights)}


def read_config(checkpoint: Input) -> ModelConfig:
    """The architecture of a checkpoint; CorruptArtifact names the field that does not fit."""
    where = f"checkpoint {checkpoint.key[:12]}"
    values = checkpoint.read_json(CONFIG_FILE)
    try:
        if not isinstance(values, dict):
            raise UsageError(f"expected an object, found {type(values).__name__}")
        return ModelConfig.parse(values, where=where)
    except UsageError as error:
        raise CorruptArtifact(error.what, where=f"{where}/{CONFIG_FILE}") from None


def read_model(checkpoint: Input, *, attention: str = "sdpa") -> Decoder:
    """The decoder of a checkpoint, on CPU, in float32.

    CorruptArtifact names the config field or the tensors that do not fit.
    """
    config = read_config(checkpoint)
    where = f"checkpoint {checkpoint.key[:12]}/{WEIGHTS_FILE}"
    with open_tensors(checkpoint, WEIGHTS_FILE) as weights:
        return build(config, weights, attention=attention, where=where)


def read_tokenizer(checkpoint: Input) -> Tokenizer:
    """The tokenizer that a checkpoint (or a tokenizer artifact) carries."""
    raw = checkpoint.read_bytes(TOKENIZER_FILE)
    try:
        return Tokenizer.from_str(raw.decode("utf-8"))
    except Exception as error:  # `tokenizers` raises bare Exception for anything it cannot parse
        where = f"{checkpoint.kind} {checkpoint.key[:12]}/{TOKENIZER_FILE}"
        raise CorruptArtifact(f"not a tokenizer: {error}", where=where) from None


def build(
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    *,
    where: str,
    attention: str = "sdpa",
    model_class: type[Decoder] = Decoder,
) -> Decoder:
    """A decoder with exactly these weights; CorruptArtifact names those that do not fit."""
    with torch.device("meta"):
        model = model_class(config, attention=attention)
    check_weights(model, weights, where=where)
    own = {name: weights[name].to(torch.float32, copy=True) for name in model.state_dict()}
    model.load_state_dict(own, assign=True)
    return model


def check_weights(model: Decoder, weights: Mapping[str, Tensor], *, where: str) -> None:
    """CorruptArtifact unless `weights` are those of `model`; of weights in files none is read."""
    expected = model.state_dict()
    problems = [f"'{name}' is missing" for name in expected if name not in weights]
    for name in sorted(weights):
        if name not in expected:
            problems.append(f"'{name}' is unknown")
        elif shape_of(weights, name) != tuple(expected[name].shape):
            problems.append(
                f"'{name}' is {list(shape_of(weights, name))}, "
                f"expected {list(expected[name].shape)}"
            )
        elif isinstance(weights, ShardFiles):
            if not weights.dtype(name).startswith(("F", "BF")):
                problems.append(f"'{name}' holds {weights.dtype(name)}")
        elif not weights[name].is_floating_point():
            problems.append(f"'{name}' holds {weights[name].dtype}")
    if problems:
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise CorruptArtifact(
            "weights do not fit the architecture: " + "; ".join(problems[:3]) + more, where=where
        )
