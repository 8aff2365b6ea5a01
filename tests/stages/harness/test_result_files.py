"""Result files of lm-eval that were written elsewhere, well and badly."""

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from artifacts_schema.errors import IngotError, InputError
from stages.harness.config import ImportScoresConfig
from stages.harness.result_files import ResultFile, read_result_files
from stages.harness.scores import observe, read_scores
from stages.harness.stage import ImportScores

RIGHT = [1, 0, 1, 1, 0]
"""Mean .6; notes: its standard error, sample deviation over root n, is 0.244949."""
DATE = "2026-01-02T03-04-05.678901"


def results(**changes):
    made = {
        "results": {
            "quiz": {"alias": "quiz", "name": "quiz", "sample_len": 5, "acc,none": 0.6,
                     "acc_stderr,none": 0.244949, "acc_norm,none": 0.4,
                     "acc_norm_stderr,none": 0.244949},
            "math": {"exact_match,strict-match": 0.25, "exact_match_stderr,strict-match": 0.05,
                     "exact_match,flexible-extract": 0.5,
                     "exact_match_stderr,flexible-extract": 0.06},
            "prose": {"bits_per_byte,none": 2.196182, "bits_per_byte_stderr,none": "N/A",
                      "word_perplexity,none": 4.582649, "word_perplexity_stderr,none": "N/A"},
        },
        "versions": {"quiz": 1.0, "math": 3.0, "prose": 2.0},
        "n-shot": {"quiz": 0, "math": 5, "prose": 0},
        "n-samples": {"quiz": {"original": 5, "effective": 5},
                      "math": {"original": 900, "effective": 100}},
        "higher_is_better": {"quiz": {"acc": True}, "prose": {"bits_per_byte": False}},
        "configs": {"quiz": {"output_type": "multiple_choice", "doc_to_text": "x"}},
        "config": {"model": "hf", "model_args": {"pretrained": "org/model", "api_key": "SECRET"}},
        "lm_eval_version": "0.4.13",
    }  # fmt: skip
    made.update(changes)
    return json.dumps(made)


def sample(number, **changes):
    made = {
        "doc_id": number, "doc": {"n": number}, "target": "0", "filter": "none",
        "arguments": {f"gen_args_{n}": {"arg_0": "q", "arg_1": " a"} for n in range(4)},
        "resps": [], "filtered_resps": [], "metrics": ["acc"], "acc": RIGHT[number],
        "doc_hash": f"{number:064x}"[::-1], "prompt_hash": "0", "target_hash": "0",
    }  # fmt: skip
    return {**made, **changes}


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def load(run_stage, snapshot):
    def run(files, **config):
        return run_stage(ImportScores, config, {"snapshot": [snapshot(files)]})

    return run


@pytest.fixture
def rows(load, read_table):
    def run(files, **config):
        table = read_table(load(files, **config), "evaluation", "results.parquet")
        return {(row["benchmark"], row["metric"]): row for row in table.to_pylist()}

    return run


def test_results_keep_value_error_shots_filter_and_count(rows):
    scores = rows({f"org__model/results_{DATE}.json": results()})
    assert set(scores) == {
        ("quiz", "accuracy"), ("quiz", "accuracy_by_characters"),
        ("math", "exact_match/strict-match"), ("math", "exact_match/flexible-extract"),
        ("prose", "bits_per_byte"), ("prose", "word_perplexity"),
    }  # fmt: skip
    strict = scores["math", "exact_match/strict-match"]
    assert (strict["value"], strict["standard_error"], strict["shots"]) == (0.25, 0.05, 5)
    assert strict["count"] == 100
    # Wilson 1927 of 25 of 100.
    z = 1.959963984540054
    middle, width = (0.25 + z * z / 200) / (1 + z * z / 100), None
    width = z * math.sqrt(0.25 * 0.75 / 100 + z * z / 40000) / (1 + z * z / 100)
    assert strict["low"] == pytest.approx(middle - width)
    assert strict["high"] == pytest.approx(middle + width)
    assert scores["prose", "bits_per_byte"]["low"] is None


def test_samples_become_items_with_errors_of_ours(rows, load, read_table):
    files = {
        f"results_{DATE}.json": results(),
        f"samples_quiz_{DATE}.jsonl": lines(sample(n) for n in range(5)),
    }
    score = rows(files)["quiz", "accuracy"]
    assert score["value"] == pytest.approx(0.6)
    assert score["standard_error"] == pytest.approx(0.244949, abs=1e-6)
    assert score["baseline"] == 0.25
    items = read_table(load(files), "evaluation", "items.parquet").to_pylist()
    assert [row["value"] for row in items] == RIGHT
    assert items[1]["item_id"] == f"{1:064x}"[::-1][:16]


def test_equal_rows_are_items_of_their_own():
    scores = read_scores({"acc,none": 0.5}, {})
    twice = [sample(0, doc_hash="f" * 64), sample(1, doc_hash="f" * 64)]
    observed = observe("quiz", 0, twice, scores)
    assert [one.item_id for one in observed] == ["f" * 16, "f" * 16 + "-2"]


