"""How llama.cpp knows a decoder: its architecture, the fields that describe it, its tensors.

llama.cpp has one graph for each architecture (`src/models/*.cpp`), and fixes there what another
program would read from a config: which weights are normalised, which layers turn positions, and in
which order a head's rotary channels lie. `llama` and `smollm3` have them in neighbouring pairs,
`qwen3` and `olmo2` in two halves, as the decoder does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.model.config import ModelConfig, RopeScaling
from stages.model.huggingface.families import family_of

if TYPE_CHECKING:
    from gguf import GGUFWriter

NAMES = {"llama": "LLAMA", "qwen3": "QWEN3", "olmo2": "OLMO2", "smollm3": "SMOLLM3"}
"""By our family: the member of `gguf.MODEL_ARCH`, whose lower case is llama.cpp's own name."""

PAIRED = ("llama", "smollm3")
"""Architectures whose rotary channels are neighbouring pairs."""

SMOLLM3_INTERVAL = 4
"""`n_no_rope_layer_step` of `src/models/smollm3.cpp`, which no field of a file changes."""


def objection(config: ModelConfig) -> str | None:
    """What of `config` llama.cpp does not express, in words; None if it runs the model."""
    name = family_of(config).model_type
    if name not in NAMES:
        known = ", ".join(NAMES)
        return f"the family is {name}; GGUF files are written of {known}"
    if config.window is not None:
        return f"window is {config.window}, but llama.cpp's {name} has no sliding windows"
    if name == "smollm3" and config.nope_every != SMOLLM3_INTERVAL:
        return (
            f"nope_every is {config.nope_every}, but llama.cpp's smollm3 leaves out the positions "
            f"of every {SMOLLM3_INTERVAL}th layer"
        )
    if config.rope_scaling is not None:
        return _scaling_objection(config.rope_scaling, name)
    return None


def _scaling_objection(scaling: RopeScaling, name: str) -> str | None:
    if scaling.kind == "llama3" and name != "llama":
        return f"rope_scaling is llama3, which llama.cpp reads for llama, not for {name}"
    own = ("attention_factor", "mscale", "mscale_all_dim")
    extra = [field for field in own if getattr(scaling, field) is not None]
    if extra:
        return f"rope_scaling.{extra[0]} is set, but llama.cpp computes YaRN's factor itself"
    return None


def require(config: ModelConfig, *, where: str) -> str:
    """llama.cpp's name of the architecture; InputError names what it does not express."""
    problem = objection(config)
    if problem is not None:
        raise InputError(
            f"llama.cpp cannot run this model: {problem}",
            where=where,
            hint="`export` writes a folder for transformers and vLLM",
        )
    return family_of(config).model_type


@dataclass(frozen=True)
class GgufTensor:
    """A tensor of the file: its name there, and the published one that it is made of."""

    name: str
    published: str
    rows_of_heads: int | None = None
    """Heads whose rows become neighbouring pairs; None: rows stay."""


def tensors_of(config: ModelConfig) -> list[GgufTensor]:
    """All tensors by the names of the `gguf` package, in the order of the model's layers.

    OLMo 2's graph has no tied output projection, so a tied embedding matrix is there twice.
    """
    import gguf

    from stages.model.huggingface.families import published_weights

    family = family_of(config).model_type
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[NAMES[family]], config.layers)
    published = [name for weight in published_weights(config) for name in weight.published]
    tensors: list[GgufTensor] = []
    for one in published:
        name = names.get_name(one, try_suffixes=(".weight",))
        assert name is not None, one
        heads = None
        if family in PAIRED and one.endswith(("q_proj.weight", "k_proj.weight")):
            heads = config.heads if one.endswith("q_proj.weight") else config.kv_heads
        tensors.append(GgufTensor(name, one, heads))
    if family == "olmo2" and config.tied_embeddings:
        tensors.append(GgufTensor("output.weight", "model.embed_tokens.weight"))
    return tensors


def add_fields(writer: GGUFWriter, config: ModelConfig) -> None:
    """Write what llama.cpp reads of a config."""
    import gguf

    writer.add_vocab_size(config.vocabulary_size)
    writer.add_context_length(config.context)
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.mlp_width)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.kv_heads)
    writer.add_key_length(config.head_width)
    writer.add_value_length(config.head_width)
    writer.add_rope_dimension_count(config.head_width)
    writer.add_rope_freq_base(config.rope_base)
    writer.add_layer_norm_rms_eps(config.norm_epsilon)
    scaling = config.rope_scaling
    if scaling is None or scaling.kind == "llama3":
        return
    kind = gguf.RopeScalingType.LINEAR if scaling.kind == "linear" else gguf.RopeScalingType.YARN
    writer.add_rope_scaling_type(kind)
    writer.add_rope_scaling_factor(scaling.factor)
    if scaling.kind == "yarn":
        assert scaling.original_context is not None
        writer.add_rope_scaling_orig_ctx_len(scaling.original_context)
        writer.add_rope_scaling_yarn_beta_fast(scaling.beta_fast)
        writer.add_rope_scaling_yarn_beta_slow(scaling.beta_slow)


def rope_divisors(config: ModelConfig) -> Any:
    """[head width / 2] What Llama 3.1's method divides each frequency by; None for another method.

    Meta's `apply_scaling` (llama-models, `models/llama3/model.py`), which llama.cpp reads as the
    tensor `rope_freqs.weight`.
    """
    import numpy as np

    scaling = config.rope_scaling
    if scaling is None or scaling.kind != "llama3":
        return None
    assert scaling.original_context is not None
    steps = np.arange(0, config.head_width, 2, dtype=np.float32) / config.head_width
    rotations = scaling.original_context * (config.rope_base**-steps) / (2 * math.pi)
    span = scaling.high_frequency - scaling.low_frequency
    smooth = np.clip((rotations - scaling.low_frequency) / span, 0.0, 1.0)
    return (1 / ((1 - smooth) / scaling.factor + smooth)).astype(np.float32)
