"""The decoder: embedding, blocks of attention and feed-forward layer, norm, output projection.

By default a Llama (Touvron et al. 2023): RMSNorm before each layer, rotary positions, grouped
queries, SwiGLU. `ModelConfig` has the variants.

Shapes: B batch, L length, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stages.model.attention import AttentionBackend, Visibility, attention_backend
from stages.model.config import ModelConfig, RopeScaling
from stages.model.experts import MixtureOfExperts
from stages.model.initial import initialise
from stages.model.layers import (
    Embedding,
    GroupedAttention,
    LatentAttention,
    Linear,
    RMSNorm,
    Rotation,
    SwiGLU,
    compute_rotation,
    default_positions,
)
from stages.parallel.boxes import own_part


class Block(nn.Module):
    """Attention and a feed-forward layer, each added to the residual stream.

    The norm is applied before each, or to what each adds (OLMo 2, arXiv 2501.00656, section 3.3).
    """

    def __init__(self, config: ModelConfig, layer: int, backend: AttentionBackend) -> None:
        super().__init__()
        self.norms_outputs = config.norm == "output"
        attention = GroupedAttention if config.latent is None else LatentAttention
        self.attention_norm = RMSNorm(config.width, eps=config.norm_epsilon)
        self.attention = attention(config, backend)
        self.mlp_norm = RMSNorm(config.width, eps=config.norm_epsilon)
        self.mlp: nn.Module = SwiGLU(config.width, config.mlp_width)
        if config.experts is not None and config.has_experts(layer):
            self.mlp = MixtureOfExperts(config.width, config.experts)

    def forward(
        self, x_BLD: Tensor, rotation: Rotation | None, mask: Any, padding_BL: Tensor | None = None
    ) -> Tensor:
        """[batch, length, width] to the same. No rotation: positions do not matter here.

        `padding_BL` marks tokens that experts do not count.
        """
        counted = (padding_BL,) if isinstance(self.mlp, MixtureOfExperts) else ()
        if self.norms_outputs:
            x_BLD = x_BLD + self.attention_norm(self.attention(x_BLD, rotation, mask))
            return x_BLD + self.mlp_norm(self.mlp(x_BLD, *counted))
        x_BLD = x_BLD + self.attention(self.attention_norm(x_BLD), rotation, mask)
        return x_BLD + self.mlp(self.mlp_norm(x_BLD), *counted)


class Decoder(nn.Module):
    """The model. Float32 parameters; equal seeds give equal weights on every device.

    `attention` names a backend of `stages.model.attention`.
    """

    def __init__(self, config: ModelConfig, *, seed: int = 0, attention: str = "sdpa") -> None:
        super().__init__()
        self.config = config
        self.backend = attention_backend(attention)
        self.backend.check(config)
        self.embedding = Embedding(config.vocabulary_size, config.width)
        self.blocks = nn.ModuleList(
            Block(config, layer, self.backend) for layer in range(config.layers)
        )
        self.norm = RMSNorm(config.width, eps=config.norm_epsilon)
        self.head = None if config.tied_embeddings else Linear(config.width, config.vocabulary_size)
        self.seed = seed
        self.initialise()

    def forward(
        self,
        tokens_BL: Tensor,
        positions_BL: Tensor | None = None,
        documents_BL: Tensor | None = None,
        prefix_BL: Tensor | None = None,
        *,
        offsets_N1: Tensor | None = None,
        output: Callable[[Tensor, Tensor], Any] | None = None,
        layers: range | None = None,
        states_BLD: Tensor | None = None,
    ) -> Any:
        """Logits [batch, length, vocabulary] of each next token, or what `output` makes instead.

        `documents_BL` numbers the piece that each token belongs to (-1 is padding): tokens see
        only their own piece. Without it, the row is one document. `positions_BL` defaults to the
        distance from the start of the piece. Tokens see earlier ones, and those where `prefix_BL`
        is True wherever they are; all True is attention in both directions. `offsets_N1` spare the
        attention backend `varlen` counting pieces: see `Visibility`.

        `output` is called with the normalised states [batch, length, width] and the output matrix
        [vocabulary, width]. It runs inside the forward pass, where a sharded matrix is whole;
        tensors that gradients flow through are in a tensor, tuple or dict that it returns.

        `layers` are the blocks to compute, all by default. Those that begin later take the states
        `states_BLD` after the block before; where they end earlier, the result is the states.
        """
        config = self.config
        layers = layers or range(config.layers)
        x_BLD = self.embedding(tokens_BL) if states_BLD is None else states_BLD
        where = tokens_BL, positions_BL, documents_BL, prefix_BL, offsets_N1
        x_BLD = self._blocks(x_BLD, layers, *where)
        if layers.stop < config.layers:
            return x_BLD
        x_BLD = self.norm(x_BLD)
        matrix_VD = own_part((self.head or self.embedding).weight)
        return self.logits(x_BLD, matrix_VD) if output is None else output(x_BLD, matrix_VD)

    def _blocks(
        self,
        x_BLD: Tensor,
        layers: range,
        tokens_BL: Tensor,
        positions_BL: Tensor | None,
        documents_BL: Tensor | None,
        prefix_BL: Tensor | None,
        offsets_N1: Tensor | None,
    ) -> Tensor:
        """The states after these layers."""
        config = self.config
        if positions_BL is None:
            positions_BL = default_positions(tokens_BL, documents_BL)
        rotation = compute_rotation(
            positions_BL, config.rotary_width, config.rope_base, config.rope_scaling
        )
        visible = Visibility.from_batch(tokens_BL, documents_BL, prefix_BL, offsets_N1)
        windows = {layer: config.window_of(layer) for layer in layers}
        masks = {
            window: self.backend.prepare(replace(visible, window=window))
            for window in set(windows.values())
        }
        padding_BL = None
        if config.experts is not None and documents_BL is not None:
            padding_BL = documents_BL < 0
        for layer in layers:
            rope = rotation if config.rotates(layer) else None
            x_BLD = self.blocks[layer](x_BLD, rope, masks[windows[layer]], padding_BL)
        return x_BLD

    def logits(self, x_BLD: Tensor, matrix_VD: Tensor) -> Tensor:
        """Logits [..., vocabulary] of what `output` is given.

        With a cap, cap · tanh(logit / cap): Gemma 2 (arXiv 2408.00118), section 2.
        """
        logits_BLV = F.linear(x_BLD, matrix_VD)
        cap = self.config.logit_softcap
        return logits_BLV if cap is None else cap * torch.tanh(logits_BLV / cap)

    def initialise(self) -> None:
        """Draw all weights, or what this rank holds of them; see `stages.model.initial`."""
        initialise(self, self.seed, self.config.init_std, self.config.layers)

    def set_rope(self, base: float, scaling: RopeScaling | None = None) -> None:
        """Change base and scaling of rotary positions: no parameter depends on them.

        `config` is changed too, and with it `model.json` of a checkpoint.
        """
        self._configure(rope_base=base, rope_scaling=scaling)

    def set_context(self, length: int) -> None:
        """Let sequences have `length` tokens, in `config` too: no parameter depends on it."""
        self._configure(context=length)

    def _configure(self, **changes: Any) -> None:
        self.config = ModelConfig.model_validate({**self.config.model_dump(), **changes})

    def set_attention(self, name: str) -> None:
        """Take another attention backend; UsageError if it cannot do this model."""
        self.attend_by(attention_backend(name))

    def attend_by(self, backend: AttentionBackend) -> None:
        """Take this attention backend; UsageError if it cannot do this model."""
        backend.check(self.config)
        self.backend = backend
        for block in self.blocks:
            if isinstance(block, Block):
                block.attention.backend = backend
