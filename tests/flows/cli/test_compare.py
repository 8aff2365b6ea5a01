"""`ingot compare`: two evaluations of the same items."""

import json

import pytest
from click.testing import CliRunner

from flows.cli.main import main


def items(benchmark, metric, values, weights=None, clusters=None):
    weights, clusters = weights or [1.0] * len(values), clusters or [None] * len(values)
    return [
        {
            "benchmark": benchmark, "item_id": str(number), "metric": metric, "value": float(value),
            "weight": float(weight), "cluster": cluster, "contaminated": None,
        }
        for number, (value, weight, cluster) in enumerate(
            zip(values, weights, clusters, strict=True)
        )
    ]  # fmt: skip


@pytest.fixture
def evaluated(given):
    """`evaluated(*rows of items)` → a name for `ingot compare`."""

    def make(*groups, tasks=()):
        manifest, _ = given(
            "evaluation",
            {
                "results.parquet": [],
                "items.parquet": [row for group in groups for row in group],
                "generations.parquet": [],
                "tasks.json": list(tasks),
            },
        )
        return manifest.key[:16]

    return make


@pytest.fixture
def compare(store):
    def run(*words):
        return CliRunner().invoke(main, ["compare", *words, "--store", store.url])

    return run


def test_scores_are_paired_by_item_and_the_clear_one_is_named(evaluated, compare):
    """30 of 200 items gained and none lost; 6 and 5 of 100: the same p values by hand."""
    a = evaluated(
        items("clear", "accuracy", [0] * 100 + [1] * 100),
        items("unclear", "accuracy", [0] * 50 + [1] * 50),
    )
    b = evaluated(
        items("clear", "accuracy", [1] * 30 + [0] * 70 + [1] * 100),
        items("unclear", "accuracy", [1] * 6 + [0] * 44 + [0] * 5 + [1] * 45),
    )
    result = compare(a, b)
    assert result.exit_code == 0, result.output
    clear, unclear = result.stdout.splitlines()[1:3]
    # Wilson's of 100 and 130 of 200.
    assert "200  0.500 [0.431, 0.569]  0.650 [0.582, 0.713]  +0.150 [" in clear
    assert " <0.001 " in clear
    assert clear.endswith("B is better")
    assert unclear.endswith("no difference seen")
    assert "1 of 2 scores differ beyond chance" in result.stdout
    by_name = {one["benchmark"]: one for one in json.loads(compare(a, b, "--json").stdout)}
    assert by_name["unclear"]["adjusted"] == pytest.approx(1)  # 11 items, at most 5: p is 1.
    assert by_name["clear"]["adjusted"] == pytest.approx(2 * 4.32e-8, rel=1e-3)  # z = sqrt(30)


def test_bits_per_byte_are_better_when_lower_and_simpler_judges_are_left_out(evaluated, compare):
    values = [2 + i / 1000 for i in range(60)]
    a = evaluated(
        items("held_out/web", "bits_per_byte", values, [100] * 60),
        items("quiz", "accuracy_ngram", [1] * 60),
    )
    after = [value - 0.1 - i % 3 / 1000 for i, value in enumerate(values)]
    b = evaluated(
        items("held_out/web", "bits_per_byte", after, [100] * 60),
        items("quiz", "accuracy_ngram", [1] * 60),
    )
    result = compare(a, b)
    assert "B is better" in result.stdout
    assert "accuracy_ngram" not in result.stdout
    assert "1 of 1 scores" in result.stdout


def test_items_of_one_alone_are_counted_and_left_out(evaluated, compare):
    a = evaluated(items("quiz", "accuracy", [1] * 50))
    b = evaluated(items("quiz", "accuracy", [1] * 40, weights=[1] * 39 + [2]))
    result = compare(a, b)
    assert result.stdout.splitlines()[1].split()[2] == "39"
    assert "12 items that only one of the two has" in result.stdout


