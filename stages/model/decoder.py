"""A Llama-shaped decoder (Touvron et al. 2023): RMSNorm, rotary positions, grouped queries, SwiGLU.

Shapes: B batch, L length, D width, H query heads, K key and value heads, C channels of a head,
F SwiGLU channels, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stages.model.attention import AttentionBackend, attention_backend, document_mask
from stages.model.config import ModelConfig


class Linear(nn.Linear):
    """A matrix without bias; `Decoder.initialise` fills it, the global random state is not used."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)

    def reset_parameters(self) -> None:
        """Nothing: see `Decoder.initialise`."""


class Embedding(nn.Embedding):
    """A table of token vectors; `Decoder.initialise` fills it."""

    def reset_parameters(self) -> None:
        """Nothing: see `Decoder.initialise`."""


class Attention(nn.Module):
    """Causal self-attention with rotary positions and grouped key and value heads."""

    def __init__(self, config: ModelConfig, backend: AttentionBackend) -> None:
        super().__init__()
        self.backend, self.head_width = backend, config.head_width
        kv_width = config.kv_heads * config.head_width
        self.query = Linear(config.width, config.width)
        self.key = Linear(config.width, kv_width)
        self.value = Linear(config.width, kv_width)
        self.output = Linear(config.width, config.width)

    def forward(self, x_BLD: Tensor, rotation: Rotation, mask: Tensor | None) -> Tensor:
        query_BHLC = rotate(self._heads(self.query(x_BLD)), rotation)
        key_BKLC = rotate(self._heads(self.key(x_BLD)), rotation)
        value_BKLC = self._heads(self.value(x_BLD))
        mixed_BHLC = self.backend.attend(query_BHLC, key_BKLC, value_BKLC, mask)
        return self.output(mixed_BHLC.transpose(1, 2).flatten(2))

    def _heads(self, x_BLD: Tensor) -> Tensor:
        batch, length, _ = x_BLD.shape
        return x_BLD.view(batch, length, -1, self.head_width).transpose(1, 2)


