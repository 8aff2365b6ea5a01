"""Attention backends by name. One that cannot honour what a model or batch asks for says so.

Nothing falls back silently (mosaicml/llm-foundry#1183 and huggingface/trl#5316 show what happens
otherwise).

    sdpa    torch's scaled dot product attention, with a dense mask: the reference, on any device
    flex    FlexAttention: every mask, whole blocks of it skipped; on a CPU without backward pass
    varlen  FlashAttention inside each document: CUDA, bf16 or fp16, windows, no prefixes
"""

from __future__ import annotations

import torch

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from stages.model.attention import AttentionBackend, Sdpa
from stages.model.config import ModelConfig
from stages.model.flex import Flex
from stages.model.varlen import Varlen

_BACKENDS: dict[str, AttentionBackend] = {each.name: each for each in (Sdpa(), Flex(), Varlen())}


def register_attention(backend: AttentionBackend) -> AttentionBackend:
    """Make `backend` known by its name; UsageError if the name is taken."""
    if backend.name in _BACKENDS:
        raise UsageError(f"attention backend '{backend.name}' is registered twice")
    _BACKENDS[backend.name] = backend
    return backend


def attention_backend(name: str) -> AttentionBackend:
    """The backend called `name`; UsageError with the nearest name if there is none."""
    if name not in _BACKENDS:
        raise UsageError(f"no attention backend '{name}'{did_you_mean(name, _BACKENDS)}")
    return _BACKENDS[name]


def fitting_attention(
    config: ModelConfig, device: torch.device, precision: str, *, prefixes: bool = False
) -> str:
    """The fastest backend that can do this model: what `auto` means, to be recorded by its name.

    On a GPU `varlen` for bf16 and fp16 (an objective with prefixes: `flex`), elsewhere `sdpa`.
    """
    if device.type != "cuda":
        return Sdpa.name
    if prefixes or precision == "fp32":
        return Flex.name
    try:
        _BACKENDS[Varlen.name].check(config)
    except UsageError:
        return Flex.name
    return Varlen.name
