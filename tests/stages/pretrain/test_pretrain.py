"""The pretrain stage through the engine, on shards that the tokenizer and pack stages made."""

import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from artifacts_schema.errors import InputError, Stopped, UsageError
from stages.model.files import read_model
from stages.pretrain.config import PretrainConfig
from stages.pretrain.plan import make_plan
from stages.pretrain.task import quotas
from stages.training.sample_clock import clock_batch
from stages.training.token_shards import IGNORED, TokenShards, spread


@pytest.fixture
def inputs(packed):
    return packed()


def run_json(read_input, manifest):
    return read_input(manifest, "training_run").read_json("run.json")


def digests(manifest):
    return {name: output.digest for name, output in manifest.outputs.items()}


def every_batch(shards):
    """All sequences, a batch for each source."""
    for source, name in enumerate(shards.sources):
        numbers = np.arange(shards.sequences[name])
        yield shards.batch(np.full(len(numbers), source), numbers)


def test_it_trains_measures_and_accounts(inputs, pretrain, read_input, read_table):
    manifest = pretrain(inputs)
    metrics = read_table(manifest, "training_run", "metrics.parquet")
    held_out = read_table(manifest, "training_run", "held_out.parquet")
    account = run_json(read_input, manifest)

    assert metrics["training_step"].to_pylist() == list(range(1, 10))
    assert metrics["phase"].to_pylist() == [0] * 6 + [1] * 3
    assert metrics["loss"][0].as_py() == pytest.approx(math.log(300), rel=0.03)
    assert metrics["loss"][-1].as_py() < metrics["loss"][0].as_py() - 0.5

    everything = [row for row in held_out.to_pylist() if row["source"] == "all"]
    assert [row["training_step"] for row in everything] == [0, 4, 8, 9]
    assert everything[-1]["bits_per_byte"] < everything[0]["bits_per_byte"]
    assert {row["source"] for row in held_out.to_pylist()} == {"all", "code", "web"}

    assert [phase["training_steps"] for phase in account["phases"]] == [6, 3]
    sources = account["sources"]
    assert sum(one["planned_positions"] for one in sources.values()) == 9 * 4 * 32
    assert sum(one["realised_tokens"] for one in sources.values()) == metrics["tokens"][-1].as_py()
    # The first phase is by size, three quarters of the second are code; both end inside a block.
    by_phase = [one["planned_sequences_by_phase"] for one in (sources["code"], sources["web"])]
    assert [sum(both) for both in zip(*by_phase, strict=True)] == [24, 12]
    sizes = [one["available_sequences"] for one in (sources["code"], sources["web"])]
    assert abs(by_phase[0][0] - 24 * sizes[0] / sum(sizes)) <= 3
    assert abs(by_phase[0][1] - 9) <= 3
    languages = account["languages"].values()
    for name in ("available_tokens", "realised_tokens"):
        assert sum(one[name] for one in languages) == sum(one[name] for one in sources.values())
    assert manifest.layout["threads"] == 1
    assert manifest.layout["device"] == "cpu"


def test_loss_by_source_adds_up_to_the_loss(inputs, pretrain, read_table):
    for row in read_table(pretrain(inputs), "training_run", "metrics.parquet").to_pylist():
        parts = sum((row[f"loss/{s}"] or 0) * row[f"targets/{s}"] for s in ("code", "web"))
        assert parts / row["targets"] == pytest.approx(row["loss"], rel=1e-6)


def test_tokens_by_source_are_those_that_the_sample_clock_names(
    inputs, pretrain, tiny, read_input, read_table
):
    shards = TokenShards([read_input(*inputs["train"][0])])
    clock = make_plan(PretrainConfig.parse(tiny, where="test"), shards).clock
    for row in read_table(pretrain(inputs), "training_run", "metrics.parquet").to_pylist():
        batch = clock_batch(shards, clock, row["training_step"])
        for source, name in enumerate(shards.sources):
            chosen = batch.sources_B == source
            assert row[f"tokens/{name}"] == (batch.documents_BL[chosen] >= 0).sum()
            assert row[f"targets/{name}"] == (batch.targets_BL[chosen] != IGNORED).sum()


