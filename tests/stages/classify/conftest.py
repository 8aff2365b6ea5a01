"""A small BERT with random weights and its WordPiece tokenizer, as a snapshot's files."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WORDS = (
    *("the", "of", "and", "to", "model", "data", "page", "text", "train"),
    *("learn", "river", "stone", "music", "paper", "quiet", "green"),
)


def draw_texts(count: int, longest: int = 90, seed: int = 5) -> list[str]:
    """Texts of 1 to `longest` words."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, longest))) for _ in range(count)]


@pytest.fixture(scope="session")
def save_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`save_model(labels, problem_type=…)` → a folder that `save_pretrained` wrote."""

    def save(labels: tuple[str, ...], **changes: Any) -> Path:
        import torch
        from tokenizers import BertWordPieceTokenizer, processors
        from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

        folder = tmp_path_factory.mktemp("model")
        words = BertWordPieceTokenizer(lowercase=True)
        words.train_from_iterator(draw_texts(50), vocab_size=120, show_progress=False)
        ends = [(token, words.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
        words._tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=ends
        )
        special = {f"{kind}_token": f"[{kind.upper()}]" for kind in ("pad", "unk", "cls", "sep")}
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=words._tokenizer, **special)
        shape = {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 64,
            "max_position_embeddings": 64,
            "initializer_range": 0.5,
        }
        config = BertConfig(
            vocab_size=len(tokenizer),
            pad_token_id=tokenizer.pad_token_id,
            id2label=dict(enumerate(labels)),
            **{**shape, **changes},
        )
        torch.manual_seed(3)
        BertForSequenceClassification(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return save


@pytest.fixture(scope="session")
def domains(save_model: Any) -> Path:
    """Three labels of which one is right."""
    return save_model(("News", "Arts/Music", "Sport"))


@pytest.fixture(scope="session")
def quality(save_model: Any) -> Path:
    """One label, a regression, as FineWeb-Edu's classifier is."""
    return save_model(("LABEL_0",), problem_type="regression")


@pytest.fixture
def files_of() -> Callable[[Path], dict[str, bytes]]:
    """The files of a folder by name."""
    return lambda folder: {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def classify(run_stage: Any, snapshot: Any, files_of: Any) -> Callable[..., Any]:
    """`classify(documents, folder, config, scores=…)` → the manifest."""
    from stages.classify.stage import Classify

    def run(
        documents: Any, model: Any, config: Any = None, scores: Any = (), **execution: Any
    ) -> Any:
        files = model if isinstance(model, dict) else files_of(model)
        inputs = {"documents": [documents], "model": snapshot(files), "scores": list(scores)}
        settings = {"name": "domain", "max_length": 64, **(config or {})}
        return run_stage(Classify, settings, inputs, {"device": "cpu", **execution})

    return run
