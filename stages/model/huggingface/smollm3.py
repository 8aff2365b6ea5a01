"""`SmolLM3ForCausalLM`: every n-th layer has no positions (Bakouch et al. 2025, SmolLM3)."""

from __future__ import annotations

from typing import Any

from stages.model.config import ModelConfig
from stages.model.huggingface.dense import Dense
from stages.model.huggingface.fields import Fields
from stages.model.huggingface.windows import read_windows, window_fields


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
        listed = fields.sequence("no_rope_layers")
        if listed is None:
            every = fields.size("no_rope_layer_interval", 4)
            listed = [int((layer + 1) % every != 0) for layer in range(layers)]
        rotates = list(listed[:layers])
        every = rotates.index(0) + 1 if 0 in rotates else 0
        regular = [int(every == 0 or (layer + 1) % every != 0) for layer in range(len(rotates))]
        if len(rotates) < layers or rotates != regular:
            raise fields.wrong("no_rope_layers", "are not every n-th layer")
        slides = [not turns for turns in rotates]
        return {
            **values,
            "nope_every": every,
            **read_windows(fields, layers, unlisted=slides),
        }
