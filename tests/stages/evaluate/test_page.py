"""The page of an evaluation, from hand-made results and items."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from artifacts_schema.identity import document_id
from artifacts_schema.store.gc import remove_artifact
from stages.engine.page import Artifact, HistogramFigure, IntervalFigure, SamplesFigure, TableFigure
from stages.evaluate import extremes
from stages.evaluate.extremes import worst_ranked
from stages.evaluate.page import page, summary


def result(benchmark, metric, value, error=None, count=10, baseline=None):
    return {
        "benchmark": benchmark,
        "metric": metric,
        "value": value,
        "standard_error": error,
        "low": None if error is None else value - 2 * error,
        "high": None if error is None else value + 2 * error,
        "count": count,
        "baseline": baseline,
    }


def item(benchmark, item_id, metric, value, contaminated=None):
    return {
        "benchmark": benchmark,
        "item_id": item_id,
        "metric": metric,
        "value": value,
        "weight": 1.0,
        "contaminated": contaminated,
    }


@pytest.fixture
def evaluated(given, store):
    def make(results, items=(), generations=()):
        manifest, _ = given(
            "evaluation",
            {
                "results.parquet": list(results),
                "items.parquet": list(items),
                "generations.parquet": list(generations),
            },
        )
        return Artifact(store, manifest)

    return make


def of(found, title):
    (figure,) = [figure for figure in found if figure.title == title]
    return figure


def test_accuracies_and_bits_stand_in_figures_of_their_own(evaluated):
    found = page(
        evaluated(
            [
                result("quiz", "accuracy", 0.5, 0.1, baseline=0.25),
                result("quiz", "accuracy_clean", 0.4, 0.1, baseline=0.25),
                result("quiz", "accuracy_by_bytes", 0.6, 0.05, baseline=0.25),
                result("quiz", "answer_bits_per_byte", 2.0, 0.5),
                result("held_out/web", "bits_per_byte", 1.5, 0.1, baseline=2.5),
                result("chess", "elo", 900.0),
            ]
        )
    )
    accuracy = of(found, "Accuracy with 95 % intervals")
    assert isinstance(accuracy, IntervalFigure)
    assert [one.name for one in accuracy.estimates] == [
        "quiz",
        "quiz · accuracy_clean",
        "quiz · accuracy_by_bytes",
    ]
    first = accuracy.estimates[0]
    assert (first.low, first.high) == (pytest.approx(0.3), pytest.approx(0.7))
    assert (first.baseline, first.count) == (0.25, 10)
    assert "Wilson" in accuracy.note
    assert "_clean" in accuracy.note
    bits = of(found, "Bits per byte with 95 % intervals")
    assert [one.name for one in bits.estimates] == ["quiz · answer_bits_per_byte", "held_out/web"]
    (elo,) = of(found, "Elo with 95 % intervals").estimates
    assert (elo.name, elo.low, elo.high) == ("chess", None, None)


def test_simpler_judges_are_marks_on_the_score_that_they_are_compared_with(evaluated):
    rows = [
        result("quiz", "accuracy", 0.5, 0.1, baseline=0.25),
        result("quiz", "accuracy_ngram", 0.4, 0.1),
        result("quiz", "accuracy_shortest", 0.3, 0.1),
        result("other", "accuracy", 0.6, 0.1, baseline=0.25),
    ]
    figure = of(page(evaluated(rows)), "Accuracy with 95 % intervals")
    quiz, other = figure.estimates
    assert quiz.marks == (("n-gram model", 0.4), ("shortest choice", 0.3))
    assert other.marks == ()
    table = figure.table()
    assert [column.heading for column in table.columns][5:7] == ["n-gram model", "shortest choice"]
    assert table.rows[1][5:] == (None, None, 10)


def test_the_page_of_score_names_the_checkpoint_and_how_far_it_was(evaluated, given, store):
    checkpoint, output = given("checkpoint", {"state.json": {}})
    reference = store.reference(checkpoint, output)
    before = evaluated([result("quiz", "accuracy", 0.5)]).manifest
    measured = before.model_copy(update={"inputs": {"checkpoint": (reference,)}})
    after = evaluated([result("quiz", "accuracy", 0.6)]).manifest
    inputs = {"evaluation": (store.reference(before, "evaluation"),)}
    scored = after.model_copy(update={"inputs": inputs})

    class Known:
        """The store, whose evaluation says what it measured."""

        def __getattr__(self, name):
            return getattr(store, name)

        def manifest(self, stage, key):
            if key == before.key:
                return measured
            found = store.manifest(stage, key)
            counts = {"training_steps": 1200, "tokens": 300_000}
            return found.model_copy(update={"counts": counts}) if key == checkpoint.key else found

    (row,) = of(page(Artifact(Known(), scored)), "Checkpoint measured").rows
    assert row == (checkpoint.stage, checkpoint.key[:12], reference.digest[:12], 1200, 300_000)


def test_an_interval_that_may_be_too_narrow_is_named_below_the_scores(evaluated):
    items = [item("quiz", str(n), "accuracy", float(n == 3)) for n in range(30)]
    items += [item("sound", str(n), "accuracy", float(n < 9)) for n in range(30)]
    rows = [result(name, "accuracy", 0.3, count=30) for name in ("quiz", "sound")]
    artifact = evaluated(rows, items)
    for table in (of(page(artifact), "Scores and baselines"), of(summary(artifact), "scores")):
        assert "too narrow, or are none: quiz accuracy (one of 30)." in table.note
        assert "sound" not in table.note


def test_a_score_that_is_not_finite_is_named_and_not_drawn(evaluated):
    artifact = evaluated(
        [result("a", "bits_per_byte", math.nan), result("b", "bits_per_byte", 1.0, baseline=2.0)]
    )
    found = page(artifact)
    bits = of(found, "Bits per byte with 95 % intervals")
    assert [one.name for one in bits.estimates] == ["b"]
    assert bits.note.endswith(": a.")
    assert of(found, "Scores and baselines").rows[0][2] == "not finite"
    assert of(found, "Scores and baselines").rows[1][5] == "50.0%"


def test_bits_saved_against_the_baseline_have_their_interval_in_the_row_of_bits(evaluated):
    rows = [
        result("held_out/web", "bits_per_byte", 1.5, 0.1, baseline=2.5),
        result("held_out/web", "bits_saved", 0.4, 0.01),
        result("held_out/web", "bits_per_byte_clean", 1.6, 0.1),
        result("held_out/web", "bits_saved_clean", 0.36, 0.02),
        result("quiz", "accuracy", 0.5, 0.1, baseline=0.25),
    ]
    found = page(evaluated(rows))
    table = of(found, "Scores and baselines")
    assert [row[5] for row in table.rows] == [
        "40.0% [38.0%, 42.0%]", "36.0% [32.0%, 40.0%]", None,
    ]  # fmt: skip
    assert "`better by`" in table.note
    assert not any("saved" in figure.title for figure in found)


def test_planted_defects_alone_make_a_page_without_scores(evaluated):
    rows = [
        result("planted/garbled", "recall", 0.75, count=8),
        result("planted/none", "kept", 0.9, count=100),
    ]
    caught, sound = page(evaluated(rows))
    assert caught.rows == (("garbled", 8, 6, 2, None),)
    assert sound.rows == (("no planted defect", 100, 90, 10, None),)
    assert "caught" not in {column.heading for column in sound.columns}


def test_a_planted_defect_that_was_missed_is_named(evaluated):
    rows = [result("planted/broken_record", "recall", 0.5, count=2)]
    items = [
        item("planted/broken_record", "found", "recall", 1.0),
        item("planted/broken_record", "lost", "recall", 0.0),
        item("planted/none", "sound", "kept", 0.0),
    ]
    artifact = evaluated(rows, items)
    assert of(page(artifact), "Planted defects missed").rows == (("broken_record", "lost"),)
    assert of(summary(artifact), "planted defects missed").rows == (("broken_record", "lost"),)


def test_the_page_names_the_checkpoint_that_was_measured(evaluated, given, store):
    checkpoint, output = given("checkpoint", {"state.json": {}})
    reference = store.reference(checkpoint, output)
    artifact = evaluated([result("quiz", "accuracy", 0.5)])
    manifest = artifact.manifest.model_copy(update={"inputs": {"checkpoint": (reference,)}})
    artifact = Artifact(store, manifest)
    (row,) = of(page(artifact), "Checkpoint measured").rows
    assert row == (checkpoint.stage, checkpoint.key[:12], reference.digest[:12])
    assert [figure.title for figure in summary(artifact)] == [f"scores of {checkpoint.stage}"]


def test_contaminated_items_stand_beside_clean_ones(evaluated):
    items = [
        item("quiz", "1", "accuracy", 1.0, True),
        item("quiz", "2", "accuracy", 0.0, False),
        item("quiz", "3", "accuracy", 1.0, False),
        item("sound", "1", "accuracy", 1.0, False),
        item("held_out/web", "d", "accuracy", 1.0, None),
    ]
    found = page(evaluated([], items))
    assert of(found, "Contaminated and clean items").rows == (
        # Wilson's of 1 of 2, 1 of 1 and 1 of 1: n / (n + 1.96²) is the lower end where all hit
        # The difference by hand: -.5 - hypot(.405, 0) and -.5 + hypot(.405, .793).
        (
            "quiz", "accuracy", 0.0, 2, 1, "0.500 (0.095–0.905)", "1.000 (0.207–1.000)",
            "-0.500 (-0.905 to +0.391)",
        ),
        ("sound", "accuracy", 0.0, 1, 0, "1.000 (0.207–1.000)", None, None),
    )  # fmt: skip
    unknown = page(evaluated([], [item("quiz", "1", "accuracy", 1.0)]))
    assert unknown == []


def test_contaminated_items_are_told_apart_at_every_bound_where_the_search_is_there(
    evaluated, given, store
):
    """Ten items; of items 0 to 4 the corpus holds 10, 20, … 50 %: right are 0 to 4 and 9."""
    items = [item("quiz", str(n), "accuracy", float(n < 5 or n == 9), n < 5) for n in range(10)]
    hits = [
        {"benchmark": "quiz", "item_id": str(n), "documents": 1, "ngrams": 10, "ngrams_hit": n + 1}
        for n in range(5)
    ]
    contamination, output = given("contamination", {"items.parquet": hits})
    artifact = evaluated([], items)
    inputs = {"contamination": (store.reference(contamination, output),)}
    artifact = Artifact(store, artifact.manifest.model_copy(update={"inputs": inputs}))
    table = of(page(artifact), "Contaminated and clean items")
    assert [row[2:5] for row in table.rows] == [
        (0.0, 5, 5), (0.1, 6, 4), (0.2, 7, 3), (0.3, 8, 2)
    ]  # fmt: skip
    assert [row[5].split()[0] for row in table.rows] == ["0.200", "0.333", "0.429", "0.500"]
    curve = of(page(artifact), "quiz: accuracy by what is called contaminated")
    clean, contaminated = curve.series
    assert clean.y == pytest.approx((1 / 5, 2 / 6, 3 / 7, 4 / 8, 6 / 10, 6 / 10))
    assert contaminated.y == (1.0,) * 4
    assert all(low < y for low, y in zip(clean.low, clean.y, strict=True))


def test_items_are_spread_over_bins_where_there_are_enough(evaluated):
    many = [item("texts", str(n), "bits_per_byte", n / 10) for n in range(40)]
    few = [item("few", str(n), "bits_per_byte", 1.0) for n in range(29)]
    spread = of(page(evaluated([], [*many, *few])), "Bits per byte, item by item")
    assert isinstance(spread, HistogramFigure)
    assert [series.name for series in spread.series] == ["texts"]
    assert spread.note.startswith("Of texts: ")
    assert sum(spread.series[0].values) == 40
    assert (spread.edges[0], spread.edges[-1]) == (0.0, pytest.approx(3.9))


def test_items_of_one_value_are_one_bar(evaluated):
    same = [item("texts", str(n), "bits_per_byte", 2.0) for n in range(30)]
    spread = of(page(evaluated([], same)), "Bits per byte, item by item")
    assert max(spread.series[0].values) == 30


@pytest.fixture
def asked(evaluated, given, store):
    """Ten questions of rising difficulty, question 3 without a finite value."""
    questions = [
        {
            "benchmark": "quiz",
            "item_id": f"{n}",
            "form": "multiple_choice",
            "prompt": f"{'x' * 700} question {n}?",
            "choices": ["<b>no</b>", "yes"],
            "answer": 1,
            "metadata": "{}",
        }
        for n in range(10)
    ]
    benchmarks = given("benchmarks", {"00000.parquet": questions})
    items = [
        item("quiz", f"{n}", "answer_bits_per_byte", math.nan if n == 3 else float(n))
        for n in range(10)
    ]
    items += [item("held_out/web", f"d{n}", "bits_per_byte", float(n)) for n in range(3)]
    artifact = evaluated([], items)
    inputs = {"benchmarks": (store.reference(*benchmarks),)}
    manifest = artifact.manifest.model_copy(update={"inputs": inputs})
    return Artifact(store, manifest), benchmarks[0]


def test_the_worst_and_best_items_are_shown_with_their_texts(asked):
    samples = of(page(asked[0]), "Items predicted worst and best")
    assert isinstance(samples, SamplesFigure)
    named = [(sample.group, sample.heading) for sample in samples.samples]
    worst = [("worst, answer bits per byte", f"quiz / {n}") for n in (9, 8, 7, 6)]
    best = [("best, answer bits per byte", f"quiz / {n}") for n in (0, 1, 2, 4)]
    assert named == worst + best
    lines = samples.samples[0].text.splitlines()
    assert lines[0].startswith("… x")
    assert lines[0].endswith("question 9?")
    assert len(lines[0]) == extremes.END_CHARACTERS + 2
    # Hostile text is passed on as it is: whoever draws it escapes it.
    assert lines[1:] == ["○ <b>no</b>", "● yes"]
    assert dict(samples.samples[0].facts) == {"bits per byte": 9.0, "contaminated": "not known"}


def test_items_of_a_collected_benchmark_are_named_without_texts(asked, store):
    artifact, benchmarks = asked
    remove_artifact(store, benchmarks)
    samples = of(page(artifact), "Items predicted worst and best")
    assert {sample.text for sample in samples.samples} == {""}
    assert "removed" in samples.note


def test_held_out_documents_are_named_by_id(asked):
    samples = of(page(asked[0]), "Held-out documents predicted worst and best")
    named = [(one.group, one.heading, one.text) for one in samples.samples]
    assert named == [("worst", "web / d2", ""), ("best", "web / d0", "")]
    assert "removed" in samples.note


def test_held_out_documents_are_shown_as_they_begin(
    evaluated, packed, checkpoint, read_table, store, texts
):
    """In shards of 64 tokens: each text fits into one sequence, so all of it is there."""
    names = {document_id("made", "file", number): text for number, text in enumerate(texts)}
    output = packed.output("held_out")
    index = [file.path for file in output.files if file.path.endswith(".index.parquet")]
    ids = sorted(
        {
            row["doc_id"]
            for path in index
            for row in read_table(packed, "held_out", path).to_pylist()
        }
    )
    artifact = evaluated(
        [], [item("held_out/even", name, "bits_per_byte", n) for n, name in enumerate(ids)]
    )
    inputs = {
        "held_out": (store.reference(packed, "held_out"),),
        "checkpoint": (store.reference(*checkpoint),),
    }
    measured = Artifact(store, artifact.manifest.model_copy(update={"inputs": inputs}))
    samples = of(page(measured), "Held-out documents predicted worst and best").samples
    assert [one.heading for one in samples[:4]] == [f"even / {one}" for one in ids[:-5:-1]]
    assert [one.text for one in samples[:4]] == [names[one] for one in ids[:-5:-1]]
    assert dict(samples[0].facts) == {"bits per byte": len(ids) - 1, "bytes": "1"}


def choice(item_id, number, is_right, *log_likelihoods):
    return {
        "benchmark": "quiz", "item_id": item_id, "formulation": None, "shots": None,
        "choice": number, "is_right": is_right, "log_likelihoods": list(log_likelihoods),
    }  # fmt: skip


def test_the_worst_by_choices_have_their_answer_farthest_behind_the_likeliest():
    """a: -5 against -1, b: -2 against -6, c: -3 against -2.5, d: equal, e: one choice alone."""
    rows = [
        choice("c", 0, True, -3.0), choice("c", 1, False, -2.5), choice("c", 2, False, -9.0),
        choice("a", 0, False, -0.5, -0.5), choice("a", 1, True, -2.0, -3.0),
        choice("b", 0, True, -2.0), choice("b", 1, False, -6.0),
        choice("d", 0, True, -2.0), choice("d", 1, False, -2.0),
        choice("e", 0, True, -2.0),
    ]  # fmt: skip
    worst = worst_ranked(pa.Table.from_pylist(rows))
    assert [(row["item_id"], row["behind"]) for row in worst] == [("a", 4.0), ("c", 0.5)]


def test_generations_are_shown_as_they_were_written(evaluated):
    hostile = "<script>alert(1)</script>\x1b[31m"
    rows = [
        {"prompt": "Once", "completion": hostile, "form": "text"},
        {"prompt": "Hi", "completion": "", "form": "chat"},
    ]
    artifact = evaluated([result("quiz", "accuracy", 0.5)], generations=rows)
    manifest = artifact.manifest.model_copy(update={"config": {"temperature": 0.7}})
    samples = of(page(Artifact(artifact.store, manifest)), "Generated texts")
    assert [sample.text for sample in samples.samples] == [f"Once▸{hostile}", "Hi▸"]
    assert [sample.group for sample in samples.samples] == ["text", "chat"]
    assert "0.7" in samples.note
    (scores, sample) = summary(artifact)
    assert isinstance(scores, TableFigure)
    assert (sample.title, sample.text) == ("a text sample", f"Once▸{hostile}")


def test_an_evaluation_of_nothing_has_an_empty_page(evaluated):
    assert page(evaluated([])) == []
