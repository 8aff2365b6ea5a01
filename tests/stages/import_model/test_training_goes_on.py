"""Release, import, train on: the way of a model that somebody else published."""

from __future__ import annotations

import pytest
import torch
from published_shapes import SHAPES
from safetensors.torch import save

from artifacts_schema.errors import IngotError
from stages.export.folder import model_folder
from stages.import_model.stage import ImportModel
from stages.model.decoder import Decoder
from stages.model.files import read_model, read_tokenizer
from stages.model.huggingface.families import to_weights
from stages.pack.stage import Pack
from stages.pretrain.stage import Pretrain
from stages.tokenizer.stage import TokenizerStage
from stages.tokens.chat_template import STATE, TOKENIZER_CONFIG
from stages.tokens.vocabulary import pad_vocabulary

LENGTH, ROWS, STEPS = 16, 4, 3


@pytest.fixture
def packed(run_stage, make_documents):
    """A tokenizer, and shards that it packed."""
    rows = [{"source": "web", "text": f"the cat {n} sat on mat {n % 7}"} for n in range(200)]
    documents = [make_documents([rows])]
    settings = {"vocabulary_size": 300, "held_share": 0.0}
    tokenizer = [(run_stage(TokenizerStage, settings, {"documents": documents}), "tokenizer")]
    shards = run_stage(
        Pack,
        {"sequence_length": LENGTH, "held_out_share": 0.1},
        {"documents": documents, "tokenizer": tokenizer},
    )
    return {
        "train": [(shards, "train")],
        "held_out": [(shards, "held_out")],
        "tokenizer": tokenizer,
    }


@pytest.mark.parametrize("name", ["qwen3", "deepseek_v3"])
def test_a_release_is_imported_and_trained_on(name, packed, run_stage, snapshot, read_input):
    tokenizer = read_input(*packed["tokenizer"][0])
    rows = pad_vocabulary(tokenizer.read_json("training.json")["vocabulary_size"], 64)
    config = SHAPES[name].model_copy(update={"vocabulary_size": rows})
    own = {**tokenizer.read_json("tokenizer_config.json"), "chat_template": "{{ 'its own' }}"}
    files = model_folder(config, read_tokenizer(tokenizer), own, "float32")
    files["model.safetensors"] = save(to_weights(Decoder(config, seed=4)))
    given = {"snapshot": snapshot(files), "tokenizer": packed["tokenizer"]}
    start = run_stage(ImportModel, {}, given)
    phase = {
        "tokens": LENGTH * ROWS * STEPS,
        "sequences_per_batch": ROWS,
        "learning_rate": {"peak": 1e-3},
    }
    made = run_stage(
        Pretrain,
        {"phases": [phase], "precision": "fp32"},
        {**packed, "checkpoint": [(start, "checkpoint")]},
        {"device": "cpu", "threads": 1},
    )
    before = read_model(read_input(start, "checkpoint"))
    after = read_model(read_input(made, "checkpoint"))
    assert after.config == before.config
    moved = [
        not torch.equal(one, other)
        for one, other in zip(before.parameters(), after.parameters(), strict=True)
    ]
    assert all(moved)
    kept = [read_input(made, "checkpoint").read_json(name) for name in (TOKENIZER_CONFIG, STATE)]
    assert kept[0]["chat_template"] == "{{ 'its own' }}"
    assert kept[1]["chat_template"]["source"].startswith("snapshot ")


def test_without_the_tokenizer_that_packed_the_shards_training_is_refused(
    packed, run_stage, snapshot, folder
):
    start = run_stage(ImportModel, {}, {"snapshot": snapshot(folder())})
    with pytest.raises(IngotError, match=r"checkpoint: .*tokenizer"):
        run_stage(
            Pretrain,
            {"phases": [{"tokens": 64, "sequences_per_batch": 4, "learning_rate": {"peak": 1e-3}}]},
            {**packed, "checkpoint": [(start, "checkpoint")]},
            {"device": "cpu"},
        )
