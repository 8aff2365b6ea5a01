"""Made inputs: a tiny tokenizer and model, and any output committed as it is given."""

import hashlib
import json

import pyarrow as pa
import pytest

from artifacts_schema.config import Config
from artifacts_schema.kinds import KINDS
from stages.engine import Stage
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import model_files
from stages.tokenizer.training import train, transformers_config

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
    """What the tokenizer stage makes, of three lines."""
    return train(iter(LINES * 20), vocabulary_size=400, pre_tokenizer="llama-bpe", min_frequency=2)


@pytest.fixture(scope="session")
def model(tokenizer):
    config = ModelConfig(
        vocabulary_size=tokenizer.get_vocab_size(),
        width=32,
        layers=2,
        heads=4,
        kv_heads=2,
        context=128,
        rope_base=50_000.0,
        init_std=0.2,
    )
    return Decoder(config, seed=11)


@pytest.fixture
def checkpoint(given, model, tokenizer):
    state = {"stage": "dpo", "training_step": 1200, "tokens": 34567}
    return given(
        "checkpoint",
        {
            **model_files(model),
            "tokenizer.json": tokenizer.to_str().encode(),
            "tokenizer_config.json": json.dumps(transformers_config("llama-bpe")).encode(),
            "state.json": json.dumps(state).encode(),
        },
    )
