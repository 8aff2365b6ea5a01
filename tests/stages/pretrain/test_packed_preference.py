"""The packed_preference stage: the losses of `preference`, on pairs that lie in packed rows."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from chat_data import preference
from click.testing import CliRunner
from safetensors.torch import load

from artifacts_schema.errors import CorruptArtifact, InputError, UsageError
from flows.cli.main import main
from stages.engine.page import Artifact
from stages.pack.stage import PackChat, PackPreferences
from stages.preference.stage import Preference
from stages.pretrain.config import PackedPreferenceConfig
from stages.pretrain.page import page
from stages.pretrain.pairs_task import PackedAnswers
from stages.pretrain.preflight_isolation import two_documents
from stages.pretrain.stage import PackedPreference, Sft
from stages.training.rows import Rows
from stages.training.token_shards import TokenShards

COLOURS = ["blue", "green as grass", "the sky", "yes", "no to the man"]
QUICK = {"device": "cpu", "threads": 1, "micro_batch": 2, "checkpoint_every": 2}
PACKED = {**QUICK, "preflight": "off", "tensorboard": False}
RATE = {"peak": 1e-3, "decay": "linear"}
STEPS = 4
LENGTH = 160
"""Of a row: two or three pairs. The checkpoint has a context of 64, which no answer exceeds."""


def pairs(count=24, sources="ab"):
    """Of very different lengths."""
    return [
        preference(
            f"{i:032x}",
            "what is the colour of " + "the man " * (i % 4),
            " ".join(COLOURS[: i % 3 + 1]),
            "no " * (i % 2 + 1),
            source=sources[i % len(sources)],
        )
        for i in range(count)
    ]


@pytest.fixture
def pack(run_stage, read_input, given, checkpoint):
    """`pack(rows, stage, **config)` → the manifest; `pack.tokenizer` is the checkpoint's."""
    start = read_input(*checkpoint)
    size = start.read_json("model.json")["vocabulary_size"]
    files = {
        "tokenizer.json": start.read_bytes("tokenizer.json"),
        "tokenizer_config.json": start.read_json("tokenizer_config.json"),
        "training.json": {"vocabulary_size": size, "padded_vocabulary_size": size},
    }
    tokenizer = [given("tokenizer", files)]

    def run(rows, stage=PackPreferences, role="preferences", **config):
        inputs = {role: [given(role, {"0.parquet": rows})], "tokenizer": tokenizer}
        config = {"sequence_length": LENGTH, "held_out_share": 0.2, "max_bad_share": 1.0, **config}
        return run_stage(stage, config, inputs)

    run.tokenizer = tokenizer
    return run


@pytest.fixture
def prefer(run_stage, checkpoint, pack, store):
    """`prefer(loss, execution, **config)` → a run on packed pairs."""

    def run(loss=None, execution=None, shards=None, train=None, **config):
        shards = shards or pack(pairs())
        inputs = {
            "checkpoint": [checkpoint],
            "train": train or [(shards, "train")],
            "held_out": [(shards, "held_out")],
            "tokenizer": pack.tokenizer,
        }
        phase = {"epochs": 2, "sequences_per_batch": 4, "learning_rate": RATE}
        config = {
            "phases": [phase],
            "precision": "fp32",
            "held_out_every": 2,
            "loss": loss or {},
            "model": {"context": LENGTH},
            **config,
        }
        return run_stage(PackedPreference, config, inputs, {**PACKED, **(execution or {})})

    run.remove = lambda manifest: store.backend.remove(
        f"artifacts/packed_preference/{manifest.key}.json"
    )
    return run


def weights_of(read_input, manifest):
    return load(read_input(manifest, "checkpoint").read_bytes("model.safetensors"))


