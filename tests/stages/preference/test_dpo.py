"""The dpo stage: loss and margins against arithmetic, the kept reference, kills."""

import math

import numpy as np
import pytest
import torch

from artifacts_schema.errors import InputError, UsageError
from stages.engine.page import Artifact
from stages.examples.messages import message
from stages.model.files import read_model
from stages.preference.page import page
from stages.preference.stage import Dpo, Preference, Reference
from stages.tokens.chat import render_segments
from stages.training.examples import encode_example
from tests.stages.preference.answers import answer_segments

QUICK = {"device": "cpu", "threads": 1, "micro_batch": 2, "checkpoint_every": 2}
TINY = {
    "epochs": 2,
    "pairs_per_batch": 4,
    "learning_rate": {"peak": 1e-3, "decay": "linear"},
    "precision": "fp32",
    "held_out_share": 0.2,
    "held_out_every": 3,
}


def said(content, role="assistant"):
    return message(role, content)


def preference(number, chosen="yes", rejected="no", question=None):
    return {
        "preference_id": f"{number:032x}",
        "source": "made",
        "prompt": [said(question or f"say yes or no to {number}", "user")],
        "chosen": [said(chosen)],
        "rejected": [said(rejected)],
        "metadata": "{}",
    }


@pytest.fixture
def dpo(run_stage, checkpoint, given):
    def run(rows, execution=None, **config):
        inputs = {
            "checkpoint": [checkpoint],
            "preferences": [given("preferences", {"00000.parquet": rows})],
        }
        return run_stage(Dpo, {**TINY, **config}, inputs, {**QUICK, **(execution or {})})

    return run


def log_probability(model, tokenizer, row, side):
    """Of the answer and its closing token, from one plain forward pass."""
    example = encode_example(tokenizer, answer_segments(row["prompt"], row[side]))
    with torch.no_grad():
        logits = model(torch.from_numpy(example.ids[None, :-1]))[0].double()
    scores = torch.log_softmax(logits, -1)
    places = np.flatnonzero(example.trained[1:]).tolist()
    return sum(scores[place, example.ids[place + 1]].item() for place in places)


def test_only_the_answer_counts_even_after_earlier_answers(tokenizer):
    prompt = [
        {"role": "user", "content": "say blue"},
        {"role": "assistant", "content": "blue"},
        {"role": "user", "content": "say yes"},
    ]
    example = encode_example(tokenizer, answer_segments(prompt, [said(" yes \n")]))
    learnt = tokenizer.decode(example.ids[example.trained].tolist(), skip_special_tokens=False)
    assert learnt == "yes<|im_end|>"
    whole = encode_example(
        tokenizer, render_segments([*prompt, {"role": "assistant", "content": "yes"}])
    )
    assert example.ids.tolist() == whole.ids[: len(example.ids)].tolist()


def test_before_the_first_update_loss_is_ln_2_and_later_the_chosen_win(dpo, read_table):
    manifest = dpo([preference(i) for i in range(24)], epochs=4)
    metrics = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    assert metrics[0]["loss"] == pytest.approx(math.log(2), abs=1e-5)
    assert metrics[0]["reward_margin"] == pytest.approx(0, abs=1e-4)
    assert metrics[-1]["reward_accuracy"] == 1.0
    assert metrics[-1]["reward_margin"] > 0.1
    for row in metrics:
        assert row["chosen_reward"] - row["rejected_reward"] == pytest.approx(
            row["reward_margin"], abs=1e-6
        )
    assert metrics[0]["chosen_reward"] == pytest.approx(0, abs=1e-4)
    held_out = read_table(manifest, "training_run", "held_out.parquet").to_pylist()
    assert held_out[0]["loss"] == pytest.approx(math.log(2), abs=1e-5)
    assert held_out[-1]["loss"] < held_out[0]["loss"] - 0.1


