"""Groups: members, weights and errors as the harness has them."""

import json

import pytest

from artifacts_schema.errors import InputError
from stages.engine.page import Artifact
from stages.harness.groups import (
    Aggregate,
    Catalogue,
    Group,
    aggregate,
    pooled_error,
    resolve,
    weighted_mean,
)
from stages.harness.page import page
from stages.harness.scores import Score, TaskScores
from stages.harness.stage import ImportScores

from .test_result_files import DATE

MEAN = [{"metric": "acc"}]


def test_weights_and_errors_of_the_notes():
    # .3 on 100 and .6 on 400: .54, each alike .45; errors .05 and .02 pooled: .018862.
    assert weighted_mean([0.3, 0.6], [100, 400], by_size=True) == pytest.approx(0.54)
    assert weighted_mean([0.3, 0.6], [100, 400], by_size=False) == pytest.approx(0.45)
    assert pooled_error([0.05, 0.02], [100, 400], by_size=True) == pytest.approx(0.018862, abs=1e-6)
    # √(.05² + .02²) / 2
    assert pooled_error([0.05, 0.02], [1, 9], by_size=False) == pytest.approx(0.0269258, abs=1e-7)
    assert pooled_error([0.05, None], [100, 400], by_size=True) is None


def scores(task, count, **values):
    made = tuple(
        Score(name.replace("__", "/"), value, 0.01, True) for name, value in values.items()
    )
    return TaskScores(task, 0, count, made, ())


def test_a_metric_is_taken_under_its_filters_and_over_the_tasks_that_have_it():
    tasks = [
        scores("a", 10, accuracy=0.5, exact_match__strict=0.2, exact_match__loose=0.4),
        scores("b", 30, accuracy=0.9, exact_match__loose=0.8),
    ]
    wanted = (Aggregate("acc"), Aggregate("exact_match", ("loose",), by_size=False))
    made = aggregate(Group("g", ("a", "b"), wanted, "3"), tasks, harness="0")
    values = {one.metric: one.value for one in made.scores}
    assert values == {"accuracy": pytest.approx(0.8), "exact_match/loose": pytest.approx(0.6)}
    assert (made.count, made.shots, made.record["version"]) == (40, 0, "3")
    assert made.record["harness"]["weighted_by"] == {
        "accuracy": "rows", "exact_match/loose": "tasks",
    }  # fmt: skip
    every = aggregate(Group("g", ("a", "b"), (Aggregate("exact_match"),), "3"), tasks, harness="0")
    values = {one.metric: one.value for one in every.scores}
    assert values["exact_match/strict"] == pytest.approx(0.2)
    # A task of two groups within counts twice, as in the harness.
    twice = aggregate(Group("g", ("a", "b", "a"), (Aggregate("acc"),), "3"), tasks, harness="0")
    assert twice.scores[0].value == pytest.approx((5 + 27 + 5) / 50)


def test_members_are_tasks_tags_and_groups():
    groups = {
        "all": {"group": "all", "task": ["part", "c", {"group": "rest", "task": ["d"]}]},
        "part": {"group": "part", "task": "letters", "aggregate_metric_list": MEAN},
    }
    catalogue = Catalogue({"a", "b", "c", "d"}, groups, {"letters": ["b", "a"]})
    tasks, within = resolve("all", catalogue)
    assert tasks == ["a", "b", "c", "d"]
    assert [(one.name, one.tasks) for one in within] == [
        ("all", ("a", "b", "c", "d")), ("part", ("a", "b")), ("all::rest", ("d",)),
    ]  # fmt: skip
    assert within[1].aggregates == (Aggregate("acc"),)
    assert resolve("letters", catalogue) == (["a", "b"], [])