def test_the_checkpoint_is_the_model_that_was_measured_last(
    inputs, pretrain, read_input, read_table
):
    """Held-out loss from the committed weights, by a plain sum over the held-out shards."""
    manifest = pretrain(inputs, max_held_out_sequences=10_000)
    model = read_model(read_input(manifest, "checkpoint"))
    shards = TokenShards([read_input(*inputs["held_out"][0])])
    losses, targets, text_nats, size = 0.0, 0, 0.0, 0
    for batch in every_batch(shards):
        with torch.no_grad():
            logits = model(
                torch.from_numpy(batch.tokens_BL),
                documents_BL=torch.from_numpy(batch.documents_BL),
            )
        wanted = torch.from_numpy(batch.targets_BL)
        nats = -torch.log_softmax(logits.double(), -1)
        for row, column in (wanted != IGNORED).nonzero().tolist():
            token = int(wanted[row, column])
            loss = nats[row, column, token].item()
            losses, targets = losses + loss, targets + 1
            if shards.token_bytes()[token]:
                text_nats, size = text_nats + loss, size + int(shards.token_bytes()[token])
    held_out = read_table(manifest, "training_run", "held_out.parquet").to_pylist()
    last = [row for row in held_out if row["source"] == "all"][-1]
    assert last["loss"] == pytest.approx(losses / targets, rel=1e-5)
    assert last["bits_per_byte"] == pytest.approx(text_nats / math.log(2) / size, rel=1e-5)


def test_unigram_baseline_is_the_smoothed_share_of_each_token(inputs, pretrain, read_input):
    manifest = pretrain(inputs, max_held_out_sequences=10_000)
    shards = TokenShards([read_input(*inputs["held_out"][0])])
    counts, sizes = shards.train_counts(), shards.token_bytes()
    nats, size = 0.0, 0
    for batch in every_batch(shards):
        for token in batch.targets_BL[batch.targets_BL != IGNORED].tolist():
            if sizes[token]:
                nats -= math.log((counts[token] + 1) / (counts.sum() + 300))
                size += int(sizes[token])
    baseline = run_json(read_input, manifest)["unigram_bits_per_byte"]
    assert baseline["all"] == pytest.approx(nats / math.log(2) / size)
    assert baseline.keys() == {"all", "code", "web"}


@pytest.mark.parametrize("visit", [1, 2, 4])
@pytest.mark.parametrize("point", ["checkpoint files written", "checkpoint written"])
def test_killed_and_started_again_it_commits_the_same_bytes(
    inputs, pretrain, store, killed_at, point, visit
):
    whole = digests(pretrain(inputs))
    manifest = pretrain(inputs)
    store.backend.remove(f"artifacts/pretrain/{manifest.key}.json")
    with killed_at(point, visit):
        pretrain(inputs)
    assert digests(pretrain(inputs)) == whole