def test_only_items_put_in_the_same_way_are_paired(evaluated, compare):
    def put(formulation, shots, values):
        rows = items("planets", "accuracy", values)
        return [{**row, "formulation": formulation, "shots": shots} for row in rows]

    half, all_right = [0, 1] * 40, [1] * 80
    a = evaluated(put("cloze", 0, half) + put("cloze", 5, half))
    b = evaluated(put("cloze", 5, all_right) + put("multiple_choice", 5, all_right))
    (only,) = json.loads(compare(a, b, "--json").stdout)
    assert (only["benchmark"], only["formulation"], only["shots"]) == ("planets", "cloze", 5)
    assert only["paired"]["value"] == pytest.approx(0.5)
    assert "planets (cloze, 5 shots)" in compare(a, b).stdout


def test_items_that_the_corpus_holds_can_be_left_out(evaluated, compare, given, run_stage, store):
    """Items 0 to 29, which B gained, were in the corpus by half: without them nothing differs."""
    from stages.engine import Maybe, One, Stage

    hits = [
        {"benchmark": "quiz", "item_id": str(n), "documents": 1, "ngrams": 2, "ngrams_hit": 1}
        for n in range(30)
    ]
    contamination = given("contamination", {"items.parquet": hits})
    a = evaluated(items("quiz", "accuracy", [0] * 100))
    b = evaluated(items("quiz", "accuracy", [1] * 30 + [0] * 70))
    assert compare(a, b, "--max-overlap", "0.1").exit_code == 2  # Nothing was searched.

    def copy(self, context):
        source = context.one("evaluation")
        for path in source.paths("*.parquet"):
            context.write_table("evaluation", path, source.read_table(path))
        context.write_json("evaluation", "tasks.json", [])

    members = {
        "name": "known", "version": 1, "reproducible": "bytes", "run": copy,
        "inputs": {"evaluation": One("evaluation"), "contamination": Maybe("contamination")},
        "outputs": {"evaluation": "evaluation"},
    }  # fmt: skip
    inputs = {"evaluation": [(store.resolve(b)[0], "evaluation")], "contamination": [contamination]}
    known = run_stage(type("Known", (Stage,), members), {}, inputs).key[:16]
    (every,) = json.loads(compare(a, known, "--json").stdout)
    (loose,) = json.loads(compare(a, known, "--max-overlap", "0.5", "--json").stdout)
    (strict,) = json.loads(compare(a, known, "--max-overlap", "0.49", "--json").stdout)
    assert every["paired"]["items"] == loose["paired"]["items"] == 100
    assert (strict["paired"]["items"], strict["paired"]["value"]) == (70, 0)


def test_scores_of_two_versions_of_a_task_are_not_compared(evaluated, compare):
    rows = items("planets", "accuracy", [0, 1] * 40)
    task = {"name": "planets", "version": 1}
    a, b = evaluated(rows, tasks=[task]), evaluated(rows, tasks=[{**task, "version": 2}])
    refused = compare(a, b)
    assert refused.exit_code == 2
    assert "task 'planets' is version 1" in refused.output
    again = evaluated(rows, tasks=[task, {"name": "boolq", "version": 2}])
    assert compare(a, again).exit_code == 0


def test_few_clusters_are_warned_of(evaluated, compare):
    clusters = [str(i // 25) for i in range(100)]
    a = evaluated(items("quiz", "accuracy", [0, 1] * 50, clusters=clusters))
    b = evaluated(items("quiz", "accuracy", [1, 1] * 50, clusters=clusters))
    assert "fewer than 5 independent items: quiz" in compare(a, b).stdout


def test_other_artifacts_and_metrics_are_refused(evaluated, compare, given):
    a = evaluated(items("quiz", "accuracy", [1] * 5))
    other, _ = given("truth", {"00000.parquet": []})
    result = compare(a, other.key[:16])
    assert result.exit_code == 2
    assert "is no evaluation" in result.output
    result = compare(a, a, "--metric", "f1")
    assert result.exit_code == 2
    assert "metrics of both: accuracy" in result.output
