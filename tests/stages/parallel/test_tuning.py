"""sft and dpo on several processes: as one process trains, and to the same bits after a kill."""

from __future__ import annotations

import json
import os
import signal
from contextlib import nullcontext

import numpy as np
import pytest
from chat_data import conversation, message, preference
from rank_runs import ranks, start, wait_for_checkpoint
from safetensors.torch import load

from artifacts_schema.errors import UsageError
from artifacts_schema.store.gc import remove_artifact
from stages.engine.protocol import Upstream
from stages.engine.runner import run_stage as run_spec
from stages.engine.spec import StageSpec
from stages.model.config import ModelShape
from stages.pack.stage import PackChat
from stages.parallel.layout import Layout
from stages.preference.stage import Dpo, Preference
from stages.pretrain.config import PretrainConfig, SftConfig
from stages.pretrain.stage import Sft
from stages.training.config import TrainingExecution

pytestmark = pytest.mark.faults

EXECUTION = {"device": "cpu", "threads": 1, "micro_batch": 2, "checkpoint_every": 2}
RATE = {"warmup_share": 0.2, "decay": "linear"}


def config_of(stage, batch=7, epochs=2, noise=0.0, adapter=None, **more):
    """No batch can be divided by the ranks, and dpo's last is smaller."""
    common = {"precision": "fp32", "held_out_every": 3, "adapter": adapter}
    if stage is Sft:
        phase = {"epochs": epochs, "sequences_per_batch": batch}
        phases = [{**phase, "learning_rate": {"peak": 1e-2, **RATE}}]
        return {**common, "phases": phases, "embedding_noise": noise}
    rate = {"peak": 1e-3, **RATE}
    own = {"held_out_share": 0.2, "epochs": epochs, "pairs_per_batch": batch}
    return {**common, **own, "learning_rate": rate, **more}


WEIGHTS = [0.25, None, 1.5, 0.1]
COLOURS = ["blue", "green", "red", "grey"]
LAYOUTS = {
    "copies": {"data": 2},
    "parts": {"shard": 2},
    "zero-1": {"shard": 2, "zero": 1},
    "zero-2": {"shard": 2, "zero": 2},
    "hybrid": {"data": 2, "shard": 2},
    "tensor": {"tensor": 2},
    "tensor-parts": {"tensor": 2, "shard": 2},
    "pipeline": {"pipeline": 2},
    "context": {"context": 2},
}


def data(stage, rows, weighted=False):
    """Conversations or pairs of very different lengths, or single answers."""
    answers = [" ".join(COLOURS[: i % 4 + 1]) for i in range(rows)]
    questions = ["what is the colour of " + "the man " * (i % 9) + str(i) for i in range(rows)]
    names = [f"{i:032x}" for i in range(rows)]
    if stage is Sft:
        return "conversations", [
            conversation(
                name,
                message("user", q),
                {**message("assistant", a), "weight": WEIGHTS[i % 4] if weighted else None},
                source="ab"[i % 2],
            )
            for i, (name, q, a) in enumerate(zip(names, questions, answers, strict=True))
        ]
    if stage is Preference:
        return "preferences", [
            {**preference(name, q, a, a), "rejected" if i % 3 else "chosen": []}
            for i, (name, q, a) in enumerate(zip(names, questions, answers, strict=True))
        ]
    return "preferences", [
        preference(name, q, a, "no " * (i % 3 + 1))
        for i, (name, q, a) in enumerate(zip(names, questions, answers, strict=True))
    ]


@pytest.fixture
def packed_inputs(run_stage, read_input, given):
    """`packed_inputs(checkpoint, conversations)` → inputs of sft, packed by its tokenizer."""

    def make(checkpoint, conversations):
        start = read_input(*checkpoint)
        size = start.read_json("model.json")["vocabulary_size"]
        files = {
            "tokenizer.json": start.read_bytes("tokenizer.json"),
            "tokenizer_config.json": start.read_json("tokenizer_config.json"),
            "training.json": {"vocabulary_size": size, "padded_vocabulary_size": size},
        }
        tokenizer = [given("tokenizer", files)]
        config = {"sequence_length": 64, "held_out_share": 0.2}
        roles = {"conversations": [conversations], "tokenizer": tokenizer}
        shards = run_stage(PackChat, config, roles)
        return {
            "checkpoint": [checkpoint],
            "train": [(shards, "train")],
            "held_out": [(shards, "held_out")],
            "tokenizer": tokenizer,
        }

    return make


