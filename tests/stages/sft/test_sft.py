"""The sft stage: what is learnt, what is left out, and the same bytes after a kill."""

import numpy as np
import pytest
import torch
from safetensors.torch import load

from artifacts_schema.errors import InputError
from stages.examples.messages import message
from stages.model import tensor_files
from stages.model.files import read_model
from stages.sft.stage import Sft
from stages.tokens.chat import render_segments
from stages.training.examples import ExampleClock, encode_example, fit_example, held_out_split

QUICK = {"device": "cpu", "threads": 1, "micro_batch": 2, "checkpoint_every": 2}
TINY = {
    "epochs": 2,
    "conversations_per_batch": 4,
    "learning_rate": {"peak": 1e-2, "warmup_share": 0.2, "decay": "linear"},
    "precision": "fp32",
    "held_out_every": 3,
}
COLOURS = ["blue", "green", "red", "grey"]


def conversation(number, answer=None, question=None, source="made"):
    return {
        "conversation_id": f"{number:032x}",
        "source": source,
        "messages": [
            message("user", question or f"what is the colour of {number}"),
            message("assistant", answer or COLOURS[number % 4]),
        ],
        "metadata": "{}",
    }


@pytest.fixture
def sft(run_stage, checkpoint, given):
    def run(rows, execution=None, **config):
        half = len(rows) // 2
        tables = {"00000.parquet": rows[:half], "00001.parquet": rows[half:]}
        inputs = {"checkpoint": [checkpoint], "conversations": [given("conversations", tables)]}
        return run_stage(Sft, {**TINY, **config}, inputs, {**QUICK, **(execution or {})})

    return run


def test_only_what_the_assistant_says_and_its_closing_token_is_learnt(tokenizer):
    """As TRL's assistant-only masks: "yes" + end and "dog" + end, no header, no user text."""
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "say yes"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "say dog"},
        {"role": "assistant", "content": "dog"},
    ]
    example = encode_example(tokenizer, render_segments(messages))
    learnt = tokenizer.decode(example.ids[example.trained].tolist(), skip_special_tokens=False)
    assert learnt == "yes<|im_end|>dog<|im_end|>"


