"""The reward stage: losses against TRL's values, scores by plain passes, resume, refusals."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from artifacts_schema.errors import InputError, UsageError
from stages.engine.page import Artifact
from stages.evaluate.stage import Evaluate
from stages.model.files import model_files, read_model
from stages.model.reward import RewardModel, from_language_model, read_reward_model
from stages.pairs.losses import bradley_terry
from stages.preference.page import page
from stages.preference.stage import Reward
from stages.tokens.chat import render_segments
from stages.training.examples import encode_example, held_out_split
from tests.stages.preference.test_dpo import preference

QUICK = {"device": "cpu", "threads": 1, "micro_batch": 2, "checkpoint_every": 2}
TINY = {
    "epochs": 2,
    "pairs_per_batch": 4,
    "learning_rate": {"peak": 1e-3, "decay": "linear"},
    "precision": "fp32",
    "held_out_share": 0.2,
    "held_out_every": 3,
}
CHOSEN, REJECTED = torch.tensor([1.0, 0.2, -0.5]), torch.tensor([0.5, 0.4, -1.5])


@pytest.mark.parametrize(("margins", "mean"), [(None, 0.528493), ([1.0, 0.5, 2.0], 1.130175)])
def test_bradley_terry_equals_the_values_of_trl(margins, mean):
    """TRL 1.16's RewardTrainer on these scores."""
    margins = None if margins is None else torch.tensor(margins)
    losses = bradley_terry(CHOSEN, REJECTED, margins)
    assert losses.loss_P.mean().item() == pytest.approx(mean, abs=1e-6)
    assert losses.margin_P.tolist() == pytest.approx([0.5, -0.2, 1.0])


def test_centring_adds_the_square_of_the_sum_and_pulls_both_scores_to_0():
    chosen = CHOSEN.clone().requires_grad_()
    plain, centred = (bradley_terry(chosen, REJECTED, centring=c).loss_P for c in (0.0, 0.01))
    # (1.5)², (.6)², (-2)²
    assert (centred - plain).tolist() == pytest.approx([0.0225, 0.0036, 0.04], abs=1e-6)
    (gradient,) = torch.autograd.grad((centred - plain).sum(), chosen)
    assert gradient.tolist() == pytest.approx([0.03, 0.012, -0.04], abs=1e-6)


def test_a_shift_of_all_scores_changes_no_loss_and_margins_lower_no_order():
    shifted = bradley_terry(CHOSEN + 7, REJECTED + 7).loss_P
    torch.testing.assert_close(shifted, bradley_terry(CHOSEN, REJECTED).loss_P)
    at_margin = bradley_terry(CHOSEN, REJECTED, CHOSEN - REJECTED).loss_P
    assert at_margin.tolist() == pytest.approx([math.log(2)] * 3)


def varied(count=24):
    return [
        preference(i, chosen="yes " * (i % 3 + 1), rejected="no " * (i % 2 + 1))
        for i in range(count)
    ]


@pytest.fixture
def reward(run_stage, checkpoint, given):
    """`reward(rows, **config)` → a run on these pairs."""

    def run(rows, execution=None, start=checkpoint, **config):
        inputs = {
            "checkpoint": [start],
            "preferences": [given("preferences", {"00000.parquet": rows})],
        }
        return run_stage(Reward, {**TINY, **config}, inputs, {**QUICK, **(execution or {})})

    return run


def score(model, tokenizer, row, side):
    """Of an answer, by a plain pass: norm of the last state times the weights of the score."""
    ids = encode_example(tokenizer, render_segments([*row["prompt"], *row[side]])).ids
    with torch.no_grad():
        states = []
        hook = model.norm.register_forward_hook(lambda _, __, made: states.append(made))
        model(torch.from_numpy(ids[None]))
        hook.remove()
    return (states[0][0, -1] @ model.score.weight[0]).item()


