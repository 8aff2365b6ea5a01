"""Pretraining on packed conversations, alone and mixed with text."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from artifacts_schema.errors import InputError, UsageError
from flows.cli.main import main
from stages.examples.messages import message
from stages.export_tokens.stage import ExportTokens
from stages.model.files import read_model, read_tokenizer
from stages.pack.stage import PackChat
from stages.tokens.chat import CHAT_TEMPLATE, render_segments
from stages.training.examples import encode_example

LENGTH = 128
SHAPE = {"width": 32, "layers": 2, "heads": 2, "kv_heads": 1, "context": LENGTH}
WORDS = ["the cat", "sat on a", "mat", "and a dog", "ran far"]


def conversation(number):
    return {
        "conversation_id": f"{number:032x}",
        "source": "chat",
        "messages": [
            message("user", WORDS[number % 5]),
            message("assistant", " ".join(WORDS[: number % 4 + 1])),
        ],
        "tools": None,
        "metadata": "{}",
    }


ROWS = [conversation(number) for number in range(48)]


@pytest.fixture
def chat(run_stage, given, packed):
    """`chat(rows)` → inputs of pretrain: text and conversations, one tokenizer."""
    text = packed(sequence_length=LENGTH, held_out_share=0)

    def make(rows=ROWS, with_text=True):
        shards = run_stage(
            PackChat,
            {"sequence_length": LENGTH, "held_out_share": 0.2},
            {
                "conversations": [given("conversations", {"00000.parquet": rows})],
                "tokenizer": text["tokenizer"],
            },
        )
        return {
            "train": [*(text["train"] if with_text else ()), (shards, "train")],
            "held_out": [(shards, "held_out")],
            "tokenizer": text["tokenizer"],
        }

    return make


def phases(steps, batch=4, **mixture):
    rate = {"peak": 1e-2, "warmup_share": 0.2, "decay": "linear"}
    return [
        {
            "tokens": LENGTH * batch * steps,
            "sequences_per_batch": batch,
            "mixture": mixture,
            "learning_rate": rate,
        }
    ]


def test_first_loss_is_the_mean_over_learnt_tokens_of_each_conversation_alone(
    chat, pretrain, read_input, read_table, given
):
    """One step over all of them, packed, against one forward pass a conversation."""
    inputs = chat(with_text=False)
    sequences = read_input(*inputs["train"][0]).read_json("shards.json")
    batch = sequences["sources"]["chat"]["sequences"]
    start = pretrain(inputs, model=SHAPE, phases=phases(1, 1), seed=3)
    inputs["checkpoint"] = [(start, "checkpoint")]
    manifest = pretrain(inputs, model=SHAPE, phases=phases(1, batch))
    checkpoint = read_input(start, "checkpoint")
    model, tokenizer = read_model(checkpoint), read_tokenizer(checkpoint)
    index = read_table(
        manifest=inputs["train"][0][0], output="train", path="chat/00000.index.parquet"
    )
    trained = set(index["doc_id"].to_pylist())
    nats, count = 0.0, 0
    for row in ROWS:
        if row["conversation_id"] not in trained:
            continue
        example = encode_example(tokenizer, render_segments(row["messages"]))
        with torch.no_grad():
            logits = model(torch.from_numpy(example.ids[None, :-1]))[0]
        losses = -torch.log_softmax(logits.double(), -1)
        for place in np.flatnonzero(example.trained[1:]).tolist():
            nats += losses[place, example.ids[place + 1]].item()
            count += 1
    (metrics,) = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    assert metrics["targets"] == count
    assert metrics["loss"] == pytest.approx(nats / count, rel=1e-5)


def test_it_learns_the_answers_beside_text_and_carries_the_template(
    chat, pretrain, read_input, read_table
):
    manifest = pretrain(chat(), model=SHAPE, phases=phases(24, web=0.2, code=0.2, chat=0.6))
    held_out = [
        row["loss"]
        for row in read_table(manifest, "training_run", "held_out.parquet").to_pylist()
        if row["source"] == "all"
    ]
    assert held_out[-1] < held_out[0] / 2
    metrics = read_table(manifest, "training_run", "metrics.parquet")
    assert {"loss/chat", "loss/web", "targets/chat"} <= set(metrics.column_names)
    for row in metrics.to_pylist():
        assert row["targets/chat"] < row["tokens/chat"] / 2 or not row["tokens/chat"]
    checkpoint = read_input(manifest, "checkpoint")
    config = json.loads(checkpoint.read_bytes("tokenizer_config.json"))
    assert config["chat_template"] == CHAT_TEMPLATE
    assert checkpoint.read_json("state.json")["chat_template"]["source"] == "stage pretrain"


def test_text_alone_leaves_no_template(chat, pretrain, read_input):
    inputs = chat()
    inputs["train"], inputs["held_out"] = inputs["train"][:1], []
    manifest = pretrain(inputs, model=SHAPE, phases=phases(1))
    config = read_input(manifest, "checkpoint").read_json("tokenizer_config.json")
    assert "chat_template" not in config


@pytest.mark.parametrize("name", ["masked", "prefix", "span_corruption"])
def test_another_objective_is_refused_for_conversations(chat, pretrain, name):
    with pytest.raises(UsageError, match=rf"\(chat\) are learnt by .* causal alone, not {name}"):
        pretrain(chat(), model=SHAPE, phases=phases(1), objective={"parts": [{"name": name}]})


def test_other_trainers_are_not_given_them(chat, run_stage):
    with pytest.raises(InputError, match="which of their tokens are learnt"):
        run_stage(ExportTokens, {"format": "megatron"}, {"shards": chat()["train"]})


@pytest.fixture
def ask(store):
    """`ask(*arguments)`: a command on the test's store."""
    return lambda *words: CliRunner().invoke(main, [*map(str, words), "--store", store.url])