class SwiGLU(nn.Module):
    """down(silu(gate(x)) * up(x)): Shazeer 2020, "GLU Variants Improve Transformer", eq. 6."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate = Linear(config.width, config.mlp_width)
        self.up = Linear(config.width, config.mlp_width)
        self.down = Linear(config.mlp_width, config.width)

    def forward(self, x_BLD: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x_BLD)) * self.up(x_BLD))


class Block(nn.Module):
    """Attention and SwiGLU, each after a norm and added to the residual stream."""

    def __init__(self, config: ModelConfig, backend: AttentionBackend) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(config.width, eps=config.norm_epsilon)
        self.attention = Attention(config, backend)
        self.mlp_norm = nn.RMSNorm(config.width, eps=config.norm_epsilon)
        self.mlp = SwiGLU(config)

    def forward(self, x_BLD: Tensor, rotation: Rotation, mask: Tensor | None) -> Tensor:
        x_BLD = x_BLD + self.attention(self.attention_norm(x_BLD), rotation, mask)
        return x_BLD + self.mlp(self.mlp_norm(x_BLD))


class Decoder(nn.Module):
    """The model. Float32 parameters; equal seeds give equal weights on every device.

    `attention` names a backend of `stages.model.attention`.
    """

    def __init__(self, config: ModelConfig, *, seed: int = 0, attention: str = "sdpa") -> None:
        super().__init__()
        self.config = config
        self.backend = attention_backend(attention)
        self.embedding = Embedding(config.vocabulary_size, config.width)
        self.blocks = nn.ModuleList(Block(config, self.backend) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width, eps=config.norm_epsilon)
        self.head = None if config.tied_embeddings else Linear(config.width, config.vocabulary_size)
        self.initialise(seed)

    def forward(
        self,
        tokens_BL: Tensor,
        positions_BL: Tensor | None = None,
        documents_BL: Tensor | None = None,
    ) -> Tensor:
        """Logits [batch, length, vocabulary] of each next token.

        `documents_BL` numbers the piece that each token belongs to (-1 is padding): tokens see
        only earlier ones of their own piece. Without it, the row is one document. `positions_BL`
        defaults to the distance from the start of the piece.
        """
        return self.unembed(self.hidden(tokens_BL, positions_BL, documents_BL))

    def hidden(
        self,
        tokens_BL: Tensor,
        positions_BL: Tensor | None = None,
        documents_BL: Tensor | None = None,
    ) -> Tensor:
        """Normalised states [batch, length, width] before the output projection."""
        if positions_BL is None:
            positions_BL = default_positions(tokens_BL, documents_BL)
        config = self.config
        rotation = Rotation.at(positions_BL, config.head_width, config.rope_base)
        mask = document_mask(self.backend, documents_BL)
        x_BLD = self.embedding(tokens_BL)
        for block in self.blocks:
            x_BLD = block(x_BLD, rotation, mask)
        return self.norm(x_BLD)

    def unembed(self, x_BLD: Tensor) -> Tensor:
        """Logits [..., vocabulary] of states [..., width] given by `hidden`."""
        matrix_VD = self.embedding.weight if self.head is None else self.head.weight
        return F.linear(x_BLD, matrix_VD)

    @torch.no_grad()
    def initialise(self, seed: int) -> None:
        """Draw all weights anew, in the order of their names, from a generator of their own.

        matrices and embeddings     N(0, init_std²)
        attention.output, mlp.down  N(0, init_std² / (2 · layers)), so that the residual stream
                                    keeps its scale over depth (Radford et al. 2019, section 2.3)
        norms                       1
        """
        generator = torch.Generator().manual_seed(seed)
        scaled = self.config.init_std / (2 * self.config.layers) ** 0.5
        for name, weight in sorted(self.named_parameters()):
            if weight.is_meta:
                continue
            if weight.dim() == 1:
                weight.fill_(1.0)
                continue
            residual = name.endswith(("attention.output.weight", "mlp.down.weight"))
            std = scaled if residual else self.config.init_std
            weight.copy_(torch.empty(weight.shape).normal_(0.0, std, generator=generator))


class Rotation:
    """cos and sin of each token's rotary angles, [batch, 1, length, channels of a head].

    Su et al. 2021, RoFormer, eq. 15, in the layout of Hugging Face's Llama: channel i turns with
    channel i + C/2, not with its neighbour.
    """

    def __init__(self, cos_B1LC: Tensor, sin_B1LC: Tensor) -> None:
        self.cos_B1LC, self.sin_B1LC = cos_B1LC, sin_B1LC

    @classmethod
    def at(cls, positions_BL: Tensor, head_width: int, base: float) -> Rotation:
        """The rotation at `positions_BL`, in float32 (bfloat16 would blur angles after 256)."""
        even = torch.arange(0, head_width, 2, dtype=torch.float32, device=positions_BL.device)
        frequencies = 1.0 / base ** (even / head_width)
        angles_BLc = positions_BL[..., None].float() * frequencies
        angles_B1LC = torch.cat((angles_BLc, angles_BLc), dim=-1)[:, None]
        return cls(angles_B1LC.cos(), angles_B1LC.sin())


def rotate(x_BHLC: Tensor, rotation: Rotation) -> Tensor:
    """`x` turned by its position, in float32 and back in its own type."""
    x = x_BHLC.float()
    first, second = x.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return (x * rotation.cos_B1LC + turned * rotation.sin_B1LC).type_as(x_BHLC)


def default_positions(tokens_BL: Tensor, documents_BL: Tensor | None) -> Tensor:
    """Distance of each token from the start of its piece (of its row, without documents)."""
    positions_L = torch.arange(tokens_BL.shape[1], device=tokens_BL.device)
    if documents_BL is None:
        return positions_L.expand_as(tokens_BL)
    first = torch.ones_like(documents_BL, dtype=torch.bool)
    first[:, 1:] = documents_BL[:, 1:] != documents_BL[:, :-1]
    starts_BL = torch.where(first, positions_L, 0).cummax(dim=1).values
    return positions_L - starts_BL
