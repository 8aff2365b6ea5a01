"""Folders as their publishers save them, and what the stage makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from published_shapes import SHAPES
from safetensors.torch import save

from stages.import_model.stage import ImportModel
from stages.model.decoder import Decoder
from stages.model.huggingface.families import to_config, to_weights

Files = dict[str, bytes]


@pytest.fixture
def folder() -> Callable[..., Files]:
    """`folder("llama", **changes of config.json)` → the files of a random tiny model."""

    def make(name: str = "llama", **changes: Any) -> Files:
        model = Decoder(SHAPES[name], seed=5)
        values = {**to_config(model.config, bos=0, eos=1, pad=2), **changes}
        return {"config.json": json.dumps(values).encode(), "model.safetensors": weights(model)}

    return make


def weights(model: Decoder, **changes: torch.Tensor | None) -> bytes:
    """`model.safetensors` of a decoder, with tensors changed, added, or left out (None)."""
    tensors = {**to_weights(model), **changes}
    return save({name: one for name, one in tensors.items() if one is not None})


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., tuple[Files, Any]]:
    """`saved(name, **options)` → the files that `save_pretrained(**options)` writes, and its model.

    The model is one of `transformers`' own, of a tiny shape.
    """

    def make(name: str, dtype: torch.dtype = torch.float32, **options: Any) -> tuple[Files, Any]:
        from transformers import AutoConfig, AutoModelForCausalLM

        (tmp_path / "config.json").write_text(
            json.dumps(to_config(SHAPES[name], bos=0, eos=1, pad=2))
        )
        torch.manual_seed(2)
        config = AutoConfig.from_pretrained(tmp_path)
        model = AutoModelForCausalLM.from_config(config).eval().to(dtype)
        model.save_pretrained(tmp_path / "saved", **options)
        found = sorted((tmp_path / "saved").iterdir())
        return {path.name: path.read_bytes() for path in found}, model

    return make


@pytest.fixture
def bring(run_stage, snapshot, read_input):
    """`bring(files, tokenizer=None, **config)` → the checkpoint that the stage makes of them."""

    def run(files: Files, tokenizer: Any = None, **config: Any) -> Any:
        inputs = {"snapshot": snapshot(files)}
        if tokenizer is not None:
            inputs["tokenizer"] = [tokenizer]
        return read_input(run_stage(ImportModel, config, inputs), "checkpoint")

    return run


@pytest.fixture
def imported_tokenizer(given, tokenizer) -> Callable[[int], Any]:
    """`imported_tokenizer(61)` → a tokenizer that is recorded to have so many tokens."""

    def make(size: int) -> Any:
        record = {"vocabulary_size": size, "padded_vocabulary_size": -(-size // 64) * 64}
        return given(
            "tokenizer",
            {
                "tokenizer.json": tokenizer.to_str().encode(),
                "tokenizer_config.json": {"eos_token": "<|end_of_text|>"},
                "training.json": record,
            },
        )

    return make
