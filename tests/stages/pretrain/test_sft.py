"""The sft stage: pretraining on packed conversations by its own defaults."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load

from artifacts_schema.errors import InputError, UsageError
from stages.engine.protocol import Upstream
from stages.examples.messages import message
from stages.model.files import read_model
from stages.pack.stage import PackChat
from stages.pretrain.config import PhaseConfig, SftConfig
from stages.pretrain.plan import clock_of_run
from stages.pretrain.stage import Sft
from stages.training.losses import weighted_sum
from stages.training.run_plan import check_adapter_layout
from stages.training.sample_clock import clock_batch
from stages.training.token_shards import IGNORED, TokenShards

LENGTH = 128
SHAPE = {"width": 32, "layers": 2, "heads": 2, "kv_heads": 1, "context": LENGTH}
COLOURS = ["the cat", "sat on a", "mat", "and a dog", "ran far"]
RATE = {"peak": 1e-2, "warmup_share": 0.2, "decay": "linear"}


def conversation(number, weight=None):
    return {
        "conversation_id": f"{number:032x}",
        "source": "ab"[number % 2],
        "messages": [
            message("user", COLOURS[number % 5]),
            message("assistant", COLOURS[number % 4], weight=weight),
        ],
        "tools": None,
        "metadata": "{}",
    }


@pytest.fixture
def sft(run_stage, given, packed, pretrain, read_input):
    """`sft(execution, **config)` → a run of the stage, from a model of random weights."""
    text = packed(sequence_length=LENGTH, held_out_share=0)
    start = pretrain(
        text,
        model=SHAPE,
        phases=[{"tokens": LENGTH, "sequences_per_batch": 1, "learning_rate": RATE}],
    )
    shards = run_stage(
        PackChat,
        {"sequence_length": LENGTH, "held_out_share": 0.2},
        {
            "conversations": [
                given("conversations", {"0.parquet": [conversation(i) for i in range(60)]})
            ],
            "tokenizer": text["tokenizer"],
        },
    )

    def run(execution=None, train=((shards, "train"),), **config):
        inputs = {
            "checkpoint": [(start, "checkpoint")],
            "train": [*train],
            "held_out": [(shards, "held_out")],
            "tokenizer": text["tokenizer"],
        }
        phase = {"epochs": 2, "sequences_per_batch": 2, "learning_rate": RATE}
        config = {"phases": [phase], "precision": "fp32", "held_out_every": 3, **config}
        how = {"device": "cpu", "threads": 1, "micro_batch": 2, "checkpoint_every": 2}
        how = {**how, "preflight": "off", "tensorboard": False, **(execution or {})}
        return run_stage(Sft, config, inputs, how)

    def pack(rows):
        return run_stage(
            PackChat,
            {"sequence_length": LENGTH, "held_out_share": 0.0},
            {
                "conversations": [given("conversations", {"0.parquet": rows})],
                "tokenizer": text["tokenizer"],
            },
        )

    run.text, run.shards, run.pack = text["train"], shards, pack
    run.start = read_input(start, "checkpoint")
    return run


def test_it_learns_the_answers_in_so_many_epochs(sft, read_input, read_table):
    rate = {"epochs": 8, "sequences_per_batch": 2, "learning_rate": RATE}
    manifest = sft(phases=[rate])
    sources = read_input(sft.shards, "train").read_json("shards.json")["sources"]
    sequences = sum(one["sequences"] for one in sources.values())
    metrics = read_table(manifest, "training_run", "metrics.parquet")
    assert metrics.num_rows == pytest.approx(8 * sequences / 2, abs=1)
    losses = [
        row["loss"]
        for row in read_table(manifest, "training_run", "held_out.parquet").to_pylist()
        if row["source"] == "all"
    ]
    assert losses[-1] < losses[0] / 2
    account = read_input(manifest, "training_run").read_json("run.json")
    assert all(one["epochs"] == pytest.approx(8, rel=0.1) for one in account["sources"].values())
    state = read_input(manifest, "checkpoint").read_json("state.json")
    assert state["chat_template"]["source"] == "stage sft"


def test_epochs_of_a_mixture_are_those_of_the_source_that_is_read_most_often(sft, read_input):
    phase = {
        "epochs": 3,
        "sequences_per_batch": 1,
        "mixture": {"a": 0.45, "b": 0.45, "web": 0.1},
        "learning_rate": RATE,
    }
    manifest = sft(train=[(sft.shards, "train"), *sft.text], phases=[phase])
    account = read_input(manifest, "training_run").read_json("run.json")["sources"]
    most = max(one["epochs"] for one in account.values())
    assert most == pytest.approx(3, rel=0.1)
    assert 0 < account["web"]["epochs"] < most


@pytest.mark.parametrize("visit", [1, 3])
def test_killed_and_started_again_it_commits_the_same_bytes(sft, store, killed_at, visit):
    whole = sft()
    store.backend.remove(f"artifacts/sft/{whole.key}.json")
    with killed_at("checkpoint files written", visit):
        sft()
    assert {n: o.digest for n, o in sft().outputs.items()} == {
        n: o.digest for n, o in whole.outputs.items()
    }


@pytest.mark.parametrize("method", ["lora", "dora"])
def test_an_adapter_alone_is_trained_and_the_checkpoint_has_it_merged(sft, read_input, method):
    pytest.importorskip("peft")
    phase = {"epochs": 8, "sequences_per_batch": 2, "learning_rate": RATE}
    manifest = sft(adapter={"method": method, "rank": 4, "targets": ["q_proj"]}, phases=[phase])
    checkpoint = read_input(manifest, "checkpoint")
    before, after = (load(one.read_bytes("model.safetensors")) for one in (sft.start, checkpoint))
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed == {f"blocks.{layer}.attention.query.weight" for layer in (0, 1)}
    # Of rank 4, or but for the length of rows.
    change = after["blocks.0.attention.query.weight"] - before["blocks.0.attention.query.weight"]
    if method == "lora":
        assert torch.linalg.matrix_rank(change, rtol=1e-4) <= 4
    assert checkpoint.read_json("adapter_config.json")["use_dora"] == (method == "dora")
    assert not checkpoint.has("optimizer.safetensors")


def test_an_adapter_that_was_killed_has_the_same_bytes(sft, store, killed_at):
    pytest.importorskip("peft")
    adapter = {"method": "dora", "rank": 2}
    whole = sft(adapter=adapter)
    store.backend.remove(f"artifacts/sft/{whole.key}.json")
    with killed_at("checkpoint files written", 2):
        sft(adapter=adapter)
    assert {n: o.digest for n, o in sft(adapter=adapter).outputs.items()} == {
        n: o.digest for n, o in whole.outputs.items()
    }


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_adapter_beside_four_bits_that_was_killed_has_the_same_bytes(
    sft, store, killed_at, read_input, precision
):
    pytest.importorskip("peft")
    pytest.importorskip("bitsandbytes")
    settings = {"adapter": {"rank": 2, "quantised": "nf4"}, "precision": precision}
    whole = sft(**settings)
    store.backend.remove(f"artifacts/sft/{whole.key}.json")
    with killed_at("checkpoint files written", 2):
        sft(**settings)
    again = sft(**settings)
    assert {n: o.digest for n, o in again.outputs.items()} == {
        n: o.digest for n, o in whole.outputs.items()
    }
    weights = load(read_input(again, "checkpoint").read_bytes("model.safetensors"))
    before = load(sft.start.read_bytes("model.safetensors"))
    assert {n: (w.shape, w.dtype) for n, w in weights.items()} == {
        n: (w.shape, w.dtype) for n, w in before.items()
    }
    assert torch.equal(weights["embedding.weight"], before["embedding.weight"])
    assert whole.counts["training_steps"] > 2


def test_four_bits_on_ranks_or_with_averages_are_refused():
    adapted = SftConfig.parse({"adapter": {"quantised": "nf4"}}, where="sft")
    with pytest.raises(UsageError, match="matrices in four bits are for one process"):
        Sft.check_layout(adapted, Sft.Execution(layout={"data": 2}), {})
    averaged = SftConfig.parse({**adapted.plain(), "averages": {"ema": 0.9}}, where="sft")
    with pytest.raises(UsageError, match="no averages of matrices in four bits"):
        Sft.check_plan(averaged, {"checkpoint": [Upstream("base", "checkpoint", "checkpoint")]})


def test_an_adapter_beside_nothing_is_refused():
    adapted = SftConfig.parse({"adapter": {}}, where="sft")
    with pytest.raises(UsageError, match="no input checkpoint to put an adapter beside"):
        Sft.check_plan(adapted, {})


@pytest.mark.parametrize("name", ["tensor", "pipeline", "context", "expert"])
def test_an_adapter_on_ranks_that_have_parts_of_matrices_is_refused(name):
    adapted = SftConfig.parse({"adapter": {}}, where="sft")
    # What the layout itself needs is checked elsewhere.
    with pytest.raises(UsageError, match="adapters are trained on data-parallel ranks") as refused:
        check_adapter_layout(adapted.adapter, Sft.Execution(layout={name: 2, "data": 2}).layout)
    assert refused.value.where == f"execution.layout.{name}"
    Sft.check_layout(adapted, Sft.Execution(layout={"data": 2, "shard": 2}), {})


def test_text_alone_is_refused(sft):
    with pytest.raises(InputError, match="none of the token shards holds conversations"):
        sft(train=sft.text)


def test_a_phase_has_tokens_or_epochs():
    for fields in ({}, {"tokens": 5, "epochs": 1.0}):
        with pytest.raises(UsageError):
            PhaseConfig.parse(fields, where="phase")
    ramp = {"epochs": 1.0, "sequences_per_batch": "0: 2, 100: 4"}
    with pytest.raises(UsageError, match="needs tokens"):
        PhaseConfig.parse(ramp, where="phase")
    assert SftConfig().phases[0].epochs == 2
    masked = SftConfig.parse({"objective": {"parts": [{"name": "masked"}]}}, where="sft")
    with pytest.raises(UsageError, match="token by token"):
        Sft.check_plan(masked, {})


def test_noise_on_embeddings_changes_training_alone(sft, read_input, read_table):
    """Held-out losses have none: that before the first step is the checkpoint's."""
    runs = [sft(), sft(embedding_noise=5.0), sft(embedding_noise=5.0, seed=1)]
    first = [read_table(run, "training_run", "held_out.parquet")["loss"][0].as_py() for run in runs]
    assert first[0] == first[1] == first[2]
    steps = [read_table(run, "training_run", "metrics.parquet").to_pylist() for run in runs]
    assert steps[0][0]["loss"] != steps[1][0]["loss"]
    assert steps[0][0]["loss"] == pytest.approx(steps[1][0]["loss"], rel=0.2)
    weights = [read_input(run, "checkpoint").read_bytes("model.safetensors") for run in runs]
    assert len(set(weights)) == 3