BAD = {
    "unknown": ({"task": ["aa"]}, "no task 'aa', did you mean 'a'?"),
    "itself": ({"task": ["g"]}, "is a member of itself by way of g"),
    "empty": ({"task": []}, "names no tasks"),
    "no list": ({"task": 3}, "names no tasks"),
    "settings": ({"task": [{"task": "a", "num_fewshot": 3}]}, "with settings of its own"),
    "inner settings": (
        {"task": [{"group": "h", "task": [{"task": "a", "task_alias": "b"}]}]},
        "group g::h: has a member with settings of its own",
    ),
    "number": ({"task": [3]}, "with settings of its own"),
    "override": ({"task": ["a"], "num_fewshot": 3}, "sets num_fewshot for its tasks"),
    "typo": ({"task": ["a"], "aggregate_metrics_list": []}, "'aggregate_metric_list'"),
    "function": (
        {"task": ["a"], "aggregate_metric_list": [{"metric": "acc", "aggregation": "max"}]},
        "something else than the mean",
    ),
    "weights": (
        {"task": ["a"], "aggregate_metric_list": [{"metric": "acc", "weigh_by_size": True}]},
        "'weight_by_size'",
    ),
    "no metric": ({"task": ["a"], "aggregate_metric_list": ["acc"]}, "no `metric`"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_groups_are_refused_by_name(name):
    settings, message = BAD[name]
    catalogue = Catalogue({"a", "b"}, {"g": {"group": "g", **settings}})
    with pytest.raises(InputError) as caught:
        resolve("g", catalogue)
    assert message in str(caught.value)
    assert "group g" in str(caught.value)


def result_file(**group):
    """Two tasks of 100 and 400 rows, .3 and .6, and their group."""
    return json.dumps({
        "results": {
            "one": {"acc,none": 0.3, "acc_stderr,none": 0.05},
            "two": {"acc,none": 0.6, "acc_stderr,none": 0.02},
            "both": {"alias": "both", **group},
            "outer": {"alias": "outer"},
        },
        "group_subtasks": {"outer": ["both"], "both": ["one", "two"]},
        "versions": {"one": 1, "two": 1, "both": 2, "outer": 2},
        "n-shot": {"one": 5, "two": 5, "both": 5},
        "n-samples": {"one": {"original": 100, "effective": 100},
                      "two": {"original": 400, "effective": 400}},
        "model_name": "org/model",
        "lm_eval_version": "0.4.13",
    })  # fmt: skip


@pytest.mark.parametrize(
    ("value", "weights"),
    [(0.54, {"accuracy": "rows"}), (0.45, {"accuracy": "tasks"}), (0.5, {})],
)
def test_groups_of_result_files(store, run_stage, snapshot, read_input, read_table, value, weights):
    text = result_file(**{"acc,none": value, "acc_stderr,none": 0.018862})
    made = run_stage(ImportScores, {}, {"snapshot": [snapshot({f"results_{DATE}.json": text})]})
    records = {one["name"]: one for one in read_input(made, "evaluation").read_json("tasks.json")}
    assert set(records) == {"one", "two", "both"}
    assert records["both"]["harness"]["tasks"] == ["one", "two"]
    assert records["both"]["harness"]["weighted_by"] == weights
    rows = read_table(made, "evaluation", "results.parquet").to_pylist()
    (both,) = (row for row in rows if row["benchmark"] == "both")
    assert (both["value"], both["standard_error"]) == (value, 0.018862)
    assert (both["count"], both["shots"]) == (500, 5)
    assert both["low"] < value < both["high"]
    (figure,) = page(Artifact(store, made))
    assert "both (2 tasks)" in figure.note


def test_a_few_lines_cannot_stand_for_billions_of_tasks(run_stage, snapshot):
    doubled = {f"g{n}": [f"g{n + 1}"] * 2 for n in range(40)}
    groups = {name: {"group": name, "task": members} for name, members in doubled.items()}
    groups["g40"] = {"group": "g40", "task": ["a"]}
    with pytest.raises(InputError, match=r"group g20: lies within 20 other groups"):
        resolve("g0", Catalogue({"a"}, groups))
    groups["g10"] = {"group": "g10", "task": ["a"] * 100}
    with pytest.raises(InputError, match="has more than 20,000 tasks"):
        resolve("g0", Catalogue({"a"}, groups))
    content = json.loads(result_file(**{"acc,none": 0.54}))
    content["group_subtasks"] = {"both": ["g0"], **doubled}
    files = {f"results_{DATE}.json": json.dumps(content)}
    with pytest.raises(InputError, match="group 'both' has more than 20,000 tasks"):
        run_stage(ImportScores, {}, {"snapshot": [snapshot(files)]})


def test_groups_within_each_other_end(run_stage, snapshot, read_input):
    content = json.loads(result_file(**{"acc,none": 0.54}))
    content["group_subtasks"]["both"] = ["outer"]
    files = {f"results_{DATE}.json": json.dumps(content)}
    made = run_stage(ImportScores, {}, {"snapshot": [snapshot(files)]})
    names = [one["name"] for one in read_input(made, "evaluation").read_json("tasks.json")]
    assert names == ["both", "one", "two"]