@pytest.fixture
def tune(run_stage, store, packed_inputs, checkpoint, given, read_table, read_input):
    """`tune(stage, layout)` → manifest, its rows of metrics and of held-out losses, its weights.

    The artifact is removed, so that another layout makes it again.
    """
    inputs = {}

    def run(stage, layout=None, rows=24, weighted=False, **config):
        if (stage, weighted) not in inputs:
            role, content = data(stage, rows, weighted)
            made = given(role, {"00000.parquet": content})
            inputs[stage, weighted] = {"checkpoint": [checkpoint], role: [made]}
            if stage is Sft:
                inputs[stage, weighted] = packed_inputs(checkpoint, made)
        execution = {**EXECUTION, "layout": layout or {}}
        config = config_of(stage, **config)
        manifest = run_stage(stage, config, inputs[stage, weighted], execution)
        metrics, held_out = (
            read_table(manifest, "training_run", f"{name}.parquet").to_pydict()
            for name in ("metrics", "held_out")
        )
        output = read_input(manifest, "checkpoint")
        weights = load(output.read_bytes("model.safetensors"))
        if config.get("adapter"):
            weights |= load(output.read_bytes("adapter_model.safetensors"))
        remove_artifact(store, manifest)
        return manifest, metrics, held_out, weights

    return run


def assert_alike(one, other, tolerance=1e-5):
    """Whole numbers are equal, others within `tolerance`, column by column."""
    assert one.keys() == other.keys()
    for name, values in one.items():
        assert [value is None for value in values] == [value is None for value in other[name]]
        pairs = [pair for pair in zip(values, other[name], strict=True) if pair[0] is not None]
        for first, second in pairs:
            # A norm is no loss: it is compared by its size.
            scale = max(abs(second), 1) if name == "grad_norm" else 1
            allowed = tolerance * scale if isinstance(first, float) else 0
            assert first == second or abs(first - second) <= allowed, name


def matrix():
    for stage in (Sft, Dpo):
        for name, layout in LAYOUTS.items():
            if stage is Dpo and name in ("pipeline", "context"):
                continue
            marks = [] if (stage, name) == (Sft, "parts") else [pytest.mark.full]
            yield pytest.param(stage, layout, id=f"{stage.name}-{name}", marks=marks)


@pytest.mark.full
@pytest.mark.parametrize(("stage", "layout"), matrix())
def test_ranks_tune_as_one_process_does(tune, stage, layout):
    made, metrics, held_out, weights = tune(stage, layout)
    _, expected, expected_held_out, expected_weights = tune(stage)
    assert made.layout["ranks"] == {**Layout().plain(), **layout}
    assert_alike(metrics, expected)
    assert_alike(held_out, expected_held_out)
    assert len(held_out["loss"]) > 2
    assert weights.keys() == expected_weights.keys()
    for name, weight in expected_weights.items():
        assert np.allclose(weights[name], weight, atol=1e-4), name


def adapted_matrix():
    for stage in (Sft, Dpo):
        for method in ("lora", "dora"):
            for name in ("copies", "parts", "zero-1", "zero-2", "hybrid"):
                first_tier = (stage, method, name) in (
                    (Sft, "dora", "parts"),
                    (Dpo, "lora", "copies"),
                )
                marks = [] if first_tier else [pytest.mark.full]
                title = f"{stage.name}-{method}-{name}"
                yield pytest.param(stage, method, LAYOUTS[name], id=title, marks=marks)


@pytest.mark.parametrize(("stage", "method", "layout"), adapted_matrix())
def test_ranks_train_an_adapter_as_one_process_does(tune, stage, method, layout):
    pytest.importorskip("peft")
    adapter = {"method": method, "rank": 3, "alpha": 6}
    made, metrics, held_out, weights = tune(stage, layout, adapter=adapter)
    _, expected, expected_held_out, expected_weights = tune(stage, adapter=adapter)
    assert made.layout["ranks"] == {**Layout().plain(), **layout}
    assert_alike(metrics, expected)
    assert_alike(held_out, expected_held_out)
    assert weights.keys() == expected_weights.keys()
    assert any(".lora_A." in name for name in weights)
    for name, weight in expected_weights.items():
        assert np.allclose(weights[name], weight, atol=1e-4), name
    again, *_ = tune(stage, layout, adapter=adapter)
    assert {n: o.digest for n, o in again.outputs.items()} == {
        n: o.digest for n, o in made.outputs.items()
    }