@pytest.mark.full
def test_killed_in_its_second_epoch_it_goes_on_in_it(
    inputs, pretrain, store, read_input, killed_at
):
    """A loader that counts batches would begin the first epoch anew, or read its order."""
    shards = TokenShards([read_input(*inputs["train"][0])])
    epoch = sum(shards.sequences.values())
    phase = {
        "tokens": 32 * (2 * epoch + epoch // 2),
        "sequences_per_batch": epoch // 8,
        "learning_rate": {"peak": 1e-2},
    }
    asked = {"phases": [phase], "held_out_every": 100}
    whole = pretrain(inputs, **asked)
    store.backend.remove(f"artifacts/pretrain/{whole.key}.json")
    with killed_at("checkpoint written", 6):
        pretrain(inputs, **asked)
    assert digests(pretrain(inputs, **asked)) == digests(whole)
    epochs = [one["epochs"] for one in run_json(read_input, whole)["sources"].values()]
    assert min(epochs) > 2


def test_checkpoint_cadence_bears_no_identity_and_changes_no_byte(inputs, pretrain, store):
    often = pretrain(inputs, {"checkpoint_every": 1})
    store.backend.remove(f"artifacts/pretrain/{often.key}.json")
    seldom = pretrain(inputs, {"checkpoint_every": 1000})
    assert seldom.key == often.key
    assert digests(seldom) == digests(often)


def test_asked_to_stop_it_keeps_a_checkpoint_and_goes_on(inputs, pretrain, store):
    whole = pretrain(inputs)
    store.backend.remove(f"artifacts/pretrain/{whole.key}.json")
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 5

    with pytest.raises(Stopped) as stopped:
        pretrain(inputs, {"checkpoint_every": 1000}, stop=stop)
    assert stopped.value.exit_code == 75
    assert digests(pretrain(inputs)) == digests(whole)


def test_another_seed_is_another_run(inputs, pretrain):
    one, two = pretrain(inputs), pretrain(inputs, seed=1)
    assert one.key != two.key
    assert digests(one)["checkpoint"] != digests(two)["checkpoint"]


def test_it_continues_from_a_checkpoint_with_or_without_its_moments(
    inputs, pretrain, read_input, read_table
):
    first = pretrain(inputs)
    more = {**inputs, "checkpoint": [(first, "checkpoint")]}
    phase = {"tokens": 32 * 4 * 2, "sequences_per_batch": 4, "learning_rate": {"peak": 1e-3}}
    fresh = pretrain(more, phases=[phase])
    kept = pretrain(more, phases=[phase], optimizer_state="keep")

    before = read_table(first, "training_run", "held_out.parquet").to_pylist()
    after = read_table(fresh, "training_run", "held_out.parquet").to_pylist()
    last = [row for row in before if row["training_step"] == 9]
    assert [row["loss"] for row in after[: len(last)]] == [row["loss"] for row in last]

    steps = [
        load_file(read_input(run, "checkpoint").local_path("optimizer.safetensors"))[
            "norm.weight.step"
        ].item()
        for run in (first, fresh, kept)
    ]
    assert steps == [9, 2, 11]


def test_shards_of_another_tokenizer_are_refused_before_the_first_step(packed, pretrain):
    inputs, other = packed(), packed(vocabulary_size=290)
    with pytest.raises(InputError, match="were packed with tokenizer"):
        pretrain({**inputs, "tokenizer": other["tokenizer"]})
    with pytest.raises(InputError, match="were packed with tokenizer"):
        pretrain({**inputs, "held_out": other["held_out"]})


def test_a_checkpoint_of_another_tokenizer_is_refused(packed, pretrain):
    start = [(pretrain(packed(vocabulary_size=290)), "checkpoint")]
    with pytest.raises(InputError, match="another tokenizer"):
        pretrain({**packed(), "checkpoint": start})


def test_an_architecture_that_is_not_the_checkpoints_is_refused(inputs, pretrain):
    start = [(pretrain(inputs), "checkpoint")]
    with pytest.raises(UsageError, match=r"model\.width: .*16, .* 32"):
        pretrain({**inputs, "checkpoint": start}, model={"width": 16, "heads": 2, "kv_heads": 1})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"mixture": {"wbe": 1.0}}, "no source 'wbe'.*did you mean 'web'"),
        ({"mixture": {"web": 0.5, "code": 0.6}}, "sum to 1.1"),
    ],
)
def test_a_wrong_mixture_is_refused_with_a_hint(inputs, pretrain, config, message):
    phase = {"tokens": 1000, "learning_rate": {"peak": 1e-3}, **config}
    with pytest.raises(UsageError, match=message):
        pretrain(inputs, phases=[phase])


def test_a_plan_that_repeats_a_source_too_often_is_refused(inputs, pretrain):
    with pytest.raises(UsageError, match=r"'code' .*0\.1"):
        pretrain(inputs, max_epochs=0.1)
    with pytest.raises(UsageError, match=r"'web' .*0\.01"):
        pretrain(inputs, epochs={"web": 0.01})
    with pytest.raises(UsageError, match=r"epochs: .*'wbe'.*'web'"):
        pretrain(inputs, epochs={"wbe": 1})


def test_the_model_has_a_row_for_every_id_up_to_the_padded_vocabulary(inputs, pretrain, read_input):
    shards = TokenShards([read_input(*inputs["train"][0])])
    model = read_model(read_input(pretrain(inputs), "checkpoint"))
    assert model.config.vocabulary_size == shards.padded_vocabulary_size
    assert shards.padded_vocabulary_size % 64 == 0
    assert shards.padded_vocabulary_size > shards.vocabulary_size


