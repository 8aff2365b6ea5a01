"""KTO of single answers: TRL's values, the KL over mismatched answers, classes, refusals."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load

from artifacts_schema.errors import InputError, UsageError
from stages.engine.page import Artifact
from stages.examples.messages import message
from stages.model.files import read_model
from stages.pairs.losses import AnswerPairs, LossSettings, mean_kl, preference_losses
from stages.preference.kto import AnswerCounts, with_mismatches
from stages.preference.page import page
from stages.preference.pairs import NO_ANSWER
from stages.preference.stage import Dpo, Preference, Reward
from stages.training.examples import ExampleSet, encode_example, held_out_split
from tests.stages.preference.answers import answer_segments
from tests.stages.preference.test_dpo import QUICK, TINY, log_probability, preference, said
from tests.stages.preference.test_losses import PAIRS


def single(number, label, text=None, question=None):
    """A row of one answer, as the stage `preferences` makes it of TRL's unpaired row."""
    row = preference(number, question=question)
    answer = [said(text or ("yes " if label else "no ") * (number % 3 + 1))]
    return {**row, "chosen": answer if label else [], "rejected": [] if label else answer}


def mixed(count=24):
    """Two desirable answers for each undesirable one."""
    return [single(n, n % 3 > 0) for n in range(count)]


@pytest.fixture
def kto(run_stage, checkpoint, given):
    """`kto(rows, **config)` → a run of `preference` on these rows."""

    def run(rows, execution=None, stage=Preference, **config):
        inputs = {
            "checkpoint": [checkpoint],
            "preferences": [given("preferences", {"00000.parquet": rows})],
        }
        config = {**TINY, **({"loss": "kto"} if stage is Preference else {}), **config}
        return run_stage(stage, config, inputs, {**QUICK, **(execution or {})})

    return run


def alone(pairs, side):
    """Rows of the answers of one side."""
    none = torch.zeros_like(pairs.chosen_P)
    if side == "chosen":
        return replace(pairs, rejected_P=none, reference_rejected_P=none, rejected_tokens_P=none)
    return replace(pairs, chosen_P=none, reference_chosen_P=none, chosen_tokens_P=none)


@pytest.mark.parametrize(
    ("beta", "weight", "kl", "mean"),
    [
        (0.1, 1.0, 0.2, 0.493127),
        (0.5, 1.0, 0.2, 0.465830),
        (0.1, 1.5, 0.2, 0.615002),
        (0.5, 1.5, 0.2, 0.575295),
        (0.1, 1.0, -0.3, 0.493126),
        (0.5, 1.0, -0.3, 0.465810),
        (0.1, 1.5, -0.3, 0.616252),
        (0.5, 1.5, -0.3, 0.581459),
    ],
)
def test_four_single_answers_have_the_loss_of_trl(beta, weight, kl, mean):
    """TRL 1.16 on four rows, two of each label; a negative estimate counts as 0."""
    settings = LossSettings(beta, undesirable_weight=weight)
    estimate = mean_kl(torch.tensor(kl, dtype=torch.float64))
    rows = [replace(alone(PAIRS, side), kl=estimate) for side in ("chosen", "rejected")]
    total = sum(preference_losses("kto", one, settings).loss_P.sum() for one in rows)
    assert total.item() / (4 / 2) == pytest.approx(mean, abs=1e-6)


def test_the_kl_is_the_mean_of_trl_over_mismatched_answers():
    """Four rows: policy −2, −2.2, −1.8, −2.4; reference −2.3, −2.4, −2, −2.5."""
    policy, reference = torch.tensor([-2.0, -2.2, -1.8, -2.4]), torch.tensor([-2.3, -2.4, -2, -2.5])
    assert mean_kl((policy - reference).mean()).item() == pytest.approx(0.2, abs=1e-6)


