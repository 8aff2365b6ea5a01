"""`DeepseekV3ForCausalLM`: latent attention, and experts balanced without an auxiliary loss.

DeepSeek-AI 2024, arXiv 2412.19437, section 2.1. Published weights have the rotary channels of
queries and keys in neighbouring pairs (`rope_interleave`), the decoder in two halves; the rows are
reordered on the way. Layers that predict further tokens (section 2.2) are left out: they help
speculative decoding, and the model is whole without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from stages.model.config import Experts, LatentAttention, ModelConfig
from stages.model.huggingface.family import (
    Family,
    objections,
    outer_fields,
    outer_shape,
    outer_weights,
)
from stages.model.huggingface.fields import Fields
from stages.model.huggingface.rope import read_rope, rope_fields
from stages.model.huggingface.weights import Weight

_ATTENTION = {
    "query": "q_proj",
    "query_down": "q_a_proj",
    "query_norm": "q_a_layernorm",
    "query_up": "q_b_proj",
    "kv_down": "kv_a_proj_with_mqa",
    "kv_norm": "kv_a_layernorm",
    "kv_up": "kv_b_proj",
    "output": "o_proj",
}
_SWIGLU = {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"}


class DeepseekV3(Family):
    """Latent attention, with experts or without."""

    model_type, architecture = "deepseek_v3", "DeepseekV3ForCausalLM"

    def objection(self, config: ModelConfig) -> str | None:
        """The first field that the class has no place for."""
        if config.latent is None:
            return "latent is not set"
        if config.experts is not None and config.experts.shared == 0:
            return "experts.shared is 0"
        if config.experts is not None and config.experts.experts == config.experts.groups:
            return "experts.groups are of one expert"
        return objections(
            config, qk_norm="none", norm="pre", nope_every=0, window=None, logit_softcap=None
        )

    def fields(self, config: ModelConfig) -> dict[str, Any]:
        """`config.json`, with what DeepSeek's own code and vLLM want to be told."""
        assert config.latent is not None, "no model of this family"
        latent = config.latent
        return {
            **outer_fields(config),
            **rope_fields(config),
            "rope_interleave": True,
            "q_lora_rank": latent.query_rank,
            "kv_lora_rank": latent.kv_rank,
            "qk_nope_head_dim": latent.plain_width,
            "qk_rope_head_dim": latent.rotary_width,
            "v_head_dim": latent.value_width,
            **_expert_fields(config),
            "num_nextn_predict_layers": 0,
        }

    def shape(self, fields: Fields) -> dict[str, Any]:
        """Values of a `ModelConfig`; its bias rate, which no config says, is DeepSeek's own."""
        values = outer_shape(fields, context=4096)
        fields.flag("rope_interleave", True)  # Only the order of rows depends on it.
        latent = {
            "query_rank": fields.size("q_lora_rank", None),
            "kv_rank": fields.size("kv_lora_rank"),
            "plain_width": fields.size("qk_nope_head_dim"),
            "rotary_width": fields.size("qk_rope_head_dim"),
            "value_width": fields.size("v_head_dim"),
        }
        first = fields.size("first_k_dense_replace", least=0)
        experts = _read_experts(fields, first) if first < values["layers"] else None
        return {**values, **read_rope(fields), "latent": latent, "experts": experts}

    def weights(self, config: ModelConfig, fields: Fields) -> Iterator[Weight]:
        """Embedding, norm and head, then layer by layer."""
        assert config.latent is not None, "no model of this family"
        pairs = fields.flag("rope_interleave", True)
        yield from outer_weights(config)
        for layer in range(config.layers):
            ours, theirs = f"blocks.{layer}", f"model.layers.{layer}"
            yield _weight(f"{ours}.attention_norm", f"{theirs}.input_layernorm")
            yield from _attention(config.latent, f"{ours}.attention", f"{theirs}.self_attn", pairs)
            yield _weight(f"{ours}.mlp_norm", f"{theirs}.post_attention_layernorm")
            if config.has_experts(layer):
                assert config.experts is not None
                yield from _experts(config.experts, f"{ours}.mlp", f"{theirs}.mlp")
            else:
                yield from _swiglu(f"{ours}.mlp", f"{theirs}.mlp")

    def superfluous(self, name: str, config: ModelConfig, fields: Fields) -> bool:
        """Also the layers behind the last, as many as the config says predict further tokens."""
        further = fields.size("num_nextn_predict_layers", 0, least=0)
        layer = re.match(r"model\.layers\.(\d{1,9})\.", name)
        behind = -1 if layer is None else int(layer[1]) - config.layers
        return 0 <= behind < further or super().superfluous(name, config, fields)


