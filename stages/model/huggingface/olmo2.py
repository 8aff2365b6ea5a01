"""`Olmo2ForCausalLM`: norms on what attention and SwiGLU add, queries and keys over all heads.

OLMo Team 2025, "2 OLMo 2 Furious", arXiv 2501.00656, section 3.
"""

from __future__ import annotations

from typing import Any

from stages.model.config import ModelConfig
from stages.model.huggingface.dense import LLAMA_NAMES, QK_NORM_NAMES, Dense


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
