"""Made inputs: a tiny tokenizer and model, and any output committed as it is given."""

import hashlib

import pyarrow as pa
import pytest
import torch

from artifacts_schema.config import Config
from artifacts_schema.kinds import KINDS
from stages.engine import Stage
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import model_files
from stages.text.chat import SPECIAL_TOKENS

LINES = [
    "Return the first item of a list, or None if the list is empty.",
    "The capital of France is Paris; the capital of Italy is Rome.",
    "A dictionary maps keys to values. Keys are hashable, values are not restricted.",
]


class GivenConfig(Config):
    content: str


@pytest.fixture
def given(run_stage):
    """`given(kind, {path: bytes or list of rows})` → (manifest, output) as committed."""

    def commit(kind, files):
        made = {path: _content(kind, path, value) for path, value in files.items()}

        class Given(Stage):
            name, version, reproducible = f"given_{kind}", 1, "bytes"
            outputs = {kind: kind}
            Config = GivenConfig

            def run(self, context):
                for path, value in made.items():
                    if isinstance(value, bytes):
                        context.write_bytes(kind, path, value)
                    else:
                        context.write_table(kind, path, value)

        named = hashlib.sha256(repr(files).encode()).hexdigest()
        return run_stage(Given, {"content": named}), kind

    return commit


def _content(kind, path, value):
    if isinstance(value, bytes):
        return value
    return pa.Table.from_pylist(value, schema=KINDS[kind].table_for(path).arrow())


@pytest.fixture(scope="session")
def tokenizer():
    """A byte-level BPE with Ingot's special tokens, ids 0 to 4."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(LINES * 20, trainer)
    return tokenizer


@pytest.fixture(scope="session")
def model(tokenizer):
    config = ModelConfig(
        vocabulary_size=tokenizer.get_vocab_size(),
        width=32,
        layers=2,
        heads=4,
        kv_heads=2,
        context=64,
        init_std=0.2,
    )
    return Decoder(config, seed=11)


@pytest.fixture(scope="session")
def uniform(model):
    """A model that finds every token equally likely: all its logits are 0."""
    flat = Decoder(model.config)
    with torch.no_grad():
        flat.embedding.weight.zero_()
    return flat


@pytest.fixture
def checkpoint(given, model, tokenizer):
    files = {**model_files(model), "tokenizer.json": tokenizer.to_str().encode()}
    return given("checkpoint", {**files, "state.json": b"{}", "tokenizer_config.json": b"{}"})