def test_what_is_skipped_is_not_read_and_shifts_nothing_else(
    inputs, pretrain, read_input, read_table, caplog
):
    """Steps of 128 positions: tokens 640 to 767 are those of step 6."""
    skip = [{"first": 3, "last": 4}, {"first": 640, "last": 767, "unit": "tokens"}]
    with caplog.at_level("INFO"):
        skipping, plain = pretrain(inputs, skip=skip), pretrain(inputs)
    assert skipping.key != plain.key
    names = ["training_step", "learning_rate", "tokens/web", "tokens/code"]
    rows, every = (
        [[row[name] for name in names] for row in read_table(*one).to_pylist()]
        for one in ((run, "training_run", "metrics.parquet") for run in (skipping, plain))
    )
    assert rows == [row for row in every if row[0] not in (3, 4, 6)]
    account = run_json(read_input, skipping)
    assert account["skipped_training_steps"] == [[3, 4], [6, 6]]
    for name, column in (("web", 2), ("code", 3)):
        one = account["sources"][name]
        assert one["realised_tokens"] == sum(row[column] for row in rows)
        assert any(f"{name}: {one['planned_tokens']:,} of" in text for text in caplog.messages)
    assert sum(one["planned_positions"] for one in account["sources"].values()) == 6 * 128


def test_mixture_and_batch_size_may_change_within_a_phase(inputs, pretrain, read_input, read_table):
    """16 sequences in steps of 2, from token 512 in steps of 4; code comes in, web goes out."""
    phase = {
        "tokens": 32 * 32,
        "mixture": {"web": 1.0},
        "mixture_end": {"code": 1.0},
        "sequences_per_batch": {0: 2, 512: 4},
        "learning_rate": {"peak": 1e-3},
    }
    manifest = pretrain(inputs, phases=[phase])
    account = run_json(read_input, manifest)
    assert account["phases"][0]["sequences_per_batch"] == "0: 2, 512: 4"
    assert account["phases"][0]["training_steps"] == 8 + 4
    code, web = (account["sources"][name]["planned_sequences"] for name in ("code", "web"))
    assert (code + web, abs(code - 16) <= 2) == (32, True)
    rows = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    half = [sum(row["tokens/code"] for row in part) for part in (rows[:8], rows[8:])]
    assert half[0] < half[1] / 2
    same = {**phase, "sequences_per_batch": "0: 2 5.12e2: 4"}
    assert pretrain(inputs, phases=[same]).key == manifest.key


def test_sequences_longer_than_the_context_are_refused(inputs, pretrain):
    model = {"width": 32, "layers": 1, "heads": 2, "kv_heads": 1, "context": 16}
    with pytest.raises(UsageError, match=r"32 .*context 16"):
        pretrain(inputs, model=model)


def test_keeping_moments_without_a_checkpoint_is_refused(inputs, pretrain):
    with pytest.raises(UsageError, match="no input checkpoint"):
        pretrain(inputs, optimizer_state="keep")


def test_the_first_phase_needs_a_peak(inputs, pretrain):
    with pytest.raises(UsageError, match=r"learning_rate\.peak"):
        pretrain(inputs, phases=[{"tokens": 1000}])


def test_held_out_is_optional_and_may_be_empty(packed, pretrain, read_input, read_table):
    inputs = packed(held_out_share=0)
    for held_out in ([], inputs["held_out"]):
        manifest = pretrain({**inputs, "held_out": held_out})
        assert read_table(manifest, "training_run", "held_out.parquet").num_rows == 0
        assert run_json(read_input, manifest)["unigram_bits_per_byte"] == {}


def test_held_out_sequences_are_spread_over_sources_and_shards():
    assert quotas([100, 10, 0], 1000) == [100, 10, 0]
    assert quotas([900, 90, 1, 0], 100) == [90, 9, 1, 0]
    assert spread(10, 4).tolist() == [0, 2, 5, 7]
    assert spread(3, 3).tolist() == [0, 1, 2]
    assert spread(0, 0).tolist() == []
