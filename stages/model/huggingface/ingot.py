"""`IngotForCausalLM`, our own class for what no native one expresses: see `auto_classes`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.huggingface.family import MOST_LAYERS, Family
from stages.model.huggingface.fields import Fields
from stages.model.huggingface.weights import Weight


class Ingot(Family):
    """Every decoder; `config.json` has our own fields as `ingot`."""

    model_type, architecture = "ingot", "IngotForCausalLM"
    register = "stages.model.huggingface.auto_classes"

    def objection(self, config: ModelConfig) -> str | None:
        """None: it is our own."""
        return None

    def fields(self, config: ModelConfig) -> dict[str, Any]:
        """Our own fields, and the few that tools read of any model."""
        return {
            "ingot": config.plain(),
            "vocab_size": config.vocabulary_size,
            "hidden_size": config.width,
            "num_hidden_layers": config.layers,
            "num_attention_heads": config.heads,
            "num_key_value_heads": config.kv_heads,
            "head_dim": config.head_width,
            "max_position_embeddings": config.context,
            "initializer_range": config.init_std,
            "tie_word_embeddings": config.tied_embeddings,
            "use_cache": True,
        }

    def shape(self, fields: Fields) -> dict[str, Any]:
        """The values of `ingot`; those that tools read must agree with them."""
        own = fields.table("ingot")
        if own is None:
            raise fields.wrong("ingot", "is missing")
        own.size("layers", most=MOST_LAYERS)
        for theirs, ours in (("vocab_size", "vocabulary_size"), ("hidden_size", "width")):
            own.demand(ours, fields.size(theirs))
        return dict(own.values)

    def weights(self, config: ModelConfig, fields: Fields) -> Iterator[Weight]:
        """Ingot's names, below `model.`."""
        with torch.device("meta"):
            names = list(Decoder(config).state_dict())
        for name in names:
            yield Weight(name, (f"model.{name}",))
