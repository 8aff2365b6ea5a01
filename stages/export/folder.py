"""The files that `transformers` loads beside the weights, from a config and its tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.model.huggingface import to_config
from stages.text.chat_template import JINJA_FILE, KEY
from stages.text.special_tokens import SpecialTokens

_BLOCK = 4 * 2**20

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer

    from stages.model.config import ModelConfig
    from stages.model.safetensors_writer import Writer


def model_folder(
    model: ModelConfig, tokenizer: Tokenizer, tokenizer_config: Mapping[str, Any], dtype: str
) -> dict[str, bytes]:
    """Every file that `transformers` reads but the weights; equal inputs give equal bytes.

    The model may have more rows than the tokenizer has tokens (a padded vocabulary), not fewer:
    InputError then, and where the tokenizer lacks a token for end or padding. The chat template is
    the one that `tokenizer_config` has, unchanged; where it has none, the release has none.
    """
    size = tokenizer.get_vocab_size()
    if size > model.vocabulary_size:
        raise InputError(
            f"the tokenizer has {size} tokens, the model {model.vocabulary_size}",
            where="checkpoint",
            hint="the checkpoint's files do not belong together; make it again",
        )
    special = SpecialTokens.of(tokenizer, tokenizer_config)
    padding = special.padding
    config = to_config(model, bos=special.begin, eos=special.end, pad=padding, dtype=dtype)
    # Both ends stop a generation: a text ends with one, an answer with the other.
    ends = [token for token in (special.end, special.turn_end) if token is not None]
    generation = {"bos_token_id": special.begin, "eos_token_id": ends, "pad_token_id": padding}
    # transformers 4 knows the class by this name only (huggingface/transformers#47553), and tools
    # that predate chat_template.jinja read the template here.
    named = {
        **tokenizer_config,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": model.context,
    }
    files = {
        "config.json": to_json(config),
        "generation_config.json": to_json(generation),
        "tokenizer.json": tokenizer.to_str(pretty=True).encode(),
        "tokenizer_config.json": to_json(named),
    }
    template = tokenizer_config.get(KEY)
    # transformers reads this file first, and takes it for the only template: not for several.
    return {**files, JINJA_FILE: template.encode()} if isinstance(template, str) else files


def to_json(value: Any) -> bytes:
    """Indented JSON with sorted keys."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def copy_file(source: Path, writer: Writer) -> None:
    """Append a file to `writer`, a few megabytes at a time."""
    with source.open("rb") as file:
        while block := file.read(_BLOCK):
            writer.write(block)
