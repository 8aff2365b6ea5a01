"""The files of a folder that `transformers` loads, from a decoder and its tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from safetensors.torch import save

from artifacts_schema.errors import InputError
from stages.model.huggingface import to_config, to_weights
from stages.text.chat_template import JINJA_FILE, KEY
from stages.text.special_tokens import SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.model.decoder import Decoder


def model_folder(
    model: Decoder, tokenizer: Tokenizer, tokenizer_config: Mapping[str, Any]
) -> dict[str, bytes]:
    """Every file that `transformers` reads, by name; equal inputs give equal bytes.

    The model may have more rows than the tokenizer has tokens (a padded vocabulary), not fewer:
    InputError then, and where the tokenizer lacks a token for end or padding. The chat template is
    the one that `tokenizer_config` has, unchanged; where it has none, the release has none.
    """
    size = tokenizer.get_vocab_size()
    if size > model.config.vocabulary_size:
        raise InputError(
            f"the tokenizer has {size} tokens, the model {model.config.vocabulary_size}",
            where="checkpoint",
            hint="the checkpoint's files do not belong together; make it again",
        )
    special = SpecialTokens.of(tokenizer, tokenizer_config)
    padding = special.padding
    config = to_config(model.config, bos=special.begin, eos=special.end, pad=padding)
    # Both ends stop a generation: a text ends with one, an answer with the other.
    ends = [token for token in (special.end, special.turn_end) if token is not None]
    generation = {"bos_token_id": special.begin, "eos_token_id": ends, "pad_token_id": padding}
    # transformers 4 knows the class by this name only (huggingface/transformers#47553), and tools
    # that predate chat_template.jinja read the template here.
    named = {
        **tokenizer_config,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": model.config.context,
    }
    files = {
        "config.json": to_json(config),
        "generation_config.json": to_json(generation),
        # One entry of metadata: several would be written in random order.
        "model.safetensors": save(to_weights(model), metadata={"format": "pt"}),
        "tokenizer.json": tokenizer.to_str(pretty=True).encode(),
        "tokenizer_config.json": to_json(named),
    }
    template = tokenizer_config.get(KEY)
    # transformers reads this file first, and takes it for the only template: not for several.
    return {**files, JINJA_FILE: template.encode()} if isinstance(template, str) else files


def to_json(value: Any) -> bytes:
    """Indented JSON with sorted keys."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"
