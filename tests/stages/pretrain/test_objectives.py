"""Objectives through the whole stage: what is learnt, told, resumed and refused."""

import math

import pytest

from artifacts_schema.errors import UsageError

NAMES = ("masked", "prefix", "span_corruption")
MIXED = [{"name": name, "share": 0.25} for name in ("causal", *NAMES)]


@pytest.mark.parametrize("name", NAMES)
def test_an_objective_is_learnt_and_measured_on_held_out_data(packed, pretrain, read_table, name):
    manifest = pretrain(packed(), objective={"parts": [{"name": name}], "z_loss": 1e-4})
    metrics = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    held_out = read_table(manifest, "training_run", "held_out.parquet").to_pylist()
    assert [row["training_step"] for row in metrics] == list(range(1, 10))
    everything = [row for row in held_out if row["source"] == "all"]
    assert everything[-1]["loss"] < everything[0]["loss"] - 0.1
    assert everything[-1]["bits_per_byte"] < everything[0]["bits_per_byte"]
    for row in metrics:
        assert 0 < row["targets"] < row["tokens/code"] + row["tokens/web"]
        parts = sum((row[f"loss/{s}"] or 0) * row[f"targets/{s}"] for s in ("code", "web"))
        assert parts / row["targets"] == pytest.approx(row["loss"], rel=1e-6)
        assert 0 < row["z_loss"] < 1e-2
    # log Z of the first logits, which are near 0, is ln 320.
    assert metrics[0]["z_loss"] == pytest.approx(1e-4 * math.log(320) ** 2, rel=0.01)


def test_killed_in_a_mixture_it_commits_the_same_bytes(packed, pretrain, store, killed_at):
    inputs, objective = packed(), {"parts": MIXED}
    whole = pretrain(inputs, objective=objective)
    store.backend.remove(f"artifacts/pretrain/{whole.key}.json")
    with killed_at("checkpoint written", 3):
        pretrain(inputs, objective=objective)
    again = pretrain(inputs, objective=objective)
    assert {name: one.digest for name, one in again.outputs.items()} == {
        name: one.digest for name, one in whole.outputs.items()
    }


def test_the_default_objective_changes_no_key(packed, pretrain):
    inputs = packed()
    assert pretrain(inputs).key == pretrain(inputs, objective={"z_loss": 0.0}).key
    assert pretrain(inputs).key != pretrain(inputs, objective={"z_loss": 1e-4}).key


def test_too_few_reserved_tokens_are_refused_before_the_first_step(packed, pretrain):
    """A document of 256 tokens has up to 12 spans, the tokenizer 8 reserved tokens."""
    inputs = packed(sequence_length=256)
    model = {"width": 32, "layers": 1, "heads": 2, "kv_heads": 1, "context": 256}
    with pytest.raises(UsageError, match=r" 13 .* 8 .*reserved_tokens: 13"):
        pretrain(inputs, model=model, objective={"parts": [{"name": "span_corruption"}]})
