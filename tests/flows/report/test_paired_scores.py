"""What a comparison of two runs says first, and which scores fell between them."""

from __future__ import annotations

import pytest

from flows.analysis.score_comparison import ScorePair, judge_pairs
from flows.report.estimates import Score, compare_scores
from flows.report.paired_scores import compare_runs, differences_table, find_regressions
from flows.report.subject import Step, Subject
from stages.engine.page import Axis, Estimate
from stages.scoring.differences import paired_difference
from stages.scoring.observations import ScoreName


def difference(name, before, after):
    count = len(before)
    name = ScoreName(name, None, None, "accuracy")
    return ScorePair(name, paired_difference(before, after, [1.0] * count), 0)


def test_paired_scores_are_named_after_adjustment_and_the_others_say_what_was_unseen():
    """40 of 200 items gained, none lost; and 6 against 5 of 100, of which nothing is known."""
    clear = difference("clear", [0.0] * 200, [1.0] * 40 + [0.0] * 160)
    unclear = difference("unclear", [0.0] * 6 + [1.0] * 94, [1.0] * 6 + [0.0] * 5 + [1.0] * 89)
    judged = judge_pairs([unclear, clear])
    table = differences_table(([("evaluate", one) for one in judged], []))
    assert [row[0] for row in table.rows] == ["clear (evaluate)"]
    # Wilson's of 0 and 40 of 200, Tango's of 40 gained and none lost.
    ends = ("0.000 [0.000, 0.019]", "0.200 [0.150, 0.261]", "+0.200 [+0.150, +0.261]")
    assert table.rows[0][2:5] == ends
    assert table.rows[0][-1] == "B is better"
    assert table.note.startswith("1 of 2 ")
    assert f"{judged[0].detectable:.3f}" in table.note
    assert "No score" in differences_table(([], [])).note


def test_unpaired_scores_say_that_their_items_differ():
    axis = Axis("bits per byte", format=".3f")
    a, b = (
        Score("evaluate", "pretrain", "float32", Estimate("held", *ends, 3.0), axis)
        for ends in ((2.0, 1.9, 2.1), (1.5, 1.4, 1.6))
    )
    table = differences_table(([], compare_scores([a], [b])))
    ends = ("2.000 [1.900, 2.100]", "1.500 [1.400, 1.600]", "-0.500 [-0.641, -0.359]")
    assert table.rows[0][2:] == (*ends, "B is better (other items)")
    assert table.note.startswith("1 of 1 ")


def items(benchmark, values, first=0):
    return [
        {
            "benchmark": benchmark, "item_id": str(first + number), "metric": "accuracy",
            "value": float(value), "weight": 1.0, "cluster": None, "contaminated": None,
        }
        for number, value in enumerate(values)
    ]  # fmt: skip


@pytest.fixture
def subject(given, store):
    """`subject(*rows of items)`: a run whose one step is an evaluation of these."""

    def make(*groups):
        tables = {"results.parquet": [], "generations.parquet": []}
        manifest, _ = given(
            "evaluation", {**tables, "items.parquet": [row for group in groups for row in group]}
        )
        step = Step("evaluate", manifest.stage, manifest.key, "made", manifest)
        return Subject("run", "run", store, (step,))

    return make


def test_scores_are_paired_where_items_are_shared_and_the_rest_stands_by_its_intervals(subject):
    """15 of 100 shared items lost and none gained; `other` has no item in common."""
    a = subject(items("quiz", [1] * 60 + [0] * 40), items("other", [1] * 50))
    b = subject(items("quiz", [0] * 15 + [1] * 45 + [0] * 40), items("other", [0] * 50, 900))
    axis = Axis("accuracy", format=".3f")

    def score(name, *ends):
        return Score("evaluate", "pretrain", "float32", Estimate(name, *ends), axis)

    before = [score("quiz", 0.6, 0.5, 0.7), score("other", 1.0, 0.9, 1.0)]
    after = [score("quiz", 0.45, 0.35, 0.55), score("other", 0.0, 0.0, 0.1)]
    paired, unpaired = compare_runs(a, b, before, after)
    assert [(step, one.label, one.is_worse) for step, one in paired] == [("evaluate", "quiz", True)]
    assert [one.b.estimate.name for one in unpaired] == ["other"]


def test_a_fall_that_only_pairing_shows_is_reported(subject, store, monkeypatch):
    """Unpaired -.232 to .037 (Newcombe); 10 of 100 lost, none gained, is p = .002 (binomial)."""
    from types import SimpleNamespace

    a = subject(items("quiz", [1] * 60 + [0] * 40))
    b = subject(items("quiz", [0] * 10 + [1] * 50 + [0] * 40))
    runs = {"2": b, "1": a}
    monkeypatch.setattr(
        "flows.report.paired_scores.find_subject", lambda store, name: runs[name.split("@")[1]]
    )
    records = [
        SimpleNamespace(id=one, name=f"r@{one}", recipe="r", state="done") for one in ("2", "1")
    ]
    monkeypatch.setattr("flows.report.paired_scores.load_runs", lambda *_: iter(records))
    (fall,) = find_regressions(store, records[0])
    assert (fall.before, fall.after, fall.paired) == (0.6, 0.5, True)
    assert fall.high < 0
    assert "paired by item" in str(fall)
    assert find_regressions(store, records[1]) == []
