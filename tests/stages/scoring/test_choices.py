"""Ranking measured choices: by hand, and by lm-evaluation-harness's own arithmetic."""

import math
from dataclasses import replace

import pytest

from artifacts_schema.errors import InputError
from stages.scoring.choices import Choice, choice_observations, from_table, to_table
from stages.scoring.metrics import METRICS


def choices(*rows, answer=0, item_id="1"):
    """Rows: text, log-likelihoods of its tokens, log-likelihood after nothing."""
    return [
        Choice(
            "quiz", item_id, number, number == answer, len(text), len(text.encode()),
            len(text.encode()) + 1, tuple(scores), alone,
        )
        for number, (text, scores, alone) in enumerate(rows)
    ]  # fmt: skip


RIGHT = [
    # sums -6.0, -5.4, -21, -15.3
    # by characters (3, 3, 14, 9): -2.0, -1.8, -1.5, -1.7
    # by bytes (3, 5, 14, 9): -2.0, -1.08, -1.5, -1.7
    # by tokens (1, 2, 2, 3): -6.0, -2.7, -10.5, -5.1
    # by pmi: -2.0, -0.4, -1.0, 0.7
    ("cat", [-6.0], -4.0),
    ("été", [-3.0, -2.4], -5.0),
    ("a big elephant", [-20.0, -1.0], -20.0),
    ("dog house", [-5.1, -5.1, -5.1], -16.0),
]
BEST = {"sum": 1, "characters": 2, "bytes": 1, "tokens": 1, "pmi": 3}


@pytest.mark.parametrize("answer", range(4))
def test_each_normalisation_takes_the_choice_that_it_finds_likeliest(answer):
    observed = choice_observations(choices(*RIGHT, answer=answer), tuple(BEST))
    values = {one.metric: one.numerator for one in observed}
    assert [values[METRICS[name]] for name in BEST] == [
        float(best == answer) for best in BEST.values()
    ]
    assert {one.baseline for one in observed[:-1]} == {0.25}
    last = observed[-1]
    text, scores, _ = RIGHT[answer]
    assert last.metric == "answer_bits_per_byte"
    assert last.numerator == pytest.approx(-math.fsum(scores) / math.log(2))
    assert last.denominator == len(text.encode()) + 1


def several(*rows, right):
    made = choices(*((text, [math.log(p)], None) for text, p in rows))
    return [replace(one, is_right=one.choice in right) for one in made]


def test_of_several_right_choices_the_share_of_probability_is_scored():
    rows = [("a", 0.01), ("b", 0.03), ("c", 0.04), ("d", 0.02)]
    observed = choice_observations(several(*rows, right={0, 1}), ("sum",), {"quiz"})
    values = {one.metric: one for one in observed}
    assert values["right_probability"].numerator == pytest.approx(0.4)
    assert values["right_probability"].baseline == values["accuracy"].baseline == 0.5
    assert values["accuracy"].numerator == 0.0
    one_is_first = choice_observations(several(*rows, right={0, 2}), ("sum",), {"quiz"})
    assert one_is_first[0].numerator == 1.0
    # An item with one right choice has the share too; of other benchmarks none has.
    (share,) = (
        one
        for one in choice_observations(several(*rows, right={3}), (), {"quiz"})
        if one.metric == "right_probability"
    )
    assert share.numerator == pytest.approx(0.2)
    assert {one.metric for one in choice_observations(several(*rows, right={0, 1}), ("sum",))} == {
        "accuracy", "answer_bits_per_byte",
    }  # fmt: skip


def test_the_share_of_long_choices_does_not_vanish():
    long = [replace(one, log_likelihoods=(-2000.0 - n,)) for n, one in enumerate(
        several(("a", 1.0), ("b", 1.0), right={0}))]  # fmt: skip
    share = choice_observations(long, (), {"quiz"})[0].numerator
    assert share == pytest.approx(1 / (1 + math.exp(-1)))


def test_of_equal_choices_the_first_is_taken_and_items_are_told_apart():
    rows = [("a", [-1.0], None), ("b", [-1.0], None)]
    both = choices(*rows, answer=1, item_id="1") + choices(*rows, answer=0, item_id="2")
    observed = choice_observations(both, ("sum",))
    values = [(one.item_id, one.numerator) for one in observed if one.metric == "accuracy"]
    assert values == [("1", 0.0), ("2", 1.0)]


def test_pmi_needs_what_was_not_measured():
    with pytest.raises(InputError, match="after nothing") as caught:
        choice_observations(choices(("a", [-1.0], None), ("b", [-2.0], None)), ("pmi",))
    assert "unconditional: true" in caught.value.hint


def test_choices_survive_the_way_through_a_table():
    some = choices(*RIGHT) + choices(("a", [-0.1], None), ("b", [-2.0], None), item_id="2")
    assert from_table(to_table(some)) == some
