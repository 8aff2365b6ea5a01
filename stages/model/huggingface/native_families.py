"""The native classes of `transformers` that a decoder can be.

`LlamaForCausalLM` (Touvron et al. 2023; Llama 3.1's stretched positions included), whose layout
of attention and SwiGLU the next three vary. `Qwen3ForCausalLM`: queries and keys are normalised
within each head (arXiv 2505.09388). `Olmo2ForCausalLM`: norms on what attention and SwiGLU add,
queries and keys over all heads (OLMo Team 2025, "2 OLMo 2 Furious", arXiv 2501.00656, section
3). `SmolLM3ForCausalLM`: every n-th layer has no positions (Bakouch et al. 2025, SmolLM3).

`DeepseekV3ForCausalLM`: latent attention, and experts balanced without an auxiliary loss
(DeepSeek-AI 2024, arXiv 2412.19437, section 2.1). Published weights have the rotary channels of
queries and keys in neighbouring pairs (`rope_interleave`), the decoder in two halves; the rows
are reordered on reading and writing. Layers that predict further tokens (section 2.2) are left
out: they help speculative decoding, and the model is whole without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from stages.model.config import Experts, LatentAttention, ModelConfig
from stages.model.huggingface.family import (
    Family,
    Fields,
    Weight,
    common_fields,
    common_shape,
    common_weights,
    first_mismatch,
    read_rope,
    read_windows,
    rope_fields,
    window_fields,
)

LLAMA_NAMES = {
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
"""Names inside a layer, Ingot's and Hugging Face's."""

QK_NORM_NAMES = {
    "attention.query_norm": "self_attn.q_norm",
    "attention.key_norm": "self_attn.k_norm",
}

_PLAIN: dict[str, Any] = {
    "qk_norm": "none",
    "norm": "pre",
    "nope_every": 0,
    "window": None,
    "rope_share": 1.0,
    "logit_softcap": None,
    "latent": None,
    "experts": None,
}
"""Values of a family that does not set them."""


class Dense(Family):
    """A decoder of one SwiGLU and grouped-query attention a layer.

    A subclass fixes fields of a shape by `own`, names a layer's weights by `names`, and leaves
    the fields in `free` to the config.
    """

    names: ClassVar[Mapping[str, str]] = LLAMA_NAMES
    own: ClassVar[Mapping[str, Any]] = {}
    free: ClassVar[frozenset[str]] = frozenset()
    defaults: ClassVar[Mapping[str, Any]] = {}
    """Arguments of `outer_shape`."""
    rope_base: ClassVar[float] = 10000.0
    """Base of the rotary frequencies that the class has where none is given."""

    def objection(self, config: ModelConfig) -> str | None:
        """The first field that the class has no place for."""
        fixed = {**_PLAIN, **self.own}
        return first_mismatch(
            config, **{name: fixed[name] for name in sorted(fixed.keys() - self.free)}
        )

    def fields(self, config: ModelConfig) -> dict[str, Any]:
        """`config.json`, `head_dim` included."""
        own = {"head_dim": config.head_width, "mlp_bias": False}
        return {**common_fields(config), **rope_fields(config), **own}

    def shape(self, fields: Fields) -> dict[str, Any]:
        """Values of a `ModelConfig`."""
        return {
            **common_shape(fields, **self.defaults),
            **read_rope(fields, base=self.rope_base),
            "head_width": fields.size("head_dim", None),
            **self.own,
        }

    def weights(self, config: ModelConfig, fields: Fields) -> Iterator[Weight]:
        """Embedding, norm and head, then layer by layer."""
        yield from common_weights(config)
        for layer in range(config.layers):
            for ours, theirs in self.names.items():
                name, published = f"blocks.{layer}.{ours}", f"model.layers.{layer}.{theirs}"
                yield Weight(f"{name}.weight", (f"{published}.weight",))


class Llama(Dense):
    """The plain decoder, which most tools know best."""

    model_type, architecture = "llama", "LlamaForCausalLM"

    def objection(self, config: ModelConfig) -> str | None:
        """As any dense one; `LlamaConfig` also wants a width that its heads divide."""
        if config.width % config.heads:
            return f"width {config.width} is not a multiple of heads {config.heads}"
        return super().objection(config)


class Qwen3(Dense):
    """Head width free of the width; sliding windows by layer."""

    model_type, architecture = "qwen3", "Qwen3ForCausalLM"
    names = {**LLAMA_NAMES, **QK_NORM_NAMES}
    own = {"qk_norm": "head"}
    free = frozenset({"window"})
    defaults = {"context": 32768}

    def fields(self, config: ModelConfig) -> dict[str, Any]:
        """With the windows; `max_window_layers` is what counts where layers are not listed."""
        own = {**window_fields(config), "max_window_layers": config.layers}
        return {**super().fields(config), **own}

    def shape(self, fields: Fields) -> dict[str, Any]:
        """Without a list, the layers from `max_window_layers` on have the window."""
        values = super().shape(fields)
        full = fields.size("max_window_layers", 28, least=0)
        unlisted = [layer >= full for layer in range(values["layers"])]
        return {
            **values,
            "head_width": fields.size("head_dim", 128),
            **read_windows(fields, values["layers"], unlisted=unlisted),
        }


class Olmo2(Dense):
    """OLMo 2 of all sizes."""

    model_type, architecture = "olmo2", "Olmo2ForCausalLM"
    names = {
        **LLAMA_NAMES,
        **QK_NORM_NAMES,
        "attention_norm": "post_attention_layernorm",
        "mlp_norm": "post_feedforward_layernorm",
    }
    own = {"qk_norm": "width", "norm": "output"}
    defaults = {"epsilon": 1e-5}

    def objection(self, config: ModelConfig) -> str | None:
        """As any dense one; the class computes the head width from the width."""
        if config.head_width * config.heads != config.width:
            return f"head_width is {config.head_width}"
        return super().objection(config)

    def fields(self, config: ModelConfig) -> dict[str, Any]:
        """`Olmo2Config` has neither of the two."""
        fields = super().fields(config)
        return {name: fields[name] for name in fields if name not in ("head_dim", "mlp_bias")}


class SmolLM3(Dense):
    """Llama with layers without positions, and with sliding windows by layer."""

    model_type, architecture = "smollm3", "SmolLM3ForCausalLM"
    free = frozenset({"nope_every", "window"})
    defaults = {"tied": True, "context": 32768}
    rope_base = 2_000_000.0

    def fields(self, config: ModelConfig) -> dict[str, Any]:
        """`no_rope_layers` has a 1 for each layer that does turn."""
        rotates = [int(config.rotates(layer)) for layer in range(config.layers)]
        every = config.nope_every or config.layers + 1
        own = {"no_rope_layers": rotates, "no_rope_layer_interval": every}
        return {**super().fields(config), **window_fields(config), **own}

    def shape(self, fields: Fields) -> dict[str, Any]:
        """InputError where layers without positions do not come at one interval."""
        values = super().shape(fields)
        layers = values["layers"]
        rope_layers = fields.sequence("no_rope_layers")
        if rope_layers is None:
            every = fields.size("no_rope_layer_interval", 4)
            rope_layers = [int((layer + 1) % every != 0) for layer in range(layers)]
        rotates = list(rope_layers[:layers])
        every = rotates.index(0) + 1 if 0 in rotates else 0
        regular = [int(every == 0 or (layer + 1) % every != 0) for layer in range(len(rotates))]
        if len(rotates) < layers or rotates != regular:
            raise fields.wrong("no_rope_layers", "are not every n-th layer")
        slides = [not one for one in rotates]
        return {
            **values,
            "nope_every": every,
            **read_windows(fields, layers, unlisted=slides),
        }


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
        return first_mismatch(
            config, qk_norm="none", norm="pre", nope_every=0, window=None, logit_softcap=None
        )

    def fields(self, config: ModelConfig) -> dict[str, Any]:
        """`config.json`, with the fields that DeepSeek's own code and vLLM need."""
        assert config.latent is not None, "no model of this family"
        latent = config.latent
        return {
            **common_fields(config),
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
        """Values of a `ModelConfig`; the bias rate, which no config has, is DeepSeek's own."""
        values = common_shape(fields, context=4096)
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
        yield from common_weights(config)
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
        """Also layers after the last that predict further tokens, as many as the config says."""
        further = fields.size("num_nextn_predict_layers", 0, least=0)
        layer = re.match(r"model\.layers\.(\d{1,9})\.", name)
        extra = -1 if layer is None else int(layer[1]) - config.layers
        return 0 <= extra < further or super().superfluous(name, config, fields)


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