@pytest.mark.parametrize("visit", [1, 3])
def test_with_noise_a_killed_run_commits_the_same_bytes(sft, store, killed_at, visit):
    whole = sft(embedding_noise=5.0)
    store.backend.remove(f"artifacts/sft/{whole.key}.json")
    with killed_at("checkpoint files written", visit):
        sft(embedding_noise=5.0)
    again = sft(embedding_noise=5.0)
    assert {n: o.digest for n, o in again.outputs.items()} == {
        n: o.digest for n, o in whole.outputs.items()
    }


def test_noise_does_not_depend_on_micro_batches(sft, read_input):
    first, second = (
        load(
            read_input(sft({"micro_batch": size}, embedding_noise=15.0), "checkpoint").read_bytes(
                "model.safetensors"
            )
        )
        for size in (1, 2)
    )
    for name, weight in first.items():
        torch.testing.assert_close(second[name], weight, rtol=0, atol=1e-5)


# Weights of messages -----------------------------------------------------------------------------

WEIGHTS = [0.25, None, 0.5, 1.0, 0.1]


@pytest.fixture
def weighted(sft):
    """Packed conversations whose answers have several weights."""
    return sft.pack([conversation(n, WEIGHTS[n % 5]) for n in range(60)])


def test_the_loss_of_a_step_is_the_mean_by_weight(sft, weighted, read_input, read_table):
    """Sum of weight times -log p over the sum of weights, by a plain forward pass."""
    rows = 4
    phase = {"tokens": rows * LENGTH, "sequences_per_batch": rows, "learning_rate": RATE}
    manifest = sft(train=[(weighted, "train")], phases=[phase])
    (metrics,) = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    shards = TokenShards([read_input(weighted, "train")])
    clock = clock_of_run(
        SftConfig.parse(manifest.config, where="config"), shards.sequences, shards.lengths
    )
    batch = clock_batch(shards, clock, 1)
    model = read_model(sft.start)
    with torch.no_grad():
        logits = model(
            torch.from_numpy(batch.tokens_BL).long(),
            documents_BL=torch.from_numpy(batch.documents_BL),
        ).double()
    losses = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), torch.from_numpy(batch.targets_BL).flatten(), reduction="none"
    ).view(batch.targets_BL.shape)
    learnt = torch.from_numpy(batch.targets_BL != IGNORED)
    weights = torch.from_numpy(batch.weights_BL).double() * learnt
    assert len(set(weights[learnt].tolist())) == 4
    expected = (weights * losses).sum() / weights.sum()
    assert metrics["loss"] == pytest.approx(expected.item(), rel=1e-5)
    plain_mean = losses[learnt].mean().item()
    assert abs(metrics["loss"] - plain_mean) > 1e-4
    # By source losses are plain means over learnt tokens.
    parts = [(metrics[f"loss/{s}"], metrics[f"targets/{s}"]) for s in "ab"]
    assert sum(loss * n for loss, n in parts) / sum(n for _, n in parts) == pytest.approx(
        plain_mean, rel=1e-5
    )