def test_an_answer_that_is_not_there_has_no_gradient():
    chosen = PAIRS.chosen_P.clone().requires_grad_()
    pairs = replace(PAIRS, chosen_P=chosen, chosen_tokens_P=torch.tensor([4.0, 0.0]))
    preference_losses("kto", pairs, LossSettings(0.5)).loss_P.sum().backward()
    assert chosen.grad[0] < 0
    assert chosen.grad[1] == 0


def test_held_out_loss_and_accuracy_are_those_of_plain_forward_passes(
    kto, checkpoint, tokenizer, read_input, read_table
):
    """Equation 8 of the paper, the KL over each held-out prompt with the next row's answer."""
    rows, beta, weight = mixed(), 0.3, 1.5
    manifest = kto(rows, beta=beta, undesirable_weight=weight, epochs=4)
    _, held_out = held_out_split([row["preference_id"] for row in rows], 0.2, seed=0)
    reference = read_model(read_input(*checkpoint))
    policy = read_model(read_input(manifest, "checkpoint"))

    def ratio(row, side):
        one, other = (log_probability(model, tokenizer, row, side) for model in (policy, reference))
        return one - other

    def side_of(row):
        return "chosen" if row["chosen"] else "rejected"

    drifts, losses, right = [], [], 0
    for place in held_out.tolist():
        row, following = rows[place], rows[(place + 1) % len(rows)]
        drifts.append(ratio({**row, "chosen": following[side_of(following)]}, "chosen"))
    kl = max(sum(drifts) / len(drifts), 0)
    for row in (rows[place] for place in held_out.tolist()):
        sign = 1 if row["chosen"] else -1
        over = sign * (ratio(row, side_of(row)) - kl)
        losses.append((1 if row["chosen"] else weight) * (1 - 1 / (1 + math.exp(-beta * over))))
        right += over > 0
    last = read_table(manifest, "training_run", "held_out.parquet").to_pylist()[-1]
    assert {bool(rows[place]["chosen"]) for place in held_out.tolist()} == {True, False}
    assert last["pairs"] == len(losses)
    assert last["right"] == right
    assert last["loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-4)


def test_single_answers_teach_to_tell_good_from_bad(kto, read_table, read_input, store):
    manifest = kto(mixed(), epochs=6)
    metrics = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    # Half of each answer's weight, and no reward, before the first update.
    assert metrics[0]["loss"] == pytest.approx(0.5, abs=1e-5)
    assert metrics[-1]["loss"] < metrics[0]["loss"] - 0.01
    assert metrics[0]["pairs"] == 4
    margins = [row["reward_margin"] for row in metrics if not math.isnan(row["reward_margin"])]
    assert margins[-1] > 0.05
    account = read_input(manifest, "training_run").read_json("run.json")
    assert account["loss"]["of_reference"] == pytest.approx(0.5)
    assert sum(account["answers"].values()) == account["pairs"]["train"]
    facts, *_ = page(Artifact(store, manifest))
    assert dict(facts.rows)["desirable answers to learn from"] == account["answers"]["desirable"]


def test_pairs_beside_single_answers_count_as_two(kto, read_table):
    rows = [*mixed(12), *(preference(n) for n in range(12, 24))]
    manifest = kto(rows, pairs_per_batch=24, held_out_share=0.0, epochs=1)
    (row,) = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    assert row["pairs"] == 12 + 2 * 12
    assert row["loss"] == pytest.approx(0.5, abs=1e-5)


def test_gradient_accumulation_4x1_2x2_1x4_of_single_answers_is_equal(kto, read_input):
    weights = [
        load(
            read_input(
                kto(mixed(), {"micro_batch": size}, undesirable_weight=2.0), "checkpoint"
            ).read_bytes("model.safetensors")
        )
        for size in (4, 2, 1)
    ]
    for other in weights[1:]:
        for name, tensor in weights[0].items():
            torch.testing.assert_close(other[name], tensor, rtol=0, atol=1e-6)


@pytest.mark.parametrize("label", [True, False])
def test_kto_with_one_class_is_refused(kto, label):
    name = "desirable" if label else "undesirable"
    with pytest.raises(InputError, match=f"kto with one class: all .* answers are {name}"):
        kto([single(n, label) for n in range(12)])


@pytest.mark.parametrize(
    ("stage", "config"), [(Dpo, {}), (Preference, {"loss": "simpo"}), (Reward, {})]
)
def test_stages_that_compare_two_answers_refuse_single_ones_by_id(kto, stage, config):
    rows = [*(preference(n) for n in range(20)), single(99, True)]
    with pytest.raises(InputError, match=f"{99:032x} is one answer with a label"):
        kto(rows, stage=stage, **config)


def test_weights_far_from_the_advice_are_named():
    """Ethayarajh et al. 2024: the weighted classes should be 1 to 1 … 4 to 3."""
    counts = AnswerCounts(desirable=300, undesirable=100)
    assert counts.ratio(LossSettings(0.1)) == 3
    assert counts.advice(LossSettings(0.1, undesirable_weight=2.5)) is None
    assert "desirable_weight 0.333 to 0.444" in counts.advice(LossSettings(0.1))
    weighted = LossSettings(0.1, desirable_weight=0.4)
    assert counts.advice(weighted) is None
    assert counts.loss_of_reference(weighted) == pytest.approx((300 * 0.4 + 100) / 800)


# The mismatched sequences -------------------------------------------------------------------------


def examples(tokenizer, *pairs):
    """(question, answer) → an example set of single answers."""
    rows = [
        (
            encode_example(tokenizer, answer_segments([message("user", question)], [said(answer)])),
            NO_ANSWER,
        )
        for question, answer in pairs
    ]
    names = [str(n) for n in range(len(rows))]
    return ExampleSet(names, rows, names, np.arange(len(rows)), np.arange(0), Counter(), Counter())


def read_back(tokenizer, example):
    text = tokenizer.decode(example.ids.tolist(), skip_special_tokens=False)
    learnt = tokenizer.decode(example.ids[example.trained].tolist(), skip_special_tokens=False)
    return text, learnt


def test_a_mismatched_sequence_has_ones_prompt_and_the_next_ones_answer(tokenizer):
    data = examples(
        tokenizer, ("say blue", "yes blue"), ("say green", "yes green"), ("say red", "no")
    )
    rows = with_mismatches(data, 64).rows
    texts = [read_back(tokenizer, row[2])[0] for row in rows]
    assert ["say blue" in texts[0], "yes green" in texts[0]] == [True, True]
    assert ["say red" in texts[2], "yes blue" in texts[2]] == [True, True]
    assert read_back(tokenizer, rows[0][2])[1] == "yes green<|im_end|>"
    assert len(with_mismatches(data, 12).rows[0][2]) == 12


def test_a_mismatched_answer_is_never_of_the_same_prompt(tokenizer):
    """Sampled answers to one prompt follow each other; TRL takes the one before even so."""
    data = examples(
        tokenizer, ("say blue", "a"), ("say red", "b"), ("say red", "c"), ("say blue", "d")
    )
    rows = with_mismatches(data, 64).rows
    learnt = [read_back(tokenizer, row[2])[1].removesuffix("<|im_end|>") for row in rows]
    assert learnt == ["b", "d", "d", "b"]
    with pytest.raises(UsageError, match="two prompts at least"):
        with_mismatches(examples(tokenizer, ("say red", "b"), ("say red", "c")), 64)


def test_losses_of_answers_that_are_there_do_not_depend_on_what_is_not():
    """A row's missing side may hold any log-probability: it has no tokens."""
    other = replace(alone(PAIRS, "chosen"), rejected_P=torch.tensor([5.0, -7.0]))
    one = preference_losses("kto", alone(PAIRS, "chosen"), LossSettings(0.4)).loss_P
    torch.testing.assert_close(preference_losses("kto", other, LossSettings(0.4)).loss_P, one)
    assert isinstance(other, AnswerPairs)