@pytest.mark.parametrize(
    "loss",
    [
        {"name": "sigmoid", "beta": 0.3},
        {"name": "ipo_mean"},
        {"name": "simpo", "beta": 2.0, "gamma": 0.5},
        {"name": "orpo"},
    ],
    ids=lambda loss: loss["name"],
)
def test_steps_over_all_pairs_are_those_of_the_stage_that_packs_nothing(
    prefer, pack, run_stage, checkpoint, given, read_input, read_table, loss
):
    """Each step reads every pair, so the order of pairs in it is all that differs."""
    rows = pairs(sources="a")  # Several would be mixed: not each row in each step.
    shards = pack(rows)
    assert "truncated" not in shards.counts
    train = TokenShards([read_input(shards, "train")])
    settings = {name: value for name, value in loss.items() if name != "name"}
    plain = run_stage(
        Preference,
        {
            "loss": loss["name"],
            **settings,
            "epochs": STEPS,
            "pairs_per_batch": int(train.document_counts().sum()),
            "learning_rate": RATE,
            "precision": "fp32",
            "held_out_share": 0.2,
            "held_out_every": 2,
        },
        {"checkpoint": [checkpoint], "preferences": [given("preferences", {"0.parquet": rows})]},
        QUICK,
    )
    sequences = sum(train.sequences.values())
    phase = {"epochs": STEPS, "sequences_per_batch": sequences, "learning_rate": RATE}
    packed = prefer(loss, shards=shards, phases=[phase])
    names = ["loss", "pairs", "chosen_reward", "rejected_reward", "reward_margin", "grad_norm"]
    wanted, results = (
        read_table(one, "training_run", "metrics.parquet").select(names).to_pydict()
        for one in (plain, packed)
    )
    assert results["pairs"] == wanted["pairs"]
    assert len(results["loss"]) == STEPS
    for name in names:
        np.testing.assert_allclose(results[name], wanted[name], rtol=1e-4, atol=1e-5)
    held_out, held_out_wanted = (
        [
            (row["training_step"], row["loss"], row["pairs"], row["right"])
            for row in read_table(one, "training_run", "held_out.parquet").to_pylist()
            if row["source"] == "all"
        ]
        for one in (packed, plain)
    )
    assert held_out[0][2] > 0
    for own, theirs in zip(held_out, held_out_wanted, strict=True):
        # Before the first step the policy is the reference: which margins of 0 lie above 0 is
        # rounding, and differs between the two on a GPU.
        tied = own[0] == 0 and loss["name"] in ("sigmoid", "ipo_mean")
        np.testing.assert_allclose(own[: 3 if tied else 4], theirs[: 3 if tied else 4], 1e-4, 1e-5)
    own, theirs = (weights_of(read_input, one) for one in (packed, plain))
    for name, values in theirs.items():
        torch.testing.assert_close(own[name], values, atol=2e-5, rtol=1e-4)


def test_accumulation_changes_no_step(prefer, read_table):
    losses = []
    for micro_batch in (4, 2, 1):
        manifest = prefer(execution={"micro_batch": micro_batch})
        losses.append(read_table(manifest, "training_run", "metrics.parquet")["loss"].to_pylist())
        prefer.remove(manifest)
    for one in losses[1:]:
        np.testing.assert_allclose(one, losses[0], atol=1e-6, rtol=0)


def test_before_the_first_update_the_loss_is_ln_2_and_later_the_chosen_win(prefer, read_table):
    phase = {"epochs": 12, "sequences_per_batch": 4, "learning_rate": RATE}
    manifest = prefer(phases=[phase])
    metrics = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    assert metrics[0]["loss"] == pytest.approx(math.log(2), abs=1e-5)
    assert metrics[-1]["reward_accuracy"] == 1.0
    held_out = read_table(manifest, "training_run", "held_out.parquet").to_pylist()
    by_source = [row for row in held_out if row["training_step"] == 0]
    assert by_source[0]["source"] == "all"
    assert by_source[0]["pairs"] == sum(row["pairs"] for row in by_source[1:])
    assert by_source[0]["loss"] == pytest.approx(math.log(2), abs=1e-5)


@pytest.mark.parametrize("visit", [1, 2, 3])
def test_killed_and_started_again_it_commits_the_same_bytes(prefer, killed_at, monkeypatch, visit):
    whole = prefer()
    prefer.remove(whole)
    with killed_at("checkpoint files written", visit):
        prefer()
    from stages.pretrain import pairs_reference

    def never(*arguments):
        raise AssertionError("the reference was computed again")

    if visit > 1:  # The first is that of the reference itself.
        monkeypatch.setattr(pairs_reference, "_compute", never)
    assert {n: o.digest for n, o in prefer().outputs.items()} == {
        n: o.digest for n, o in whole.outputs.items()
    }


def test_the_preflight_tries_a_batch_and_the_isolation_of_answers(prefer, caplog):
    with caplog.at_level("INFO"):
        prefer(execution={"preflight": "refuse"})
    assert any("changing a document leaves the losses" in line for line in caplog.messages)
    assert any("dry batch" in line for line in caplog.messages)


