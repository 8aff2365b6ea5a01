"""The score stage on what the evaluate stage measured."""

import pytest

from artifacts_schema.errors import InputError, UsageError
from stages.evaluate.score import Score
from stages.evaluate.stage import Evaluate

QUIET = {"text_prompts": [], "chat_prompts": []}
METRICS = {"accuracy", "accuracy_by_characters", "accuracy_by_bytes", "accuracy_by_tokens"}


def question(number, benchmark):
    return {
        "benchmark": benchmark, "item_id": f"{number}", "form": "multiple_choice",
        "prompt": f"Question {number}: the capital is", "answer": number % 3,
        "choices": ["Paris", "Rome", "a dictionary of values"],
        "metadata": f'{{"cluster": {number // 2}}}',
    }  # fmt: skip


@pytest.fixture
def benchmarks(given):
    rows = [question(number, name) for name in ("quiz", "exam") for number in range(8)]
    return given("benchmarks", {"00000.parquet": rows})


@pytest.fixture
def measured(run_stage, checkpoint, benchmarks):
    config = {**QUIET, "unconditional": True}
    inputs = {"checkpoint": [checkpoint], "benchmarks": [benchmarks]}
    return run_stage(Evaluate, config, inputs)


def rows(read_table, manifest, table="results.parquet"):
    return read_table(manifest, "evaluation", table).to_pylist()


def test_scores_agree_with_those_of_the_evaluation_and_more_follow(run_stage, read_table, measured):
    scored = run_stage(Score, {}, {"evaluation": [(measured, "evaluation")]})
    after = {(row["benchmark"], row["metric"]): row for row in rows(read_table, scored)}
    assert {metric for _, metric in after} == {*METRICS, "answer_bits_per_byte"}
    for row in rows(read_table, measured):
        assert after[row["benchmark"], row["metric"]] == row
    assert scored.counts["items"] == 16
    assert scored.counts["items_left_out"] == 0


def test_items_are_chosen_by_benchmark_and_clusters_stay(run_stage, read_table, measured):
    config = {"benchmarks": ["ex*"], "normalisations": ["pmi"]}
    scored = run_stage(Score, config, {"evaluation": [(measured, "evaluation")]})
    results = {row["metric"]: row for row in rows(read_table, scored)}
    assert set(results) == {"accuracy_by_pmi", "answer_bits_per_byte"}
    assert results["accuracy_by_pmi"]["count"] == 8
    assert scored.counts["items_left_out"] == 8
    clusters = [row["cluster"] for row in rows(read_table, scored, "items.parquet")]
    assert set(clusters) == {"0", "1", "2", "3"}


def test_items_that_the_corpus_holds_are_left_out_by_their_share(
    run_stage, read_table, given, measured
):
    hits = [
        {"benchmark": "quiz", "item_id": str(number), "documents": 1, "ngrams": 10, "ngrams_hit": n}
        for number, n in ((0, 10), (1, 5), (2, 1))
    ]
    contamination = given("contamination", {"items.parquet": hits})
    inputs = {"evaluation": [(measured, "evaluation")], "contamination": [contamination]}
    for most, left_out in ((0.5, 1), (0.4, 2), (0.0, 3)):
        scored = run_stage(Score, {"max_overlap": most, "benchmarks": ["quiz"]}, inputs)
        assert scored.counts["items_left_out"] == 8 + left_out
    left = {row["item_id"] for row in rows(read_table, scored, "items.parquet")}
    assert left == {"3", "4", "5", "6", "7"}


def test_what_cannot_be_scored_is_refused(run_stage, measured, checkpoint, benchmarks):
    inputs = {"evaluation": [(measured, "evaluation")]}
    with pytest.raises(UsageError, match="max_overlap"):
        run_stage(Score, {"max_overlap": 0.1}, inputs)
    with pytest.raises(InputError, match="no item is left") as caught:
        run_stage(Score, {"benchmarks": ["arc_*"]}, inputs)
    assert "exam, quiz" in caught.value.hint
    plain = run_stage(Evaluate, QUIET, {"checkpoint": [checkpoint], "benchmarks": [benchmarks]})
    with pytest.raises(InputError, match="after nothing"):
        run_stage(Score, {"normalisations": ["pmi"]}, {"evaluation": [(plain, "evaluation")]})


def test_formulations_and_shots_that_were_measured_are_chosen_among(
    run_stage, read_table, given, checkpoint
):
    ways = [("cloze", 0), ("cloze", 2), ("multiple_choice", 0)]
    put = [
        {"formulation": name, "shots": shots, "prompt": f"{shots} {name} is",
         "choices": [" Paris", " Rome", " a dictionary"], "references": [], "contexts": []}
        for name, shots in ways
    ]  # fmt: skip
    items = [{**question(n, "quiz"), "requests": put} for n in range(3)]
    some = given("benchmarks", {"0.parquet": items})
    made = run_stage(Evaluate, QUIET, {"checkpoint": [checkpoint], "benchmarks": [some]})
    of = lambda manifest: {  # noqa: E731
        (row["formulation"], row["shots"]) for row in rows(read_table, manifest)
    }
    assert of(made) == set(ways)
    inputs = {"evaluation": [(made, "evaluation")]}
    assert of(run_stage(Score, {"formulations": ["cloze"]}, inputs)) == set(ways[:2])
    assert of(run_stage(Score, {"shots": [0]}, inputs)) == {ways[0], ways[2]}
    with pytest.raises(InputError, match="no item is left") as caught:
        run_stage(Score, {"formulations": ["hybrid"]}, inputs)
    assert "quiz (cloze, 2 shots)" in caught.value.hint
