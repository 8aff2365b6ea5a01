"""Optimizers, precisions, averages and memory savings through the whole stage."""

import math

import pytest
import torch
from safetensors.torch import load_file

from artifacts_schema.errors import UsageError
from stages.training.optimizer import LossScaler

SETTINGS = {
    "muon": {"optimizer": {"name": "muon", "skip_limit": 0}},
    "fp16": {"precision": "fp16"},
    "fp8": {"precision": "fp8"},
    "averages": {"averages": {"ema": 0.7, "last": 3, "every": 2, "output": "mean"}},
}


@pytest.fixture
def inputs(packed):
    return packed()


def digests(manifest):
    return {name: output.digest for name, output in manifest.outputs.items()}


def losses(manifest, read_table):
    return read_table(manifest, "training_run", "metrics.parquet")["loss"].to_pylist()


def tensors(read_input, manifest, name):
    return load_file(read_input(manifest, "checkpoint").local_path(name))


@pytest.mark.full
@pytest.mark.parametrize("name", SETTINGS)
def test_killed_and_started_again_it_commits_the_same_bytes(
    inputs, pretrain, store, killed_at, read_table, name
):
    """Momenta, loss scale and averages are all in the rolling checkpoint."""
    whole = pretrain(inputs, **SETTINGS[name])
    learnt = losses(whole, read_table)
    assert learnt[0] == pytest.approx(math.log(300), rel=0.03)
    assert learnt[-1] < learnt[0] - 0.5
    store.backend.remove(f"artifacts/pretrain/{whole.key}.json")
    with killed_at("checkpoint written", 3):
        pretrain(inputs, **SETTINGS[name])
    assert digests(pretrain(inputs, **SETTINGS[name])) == digests(whole)


@pytest.mark.parametrize("mode", ["full", "cheap"])
def test_computing_activations_again_changes_no_byte(inputs, pretrain, store, mode):
    plain = pretrain(inputs)
    store.backend.remove(f"artifacts/pretrain/{plain.key}.json")
    again = pretrain(inputs, {"activation_checkpointing": mode})
    assert again.key == plain.key
    assert digests(again) == digests(plain)


def test_float16_learns_as_float32_does(inputs, pretrain, read_table):
    """The only difference is rounding to 11 bits in matrix products."""
    half = losses(pretrain(inputs, precision="fp16"), read_table)
    assert half == pytest.approx(losses(pretrain(inputs), read_table), rel=2e-3)


def test_overflows_of_a_loss_scale_that_is_too_large_are_no_trouble(
    inputs, pretrain, read_table, monkeypatch
):
    """The scale halves until gradients are finite; the run has no update to skip otherwise."""
    monkeypatch.setattr(LossScaler, "FIRST", 2.0**22)
    manifest = pretrain(inputs, precision="fp16")
    metrics = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    assert metrics[0]["skipped"]
    overflows = sum(row["skipped"] for row in metrics)
    assert overflows < 5
    assert metrics[-1]["loss"] < metrics[0]["loss"] - 0.3
    events = read_table(manifest, "training_run", "events.parquet").to_pylist()
    assert [event["kind"] for event in events] == ["loss_scale"] * overflows


def test_averages_change_no_update_and_the_output_is_the_one_asked_for(
    inputs, pretrain, read_input, read_table
):
    plain, averaged = pretrain(inputs), pretrain(inputs, **SETTINGS["averages"])
    assert losses(plain, read_table) == losses(averaged, read_table)
    weights = tensors(read_input, plain, "model.safetensors")
    output = tensors(read_input, averaged, "model.safetensors")
    kept = tensors(read_input, averaged, "averages.safetensors")
    assert output.keys() == weights.keys()
    for name, tensor in output.items():
        assert torch.equal(tensor, kept[f"mean.{name}"])
        assert not torch.equal(tensor, weights[name])
    assert int(kept["updates.mean"]) == 3
    assert int(kept["updates.ema"]) == 9


def test_the_rate_warms_up_by_tokens_follows_the_batch_and_drops(inputs, pretrain, read_table):
    """Sequences of 32 tokens: 64 tokens a step for two steps, then 256 (rate √4), a drop at half
    of the 6 steps."""
    phase = {
        "tokens": 64 * 2 + 256 * 4,
        "sequences_per_batch": "0: 2, 128: 8",
        "learning_rate": {
            "peak": 1e-3,
            "warmup_tokens": 128,
            "decay": "multi-step",
            "drops": [[0.5, 0.25]],
            "batch_scaling": "sqrt",
        },
    }
    metrics = read_table(pretrain(inputs, phases=[phase]), "training_run", "metrics.parquet")
    assert metrics["learning_rate"].to_pylist() == [5e-4, 1e-3, 2e-3, 5e-4, 5e-4, 5e-4]


def test_a_run_from_a_checkpoint_decays_from_the_rate_that_it_had(inputs, pretrain, read_table):
    """Steps of 4 sequences of 32 tokens: three at 0.01, then three that decay from there."""
    stable = {"tokens": 384, "sequences_per_batch": 4, "learning_rate": {"peak": 0.01}}
    decay = {"tokens": 384, "sequences_per_batch": 4, "learning_rate": {"decay": "linear"}}
    first = pretrain(inputs, phases=[stable])
    given = {**inputs, "checkpoint": [(first, "checkpoint")]}
    second = pretrain(given, phases=[decay], model={}, optimizer_state="keep")
    rates = read_table(second, "training_run", "metrics.parquet")["learning_rate"].to_pylist()
    assert rates == pytest.approx([0.01, 0.01 * 2 / 3, 0.01 / 3])


def test_groups_that_do_not_fit_the_model_are_refused_before_the_first_step(inputs, pretrain):
    with pytest.raises(UsageError, match=r"optimizer\.groups\.0: 'layers\.\*'"):
        pretrain(inputs, optimizer={"groups": [{"match": "layers.*"}]})


def test_more_snapshots_than_steps_are_refused(inputs, pretrain):
    with pytest.raises(UsageError, match="do not fit in a run of 9"):
        pretrain(inputs, averages={"last": 2, "every": 9})