def test_neither_answer_of_a_pair_sees_the_other(pack, read_input, model):
    """Other tokens in the chosen answer leave the rejected one's logits as they are, to the bit."""
    shards = TokenShards([read_input(pack(pairs()), "train")])
    batch = shards.batch(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    rows = Rows(batch.tokens_BL, batch.targets_BL, batch.documents_BL)
    assert two_documents(rows) is not None, "the pre-flight has a row to try"
    tokens, documents = (
        torch.from_numpy(one.astype(np.int64)) for one in (batch.tokens_BL, batch.documents_BL)
    )
    other = torch.where(documents == 0, tokens.flip(1) % 300, tokens)
    rejected = documents == 1
    assert not torch.equal(other, tokens)
    one_text = torch.where(documents < 0, documents, 0)
    with torch.no_grad():
        apart = [model(one, documents_BL=documents) for one in (tokens, other)]
        joined = [model(one, documents_BL=one_text) for one in (tokens, other)]
    assert torch.equal(apart[0][rejected], apart[1][rejected])
    assert not torch.allclose(joined[0][rejected], joined[1][rejected])


def test_an_answer_without_the_other_is_corrupt():
    tokens = np.zeros((1, 8), dtype=np.int64)
    documents = np.array([[0, 0, 1, 1, 2, 2, -1, -1]])
    with pytest.raises(CorruptArtifact, match="holds 3 answers"):
        PackedAnswers.from_rows(Rows(tokens, tokens, documents))


def test_log_probabilities_are_sums_over_each_answer():
    targets = np.array([[-100, 5, -100, 6, 7, -100, -100, 1]])
    documents = np.array([[0, 0, 1, 1, 1, 2, 3, 3]])
    answers = PackedAnswers.from_rows(Rows(targets, targets, documents))
    assert answers.targets_2P.tolist() == [[1, 0], [2, 1]]
    losses = torch.tensor([[0.0, 1, 0, 2, 4, 0, 0, 8]])
    assert answers.log_probabilities(losses).tolist() == [[-1, 0], [-6, -8]]


def test_what_is_no_pair_is_refused_and_pairs_are_refused_elsewhere(
    prefer, pack, run_stage, checkpoint
):
    message = preference("0" * 32, "say yes", "yes", "no")
    chat = {
        "conversation_id": "0" * 32,
        "source": "chat",
        "messages": [*message["prompt"], *message["chosen"]],
        "tools": None,
        "metadata": "{}",
    }
    talks = pack([chat], PackChat, "conversations", held_out_share=0)
    shards = pack(pairs())
    with pytest.raises(InputError, match="chat are no preference pairs"):
        prefer(train=[(shards, "train"), (talks, "train")])
    inputs = {
        "checkpoint": [checkpoint],
        "train": [(talks, "train"), (shards, "train")],
        "tokenizer": pack.tokenizer,
    }
    with pytest.raises(InputError, match="a, b hold preference pairs"):
        run_stage(Sft, {"precision": "fp32"}, inputs, PACKED)


@pytest.mark.parametrize(
    ("config", "where", "text"),
    [
        ({"clock": "continue"}, "clock", "the reference of sigmoid"),
        ({"objective": {"z_loss": 1e-4}}, "objective", "the loss is that of pairs"),
        ({"objective": {"parts": [{"name": "prefix"}]}}, "objective", "the loss is that of pairs"),
    ],
)
def test_settings_that_pairs_have_no_use_for_are_refused(config, where, text):
    from stages.engine.protocol import Upstream

    parsed = PackedPreferenceConfig.parse(config, where="packed_preference")
    with pytest.raises(UsageError, match=text) as refused:
        PackedPreference.check_plan(
            parsed, {"checkpoint": [Upstream("base", "checkpoint", "checkpoint")]}
        )
    assert refused.value.where == where


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        ({"name": "kto"}, "not packed"),
        ({"gamma": 1.0}, "does not read it"),
        ({"name": "cdpo"}, "set it"),
        ({"name": "simpo", "label_smoothing": 0.1}, "does not read it"),
    ],
)
def test_losses_that_make_no_sense_are_refused(loss, text):
    with pytest.raises(UsageError, match=text):
        PackedPreferenceConfig.parse({"loss": loss}, where="packed_preference")


@pytest.mark.parametrize("name", ["pipeline", "context"])
def test_a_layout_that_cuts_answers_is_refused(name):
    config = PackedPreferenceConfig.parse({}, where="packed_preference")
    with pytest.raises(UsageError, match="whole answers") as refused:
        PackedPreference.check_layout(config, PackedPreference.Execution(layout={name: 2}), {})
    assert refused.value.where == f"execution.layout.{name}"


def test_a_training_step_is_traced_to_its_pairs_and_shows_their_masks(prefer, store, read_table):
    manifest = prefer()
    metrics = read_table(manifest, "training_run", "metrics.parquet").to_pylist()

    def ask(*words):
        result = CliRunner().invoke(main, [*words, "--json", "--store", store.url])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    pieces = ask("trace", manifest.key[:16], "--training-step", "2")
    text = json.dumps(pieces)
    masks = ask("show-masks", manifest.key[:16], "--training-step", "2", "--conversations", "99")
    names = {pair["preference_id"] for pair in masks["pairs"]}
    assert len(names) <= len(masks["pairs"]) == metrics[1]["pairs"] > 4
    assert all(name in text for name in names)
    assert all(pair["chosen"] and pair["rejected"] for pair in masks["pairs"])


def test_its_page_has_rewards_held_out_pairs_and_the_token_account(prefer, store):
    titles = [one.title for one in page(Artifact(store, prefer()))]
    assert "Reward margin of chosen over rejected answers" in titles
    assert "Held-out pairs" in titles
