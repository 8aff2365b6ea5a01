"""`LlamaForCausalLM` (Touvron et al. 2023; Llama 3.1's stretched positions included)."""

from __future__ import annotations

from stages.model.config import ModelConfig
from stages.model.huggingface.dense import Dense


class Llama(Dense):
    """The plain decoder, which most tools know best."""

    model_type, architecture = "llama", "LlamaForCausalLM"

    def objection(self, config: ModelConfig) -> str | None:
        """As any dense one; `LlamaConfig` also wants a width that its heads divide."""
        if config.width % config.heads:
            return f"width {config.width} is not a multiple of heads {config.heads}"
        return super().objection(config)
