"""What a family is: a native class of `transformers`, and how a decoder is one of its models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from stages.model.config import ModelConfig
from stages.model.huggingface.fields import Fields
from stages.model.huggingface.weights import Weight

MOST_LAYERS = 4096
"""Far more than any published model has; a config of a billion would exhaust the memory."""


class Family(ABC):
    """A `model_type`. Nothing of `transformers` is imported: a family is names and numbers."""

    model_type: ClassVar[str]
    architecture: ClassVar[str]
    """Name of the class that loads the weights."""
    register: ClassVar[str | None] = None
    """Module to import before the Auto classes know the model; None for those of `transformers`."""

    @abstractmethod
    def objection(self, config: ModelConfig) -> str | None:
        """What of `config` the class does not express; None if it is one of its models."""

    @abstractmethod
    def fields(self, config: ModelConfig) -> dict[str, Any]:
        """`config.json` without the token ids and types, which are the same in each family."""

    @abstractmethod
    def shape(self, fields: Fields) -> dict[str, Any]:
        """Values of a `ModelConfig`; InputError about what the decoder does not express."""

    @abstractmethod
    def weights(self, config: ModelConfig, fields: Fields) -> Iterator[Weight]:
        """Every weight of the decoder, in the order of its layers.

        Lazily: a hostile config may name more layers than there is memory for.
        """

    def superfluous(self, name: str, config: ModelConfig, fields: Fields) -> bool:
        """Whether a published tensor is none of the model's weights, and may be left out.

        Early Llamas were saved with the frequencies of their rotary positions.
        """
        tied_head = config.tied_embeddings and name == "lm_head.weight"
        return tied_head or name.endswith("rotary_emb.inv_freq")


def outer_weights(config: ModelConfig) -> Iterator[Weight]:
    """Embedding, last norm and output projection, named alike in all native classes."""
    yield Weight("embedding.weight", ("model.embed_tokens.weight",))
    yield Weight("norm.weight", ("model.norm.weight",))
    if not config.tied_embeddings:
        yield Weight("head.weight", ("lm_head.weight",))


def outer_fields(config: ModelConfig) -> dict[str, Any]:
    """The fields of `config.json` that all native classes have."""
    return {
        "vocab_size": config.vocabulary_size,
        "hidden_size": config.width,
        "intermediate_size": config.mlp_width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "hidden_act": "silu",
        "max_position_embeddings": config.context,
        "initializer_range": config.init_std,
        "rms_norm_eps": config.norm_epsilon,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": config.tied_embeddings,
        "use_cache": True,
    }


def outer_shape(
    fields: Fields, *, tied: bool = False, epsilon: float = 1e-6, context: int = 2048
) -> dict[str, Any]:
    """The values that all native classes name alike; the arguments are the class's own defaults."""
    fields.demand("hidden_act", "silu")
    fields.demand("attention_bias", False)
    fields.demand("mlp_bias", False)
    fields.demand("rope_interleaved", False)
    if fields.table("quantization_config") is not None:
        raise fields.wrong("quantization_config", "is set; take the weights before quantization")
    heads = fields.size("num_attention_heads")
    return {
        "vocabulary_size": fields.size("vocab_size"),
        "width": fields.size("hidden_size"),
        "layers": fields.size("num_hidden_layers", most=MOST_LAYERS),
        "heads": heads,
        "kv_heads": fields.size("num_key_value_heads", heads),
        "mlp_width": fields.size("intermediate_size"),
        "context": fields.size("max_position_embeddings", context),
        "norm_epsilon": fields.number("rms_norm_eps", epsilon),
        "tied_embeddings": fields.flag("tie_word_embeddings", tied),
        "init_std": fields.number("initializer_range", 0.02),
    }


def objections(config: ModelConfig, **expected: Any) -> str | None:
    """The first field of `config` that is not as `expected`, in words; None if all are."""
    for name, value in expected.items():
        found = getattr(config, name)
        if found != value:
            shown = found if isinstance(found, str | int | float) else "set"
            return f"{name} is {shown}"
    return None
