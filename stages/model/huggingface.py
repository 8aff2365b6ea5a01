"""The decoder as Hugging Face's native `LlamaForCausalLM`, both ways. Needs no `transformers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from artifacts_schema.errors import InputError
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import build

_BLOCK_NAMES = {
    "attention_norm": "input_layernorm",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.o_proj",
    "mlp_norm": "post_attention_layernorm",
    "mlp.gate": "mlp.gate_proj",
    "mlp.up": "mlp.up_proj",
    "mlp.down": "mlp.down_proj",
}


def weight_names(config: ModelConfig) -> dict[str, str]:
    """Hugging Face's name of each weight by Ingot's name; a tied head has neither."""
    names = {"embedding.weight": "model.embed_tokens.weight", "norm.weight": "model.norm.weight"}
    for layer in range(config.layers):
        for ours, theirs in _BLOCK_NAMES.items():
            names[f"blocks.{layer}.{ours}.weight"] = f"model.layers.{layer}.{theirs}.weight"
    if not config.tied_embeddings:
        names["head.weight"] = "lm_head.weight"
    return names


def to_llama_weights(model: Decoder) -> dict[str, Tensor]:
    """Weights of `model` under Hugging Face's names."""
    names = weight_names(model.config)
    return {
        names[name]: weight.detach().cpu().contiguous()
        for name, weight in model.state_dict().items()
    }


def to_llama_config(
    config: ModelConfig, *, bos: int | None, eos: int | list[int] | None, pad: int | None
) -> dict[str, Any]:
    """`config.json` of a `LlamaForCausalLM` with the token ids of the tokenizer's special tokens.

    Written so that transformers 4 reads it too: version 5 moved the rotary base into
    `rope_parameters`, and version 4 silently takes 10000 where `rope_theta` is missing
    (vllm-project/vllm#42624).
    """
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": config.vocabulary_size,
        "hidden_size": config.width,
        "intermediate_size": config.mlp_width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_width,
        "hidden_act": "silu",
        "max_position_embeddings": config.context,
        "initializer_range": config.init_std,
        "rms_norm_eps": config.norm_epsilon,
        "rope_theta": config.rope_base,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rope_base},
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "tie_word_embeddings": config.tied_embeddings,
        "use_cache": True,
        "bos_token_id": bos,
        "eos_token_id": eos,
        "pad_token_id": pad,
        "dtype": "float32",
        "torch_dtype": "float32",
    }


def from_llama_config(values: Mapping[str, Any], *, where: str) -> ModelConfig:
    """The config of a Llama's `config.json`; InputError names what the decoder cannot express."""
    rope = values.get("rope_parameters") or values.get("rope_scaling") or {}
    heads = values.get("num_attention_heads")
    width = values.get("hidden_size")
    head_width = width // heads if isinstance(width, int) and isinstance(heads, int) else None
    demands = {
        "model_type": (values.get("model_type"), "llama"),
        "hidden_act": (values.get("hidden_act", "silu"), "silu"),
        "attention_bias": (values.get("attention_bias", False), False),
        "mlp_bias": (values.get("mlp_bias", False), False),
        "head_dim": (values.get("head_dim") or head_width, head_width),
        "rope_type": (rope.get("rope_type", rope.get("type", "default")), "default"),
    }
    for name, (found, expected) in demands.items():
        if found != expected:
            raise InputError(f"{name} is {found!r}, only {expected!r} is supported", where=where)
    renamed = {
        "vocabulary_size": values.get("vocab_size"),
        "width": width,
        "layers": values.get("num_hidden_layers"),
        "heads": heads,
        "kv_heads": values.get("num_key_value_heads") or heads,
        "mlp_width": values.get("intermediate_size"),
        "context": values.get("max_position_embeddings", 2048),
        "rope_base": rope.get("rope_theta", values.get("rope_theta", 10000.0)),
        "norm_epsilon": values.get("rms_norm_eps", 1e-6),
        "tied_embeddings": values.get("tie_word_embeddings", False),
        "init_std": values.get("initializer_range", 0.02),
    }
    return ModelConfig.parse(renamed, where=where)


def from_llama_weights(
    config: ModelConfig, weights: Mapping[str, Tensor], *, where: str
) -> Decoder:
    """A decoder with the weights of a `LlamaForCausalLM`; CorruptArtifact names what does not fit.

    A tied `lm_head.weight` may be present or absent; it is the embedding matrix either way.
    """
    ours = {theirs: name for name, theirs in weight_names(config).items()}
    if config.tied_embeddings:
        weights = {name: w for name, w in weights.items() if name != "lm_head.weight"}
    return build(config, {ours.get(name, name): w for name, w in weights.items()}, where=where)
