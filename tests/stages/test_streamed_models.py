"""Models pass through stages a tensor or a block at a time, and to ranks in parts.

Measured: the memory that a process takes, of a model of 82 MB, but for pages of mapped files.
"""

from __future__ import annotations

import importlib
import json

import pytest
import torch
from peak_memory import Sampled, peak_growth
from ranks import run_ranks
from safetensors.torch import save

from stages.engine.provenance import code_digest
from stages.export.stage import Export
from stages.import_model.stage import ImportModel
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import model_files, read_model
from stages.model.huggingface.families import to_config, to_weights
from stages.parallel.layout import Layout
from stages.parallel.ranks import CPU, Ranks
from stages.tokenizer.training import transformers_config
from stages.training.config import TrainingExecution
from stages.training.runtime import Runtime, place
from stages.training.start import read_start

LAYERS = 24
SHAPE = {"width": 256, "layers": LAYERS, "heads": 8, "kv_heads": 8, "mlp_width": 768}
SIZE = LAYERS * 4 * (4 * 256 * 256 + 3 * 256 * 768)
"""Bytes of the matrices of all blocks, which are nearly all of the model."""


@pytest.fixture(scope="module")
def model(tokenizer) -> Decoder:
    model = Decoder(ModelConfig(vocabulary_size=tokenizer.get_vocab_size(), context=128, **SHAPE))
    size = sum(4 * one.numel() for one in model.parameters())
    assert size == pytest.approx(SIZE, rel=0.01)
    return model


@pytest.fixture
def large(given, model, tokenizer):
    """The model as a checkpoint."""
    files = {
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": transformers_config("llama-bpe"),
        "state.json": {},
    }
    return given("checkpoint", {**model_files(model), **files})


def test_what_is_measured_is_what_is_taken(large, read_input):
    """A model that is read whole takes its size."""
    growth = peak_growth(read_model, read_input(*large))
    assert 0.95 < growth / SIZE < 1.3


def test_an_import_takes_the_memory_of_few_tensors(run_stage, snapshot, model):
    config = json.dumps(to_config(model.config, bos=0, eos=1, pad=2)).encode()
    files = snapshot({"config.json": config, "model.safetensors": save(to_weights(model))})
    assert peak_growth(run_stage, ImportModel, {}, {"snapshot": files}) < 0.25 * SIZE


@pytest.mark.parametrize("dtype", ["keep", pytest.param("bfloat16", marks=pytest.mark.full)])
def test_a_release_takes_the_memory_of_few_blocks(run_stage, large, monkeypatch, dtype):
    """But for the process that loads it as any user of the release does, which is not this one."""
    # Modules, and the digest of their syntax, take memory too: before it is measured.
    for name in ("card", "folder", "provenance"):
        importlib.import_module(f"stages.export.{name}")
    code_digest(Export)
    monkeypatch.setattr("stages.export.verify.run_script", _findings)
    arguments = Export, {"dtype": dtype}, {"checkpoint": [large]}
    # Five of 24 blocks; in a process that ran thousands of tests the allocator took seven once.
    assert peak_growth(run_stage, *arguments) < 0.33 * SIZE


def _findings(release, probes, register):
    """What the process that loads a release reports where all is well."""
    config = json.loads((release / "config.json").read_bytes())
    with torch.device("meta"):
        parameters = sum(
            one.numel()
            for one in Decoder(
                ModelConfig(vocabulary_size=config["vocab_size"], **SHAPE)
            ).parameters()
        )  # fmt: skip
    return {
        "model_class": config["architectures"][0], "parameters": parameters,
        "dtype": config["dtype"], "ids_equal": True, "chat_equal": True, "generates": True,
        "ingot_absent": True, "logit_difference": 0.0, "transformers": "", "torch": "",
        "written": [], "margin": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    "layout",
    [
        pytest.param(Layout(shard=4), id="parts"),
        pytest.param(Layout(pipeline=4), id="layers", marks=pytest.mark.full),
        pytest.param(Layout(tensor=4), id="matrices", marks=pytest.mark.full),
    ],
)
def test_a_rank_takes_the_memory_of_its_part(large, read_input, layout):
    for growth in run_ranks(4, _start, read_input(*large), layout):
        assert 0.95 / 4 < growth / SIZE < 1.5 / 4


def _start(checkpoint, layout):
    """How much memory this rank takes for the start of a run."""
    ranks = Ranks.from_group(CPU, layout)
    with Sampled() as sampled:
        model, weights = read_start(checkpoint, ranks)
        runtime = Runtime(CPU, "fp32", ranks=ranks, parallel=layout)
        place(model, TrainingExecution(), runtime, prefixes=False, weights=weights)
    return sampled.growth
