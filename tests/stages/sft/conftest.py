"""A tiny checkpoint with a tokenizer, and tables committed as they are given."""

import hashlib
import json

import pyarrow as pa
import pytest

from artifacts_schema.config import Config
from artifacts_schema.kinds import KINDS
from stages.engine import Stage
from stages.model.config import ModelShape
from stages.model.decoder import Decoder
from stages.model.files import model_files
from stages.tokenizer.training import train, transformers_config

TEXTS = ["what is the colour of the sky today", "the answer is blue", "say yes or no to the man"]


class GivenConfig(Config):
    content: str


@pytest.fixture
def given(run_stage):
    """`given(kind, {path: bytes or rows})` → (manifest, output) as committed."""

    def commit(kind, files):
        class Given(Stage):
            name, version, reproducible = f"given_{kind}", 1, "bytes"
            outputs = {kind: kind}
            Config = GivenConfig

            def run(self, context):
                for path, value in files.items():
                    if isinstance(value, bytes):
                        context.write_bytes(kind, path, value)
                    else:
                        schema = KINDS[kind].table_for(path).arrow()
                        table = pa.Table.from_pylist(value, schema=schema)
                        context.write_table(kind, path, table)

        content = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()
        return run_stage(Given, {"content": content}), kind

    return commit


@pytest.fixture(scope="session")
def tokenizer():
    return train(iter(TEXTS * 9), vocabulary_size=300, pre_tokenizer="llama-bpe", min_frequency=2)


@pytest.fixture(scope="session")
def model(tokenizer):
    shape = ModelShape(width=32, layers=2, heads=2, kv_heads=1, context=64, init_std=0.2)
    return Decoder(shape.with_vocabulary(tokenizer.get_vocab_size()), seed=5)


@pytest.fixture
def checkpoint(given, model, tokenizer):
    files = {
        **model_files(model),
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": json.dumps(transformers_config("llama-bpe")).encode(),
        "state.json": b"{}",
    }
    return given("checkpoint", files)
