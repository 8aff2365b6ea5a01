"""Decoders under `transformers`' Auto classes: language models, and reward models.

    import stages.model.huggingface.auto_classes
    model = AutoModelForCausalLM.from_pretrained(folder)

Importing this module registers the classes. A folder that needs them has no code in it:
without this import the Auto classes refuse its `model_type`, and `trust_remote_code` has nothing
to trust. When it generates, attention continues from the keys and values of earlier calls.

Shapes: B batch, T length of all calls so far, this one included.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    GenerationMixin,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.cache_utils import Cache, DynamicCache
from transformers.modeling_outputs import CausalLMOutputWithPast, SequenceClassifierOutputWithPast

from stages.model.cache import CachedAttention
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.huggingface.families import Ingot, from_config
from stages.model.layers import default_positions


class IngotConfig(PreTrainedConfig):
    """A `ModelConfig` as `config.json` of a folder: its fields are `ingot`."""

    model_type = "ingot"

    ingot: dict[str, Any] | None = None
    vocab_size: int | None = None
    hidden_size: int | None = None
    num_hidden_layers: int | None = None
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    max_position_embeddings: int | None = None
    initializer_range: float = 0.02
    tie_word_embeddings: bool = True
    use_cache: bool = True
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    pad_token_id: int | None = None

    @classmethod
    def from_model_config(cls, config: ModelConfig, **rest: Any) -> IngotConfig:
        """That of a decoder; `rest` are token ids and what else a `PreTrainedConfig` takes."""
        return cls(**Ingot().fields(config), **rest)

    @property
    def resolved(self) -> ModelConfig:
        """The decoder's own config; InputError names what is wrong with it."""
        values = {**vars(self), "model_type": self.model_type, "architectures": None}
        return from_config(values, where="config.json")


class IngotForCausalLM(PreTrainedModel, GenerationMixin):
    """The decoder with the interface of a causal language model.

    Wrapped, not rewritten, so that a release is the very model that was trained. A cache keeps keys
    and values of all earlier tokens, those outside of a window too, and those of latent attention
    as they are expanded.
    """

    config_class = IngotConfig
    base_model_prefix = "model"
    _supports_sdpa = True

    def __init__(self, config: IngotConfig) -> None:
        super().__init__(config)
        self.model = Decoder(config.resolved)
        self._attention = CachedAttention()
        self.model.attend_by(self._attention)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool | None = None,
        **_: Any,
    ) -> CausalLMOutputWithPast:
        """Logits [batch, length, vocabulary]; with `labels` [batch, length] their mean loss, nats.

        Zeros of `attention_mask` [batch, length] are padding on either side, which no token sees;
        positions count from the first token. Labels are shifted here, -100 is ignored. Where
        `past_key_values` hold earlier tokens, the mask is of those and of `input_ids`.
        """
        if past_key_values is None and use_cache and not self.training:
            past_key_values = DynamicCache(config=self.config)
        past = 0 if past_key_values is None else past_key_values.get_seq_length()
        documents_BT = _documents(attention_mask)
        if past and position_ids is None:
            rows = input_ids.new_empty((len(input_ids), past + input_ids.shape[1]))
            position_ids = default_positions(rows, documents_BT)[:, past:]
        own_BL = None if documents_BT is None else documents_BT[:, past:]
        with self._attention.over(past_key_values, documents_BT):
            logits_BLV = self.model(input_ids, position_ids, own_BL)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(
                logits_BLV[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten()
            )
        return CausalLMOutputWithPast(loss=loss, logits=logits_BLV, past_key_values=past_key_values)

    def prepare_inputs_for_generation(  # type: ignore[override]
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Cache | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """What the cache does not hold yet, with the mask of all."""
        past = 0 if past_key_values is None else past_key_values.get_seq_length()
        total = input_ids.shape[1] if attention_mask is None else attention_mask.shape[1]
        return {
            "input_ids": input_ids[:, past - total :],
            "attention_mask": attention_mask,
            "past_key_values": past_key_values,
        }

    def get_input_embeddings(self) -> torch.nn.Module:
        """The table of token vectors."""
        return self.model.embedding

    def get_output_embeddings(self) -> torch.nn.Module | None:
        """The output projection, None where it is the table of token vectors."""
        return self.model.head

    def _init_weights(self, module: torch.nn.Module) -> None:
        """No-op: the decoder draws its own weights, from its own seed."""


class IngotForSequenceClassification(PreTrainedModel):
    """A reward model: the score of a sequence, read at its last token that is no padding."""

    config_class = IngotConfig
    base_model_prefix = "model"
    _supports_sdpa = True

    def __init__(self, config: IngotConfig) -> None:
        super().__init__(config)
        self.model = Decoder(config.resolved)
        self.score = torch.nn.Linear(self.model.config.width, 1, bias=False)
        self.post_init()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any
    ) -> SequenceClassifierOutputWithPast:
        """Scores as `logits` [batch, 1]; padding is on either side, as the mask says."""
        scores_BLN = self.model(
            input_ids,
            documents_BL=_documents(attention_mask),
            output=lambda x_BLD, _: self.score(x_BLD),
        )
        places_L = torch.arange(input_ids.shape[1], device=input_ids.device)
        last_B = (places_L * (input_ids != self.config.pad_token_id)).argmax(-1)
        rows_B = torch.arange(len(input_ids), device=input_ids.device)
        return SequenceClassifierOutputWithPast(logits=scores_BLN[rows_B, last_B])

    def _init_weights(self, module: torch.nn.Module) -> None:
        """No-op: the weights are those of a folder."""


def _documents(attention_mask: Tensor | None) -> Tensor | None:
    """0 for a token, -1 for padding; None where there is none."""
    if attention_mask is None or attention_mask.all():
        return None
    return attention_mask.long() - 1


AutoConfig.register("ingot", IngotConfig)
AutoModelForCausalLM.register(IngotConfig, IngotForCausalLM)
AutoModelForSequenceClassification.register(IngotConfig, IngotForSequenceClassification)
