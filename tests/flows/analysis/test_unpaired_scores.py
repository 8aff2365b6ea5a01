"""Scores without items, and tasks of two versions, in a comparison."""

import math

import pytest

from artifacts_schema.errors import UsageError
from flows.analysis.score_comparison import compare_evaluations
from stages.scoring.uncertainty import wilson

FIELDS = ("benchmark", "formulation", "shots", "metric", "value", "standard_error", "low", "high",
          "count", "baseline")  # fmt: skip


def result(metric, value, error, benchmark="quiz", shots=0):
    return dict(zip(FIELDS, (benchmark, None, shots, metric, value, error, None, None, 100, None),
                    strict=True))  # fmt: skip


def item(number, value, metric="accuracy"):
    return {"benchmark": "quiz", "item_id": str(number), "formulation": None, "shots": 0,
            "metric": metric, "value": float(value), "weight": 1.0, "cluster": None,
            "contaminated": None}  # fmt: skip


@pytest.fixture
def evaluation(given):
    def make(results, items=(), version="1.0"):
        task = {"name": "quiz", "version": version}
        return given(
            "evaluation",
            {"results.parquet": results, "items.parquet": list(items), "choices.parquet": [],
             "answers.parquet": [], "generations.parquet": [], "tasks.json": [task]},
        )[0]  # fmt: skip

    return make


def test_a_score_without_items_is_compared_as_of_independent_samples(store, evaluation):
    a = evaluation([result("accuracy", 0.5, 0.03), result("perplexity", 9.0, None)])
    b = evaluation([result("accuracy", 0.6, 0.04), result("perplexity", 8.0, None)],
                   [item(n, n % 2) for n in range(10)])  # fmt: skip
    accuracy, perplexity = compare_evaluations(store, a, b)
    assert not accuracy.by_item
    assert accuracy.paired.value == pytest.approx(0.1)
    assert accuracy.paired.standard_error == pytest.approx(0.05)
    assert accuracy.paired.low == pytest.approx(0.1 - 1.959964 * 0.05, abs=1e-6)
    # A normal deviate of 2: two-sided .0455.
    assert accuracy.adjusted == pytest.approx(0.0455, abs=1e-4)
    assert accuracy.reading == "B is better, not paired"
    assert perplexity.paired.value == -1
    assert perplexity.adjusted is None
    assert perplexity.reading == "no error known, not paired"


def test_of_shares_it_is_newcombes_interval_and_p_agrees_with_it(store, evaluation):
    """Newcombe (1998), table II: 56 of 70 and 48 of 80, method 10: .0524 to .3339."""
    ends = {"a": (48, 80), "b": (56, 70)}
    rows = {}
    for name, (right, count) in ends.items():
        low, high = wilson(right, count)
        share = right / count
        error = math.sqrt(share * (1 - share) / count)
        rows[name] = {**result("accuracy", share, error), "low": low, "high": high}
    (one,) = compare_evaluations(store, evaluation([rows["a"]]), evaluation([rows["b"]]))
    assert (one.paired.low, one.paired.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert one.paired.a_ends == wilson(48, 80)
    # The lower end is .1476 below the difference of .2: a normal deviate of 2.656.
    assert one.adjusted == pytest.approx(2 * (1 - 0.99605), abs=1e-4)
    # All right and none right: each has a standard error of 0, and still an interval.
    all_right, none = (
        {**result("accuracy", value, 0.0), "low": low, "high": high}
        for value, (low, high) in ((1.0, wilson(3, 3)), (0.0, wilson(0, 3)))
    )
    (small,) = compare_evaluations(store, evaluation([none]), evaluation([all_right]))
    assert small.paired.low < small.paired.high == 1
    assert small.adjusted > 0.01


def test_where_both_have_items_only_these_count(store, evaluation):
    values = [evaluation([result("accuracy", 0.5, 0.1)], [item(n, (n + shift) % 2)
                         for n in range(10)]) for shift in (0, 1)]  # fmt: skip
    (accuracy,) = compare_evaluations(store, *values)
    assert accuracy.by_item
    assert accuracy.paired.items == 10
    # Items of others under the same name: nothing is compared.
    other = evaluation([result("accuracy", 0.5, 0.1)], [item(n + 50, 1) for n in range(9)])
    with pytest.raises(UsageError, match="no items of a metric in common"):
        compare_evaluations(store, values[0], other)


def test_lower_perplexity_is_better_and_characters_are_no_translation_error(store, evaluation):
    names = ("perplexity", "accuracy_by_characters", "answer_bits_per_byte")
    a = evaluation([result(name, 0.5, 0.01) for name in names])
    b = evaluation([result(name, 0.7, 0.01) for name in names])
    readings = [one.reading.split(",")[0] for one in compare_evaluations(store, a, b)]
    assert readings == ["B is worse", "B is better", "B is worse"]
    assert not any(math.isnan(one.adjusted) for one in compare_evaluations(store, a, b))


def test_another_version_of_a_task_is_refused_by_name(store, evaluation):
    a = evaluation([result("accuracy", 0.5, 0.1)], [item(n, 1) for n in range(5)])
    b = evaluation([result("accuracy", 0.5, 0.1)], [item(n, 0) for n in range(5)], "2.0")
    with pytest.raises(UsageError, match=r"task 'quiz' is version 1.0 in .* and 2.0 in"):
        compare_evaluations(store, a, b)