def _attention(latent: LatentAttention, ours: str, theirs: str, pairs: bool) -> Iterator[Weight]:
    reordered = {
        "query": (latent.plain_width, latent.rotary_width),
        "query_up": (latent.plain_width, latent.rotary_width),
        "kv_down": (latent.kv_rank, latent.rotary_width),
    }
    absent = ("query_down", "query_norm", "query_up") if latent.query_rank is None else ("query",)
    for name, published in _ATTENTION.items():
        if name not in absent:
            order = reordered.get(name) if pairs else None
            yield _weight(f"{ours}.{name}", f"{theirs}.{published}", order)


def _experts(experts: Experts, ours: str, theirs: str) -> Iterator[Weight]:
    yield _weight(f"{ours}.router", f"{theirs}.gate")
    yield Weight(f"{ours}.router.bias", (f"{theirs}.gate.e_score_correction_bias",))
    for name, published in _SWIGLU.items():
        each = (f"{theirs}.experts.{n}.{published}.weight" for n in range(experts.experts))
        yield Weight(f"{ours}.experts.{name}", tuple(each))
    yield from _swiglu(f"{ours}.shared", f"{theirs}.shared_experts")


def _swiglu(ours: str, theirs: str) -> Iterator[Weight]:
    for name, published in _SWIGLU.items():
        yield _weight(f"{ours}.{name}", f"{theirs}.{published}")


def _weight(ours: str, theirs: str, interleaved: tuple[int, int] | None = None) -> Weight:
    return Weight(f"{ours}.weight", (f"{theirs}.weight",), interleaved)


def _expert_fields(config: ModelConfig) -> dict[str, Any]:
    """Without experts every layer is dense, and what the class wants to know of them is nominal."""
    experts = config.experts or Experts(
        experts=2, chosen=1, width=config.mlp_width, first=config.layers
    )
    return {
        "first_k_dense_replace": experts.first,
        "moe_intermediate_size": experts.width,
        "n_routed_experts": experts.experts,
        "n_shared_experts": experts.shared,
        "num_experts_per_tok": experts.chosen,
        "n_group": experts.groups,
        "topk_group": experts.chosen_groups,
        "routed_scaling_factor": experts.scale,
        "norm_topk_prob": experts.normalise,
        "scoring_func": "sigmoid",
        "topk_method": "noaux_tc",
        "moe_layer_freq": 1,
    }


def _read_experts(fields: Fields, first: int) -> dict[str, Any]:
    fields.demand("scoring_func", "sigmoid")
    fields.demand("topk_method", "noaux_tc")
    fields.demand("moe_layer_freq", 1)
    return {
        "first": first,
        "width": fields.size("moe_intermediate_size"),
        "experts": fields.size("n_routed_experts", most=2**16),
        "shared": fields.size("n_shared_experts"),
        "chosen": fields.size("num_experts_per_tok"),
        "groups": fields.size("n_group", 1),
        "chosen_groups": fields.size("topk_group", 1),
        "scale": fields.number("routed_scaling_factor", 1.0),
        "normalise": fields.flag("norm_topk_prob", True),
    }
