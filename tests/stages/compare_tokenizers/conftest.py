"""Small tokenizers, alone and as artifacts, and the paragraphs that are there in 12 languages."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from zstandard import ZstdDecompressor

ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
END, PADDING = "<|end_of_text|>", "<|pad|>"


def train_bpe(texts: Iterable[str], size: int = 320) -> Tokenizer:
    """A byte-level BPE with two special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=ALPHABET,
        show_progress=False,
        special_tokens=[END, PADDING],
    )
    tokenizer.train_from_iterator(texts, trainer=trainer)
    return tokenizer


@pytest.fixture(scope="session")
def bpe() -> Callable[..., Tokenizer]:
    """`bpe(texts, size=320)` → a byte-level BPE with two special tokens."""
    return train_bpe


@pytest.fixture
def as_artifact(given: Callable[..., Any]) -> Callable[..., Any]:
    """`as_artifact(tokenizer, algorithm="bpe", …)` → the tokenizer as an artifact."""

    def commit(tokenizer: Tokenizer, **training: Any) -> Any:
        size = tokenizer.get_vocab_size()
        return given(
            "tokenizer",
            {
                "tokenizer.json": tokenizer.to_str().encode(),
                "tokenizer_config.json": {"eos_token": END, "pad_token": PADDING},
                "training.json": {
                    "algorithm": "bpe",
                    "pre_tokenizer": "gpt-2",
                    "vocabulary_size": size,
                    "padded_vocabulary_size": size,
                    **training,
                },
            },
        )

    return commit


@pytest.fixture(scope="session")
def xquad() -> list[dict[str, str]]:
    """Rows with id, lang and text: 160 paragraphs in 12 languages each."""
    path = Path(__file__).resolve().parents[4] / "shared/data/text/parallel-xquad.jsonl.zst"
    if not path.exists():
        pytest.skip("needs the shared data folder beside the project")
    with open(path, "rb") as file:
        lines = io.TextIOWrapper(ZstdDecompressor().stream_reader(file), encoding="utf-8")
        return [json.loads(line) for line in lines]
