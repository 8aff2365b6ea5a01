"""Llama's layout of attention and SwiGLU, which Qwen3, OLMo 2 and SmolLM3 vary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from stages.model.config import ModelConfig
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
"""What a family has that says nothing of it."""


class Dense(Family):
    """A decoder of one SwiGLU and grouped-query attention a layer.

    A subclass says by `own` which fields of a shape it fixes, by `names` how a layer's weights are
    called, and by `free` which fields it leaves to the config.
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
        return objections(
            config, **{name: fixed[name] for name in sorted(fixed.keys() - self.free)}
        )

    def fields(self, config: ModelConfig) -> dict[str, Any]:
        """`config.json`, `head_dim` included."""
        own = {"head_dim": config.head_width, "mlp_bias": False}
        return {**outer_fields(config), **rope_fields(config), **own}

    def shape(self, fields: Fields) -> dict[str, Any]:
        """Values of a `ModelConfig`."""
        return {
            **outer_shape(fields, **self.defaults),
            **read_rope(fields, base=self.rope_base),
            "head_width": fields.size("head_dim", None),
            **self.own,
        }

    def weights(self, config: ModelConfig, fields: Fields) -> Iterator[Weight]:
        """Embedding, norm and head, then layer by layer."""
        yield from outer_weights(config)
        for layer in range(config.layers):
            for ours, theirs in self.names.items():
                name, published = f"blocks.{layer}.{ours}", f"model.layers.{layer}.{theirs}"
                yield Weight(f"{name}.weight", (f"{published}.weight",))
