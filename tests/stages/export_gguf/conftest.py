"""What tests of GGUF files share: a checkpoint of any shape, the file that is made of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from stages.export_gguf.stage import ExportGguf
from stages.model.files import model_files
from stages.tokenizer.training import transformers_config
from stages.tokens.chat import CHAT_TEMPLATE

FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"tied_embeddings": False, "mlp_width": 40},
    "llama tied, free head width": {"tied_embeddings": True, "head_width": 12},
    "llama one head of keys": {"kv_heads": 1},
    "qwen3": {"qk_norm": "head", "head_width": 128, "norm_epsilon": 1e-6},
    "olmo2": {"qk_norm": "width", "norm": "output", "tied_embeddings": False},
    "olmo2 tied": {"qk_norm": "width", "norm": "output", "tied_embeddings": True},
    "smollm3": {"nope_every": 4, "layers": 5, "tied_embeddings": True},
}
"""Changes of the tiny model by name, whose first word is the family."""


@pytest.fixture
def make_family(make_model) -> Callable[..., Any]:
    """`make_family(name, context=64)` → a model of random weights, those of its norms too."""

    def make(name, **changes):
        model = make_model(**{**FAMILIES[name], **changes})
        generator = torch.Generator().manual_seed(5)
        with torch.no_grad():
            for weight in model.parameters():
                if weight.ndim == 1:
                    weight.uniform_(0.5, 1.5, generator=generator)
        return model

    return make


@pytest.fixture
def make_checkpoint(given, tokenizer) -> Callable[..., Any]:
    """`make_checkpoint(model, tokenizer=None, pre="llama-bpe")` → a committed checkpoint."""

    def make(model, own=None, pre="llama-bpe", template=CHAT_TEMPLATE):
        described = {
            **transformers_config(pre),
            **({"chat_template": template} if template else {}),
        }
        return given(
            "checkpoint",
            {
                **model_files(model),
                "tokenizer.json": (own or tokenizer).to_str().encode(),
                "tokenizer_config.json": described,
                "state.json": {"stage": "pretrain", "training_step": 12, "tokens": 345},
            },
        )

    return make


@dataclass(frozen=True)
class Made:
    """A GGUF file that the stage made, in a folder of its own."""

    path: Path
    manifest: Any

    @property
    def reader(self):
        """It, as the `gguf` package reads it."""
        from gguf import GGUFReader

        return GGUFReader(self.path)


@pytest.fixture
def make_gguf(run_stage, read_input, tmp_path) -> Callable[..., Made]:
    """`make_gguf(checkpoint, type="F32")` → the file."""

    def make(checkpoint, **config):
        made = run_stage(ExportGguf, config, {"checkpoint": [checkpoint]})
        output = read_input(made, "gguf")
        [name] = [path for path in output.paths() if path.endswith(".gguf")]
        folder = tmp_path / made.key
        folder.mkdir()
        shutil.copyfile(output.local_path(name), folder / name)
        return Made(folder / name, made)

    return make
