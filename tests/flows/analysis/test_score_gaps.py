"""Parts of an evaluation and their gaps: paired translations, independent parts, wrong names."""

import json

import pytest
from click.testing import CliRunner

from artifacts_schema.errors import UsageError
from flows.analysis.score_gaps import score_parts
from flows.cli.main import main
from stages.engine import Many, Stage


@pytest.fixture
def evaluation(given, run_stage):
    """`evaluation({benchmark: {item: value}}, {benchmark: {item: metadata}})` → its manifest."""

    def make(values, metadata=None, clusters=None):
        items = [
            {"benchmark": name, "item_id": item, "formulation": "cloze", "shots": 0,
             "metric": "accuracy", "value": float(value), "weight": 1.0,
             "cluster": (clusters or {}).get(item), "contaminated": None}
            for name, some in values.items() for item, value in some.items()
        ]  # fmt: skip
        rows = [
            {"benchmark": name, "item_id": item, "form": "multiple_choice", "prompt": "x",
             "choices": ["a", "b"], "answer": 0, "requests": [],
             "metadata": json.dumps({**(metadata or {}).get(name, {}).get(item, {}),
                                     "passage": (clusters or {}).get(item)})}
            for name, some in values.items() for item in some
        ]  # fmt: skip
        benchmarks = given("benchmarks", {"00000.parquet": rows, "tasks.json": []})

        class Measured(Stage):
            name, version, reproducible = "measured", 1, "bytes"
            inputs = {"benchmarks": Many("benchmarks")}
            outputs = {"evaluation": "evaluation"}

            def run(self, context):
                import pyarrow as pa

                from artifacts_schema.kinds import KINDS
                from stages.scoring.observations import empty_table

                schema = KINDS["evaluation"].tables["items.parquet"].arrow()
                table = pa.Table.from_pylist(items, schema=schema)
                context.write_table("evaluation", "items.parquet", table)
                for path in ("results", "choices", "answers", "generations"):
                    name = f"{path}.parquet"
                    context.write_table("evaluation", name, empty_table(name))
                context.write_json("evaluation", "tasks.json", [])

        return run_stage(Measured, {}, {"benchmarks": [benchmarks]})

    return make


def right(count, of, start=0):
    return {f"q{n}": n < count for n in range(start, start + of)}


def test_translations_are_paired_by_item(store, evaluation):
    made = evaluation({"xnli_en": right(80, 100), "xnli_de": right(70, 100), "copa": right(1, 2)})
    english, german = score_parts(store, made, "benchmark", benchmarks="xnli_*", reference="en")
    assert (english.part, english.value, english.reading) == ("en", 0.8, "reference")
    assert german.by_item
    # Ten items that English alone has right: Agresti and Min, (10 + .5 - .5)/102 around -.1.
    assert german.gap.value == pytest.approx(-0.1)
    assert german.gap.items == 100
    assert german.gap.p == pytest.approx(2 / 2**10)
    assert german.reading == "behind"
    assert german.gap.high < 0


def test_parts_of_a_field_are_independent_and_compared_with_the_rest(store, evaluation):
    values = {"hate": {**right(90, 100), **right(130, 100, start=100)}}
    kinds = {"hate": {f"q{n}": {"functionality": "threat" if n < 100 else "negation"}
                      for n in range(200)}}  # fmt: skip
    negation, threat = score_parts(store, evaluation(values, kinds), "functionality")
    assert (negation.part, negation.value, threat.value) == ("negation", 0.3, 0.9)
    assert negation.gap.value == pytest.approx(-0.6)
    assert threat.gap.value == pytest.approx(0.6)
    # Errors of both add in squares: sqrt((.21 + .09) / 99) = .055048.
    assert threat.gap.standard_error == pytest.approx(0.055048, abs=1e-6)
    assert (negation.reading, threat.reading) == ("behind, not paired", "ahead, not paired")


def test_equal_parts_have_no_gap_and_p_is_adjusted_for_all(store, evaluation):
    values = {f"x_{name}": right(50 + (name == "d") * 9, 100) for name in "abcd"}
    parts = score_parts(store, evaluation(values), "benchmark", benchmarks="x_*", reference="a")
    assert [one.reading for one in parts] == ["reference", *["no gap seen"] * 2, "ahead"]
    assert parts[3].adjusted == pytest.approx(3 * parts[3].gap.p)


def test_clusters_widen_the_interval(store, evaluation):
    values = {"x_a": right(50, 100), "x_b": right(70, 100)}
    clusters = {f"q{n}": str(n // 10) for n in range(100)}
    alone, together = (
        score_parts(store, evaluation(values, clusters=some), "benchmark", benchmarks="x_*",
                    reference="a")[1].gap
        for some in (None, clusters)
    )  # fmt: skip
    assert together.units == 10
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_wrong_names_are_answered_with_the_right_ones(store, evaluation):
    made = evaluation({"x_a": right(1, 2)}, {"x_a": {"q0": {"lang": "de"}}})
    for changes, message in (
        ({"metric": "acuracy"}, "did you mean 'accuracy'|accuracy"),
        ({"benchmarks": "y*"}, "no benchmark is named like 'y"),
        ({"field": "language"}, "lang"),
        ({"reference": "z"}, "parts: a"),
    ):
        arguments = {"field": "benchmark", "benchmarks": "x_*", **changes}
        with pytest.raises(UsageError, match=message):
            score_parts(store, made, **arguments)


def test_the_command_prints_a_table(store, evaluation):
    made = evaluation({"x_a": right(50, 100), "x_b": right(70, 100)})
    arguments = ["gaps", made.key[:12], "--benchmark", "x_*", "--reference", "a"]
    printed = CliRunner().invoke(main, [*arguments, "--store", store.url])
    assert printed.exit_code == 0, printed.output
    assert "+0.200" in printed.output
    assert "1 of 2 parts differ from a beyond chance" in printed.output
    plain = CliRunner().invoke(main, [*arguments, "--store", store.url, "--json"])
    assert json.loads(plain.output)[1]["reading"] == "ahead"