def test_it_learns_the_answers(sft, read_input, read_table):
    manifest = sft([conversation(i, source="ab"[i % 2]) for i in range(40)], epochs=6)
    held_out = read_table(manifest, "training_run", "held_out.parquet").to_pylist()
    losses = [row["loss"] for row in held_out if row["source"] == "all"]
    assert losses[-1] < losses[0] / 2
    metrics = read_table(manifest, "training_run", "metrics.parquet")
    assert {"loss/a", "loss/b", "targets/a", "tokens/b"} <= set(metrics.column_names)
    account = read_input(manifest, "training_run").read_json("run.json")["conversations"]
    assert account["train"] + account["held_out"] == 40
    assert metrics.num_rows == -(-6 * account["train"] // 4)


def test_first_loss_is_the_mean_over_assistant_tokens_of_each_conversation_alone(
    sft, checkpoint, tokenizer, read_input, read_table
):
    """Packed, masked and in micro-batches, against one forward pass a conversation."""
    rows = [
        conversation(i, answer=" ".join(COLOURS[: i % 4 + 1]), question="say " + "the man " * i)
        for i in range(6)
    ]
    manifest = sft(rows, conversations_per_batch=6, epochs=1, held_out_share=0)
    model = read_model(read_input(*checkpoint))
    nats, count = 0.0, 0
    for row in rows:
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


@pytest.mark.parametrize("visit", [1, 3])
def test_killed_and_started_again_it_commits_the_same_bytes(sft, store, killed_at, visit):
    rows = [conversation(i) for i in range(24)]
    whole = sft(rows)
    store.backend.remove(f"artifacts/sft/{whole.key}.json")
    with killed_at("checkpoint files written", visit):
        sft(rows)
    assert {n: o.digest for n, o in sft(rows).outputs.items()} == {
        n: o.digest for n, o in whole.outputs.items()
    }


def test_a_checkpoint_in_several_files_is_tuned_to_the_same_one(
    sft, store, read_input, checkpoint, given, in_several_files, monkeypatch, run_stage
):
    """Read from several files and written to several: the tensors are those of one file."""
    rows = [conversation(i) for i in range(12)]
    expected = load(read_input(sft(rows), "checkpoint").read_bytes("model.safetensors"))
    several = given("checkpoint", in_several_files(read_input(*checkpoint), 20_000))
    monkeypatch.setattr(tensor_files, "MAX_FILE_BYTES", 30_000)
    inputs = {
        "checkpoint": [several],
        "conversations": [given("conversations", {"0.parquet": rows[:6], "1.parquet": rows[6:]})],
    }
    made = read_input(run_stage(Sft, TINY, inputs, QUICK), "checkpoint")
    index = made.read_json("model.safetensors.index.json")
    files = made.paths("model-*.safetensors")
    assert not made.has("model.safetensors")
    assert sorted(set(index["weight_map"].values())) == files
    assert len(files) > 2
    found = {name: t for file in files for name, t in load(made.read_bytes(file)).items()}
    assert found.keys() == expected.keys() == index["weight_map"].keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    assert all(
        torch.equal(tensor, expected[name])
        for name, tensor in read_model(made).state_dict().items()
    )


def test_too_long_conversations_are_cut_or_left_out_and_counted(sft):
    long = [conversation(100 + i, answer="the sky is blue " * 40) for i in range(2)]
    rows = [conversation(i) for i in range(30)] + long
    cut = sft(rows)
    assert cut.counts["truncated"] == 2
    assert cut.counts["conversations_left_out"] == 0
    dropped = sft(rows, too_long="drop")
    assert dropped.counts["too_long"] == 2
    assert dropped.counts["conversations_left_out"] == 2
    assert f"made {long[0]['conversation_id']}" in dropped.samples["too_long"]


def test_an_answer_beyond_the_context_is_left_out_not_trained_as_nothing(sft):
    hidden = conversation(99, question="say yes or no " * 60)
    manifest = sft([conversation(i) for i in range(30)] + [hidden])
    assert manifest.counts["nothing_to_learn"] == 1


def test_too_many_left_out_stop_the_stage(sft):
    rows = [conversation(i, question="say yes or no " * 60) for i in range(8)]
    with pytest.raises(InputError, match="8 of 8 records are bad"):
        sft(rows)


def test_nothing_to_train_on_is_refused(sft):
    rows = [conversation(i, question="say yes or no " * 60) for i in range(8)]
    with pytest.raises(InputError, match="no conversation is left"):
        sft(rows, max_bad_share=1.0)


def test_fitting_keeps_what_the_context_holds(tokenizer):
    example = encode_example(tokenizer, render_segments(conversation(1)["messages"]))
    assert fit_example(example, len(example), "drop") == (example, None)
    cut, reason = fit_example(example, len(example) - 2, "truncate")
    assert (len(cut), reason) == (len(example) - 2, "truncated")
    assert fit_example(example, len(example) - 1, "drop") == (None, "too_long")
    assert fit_example(example, 3, "truncate") == (None, "nothing_to_learn")


def test_every_epoch_shows_every_example_once_in_another_order():
    clock = ExampleClock(size=10, per_batch=4, epochs=3, seed=1)
    assert clock.steps == 8
    seen = np.concatenate([clock.batch(step) for step in range(1, 9)])
    epochs = seen.reshape(3, 10)
    assert [sorted(epoch) for epoch in epochs.tolist()] == [list(range(10))] * 3
    assert len({tuple(epoch) for epoch in epochs.tolist()}) == 3
    assert len(clock.batch(8)) == 2


def test_the_held_out_side_of_an_example_does_not_depend_on_the_others():
    ids = [f"{i:032x}" for i in range(1000)]
    train, held_out = held_out_split(ids, 0.1, seed=3)
    assert 70 < len(held_out) < 130
    assert sorted([*train, *held_out]) == list(range(1000))
    _, alone = held_out_split(ids[500:], 0.1, seed=3)
    assert [i + 500 for i in alone.tolist()] == [i for i in held_out.tolist() if i >= 500]


def test_a_tool_call_is_learnt_as_qwen_writes_it_and_weight_0_is_not(tokenizer):
    call = {"id": "1", "name": "sky", "arguments": '{"day": "today"}'}
    messages = [
        message("user", "say"),
        message("assistant", "no", weight=0.0),
        message("user", "what"),
        message("assistant", " ", tool_calls=[call, {**call, "arguments": "{}"}]),
        message("tool", "blue"),
        message("assistant", "blue", weight=1.0),
    ]
    example = encode_example(tokenizer, render_segments(messages, tools='[{"name": "sky"}]'))
    learnt = tokenizer.decode(example.ids[example.trained].tolist(), skip_special_tokens=False)
    assert learnt == (
        '<tool_call>\n{"name": "sky", "arguments": {"day": "today"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "sky", "arguments": {}}\n</tool_call><|im_end|>blue<|im_end|>'
    )


def test_what_chatml_does_not_hold_is_counted_and_told(sft, caplog):
    rows = [conversation(i) for i in range(8)]
    rows[0]["messages"][1].update(reasoning="hm", weight=0.5)
    rows[1]["messages"][1].update(weight=1.0)
    rows[1]["messages"][0].update(name="ann", weight=0.0)
    rows[2]["messages"][0].update(weight=1.0)
    rows[3]["messages"][1].update(weight=0.0)
    manifest = sft(rows, held_out_share=0, max_bad_share=0.2)
    found = {name: n for name, n in manifest.counts.items() if name.endswith("_unused")}
    assert found == {
        "messages_with_name_unused": 1,
        "messages_with_reasoning_unused": 1,
        "messages_with_weight_unused": 2,
    }
    assert manifest.counts["nothing_to_learn"] == 1
    assert any("messages with reasoning, which" in one.getMessage() for one in caplog.records)
