"""The files of a native Llama folder, from a decoder and its tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from safetensors.torch import save

from artifacts_schema.errors import InputError
from stages.model.huggingface import to_llama_config, to_llama_weights
from stages.scoring.requests import token_id
from stages.text.chat import BEGIN_OF_TEXT, CHAT_TEMPLATE, END_OF_TEXT, PADDING, TURN_END

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.model.decoder import Decoder


def model_folder(
    model: Decoder, tokenizer: Tokenizer, tokenizer_config: Mapping[str, Any]
) -> dict[str, bytes]:
    """Every file that `transformers` reads, by name; equal inputs give equal bytes.

    InputError if the tokenizer has more tokens than the model, or lacks a special token.
    """
    size = tokenizer.get_vocab_size()
    if size > model.config.vocabulary_size:
        raise InputError(
            f"the tokenizer has {size} tokens, the model {model.config.vocabulary_size}",
            where="checkpoint",
            hint="the checkpoint's files do not belong together; make it again",
        )
    begin, end, padding, turn_end = (
        token_id(tokenizer, token) for token in (BEGIN_OF_TEXT, END_OF_TEXT, PADDING, TURN_END)
    )
    config = to_llama_config(model.config, bos=begin, eos=end, pad=padding)
    # Both ends stop a generation: a text ends with one, an answer with the other.
    generation = {"bos_token_id": begin, "eos_token_id": [end, turn_end], "pad_token_id": padding}
    # transformers 4 knows the class by this name only (huggingface/transformers#47553), and tools
    # that predate chat_template.jinja read the template here.
    named = {
        **tokenizer_config,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": model.config.context,
        "chat_template": CHAT_TEMPLATE,
    }
    return {
        "config.json": to_json(config),
        "generation_config.json": to_json(generation),
        # One entry of metadata: several would be written in random order.
        "model.safetensors": save(to_llama_weights(model), metadata={"format": "pt"}),
        "tokenizer.json": tokenizer.to_str(pretty=True).encode(),
        "tokenizer_config.json": to_json(named),
        "chat_template.jinja": CHAT_TEMPLATE.encode(),
    }


def to_json(value: Any) -> bytes:
    """Indented JSON with sorted keys."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"
