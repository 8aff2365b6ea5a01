"""Activation checkpointing: blocks that keep less for the backward pass and compute it again.

Chen et al. 2016 (arXiv 1604.06174). What is computed again gives the same bits, so losses and
gradients do not change; only memory and time do.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

from torch import nn
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

from stages.training.config import TrainingExecution


def checkpoint_activations(model: nn.Module, execution: TrainingExecution) -> None:
    """Let every n-th of `model.blocks` keep less, as `execution` says; names stay as they are."""
    forward = {"full": _again, "cheap": _cheap_again}.get(execution.activation_checkpointing)
    blocks = getattr(model, "blocks", ())
    if forward is not None:
        for block in list(blocks)[:: execution.activation_checkpointing_every]:
            block.forward = MethodType(forward, block)


def _again(block: nn.Module, *arguments: Any) -> Any:
    """The block's own forward; only its arguments are kept."""
    # The blocks draw no random numbers, so there is no random state to restore.
    return checkpoint(
        type(block).forward, block, *arguments, use_reentrant=False, preserve_rng_state=False
    )


def _cheap_again(block: nn.Module, *arguments: Any) -> Any:
    """The same, but what matrix products and attention gave is kept."""
    return checkpoint(
        type(block).forward,
        block,
        *arguments,
        use_reentrant=False,
        preserve_rng_state=False,
        context_fn=_kept_products,
    )


def _kept_products() -> Any:
    return create_selective_checkpoint_contexts(_policy)


def _policy(context: Any, operation: Any, *_: Any, **__: Any) -> CheckpointPolicy:
    dear = operation.name() in _DEAR
    return CheckpointPolicy.MUST_SAVE if dear else CheckpointPolicy.PREFER_RECOMPUTE


# Not bmm: the reference attention makes its scores by it, which are the dearest to keep.
_DEAR = {
    "aten::mm",
    "aten::addmm",
    "aten::_grouped_mm",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
    "torch_attn::_varlen_attn",
    "flex_attention",
}
"""Matrix products and attention, as ATen, `torch.nn.attention` and its operators name them."""
