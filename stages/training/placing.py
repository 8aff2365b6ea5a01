"""A model laid on its device, as its execution asks: attention, recomputation, compilation."""

from __future__ import annotations

from stages.model.backends import fitting_attention
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.training.activation_checkpointing import checkpoint_activations
from stages.training.compiled import compile_blocks
from stages.training.config import TrainingExecution
from stages.training.runtime import Runtime


def place(model: Decoder, execution: TrainingExecution, runtime: Runtime, *, prefixes: bool) -> str:
    """Make `model` ready to be trained; returns the attention backend that it has now.

    Once for a model: blocks that are compiled are not compiled again. `prefixes` says that some
    tokens see later ones. UsageError for a backend that cannot do this model.
    """
    attention = chosen_attention(model.config, execution, runtime, prefixes=prefixes)
    model.set_attention(attention)
    model.to(runtime.device)
    checkpoint_activations(model, execution)
    if runtime.compiled:
        compile_blocks(model)
    return attention


def chosen_attention(
    config: ModelConfig, execution: TrainingExecution, runtime: Runtime, *, prefixes: bool
) -> str:
    """The backend that the execution names; for `auto`, the fastest that can do this model."""
    if execution.attention != "auto":
        return execution.attention
    return fitting_attention(config, runtime.device, runtime.precision, prefixes=prefixes)
