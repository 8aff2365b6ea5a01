"""Virtual tokens: trained vectors before a text, of a model that stays as it is.

Prompt tuning is Lester et al. 2021 (arXiv 2104.08691). `peft` puts its vectors before those of the
text, one text a row. Here virtual tokens have ids, those after the vocabulary, so that rows hold
several conversations, each after its own virtual tokens; the function is the same.

Shapes: B batch, L length, V virtual tokens, D width.
"""

from __future__ import annotations

import json
from typing import cast

import torch
from safetensors.torch import save
from tokenizers import Tokenizer
from torch import Tensor, nn

from artifacts_schema.errors import UsageError
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.layers import Embedding
from stages.training.adapters import BASE, CONFIG_FILE, WEIGHTS_FILE

TENSOR = "prompt_embeddings"
"""Its name in `peft`'s file."""


class PromptedEmbedding(nn.Module):
    """Vectors of tokens, which stay, and of virtual tokens, whose ids follow the vocabulary."""

    def __init__(self, tokens: Embedding, virtual_VD: Tensor) -> None:
        super().__init__()
        self.tokens = tokens
        self.virtual = nn.Embedding.from_pretrained(virtual_VD, freeze=False)

    @property
    def weight(self) -> Tensor:
        """The vectors of the vocabulary: the output matrix of a model that ties the two."""
        return self.tokens.weight

    def forward(self, tokens_BL: Tensor) -> Tensor:
        """[batch, length, width]"""
        size = self.tokens.num_embeddings
        virtual_BL = tokens_BL >= size
        words_BLD = self.tokens(tokens_BL.masked_fill(virtual_BL, 0))
        return torch.where(
            virtual_BL[..., None], self.virtual((tokens_BL - size).clamp(min=0)), words_BLD
        )


def attach_prompt(model: Decoder, virtual_VD: Tensor) -> None:
    """Let `model` read virtual tokens, and let nothing but their vectors be trained."""
    model.requires_grad_(False)
    embedding = PromptedEmbedding(model.embedding, virtual_VD)
    model.embedding = cast(Embedding, embedding)


def first_vectors(
    model: Decoder, tokenizer: Tokenizer, count: int, text: str | None, seed: int
) -> Tensor:
    """[count, D] Vectors of the tokens of `text`, again and again; without one, of drawn tokens.

    Special tokens are not drawn. UsageError for a text without tokens.
    """
    if text is not None:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        if not ids:
            raise UsageError("the tokenizer makes no token of it", where="text")
        chosen = torch.tensor([ids[place % len(ids)] for place in range(count)])
    else:
        added = tokenizer.get_added_tokens_decoder().items()
        special = {index for index, token in added if token.special}
        known = sorted(set(tokenizer.get_vocab().values()) - special)
        draw = torch.Generator().manual_seed(seed)
        chosen = torch.tensor(known)[torch.randint(len(known), (count,), generator=draw)]
    return model.embedding.weight.detach()[chosen].clone()


def prompt_files(shape: ModelConfig, virtual_VD: Tensor, base: str) -> dict[str, bytes]:
    """The prompt as `peft` reads it beside the released base, by file name.

    `base` is the digest of the checkpoint, kept in the metadata of the tensors.
    """
    from peft import PromptTuningConfig

    count, width = virtual_VD.shape
    config = PromptTuningConfig(
        task_type="CAUSAL_LM",
        num_virtual_tokens=count,
        token_dim=width,
        num_transformer_submodules=1,
        num_attention_heads=shape.heads,
        num_layers=shape.layers,
        inference_mode=True,
    )
    text = json.dumps(config.to_dict(), indent=2, sort_keys=True, default=sorted) + "\n"
    tensors = {TENSOR: virtual_VD.detach().cpu().float().contiguous()}
    return {CONFIG_FILE: text.encode("utf-8"), WEIGHTS_FILE: save(tensors, {BASE: base})}