def test_the_held_out_pairs_are_those_that_plain_passes_put_in_order(
    reward, tokenizer, read_input, read_table
):
    rows = varied()
    manifest = reward(rows, centring=0.02)
    model = read_reward_model(read_input(manifest, "checkpoint"))
    last = read_table(manifest, "training_run", "held_out.parquet").to_pylist()[-1]
    _, held_out = held_out_split([row["preference_id"] for row in rows], 0.2, seed=0)
    losses, right = [], 0
    for row in (rows[i] for i in held_out.tolist()):
        chosen, rejected = (score(model, tokenizer, row, side) for side in ("chosen", "rejected"))
        losses.append(math.log1p(math.exp(rejected - chosen)) + 0.02 * (chosen + rejected) ** 2)
        right += chosen > rejected
    assert last["pairs"] == len(held_out) > 0
    assert last["loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-4)
    assert last["right"] == right


def test_it_learns_the_order_and_starts_from_the_weights_of_the_checkpoint(
    reward, checkpoint, read_input, read_table
):
    manifest = reward([preference(i) for i in range(24)], epochs=6)
    metrics = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    assert metrics[-1]["loss"] < metrics[0]["loss"] / 2
    assert metrics[-1]["reward_accuracy"] == 1.0
    still = reward([preference(i) for i in range(24)], learning_rate={"peak": 1e-12})
    before = read_model(read_input(*checkpoint)).state_dict()
    after = read_reward_model(read_input(still, "checkpoint")).state_dict()
    assert set(after) - set(before) == {"score.weight"}
    for name in set(after) & set(before):
        torch.testing.assert_close(after[name], before[name], rtol=0, atol=1e-8)


def test_a_model_with_an_output_projection_loses_it(make_model):
    model = make_model(tied_embeddings=False)
    made = from_language_model(model, seed=3)
    assert isinstance(made, RewardModel)
    names = set(model.state_dict())
    assert set(made.state_dict()) == names - {"head.weight"} | {"score.weight"}
    other = from_language_model(model, seed=4)
    assert not torch.equal(made.score.weight, other.score.weight)
    tokens = torch.tensor([[5, 6, 7], [8, 9, 10]])
    with torch.no_grad():
        states = []
        made.norm.register_forward_hook(lambda _, __, output: states.append(output))
        scores = made(tokens)
        torch.testing.assert_close(scores, F.linear(states[0], made.score.weight)[..., 0])
    assert scores.dtype == torch.float32
    assert scores.shape == (2, 3)


def test_margins_are_read_from_the_metadata_and_change_the_loss(reward, read_table):
    rows = [{**row, "metadata": json.dumps({"margin": 3.0})} for row in varied()]
    first = [
        read_table(made, "training_run", "metrics.parquet").to_pylist()[0]
        for made in (reward(rows), reward(rows, margin="margin"))
    ]
    assert first[0]["reward_margin"] == first[1]["reward_margin"]
    # -log sigmoid(d - 3) where d is near 0: about 3.05, and ln 2 without the margin.
    assert first[1]["loss"] > first[0]["loss"] + 1.5


@pytest.mark.parametrize("value", [None, "much", True, 1e999])
def test_a_pair_without_a_margin_is_refused_by_its_id(reward, value):
    rows = [{**row, "metadata": json.dumps({"margin": 1})} for row in varied()]
    rows[7]["metadata"] = json.dumps({} if value is None else {"margin": value})
    with pytest.raises(InputError, match=f"1 of 24 pairs.*{7:032x}"):
        reward(rows, margin="margin")


@pytest.mark.parametrize("point", ["checkpoint written", "payload written"])
def test_a_killed_run_goes_on_to_the_same_bytes(reward, store, killed_at, point):
    rows = varied()
    whole = reward(rows)
    store.backend.remove(f"artifacts/reward/{whole.key}.json")
    with killed_at(point):
        reward(rows)
    again = reward(rows)
    assert {n: o.digest for n, o in again.outputs.items()} == {
        n: o.digest for n, o in whole.outputs.items()
    }


def test_accumulated_gradients_are_those_of_one_batch(reward, read_input):
    """4 pairs a step as 1 × 4, 2 × 2 and 4 × 1."""
    states = [
        read_reward_model(
            read_input(reward(varied(), {"micro_batch": size}), "checkpoint")
        ).state_dict()
        for size in (4, 2, 1)
    ]
    for other in states[1:]:
        for name, tensor in states[0].items():
            torch.testing.assert_close(other[name], tensor, rtol=0, atol=1e-6)


def test_an_answer_that_just_fits_the_context_is_read_to_its_last_token(
    reward, tokenizer, read_table
):
    """A language model reads one token less than the context here; the score needs them all."""
    rows = varied()
    fits = preference(98, chosen="x", question="say yes")
    words = 1
    while True:
        grown = preference(98, chosen="yes " * (words + 1), question="say yes")
        messages = [*grown["prompt"], *grown["chosen"]]
        if len(encode_example(tokenizer, render_segments(messages)).ids) > 64:
            break
        fits, words = grown, words + 1
    manifest = reward([*rows, fits])
    assert manifest.counts.get("too_long", 0) == 0
    assert reward([*rows, fits, grown]).counts["too_long"] == 1


def test_a_tokenizer_that_pads_with_what_ends_conversations_is_refused(
    reward, given, model, tokenizer
):
    from stages.tokenizer.training import transformers_config

    files = {
        **model_files(model),
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": {**transformers_config("llama-bpe"), "pad_token": "Ċ"},
        "state.json": {},
    }
    with pytest.raises(InputError, match="48 answers end with the token"):
        reward(varied(), start=given("checkpoint", files))


def test_stages_that_read_a_language_model_refuse_it_by_name(reward, run_stage):
    made = reward(varied())
    with pytest.raises(UsageError, match=r"takes checkpoint, .*reward is reward_model"):
        run_stage(Evaluate, {}, {"checkpoint": [(made, "checkpoint")]})


def test_several_ranks_are_refused(reward):
    with pytest.raises(UsageError, match="one process"):
        reward(varied(), {"layout": {"data": 2}})


def test_the_page_shows_held_out_accuracy_with_wilsons_interval(reward, store, read_table):
    manifest = reward(varied())
    figures = {figure.title: figure for figure in page(Artifact(store, manifest))}
    last = read_table(manifest, "training_run", "held_out.parquet").to_pylist()[-1]
    (row,) = figures["Held-out pairs"].rows
    n, share, z = last["pairs"], last["right"] / last["pairs"], 1.959964
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    assert row[:3] == (last["training_step"], n, share)
    assert row[3:5] == (
        pytest.approx(middle - half, abs=1e-5),
        pytest.approx(middle + half, abs=1e-5),
    )
    assert dict(figures["Preference pairs"].rows)["held out"] == n
    (levels,) = (
        one for one in figures["Loss (Bradley-Terry)"].series if one.name == "equal scores"
    )
    assert levels.y == (math.log(2), math.log(2))