@pytest.mark.parametrize("layout", [{"data": 2}, {"shard": 2}], ids=["copies", "parts"])
def test_ranks_see_the_noise_of_one_process(tune, layout):
    _, metrics, held_out, weights = tune(Sft, layout, noise=15.0)
    _, expected, _, expected_weights = tune(Sft, noise=15.0)
    assert_alike(metrics, expected)
    for name, weight in expected_weights.items():
        assert np.allclose(weights[name], weight, atol=1e-4), name
    _, quiet, quiet_held_out, _ = tune(Sft)
    assert quiet["loss"][0] != expected["loss"][0]
    assert quiet_held_out["loss"][0] == pytest.approx(held_out["loss"][0], abs=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "copies",
        *(
            pytest.param(one, marks=pytest.mark.full)
            for one in ("parts", "tensor", "pipeline", "context")
        ),
    ],
)
def test_ranks_weigh_messages_as_one_process_does(tune, name):
    _, metrics, held_out, weights = tune(Sft, LAYOUTS[name], weighted=True)
    _, expected, expected_held_out, expected_weights = tune(Sft, weighted=True)
    assert_alike(metrics, expected)
    assert_alike(held_out, expected_held_out)
    for parameter, weight in expected_weights.items():
        assert np.allclose(weights[parameter], weight, atol=1e-4), parameter
    _, plain, _, _ = tune(Sft)
    assert plain["loss"][0] != expected["loss"][0]


def test_ranks_judge_single_answers_as_one_process_does(tune):
    _, metrics, held_out, weights = tune(Preference, LAYOUTS["copies"], loss="kto")
    _, expected, expected_held_out, expected_weights = tune(Preference, loss="kto")
    assert_alike(metrics, expected)
    assert_alike(held_out, expected_held_out)
    for parameter, weight in expected_weights.items():
        assert np.allclose(weights[parameter], weight, atol=1e-4), parameter


@pytest.mark.parametrize("name", ["tensor", "pipeline", "context"])
def test_noise_is_not_divided_by_matrices_layers_or_tokens(name):
    shape = ModelShape(width=32, layers=2, heads=4, kv_heads=2, context=64)
    config = SftConfig(model=shape, embedding_noise=5.0)
    with pytest.raises(UsageError, match="embedding_noise") as caught:
        Sft.check_layout(config, TrainingExecution(layout={name: 2}), {})
    assert caught.value.where == f"execution.layout.{name}"
    Sft.check_layout(SftConfig(model=shape), TrainingExecution(layout={name: 2}), {})
    Sft.check_layout(config, TrainingExecution(layout={"data": 2, "shard": 2}), {})


@pytest.mark.parametrize("name", ["pipeline", "context"])
def test_pairs_are_not_divided_by_layers_or_tokens(name):
    with pytest.raises(UsageError) as caught:
        Dpo.ranks(TrainingExecution(layout={name: 2}))
    assert caught.value.where == f"execution.layout.{name}"
    assert Dpo.ranks(TrainingExecution(layout={"tensor": 2, "shard": 2})) == 4


def test_a_plan_refuses_a_layout_that_cannot_divide_the_model():
    """Two heads for keys and values, and 64 tokens: four ranks cannot share a matrix."""
    shape = ModelShape(width=32, layers=2, heads=4, kv_heads=2, context=64)
    config = PretrainConfig(model=shape)
    start = Upstream("base", "checkpoint", "checkpoint", config=config)
    for tensor, refused in ((2, False), (4, True)):
        with pytest.raises(UsageError) if refused else nullcontext() as caught:
            Dpo.check_layout(
                None, TrainingExecution(layout={"tensor": tensor}), {"checkpoint": [start]}
            )
        assert not refused or caught.value.where == "execution.layout.tensor"


@pytest.mark.full
@pytest.mark.parametrize("stage", [Sft, Dpo])
def test_fewer_rows_than_ranks(tune, stage):
    """One sequence, or pair, a step: three of four ranks read padding alone."""
    _, metrics, held_out, _ = tune(stage, {"shard": 4}, epochs=1, batch=1)
    _, expected, expected_held_out, _ = tune(stage, epochs=1, batch=1)
    assert held_out["loss"]
    assert_alike(metrics, expected)
    assert_alike(held_out, expected_held_out)


@pytest.mark.full
@pytest.mark.parametrize("stage", [Sft, Dpo])
def test_killed_and_resumed_at_the_same_layout_it_is_bit_equal(tune, store, stage, tmp_path):
    layout, more = {"shard": 2}, {"epochs": 12}
    whole, *_ = tune(stage, layout, **more)
    references = {role: list(ones) for role, ones in whole.inputs.items()}
    execution = {"workers": 1, **EXECUTION, "layout": layout}
    spec = StageSpec.make(stage, config_of(stage, **more), references, execution)
    assert spec.key == whole.key
    process = start(store, spec, tmp_path)
    wait_for_checkpoint(store, spec, process, 4)
    os.kill(ranks(store, spec)[1], signal.SIGKILL)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1, output
    assert "rank 1 died (SIGKILL)" in output
    again = run_spec(store, spec).manifest
    assert {n: o.digest for n, o in again.outputs.items()} == {
        n: o.digest for n, o in whole.outputs.items()
    }
    assert json.dumps(again.layout, sort_keys=True) == json.dumps(whole.layout, sort_keys=True)