def test_pairs_of_bits_per_byte_are_ratios():
    # notes 3d: items (-120.5, 80) and (-33.25, 21) give 2.196182 bits per byte.
    scores = read_scores({"bits_per_byte,none": 2.196182}, {})
    pairs = [
        sample(n, metrics=["bits_per_byte"], bits_per_byte=pair)
        for n, pair in enumerate(([-120.5, 80], [-33.25, 21]))
    ]
    observed = observe("prose", 0, pairs, scores)
    value = sum(one.numerator for one in observed) / sum(one.denominator for one in observed)
    assert value == pytest.approx(2.196182, abs=1e-6)


def test_a_metric_with_an_aggregation_of_its_own_has_no_items():
    scores = read_scores({"strange,none": 9.0}, {})
    assert observe("quiz", 0, [sample(0, metrics=["strange"], strange=1.0)], scores) == []


def test_the_record_names_model_version_and_harness_and_no_secret(load, read_input):
    made = load({f"results_{DATE}.json": results()})
    (_, _, quiz) = read_input(made, "evaluation").read_json("tasks.json")
    assert quiz["version"] == "1.0"
    assert quiz["source"] == "lm-evaluation-harness 0.4.13"
    assert quiz["harness"]["model"] == "org/model"
    assert quiz["harness"]["output_type"] == "multiple_choice"
    assert "SECRET" not in json.dumps(quiz)


@pytest.mark.parametrize(
    ("content", "model"),
    [
        ({"model_name": "org/m"}, "org/m"),
        ({"config": {"model_args": "pretrained=org/m,revision=x"}}, "org/m"),
        ({"config": {"model_args": "model=https://user:pw@host/m?sig=1"}}, "m"),
        ({"config": {"model": "hf"}}, "hf"),
        ({"config": []}, "unknown"),
    ],
)
def test_names_of_models(content, model):
    assert ResultFile("x", content, ()).model == model


def other_model():
    return results(config={"model_args": "pretrained=org/other"})


def test_results_of_several_models_need_a_name(load, read_input):
    files = {"a/results_1.json": results(), "b/results_1.json": other_model()}
    with pytest.raises(InputError, match="several models: org/model, org/other"):
        load(files)
    made = load(files, model="org/other", tasks=["q*"])
    (only,) = read_input(made, "evaluation").read_json("tasks.json")
    assert (only["name"], only["harness"]["model"]) == ("quiz", "org/other")
    with pytest.raises(InputError, match="models: org/model, org/other"):
        load(files, model="org/mdel")


BAD = {
    "not json": ("{", "is not JSON"),
    "no utf-8": ("\ud800", "is not JSON"),
    "deep": ("[" * 100_000 + "]" * 100_000, "is not JSON: nested"),
    "a list": ("[]", "no results of lm-eval"),
    "foreign": ('{"results": [1]}', "no results of lm-eval"),
    "older": ('{"results": {"quiz": {"acc": 0.6}}}', "name no filter"),
    "huge": ("{}" + " " * 200, "more than 100"),
    "empty": ('{"results": {}}', "no results that were named"),
    "no numbers": ('{"results": {"quiz": {"acc,none": "x"}}}', "no task has a score"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_result_files_are_refused_with_their_name(run_stage, given, name):
    text, message = BAD[name]
    content = text.encode("utf-8", "surrogatepass")
    listing = {"name": "x", "files": [{"name": "r.json", "bytes": len(content), "sha256": ""}]}
    made = given("snapshot", {"snapshot.json": listing, "files/r.json": content})
    config = {"max_file_bytes": 100} if name == "huge" else {}
    with pytest.raises(InputError, match=message):
        run_stage(ImportScores, config, {"snapshot": [made]})


BAD_SAMPLES = {
    "of another run": ([sample(n, acc=1) for n in range(5)], "of the samples is 1.000000"),
    "cut": ([sample(n) for n in range(4)], "of the samples is 0.750000"),
    "older": ([{"doc_id": 0}], "has no doc_hash"),
    "no metrics": ([sample(0, metrics=3)], "does not say its metrics"),
}


@pytest.mark.parametrize("name", sorted(BAD_SAMPLES))
def test_bad_samples_are_refused(load, name):
    some, message = BAD_SAMPLES[name]
    with pytest.raises(InputError, match=message):
        load({f"results_{DATE}.json": results(), f"samples_quiz_{DATE}.jsonl": lines(some)})


def test_samples_of_another_date_are_not_taken(rows):
    other = "2025-01-01T00-00-00.1"
    files = {
        f"results_{DATE}.json": results(),
        f"results_{other}.json": json.dumps({"results": {"more": {"acc,none": 1.0}},
                                             "model_name": "org/model"}),
        f"samples_quiz_{other}.jsonl": lines(sample(n, acc=1) for n in range(5)),
    }  # fmt: skip
    assert rows(files)["quiz", "accuracy"]["value"] == 0.6


@drawn(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["results", "quiz", "acc,none", "versions", "n-shot", "config",
                             "n-samples", "configs", "higher_is_better", "effective",
                             "group_subtasks"]),
            inner, max_size=4),
        max_leaves=20,
    )
)  # fmt: skip
def test_any_json_gives_scores_or_one_clear_error(value):
    from io import BytesIO

    class File:
        name = "results.json"
        raw = json.dumps(value).encode()
        bytes = len(raw)

        def open(self):
            return BytesIO(self.raw)

    with suppress(IngotError):  # Anything else is a failure.
        for task in read_result_files([File()], ImportScoresConfig()):
            assert all(math.isfinite(one.value) for one in task.scores)