def test_held_out_loss_of_the_result_is_equation_7_by_plain_forward_passes(
    dpo, checkpoint, tokenizer, read_input, read_table
):
    rows = [
        preference(i, chosen="yes " * (i % 3 + 1), rejected="no " * (i % 2 + 1)) for i in range(24)
    ]
    manifest = dpo(rows, beta=0.3)
    account = read_input(manifest, "training_run").read_json("run.json")["pairs"]
    last = read_table(manifest, "training_run", "held_out.parquet").to_pylist()[-1]

    from stages.training.examples import held_out_split

    _, held_out = held_out_split([row["preference_id"] for row in rows], 0.2, seed=0)
    assert len(held_out) == account["held_out"] > 0
    reference = read_model(read_input(*checkpoint))
    policy = read_model(read_input(manifest, "checkpoint"))
    losses = []
    for row in (rows[i] for i in held_out.tolist()):
        ratios = [
            log_probability(policy, tokenizer, row, side)
            - log_probability(reference, tokenizer, row, side)
            for side in ("chosen", "rejected")
        ]
        losses.append(math.log1p(math.exp(-0.3 * (ratios[0] - ratios[1]))))
    assert last["loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-4)
    assert last["pairs"] == len(losses)
    # The loss is ln 2 where chosen and rejected are rewarded alike.
    assert last["right"] == sum(loss < math.log(2) for loss in losses)


def test_an_adapter_starts_at_the_reference_and_leaves_all_else_as_it_is(
    dpo, checkpoint, read_input, read_table
):
    pytest.importorskip("peft")
    manifest = dpo([preference(i) for i in range(24)], epochs=4, adapter={"rank": 4})
    metrics = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    assert metrics[0]["loss"] == pytest.approx(math.log(2), abs=1e-5)
    assert metrics[-1]["reward_margin"] > 0.01
    before, after = (
        read_model(one).state_dict()
        for one in (read_input(*checkpoint), read_input(manifest, "checkpoint"))
    )
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if ".attention." in name or ".mlp." in name}
    assert read_input(manifest, "checkpoint").has("adapter_model.safetensors")


def test_reference_is_computed_once_and_survives_a_kill(dpo, store, killed_at, monkeypatch):
    rows = [preference(i) for i in range(20)]
    whole = dpo(rows)
    store.backend.remove(f"artifacts/dpo/{whole.key}.json")
    with killed_at("checkpoint written"):
        dpo(rows)
    from stages.preference import task

    def never(*arguments):
        raise AssertionError("computed again")

    monkeypatch.setattr(task, "_compute", never)
    assert {n: o.digest for n, o in dpo(rows).outputs.items()} == {
        n: o.digest for n, o in whole.outputs.items()
    }


def test_pairs_of_equal_answers_are_left_out_and_counted(dpo):
    rows = [preference(i) for i in range(20)] + [preference(99, "yes", " yes ")]
    manifest = dpo(rows)
    assert manifest.counts["equal_answers"] == 1
    assert manifest.counts["pairs"] == 21


def test_answers_that_differ_beyond_the_context_are_left_out(dpo):
    same = "the sky is blue " * 30
    rows = [preference(i) for i in range(20)] + [preference(99, same + "yes", same + "no")]
    assert dpo(rows).counts["equal_answers"] == 1


def test_prompts_without_room_for_an_answer_stop_the_stage(dpo):
    rows = [preference(i, question="say yes or no " * 60) for i in range(5)]
    with pytest.raises(InputError, match="5 of 5 records are bad"):
        dpo(rows)


@pytest.fixture
def prefer(run_stage, checkpoint, given):
    """`prefer(loss, **config)` → a run of `preference` on 24 pairs."""

    def run(loss, execution=None, **config):
        rows = [
            preference(i, chosen="yes " * (i % 3 + 1), rejected="no " * (i % 2 + 1))
            for i in range(24)
        ]
        inputs = {
            "checkpoint": [checkpoint],
            "preferences": [given("preferences", {"00000.parquet": rows})],
        }
        config = {**TINY, "loss": loss, **config}
        return run_stage(Preference, config, inputs, {**QUICK, **(execution or {})})

    return run


def test_sigmoid_is_dpo_to_the_byte(prefer, dpo, read_input):
    rows = [
        preference(i, chosen="yes " * (i % 3 + 1), rejected="no " * (i % 2 + 1)) for i in range(24)
    ]
    one, other = (
        read_input(made, "checkpoint").read_bytes("model.safetensors")
        for made in (prefer("sigmoid"), dpo(rows))
    )
    assert one == other


