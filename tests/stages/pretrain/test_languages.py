"""A run over documents in several languages: what it tells of each, from its own losses."""

import json

import pytest

from stages.training.token_shards import TokenShards

SPOKEN = ("de", None, "en", "de", "en", "en")
NAMES = {"de", "", "en"}
OBJECTIVES = [
    [{"name": "causal"}],
    [{"name": "span_corruption", "share": 0.5}, {"name": "prefix", "share": 0.5}],
]


@pytest.fixture
def inputs(packed):
    return packed(languages=SPOKEN)


def told(manifest, read_table, read_input):
    metrics = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    held_out = read_table(manifest, "training_run", "held_out.parquet").to_pylist()
    return (
        metrics,
        held_out,
        json.loads(read_input(manifest, "training_run").read_bytes("run.json")),
    )


@pytest.mark.full
@pytest.mark.parametrize("parts", OBJECTIVES)
def test_languages_sum_to_sources_in_each_step(inputs, pretrain, read_table, read_input, parts):
    manifest = pretrain(inputs, objective={"parts": parts})
    metrics, _, account = told(manifest, read_table, read_input)
    for row in metrics:
        for what in ("targets", "tokens"):
            spoken = {name: row[f"language_{what}/{name}"] for name in NAMES}
            assert sum(spoken.values()) == row[f"{what}/code"] + row[f"{what}/web"]
        total = sum(
            row[f"language_loss/{name}"] * row[f"language_targets/{name}"]
            for name in NAMES
            if row[f"language_targets/{name}"]
        )
        assert total / row["targets"] == pytest.approx(row["loss"], rel=1e-5)
    assert account["languages"].keys() == NAMES
    for name, one in account["languages"].items():
        assert one["realised_tokens"] == sum(row[f"language_tokens/{name}"] for row in metrics)


@pytest.mark.full
def test_what_was_read_of_a_language_is_that_of_its_documents(
    inputs, pretrain, read_table, read_input
):
    """One epoch, each sequence once: tokens by language are those of the index tables."""
    shards = TokenShards([read_input(*inputs["train"][0])])
    every = sum(shards.sequences.values())
    phase = {"tokens": every * 32, "sequences_per_batch": 1, "learning_rate": {"peak": 1e-3}}
    manifest = pretrain(inputs, phases=[phase], held_out_every=every, max_held_out_sequences=4)
    metrics, _, account = told(manifest, read_table, read_input)
    assert len(metrics) == every
    for name, one in account["languages"].items():
        held = sum(shards.languages[source].get(name, 0) for source in shards.sources)
        assert one["available_tokens"] == one["realised_tokens"] == held


def test_held_out_losses_of_languages_are_parts_of_that_of_all(
    inputs, pretrain, read_table, read_input
):
    manifest = pretrain(inputs, max_held_out_sequences=10_000)
    _, rows, account = told(manifest, read_table, read_input)
    shards = TokenShards([read_input(*inputs["held_out"][0])])
    targets = dict.fromkeys(NAMES, 0)
    for number, source in enumerate(shards.sources):
        count = shards.sequences[source]
        batch = shards.batch([number] * count, range(count))
        pieces = shards.documents_of([number] * count, range(count))
        for row, found in enumerate(pieces):
            assert len(found) == batch.documents_BL[row].max() + 1
            for piece in found:
                targets[piece.language or ""] += piece.length - 1
    for step in {row["training_step"] for row in rows}:
        now = [row for row in rows if row["training_step"] == step]
        (whole,) = (r["loss"] for r in now if r["source"] == "all" and r["language"] is None)
        spoken = {row["language"]: row["loss"] for row in now if row["language"] is not None}
        assert spoken.keys() == NAMES
        parts = sum(spoken[name] * targets[name] for name in NAMES)
        assert parts / sum(targets.values()) == pytest.approx(whole)
    assert account["unigram_bits_per_byte_by_language"].keys() == NAMES


def test_of_one_language_nothing_is_told_apart(packed, pretrain, read_table, read_input):
    manifest = pretrain(packed(languages=("en",)))
    metrics, rows, account = told(manifest, read_table, read_input)
    assert not [name for name in metrics[0] if name.startswith("language")]
    assert {row["language"] for row in rows} == {None}
    assert account["unigram_bits_per_byte_by_language"] == {}
    read = sum(row["tokens/code"] + row["tokens/web"] for row in metrics)
    assert account["languages"]["en"]["realised_tokens"] == read


def test_killed_half_way_it_tells_the_same_of_every_language(inputs, pretrain, store, killed_at):
    whole = pretrain(inputs)
    store.backend.remove(f"artifacts/pretrain/{whole.key}.json")
    with killed_at("checkpoint written", 2):
        pretrain(inputs)
    again = pretrain(inputs)
    for name, output in whole.outputs.items():
        assert again.outputs[name].digest == output.digest
