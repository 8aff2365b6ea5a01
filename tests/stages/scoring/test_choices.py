"""Ranking measured choices: by hand, and by lm-evaluation-harness's own arithmetic."""

import math

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
