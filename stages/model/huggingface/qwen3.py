"""`Qwen3ForCausalLM`: queries and keys are normalised within each head (arXiv 2505.09388)."""

from __future__ import annotations

from typing import Any

from stages.model.config import ModelConfig
from stages.model.huggingface.dense import LLAMA_NAMES, QK_NORM_NAMES, Dense
from stages.model.huggingface.fields import Fields
from stages.model.huggingface.windows import read_windows, window_fields


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