def test_masks_of_a_training_step_are_what_it_learnt(chat, pretrain, ask, read_table):
    """Shares against the run's own counts of targets and tokens."""
    manifest = pretrain(chat(), model=SHAPE, phases=phases(2, web=0.25, code=0.25, chat=0.5))
    (first, _) = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    result = ask("show-masks", manifest.key[:16], "--training-step", 1, "--json")
    assert result.exit_code == 0, result.output
    masks = json.loads(result.stdout)
    shares = {one["speaker"]: one for one in masks["shares"]}
    assert shares["assistant"]["learnt"] == first["targets/chat"]
    assert shares["text"]["tokens"] == first["tokens/web"] + first["tokens/code"]
    chatted = sum(one["tokens"] for name, one in shares.items() if name != "text")
    assert chatted == first["tokens/chat"]
    assert [shares[name]["learnt"] for name in ("template", "user")] == [0, 0]
    by_id = {row["conversation_id"]: row["messages"] for row in ROWS}
    assert len(masks["conversations"]) == 3
    for conversation in masks["conversations"]:
        user, assistant = by_id[conversation["conversation_id"]]
        learnt = "".join(piece["text"] for piece in conversation["pieces"] if piece["learnt"])
        assert learnt == f"{assistant['content']}<|im_end|>"
        others = "".join(piece["text"] for piece in conversation["pieces"] if not piece["learnt"])
        assert user["content"] in others
    traced = ask("trace", manifest.key[:16], "--training-step", 1).stdout
    assert "(conversation)" in traced
    assert masks["conversations"][0]["conversation_id"] in traced


def test_masks_of_packed_conversations_are_marked_in_plain_text(chat, ask):
    packed_chat, _ = chat(with_text=False)["train"][0]
    result = ask("show-masks", packed_chat.key[:16], "--conversations", 1)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("⟦") == result.stdout.count("⟧") == 1
    assert "<|im_end|>⟧" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("all ")


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ((), "a training step must be named"),
        (("--training-step", 9), "the run has 1 training steps"),
    ],
)
def test_a_run_has_masks_of_its_own_steps_alone(chat, pretrain, ask, step, error):
    manifest = pretrain(chat(), model=SHAPE, phases=phases(1))
    result = ask("show-masks", manifest.key[:16], *step)
    assert result.exit_code == 2
    assert error in result.output


def test_packed_conversations_have_no_training_steps(chat, ask):
    packed_chat, _ = chat(with_text=False)["train"][0]
    result = ask("show-masks", packed_chat.key[:16], "--training-step", 1)
    assert result.exit_code == 2
    assert "have no training steps" in result.output
