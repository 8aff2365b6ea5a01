"""Answers to questions, and what simpler judges make of choices."""

import pytest

from stages.evaluate.baselines import (
    ABOVE,
    NGRAM,
    SHORTEST,
    baseline_observations,
    share_right,
)
from stages.evaluate.benchmarks import Item, rank
from stages.evaluate.questions import NAMED, judge, names_in_sentence
from stages.language_model.config import NgramConfig
from stages.language_model.estimate import estimate
from stages.language_model.perplexity import NgramModel
from stages.scoring.observations import Observation, results_table


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ("`Lock.acquire` is a method of the module.", True),
        ("Yes. It is `Lock.acquire` that waits!", True),
        ("`Lock.acquire` is a method of the", False),  # no end
        ("It is a method of a module. `Lock.acquire`.", False),  # a sentence of one word
        ("`Lock.acquired` is a method of the module.", False),
        ("", False),
    ],
)
def test_an_answer_names_its_object_in_a_whole_sentence(answer, named):
    assert names_in_sentence(answer, "Lock.acquire") is named


def question(number):
    return Item("asked", str(number), "question", "What?", ("Lock",), 0)


def test_the_share_of_answers_that_name_it_has_wilsons_interval():
    items = [question(n) for n in range(4)]
    answers = ["The Lock is a class."] * 2 + ["No.", "Lock"]
    (row,) = results_table(judge(items, answers)).to_pylist()
    assert (row["metric"], row["value"], row["count"]) == (NAMED, 0.5, 4)
    # Wilson 1927 for 2 of 4: (0.5 ± …) = 0.150 to 0.850.
    assert (row["low"], row["high"]) == pytest.approx((0.150, 0.850), abs=5e-4)


def test_the_first_questions_do_not_depend_on_how_many_there_are():
    items = [question(n) for n in range(40)]
    few = rank(items[:20], seed=1)
    assert [item for item in rank(items, seed=1) if item in few] == few
    assert few != items[:20]
    assert rank(items[:20], seed=2) != few


@pytest.fixture
def trigrams(tmp_path):
    config = NgramConfig(order=3, normalisation="none")
    estimate([[["a", "b", "c"]] * 9 + [["b", "a", "c"]]], tmp_path / "model", config)
    return NgramModel.load(tmp_path / "model")


def test_an_ngram_model_takes_the_order_that_it_has_seen(trigrams, tokenizer):
    items = [
        Item("pairs", "0", "multiple_choice", "", ("a b c", "b a c"), 0),
        Item("pairs", "1", "multiple_choice", "", ("a b c", "b a c"), 1),
    ]
    measured = [Observation("pairs", name, "accuracy", 1.0) for name in "01"]
    observed = baseline_observations(items, measured, trigrams, " ", tokenizer, None)
    values = {(one.item_id, one.metric): one.numerator for one in observed}
    assert (values["0", NGRAM], values["1", NGRAM]) == (1.0, 0.0)
    assert (values["0", ABOVE], values["1", ABOVE]) == (0.0, 1.0)
    assert values["0", SHORTEST] == values["1", SHORTEST] == 0.5


def test_a_difference_below_zero_keeps_its_interval():
    observed = [Observation("pairs", str(n), ABOVE, value) for n, value in enumerate([-1, 0, 1, 0])]
    (row,) = results_table(observed).to_pylist()
    # Standard deviation sqrt(2/3), error 0.408, t of 3 degrees of freedom 3.182: 0 ± 1.299.
    assert (row["low"], row["high"]) == pytest.approx((-1.299, 1.299), abs=1e-3)


def test_equal_scores_share_the_point():
    assert share_right([1.0, 1.0, 0.0], [0]) == 0.5
    assert share_right([1.0, 1.0, 0.0], [2]) == 0.0
    assert share_right([1.0, 1.0, 0.0], [0, 1]) == 1.0