@pytest.mark.parametrize(
    ("loss", "more"),
    [
        ("cdpo", {"label_smoothing": 0.1}),
        ("robust", {"label_smoothing": 0.1}),
        ("hinge", {}),
        ("ipo_mean", {}),
        ("sigmoid_mean", {"sft_weight": 0.5}),
        ("apo_zero", {}),
        ("bco_pair", {}),
        ("kto", {"undesirable_weight": 1.5}),
        ("simpo", {"beta": 2.0, "gamma": 0.5}),
        ("orpo", {}),
        ("cpo", {}),
    ],
)
def test_every_loss_learns_to_prefer(prefer, read_table, read_input, loss, more):
    manifest = prefer(loss, epochs=4, **more)
    metrics = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    assert metrics[-1]["loss"] < metrics[0]["loss"]
    assert metrics[-1]["reward_margin"] > metrics[0]["reward_margin"]
    held_out = read_table(manifest, "training_run", "held_out.parquet").to_pylist()
    assert held_out[-1]["loss"] < held_out[0]["loss"]
    account = read_input(manifest, "training_run").read_json("run.json")["loss"]
    assert account["name"] == loss
    assert (account["of_reference"] is None) == (loss in ("simpo", "orpo", "cpo", "sigmoid_mean"))


def test_a_loss_without_a_reference_computes_none(prefer, monkeypatch):
    from stages.preference import task

    def never(*arguments):
        raise AssertionError("computed")

    monkeypatch.setattr(task, "_compute", never)
    prefer("simpo")
    with pytest.raises(AssertionError):
        prefer("hinge")


@pytest.mark.parametrize("loss", ["sigmoid", "orpo", "kto"])
def test_accumulated_gradients_are_those_of_one_batch(prefer, read_input, loss):
    """4 pairs a step as 1 × 4, 2 × 2 and 4 × 1: weights within 1e-6, cross-entropy included."""
    from safetensors.torch import load

    weights = [
        load(
            read_input(prefer(loss, {"micro_batch": size}), "checkpoint").read_bytes(
                "model.safetensors"
            )
        )
        for size in (4, 2, 1)
    ]
    for other in weights[1:]:
        for name, tensor in weights[0].items():
            torch.testing.assert_close(other[name], tensor, rtol=0, atol=1e-6)


@pytest.fixture
def shared(run_stage, checkpoint, given):
    """`shared(stage, reference, **config)` → a run on one set of pairs."""
    rows = [
        preference(i, chosen="yes " * (i % 3 + 1), rejected="no " * (i % 2 + 1)) for i in range(24)
    ]
    pairs = given("preferences", {"00000.parquet": rows})

    def run(stage, reference=None, start=checkpoint, **config):
        inputs = {"checkpoint": [start], "preferences": [pairs]}
        if reference is not None:
            inputs["reference"] = [(reference, "reference")]
        return run_stage(stage, config, inputs, QUICK)

    return run


def test_a_reference_that_was_made_before_gives_the_same_bytes(
    shared, read_input, read_table, store, monkeypatch
):
    made = shared(Reference, precision="fp32")
    table = read_table(made, "reference", "pairs.parquet")
    assert table.num_rows == 24
    (facts,) = page(Artifact(store, made))
    mean = np.mean(table["chosen"].to_numpy())
    assert dict(facts.rows)["mean of chosen answers, nats"] == pytest.approx(mean, abs=1e-3)
    alone = shared(Dpo, **TINY)
    from stages.preference import task

    monkeypatch.setattr(task, "_compute", None)
    given_one = shared(Dpo, made, **TINY)
    hinge = shared(Preference, made, loss="hinge", **TINY)
    weights = [
        read_input(one, "checkpoint").read_bytes("model.safetensors")
        for one in (alone, given_one, hinge)
    ]
    assert weights[0] == weights[1] != weights[2]


def test_a_reference_of_other_weights_or_settings_is_refused(shared, dpo):
    made = shared(Reference, precision="fp32")
    other = dpo([preference(i) for i in range(24)])
    with pytest.raises(InputError, match="made for another checkpoint"):
        shared(Dpo, made, start=(other, "checkpoint"), **TINY)
    with pytest.raises(InputError, match="made for another too_long"):
        shared(Dpo, made, **TINY, too_long="drop")
    with pytest.raises(UsageError, match="compares with no reference"):
        shared(Preference, made, loss="simpo", **TINY)
    with pytest.raises(UsageError, match="mismatched answers"):
        shared(Preference, made, loss="kto", **TINY)
