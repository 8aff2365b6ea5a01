"""The model that training starts from: new, or that of a checkpoint."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from safetensors.torch import load_file

from artifacts_schema.errors import InputError, UsageError
from stages.engine import Input
from stages.model.decoder import Decoder
from stages.model.files import read_model
from stages.pretrain.architecture import check_architecture, check_length
from stages.pretrain.config import PretrainConfig
from stages.training.checkpointing import AVERAGES, OPTIMIZER, STATE
from stages.training.data import TokenShards
from stages.training.loop import Progress
from stages.training.origin import Origin
from stages.training.permanent import TRAINED

if TYPE_CHECKING:
    from torch import Tensor


def starting_model(
    config: PretrainConfig, shards: TokenShards, start: Input | None, tokenizer: Input
) -> Decoder:
    """A new model, or that of `start`, which then decides the architecture but for its context.

    Raises UsageError or InputError when the phases' sequences, the vocabulary, the tokenizer or the
    configured architecture do not fit it.
    """
    if start is None:
        model = Decoder(
            config.model.with_vocabulary(shards.padded_vocabulary_size), seed=config.seed
        )
    else:
        model = read_model(start)
        if config.clock == "continue" and start.has(TRAINED):
            model.load_state_dict(load_file(start.local_path(TRAINED)))
        _check_start(config, model, start, tokenizer)
    longest = max(phase.sequence_length or shards.sequence_length for phase in config.phases)
    check_length(longest, model.config.context)
    if shards.vocabulary_size > model.config.vocabulary_size:
        raise InputError(
            f"the token shards have a vocabulary of {shards.vocabulary_size}, "
            f"the model one of {model.config.vocabulary_size}",
            where="checkpoint",
            hint="pack with the tokenizer of the checkpoint",
        )
    return model


def origin_of(config: PretrainConfig, start: Input | None, progress: Progress) -> Origin:
    """What the run takes over of `start` beside the weights, if there is one.

    The moments as `optimizer_state` says; averages, and what the guard remembers, where the run
    goes on in the same stream. UsageError where there are no moments to keep.
    """
    moments = _moments(config, start)
    if config.clock == "restart" or start is None:
        return Origin(progress, moments)
    averages = load_file(start.local_path(AVERAGES)) if start.has(AVERAGES) else None
    return Origin(progress, moments, averages, start.read_json(STATE).get("guard"))


def _moments(config: PretrainConfig, start: Input | None) -> dict[str, Tensor] | None:
    if config.optimizer_state == "fresh":
        return None
    if start is None:
        raise UsageError("there is no input checkpoint to keep it from", where="optimizer_state")
    if not start.has(OPTIMIZER):
        raise UsageError(
            "the input checkpoint carries no optimizer state",
            where="optimizer_state",
            hint="use fresh",
        )
    return load_file(start.local_path(OPTIMIZER))


def _check_start(config: PretrainConfig, model: Decoder, start: Input, tokenizer: Input) -> None:
    """Refuse an architecture that is not that of the checkpoint, and another tokenizer.

    The context may be greater than the checkpoint's: no weight depends on it.
    """
    wanted, own_shape = config.model, model.config
    if "context" in wanted.identity() and wanted.context > own_shape.context:
        model.set_context(wanted.context)
        own_shape = model.config
    check_architecture(own_shape, wanted)
    if not start.has("tokenizer.json"):
        raise InputError(
            "the input checkpoint carries no tokenizer",
            where="checkpoint",
            hint="give import_model the tokenizer of the model",
        )
    own, given = (
        hashlib.sha256(one.read_bytes("tokenizer.json")).digest() for one in (start, tokenizer)
    )
    if own != given:
        raise InputError(
            "the input checkpoint was trained with another tokenizer",
            where="checkpoint",
            hint="pack with the tokenizer that the checkpoint carries",
        )
