"""`ingot what-if` on what an evaluation measured: the scores that a run would make, without one."""

from __future__ import annotations

import json

import pytest

from flows.analysis.what_if_scores import MeasuredScores
from stages.evaluate.score import Score

CHOICES = ("yes", "a much longer no")
CONFIGS = [
    ["normalisations=[sum]"],
    ["normalisations=[bytes, tokens]"],
    ["benchmarks=[ex*]"],
    ["max_overlap=0.1"],
    ["max_overlap=0.45", "normalisations=[characters]"],
]


def choice_rows(benchmark, number):
    """The long right answer: by its sum it is right in items divisible by four, by bytes always."""
    sums = (-3.0, -2.0 if number % 4 == 0 else -6.0)
    return [
        {
            "benchmark": benchmark, "item_id": str(number), "choice": place,
            "is_right": place == 1, "characters": len(text), "bytes": len(text),
            "scored_bytes": len(text) + 1, "log_likelihoods": [total / 2, total / 2],
            "unconditional": None, "is_greedy": False, "prompt_digest": "0" * 16,
        }
        for place, (text, total) in enumerate(zip(CHOICES, sums, strict=True))
    ]  # fmt: skip


@pytest.fixture
def evaluation(given):
    rows = [row for name in ("quiz", "exam") for n in range(40) for row in choice_rows(name, n)]
    items = [
        {
            "benchmark": name, "item_id": str(n), "metric": "accuracy", "value": 0.0, "weight": 1.0,
            "cluster": str(n // 2), "contaminated": None,
        }
        for name in ("quiz", "exam") for n in range(40)
    ]  # fmt: skip
    tables = {"results.parquet": [], "generations.parquet": [], "answers.parquet": []}
    files = {**tables, "choices.parquet": rows, "items.parquet": items, "tasks.json": []}
    return given("evaluation", files)


@pytest.fixture
def contamination(given):
    """Of items 0 to 9 of the quiz the corpus holds 10 %, 20 %, … of the n-grams."""
    hits = [
        {"benchmark": "quiz", "item_id": str(n), "documents": 1, "ngrams": 10, "ngrams_hit": n + 1}
        for n in range(10)
    ]
    return given("contamination", {"items.parquet": hits})


@pytest.fixture
def scored(run_stage, evaluation, contamination):
    """`scored(config)`: what a run of `score` makes."""

    def make(config):
        return run_stage(
            Score, config, {"evaluation": [evaluation], "contamination": [contamination]}
        )

    return make


@pytest.mark.parametrize("settings", CONFIGS, ids=" ".join)
def test_it_scores_as_a_run_with_that_config_does(store, scored, read_table, settings):
    measured = MeasuredScores.open(store, scored({}).key[:16])
    config = measured.configure(settings)
    tables = measured.score(config)
    made = scored(config.plain())
    for path in ("results.parquet", "items.parquet", "choices.parquet"):
        assert tables[path].equals(read_table(made, "evaluation", path))


def test_another_normalisation_is_paired_with_the_metric_before(ingot, evaluation):
    """By bytes 40 of 40 are right, by the sum 10: thirty gained, none lost, in clusters of two."""
    key = evaluation[0].key[:16]
    result = ingot("what-if", key, "--set", "normalisations=[bytes]", "--json")
    assert result.exit_code == 0, result.output
    by_name = {(s["benchmark"], s["metric"]): s for s in json.loads(result.stdout)["scores"]}
    assert by_name["quiz", "accuracy"]["after"] is None
    change = by_name["quiz", "accuracy_by_bytes"]
    assert change["before"]["value"] == change["after"]["value"] == 1
    assert change["basis"] == "unchanged"
    only = ingot("what-if", key, "--set", "normalisations=[bytes]")
    assert "no model was loaded" in only.stdout


def test_a_new_metric_says_what_it_gains_on_the_same_items(ingot, scored):
    made = scored({"normalisations": ["sum"]})
    result = ingot("what-if", made.key[:16], "--set", "normalisations=[bytes]", "--json")
    change = {s["metric"]: s for s in json.loads(result.stdout)["scores"]}["accuracy_by_bytes"]
    value, low, high = change["difference"]
    assert value == 0.75
    assert 0.5 < low < 0.75 < high < 1
    assert change["basis"] == "against accuracy, the same items"
    assert change["reading"] == "better"


def test_items_left_out_are_compared_with_those_that_stay(ingot, scored):
    """Above 25 % are items 2 to 9: two of eight are right, and eight of the other 32."""
    made = scored({"normalisations": ["sum"]})
    result = ingot("what-if", made.key[:16], "--set", "max_overlap=0.25", "--json")
    scores = {(s["benchmark"], s["metric"]): s for s in json.loads(result.stdout)["scores"]}
    change = scores["quiz", "accuracy"]
    assert (change["before"]["items"], change["after"]["items"]) == (40, 32)
    assert change["difference"][0] == pytest.approx(8 / 32 - 2 / 8)
    assert change["basis"] == "against 8 left out"
    assert change["reading"] == "no difference seen"
    assert scores["exam", "accuracy"]["basis"] == "unchanged"


def test_a_sweep_of_the_bound_splits_the_items(ingot, scored):
    made = scored({"normalisations": ["sum"]})
    result = ingot("what-if", made.key[:16], "--sweep", "max_overlap=0:1:3", "--json")
    assert result.exit_code == 0, result.output
    scores = {(s["benchmark"], s["metric"]): s for s in json.loads(result.stdout)["scores"]}
    splits = scores["quiz", "accuracy"]["splits"]
    sizes = [
        (s["threshold"], s["clean"]["items"], (s["contaminated"] or {}).get("items"))
        for s in splits
    ]
    assert sizes == [(0.0, 30, 10), (0.5, 35, 5), (1.0, 40, None)]
    assert splits[0]["clean"]["value"] == pytest.approx(7 / 30)
    assert splits[0]["contaminated"]["value"] == pytest.approx(3 / 10)
    shown = ingot("what-if", made.key[:16], "--sweep", "max_overlap=0:1:3").stdout
    assert "0.300" in shown
    assert "n 10" in shown


def test_what_cannot_be_answered_is_refused(ingot, evaluation, scored):
    key = evaluation[0].key[:16]
    for words, what in (
        (("--set", "max_overlap=0.1"), "contamination"),
        (("--sweep", "max_overlap=0:1:3"), "contamination"),
        (("--sweep", "normalisations=0:1:3"), "no range"),
        (("--set", "normalisation=[sum]"), "normalisations"),
        (("--set", "normalisations=[pmi]"), "after nothing"),
        (("--set", "benchmarks=[nothing]"), "exam, quiz"),
    ):
        result = ingot("what-if", key, *words)
        assert result.exit_code == 2, words
        assert what in result.output, words


def test_programs_among_the_answers_are_run_again(store, given):
    """In the weaker isolation, which every machine has."""
    texts = ("def double(x): return 2 * x", "def double(x): return x")
    answers = [
        {
            "benchmark": "code", "item_id": str(n), "formulation": "free", "shots": 0, "sample": 0,
            "prompt_digest": "0" * 16, "text": text, "token_log_probabilities": [-1.0],
            "ending": "end", "references": ["assert double(2) == 4"], "chat": False,
        }
        for n, text in enumerate(texts)
    ]  # fmt: skip
    task = {
        "name": "code", "version": 1, "licence": "MIT", "source": "here", "chat": False,
        "formulations": {"free": {"max_new_tokens": 6, "metric": "code"}},
    }  # fmt: skip
    tables = {name: [] for name in ("results", "items", "choices", "generations")}
    files = {f"{name}.parquet": rows for name, rows in tables.items()}
    evaluation = given("evaluation", {**files, "answers.parquet": answers, "tasks.json": [task]})
    measured = MeasuredScores.open(store, evaluation[0].key[:16])
    (row,) = measured.score(measured.configure(["isolation=limits"]))["results.parquet"].to_pylist()
    assert (row["metric"], row["value"], row["count"]) == ("pass@1", 0.5, 2)
