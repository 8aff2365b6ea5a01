import math

import pytest

from artifacts_schema.errors import InputError
from stages.scoring.metrics import row_label
from stages.scoring.observations import (
    Observation,
    from_table,
    items_table,
    merge_tasks,
    results_table,
    to_table,
)


def accuracy(item_id, value):
    return Observation("quiz", item_id, "accuracy", value, baseline=0.25)


def test_accuracy_is_the_mean_with_the_standard_error_of_the_mean():
    observed = [accuracy(str(i), v) for i, v in enumerate([1, 0, 1, 1, 0])]
    (row,) = results_table(observed).to_pylist()
    assert (row["value"], row["count"], row["baseline"]) == (0.6, 5, 0.25)
    assert row["standard_error"] == pytest.approx(math.sqrt(0.3 / 5))
    # statsmodels.stats.proportion.proportion_confint(3, 5, method="wilson")
    assert row["low"] == pytest.approx(0.230724, abs=1e-6)
    assert row["high"] == pytest.approx(0.882379, abs=1e-6)


def test_four_of_four_is_not_certain():
    (row,) = results_table([accuracy(str(i), 1) for i in range(4)]).to_pylist()
    assert row["value"] == row["high"] == 1.0
    assert row["low"] == pytest.approx(0.510109, abs=1e-6)  # 4 / (4 + 1.96²)


def test_bits_per_byte_weighs_documents_by_their_bytes():
    observed = [
        Observation("held_out/web", "a", "bits_per_byte", 200.0, 100.0, baseline=400.0),
        Observation("held_out/web", "b", "bits_per_byte", 30.0, 10.0, baseline=40.0),
    ]
    (row,) = results_table(observed).to_pylist()
    assert (row["value"], row["count"], row["baseline"]) == (230 / 110, 110, 4.0)
    assert [item["value"] for item in items_table(observed).to_pylist()] == [2.0, 3.0]
    # Without b 2, without a 3: sqrt(1/2 · ((1/11)² + (10/11)²)); t of 1 degree of freedom 12.7062.
    assert row["standard_error"] == pytest.approx(0.646030, abs=1e-6)
    assert row["high"] == pytest.approx(230 / 110 + 12.7062 * 0.646030, abs=1e-3)
    assert row["low"] == 0


def test_contaminated_items_are_flagged_and_the_score_without_them_stands_beside():
    observed = [accuracy("a", 1), accuracy("b", 0), accuracy("c", 0)]
    flags = {("quiz", "a"): True, ("quiz", "b"): False, ("quiz", "c"): False}
    rows = {row["metric"]: row for row in results_table(observed, flags).to_pylist()}
    assert rows["accuracy"]["value"] == pytest.approx(1 / 3)
    assert (rows["accuracy_clean"]["value"], rows["accuracy_clean"]["count"]) == (0.0, 2)
    assert [r["contaminated"] for r in items_table(observed, flags).to_pylist()] == [
        True,
        False,
        False,
    ]


def test_nothing_is_claimed_of_items_that_were_not_checked():
    observed = [accuracy("a", 1), accuracy("b", 0)]
    assert [row["metric"] for row in results_table(observed, None).to_pylist()] == ["accuracy"]
    assert [row["contaminated"] for row in items_table(observed).to_pylist()] == [None, None]


def test_observations_survive_the_way_through_a_table():
    observed = [accuracy("a", 1.0), Observation("text", "b", "bits_per_byte", 3.5, 2.0)]
    assert from_table(to_table(observed)) == observed


def test_items_of_a_cluster_are_one_unit_of_errors_and_intervals():
    """Ten clusters of four equal items: the mean's error is that of ten values."""
    observed = [accuracy(str(i), float(i // 4 % 2)) for i in range(40)]
    clusters = {("quiz", str(i)): str(i // 4) for i in range(40)}
    (row,) = results_table(observed, None, clusters).to_pylist()
    assert row["standard_error"] == pytest.approx(math.sqrt(0.25 * 10 / 9 / 10))
    width = 1.959963984540054 * math.sqrt(0.25 / 13)  # Four clusters more: 7 of 14.
    assert (row["low"], row["high"]) == pytest.approx((0.5 - width, 0.5 + width))
    (alone,) = results_table(observed).to_pylist()
    assert alone["high"] - alone["low"] < row["high"] - row["low"]
    items = items_table(observed, None, clusters).to_pylist()
    assert [item["cluster"] for item in items] == [clusters["quiz", str(i)] for i in range(40)]
    assert {item["weight"] for item in items} == {1.0}


def test_formulations_and_numbers_of_shots_are_scores_of_their_own():
    def put(value, formulation, shots):
        return Observation("quiz", "a", "accuracy", value, formulation=formulation, shots=shots)

    observed = [
        put(1, "cloze", 0),
        put(0, "cloze", 5),
        put(0, "multiple_choice", 0),
        put(1, None, None),
    ]
    rows = results_table(observed).to_pylist()
    assert [(r["formulation"], r["shots"], r["value"]) for r in rows] == [
        ("cloze", 0, 1.0),
        ("cloze", 5, 0.0),
        ("multiple_choice", 0, 0.0),
        (None, None, 1.0),
    ]
    assert [row_label(row) for row in rows] == [
        "quiz (cloze, 0 shots)",
        "quiz (cloze, 5 shots)",
        "quiz (multiple choice, 0 shots)",
        "quiz",
    ]
    assert from_table(to_table(observed)) == observed
    assert [row["shots"] for row in items_table(observed).to_pylist()] == [0, 5, 0, None]


class Tasks:
    """An output that holds these tasks."""

    stage, key = "benchmarks", "0" * 64

    def __init__(self, *tasks):
        self.tasks = list(tasks)

    def has(self, path):
        return path == "tasks.json" and bool(self.tasks)

    def read_json(self, path):
        assert path == "tasks.json"
        return self.tasks


def test_tasks_of_several_inputs_are_merged_and_two_versions_of_one_are_refused():
    arc, boolq = {"name": "arc", "version": 1}, {"name": "boolq", "version": 1}
    assert merge_tasks([Tasks(boolq), Tasks(arc), Tasks(), Tasks(boolq)]) == [arc, boolq]
    with pytest.raises(InputError, match="'arc' differ: version 1, and version 2 of benchmarks"):
        merge_tasks([Tasks(arc), Tasks({**arc, "version": 2})])