def test_equal_weights_train_as_no_weights_do(sft, read_input):
    """A common factor cancels: the sum of weights is what the loss is divided by."""
    plain, half = (
        load(
            read_input(
                sft(train=[(sft.pack([conversation(n, w) for n in range(60)]), "train")]),
                "checkpoint",
            ).read_bytes("model.safetensors")
        )
        for w in (None, 0.5)
    )
    for name, tensor in plain.items():
        torch.testing.assert_close(half[name], tensor, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["plain", "weighted"])
def test_gradient_accumulation_4x1_2x2_1x4_is_equal(sft, weighted, read_input, read_table, kind):
    """Answers of several lengths and weights; the mean is over the step, not over micro-batches."""
    train = {"plain": sft.shards, "weighted": weighted}[kind]
    phase = {"tokens": 8 * 4 * LENGTH, "sequences_per_batch": 4, "learning_rate": RATE}
    runs = [
        sft({"micro_batch": size}, train=[(train, "train")], phases=[phase]) for size in (1, 2, 4)
    ]
    states = [load(read_input(one, "checkpoint").read_bytes("model.safetensors")) for one in runs]
    metrics = [read_table(one, "training_run", "metrics.parquet") for one in runs]
    for state, table in zip(states[1:], metrics[1:], strict=True):
        for name, tensor in states[0].items():
            torch.testing.assert_close(state[name], tensor, rtol=0, atol=1e-6)
        for column in ("loss", "grad_norm"):
            assert table[column].to_pylist() == pytest.approx(
                metrics[0][column].to_pylist(), abs=1e-6
            )


def test_a_mean_over_micro_batches_is_not_their_mean():
    """NLLs 2, 1, 3 and 4: 2.5, where a mean of means gives 3; by weights 1, 1, 1, ½: 16 / 7."""
    parts = [(torch.tensor([2.0, 1.0, 3.0]), None), (torch.tensor([4.0]), None)]
    assert sum(weighted_sum(*one) for one in parts) / 4 == 2.5
    weights = [torch.ones(3), torch.tensor([0.5])]
    summed = sum(weighted_sum(nll, w) for (nll, _), w in zip(parts, weights, strict=True))
    assert (summed / sum(w.sum() for w in weights)).item() == pytest.approx(16 / 7)


def test_weights_and_a_teacher_are_refused_together(sft, weighted):
    with pytest.raises(UsageError, match="divergence has no weights"):
        sft(train=[(weighted, "train")], distillation={"divergence": "forward"})
