"""Evaluation items in the shapes of public data sets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from artifacts_schema.errors import InputError
from artifacts_schema.manifest import Manifest
from stages.examples.conversion import BadExample, Origin
from stages.examples.shapes import benchmark_row
from stages.examples.stage import Benchmarks

Snapshot = Callable[..., list[tuple[Manifest, str]]]
Run = Callable[..., Manifest]
ORIGIN = Origin("f" * 32, "mmlu-dev.jsonl.zst", "mmlu-dev")
CHOICES = {"question": "Which?", "choices": ["red", "green", "blue"]}


def item(fields: dict[str, Any]) -> tuple[str, list[str], int | None]:
    made = benchmark_row(dict(fields), ORIGIN)
    return made["prompt"], made["choices"], made["answer"]


@pytest.mark.parametrize(
    "gold",
    [
        {"gold": 2},
        {"answer": "C"},
        {"answer": "c"},
        {"label": "2"},
        {"answer": "blue"},
        {"label": 2.0},
    ],
)
def test_the_right_choice_is_an_index_a_letter_or_the_choice_itself(gold: dict[str, Any]) -> None:
    assert item({**CHOICES, **gold}) == ("Which?", ["red", "green", "blue"], 2)


def test_a_question_has_one_choice_that_its_answer_should_name() -> None:
    fields = {"form": "question", "prompt": "What is a Lock?", "choices": ["Lock"], "answer": 0}
    assert benchmark_row(dict(fields), ORIGIN)["form"] == "question"
    assert item(fields) == ("What is a Lock?", ["Lock"], 0)
    for wrong in ({"choices": ["Lock", "Event"]}, {"choices": []}, {"prompt": " "}, {"answer": 1}):
        with pytest.raises(BadExample):
            item({**fields, **wrong})


def test_labels_of_their_own_win_over_numbers_and_letters() -> None:
    fields = {
        "question": "Which?",
        "choices": {"text": ["red", "green"], "label": ["2", "1"]},
        "answerKey": "2",
    }
    assert item(fields) == ("Which?", ["red", "green"], 0)


def test_choices_that_are_numbers_are_meant_by_their_text() -> None:
    assert item({"question": "1+1?", "choices": ["1", "2", "3"], "answer": "2"})[2] == 1
    assert item({"question": "1+1?", "choices": ["1", "2", "3"], "gold": 2})[2] == 2


def test_winogrande_ranks_whole_sentences_behind_what_they_share() -> None:
    fields = {
        "context_options": ["Ann met Eve, so Ann", "Ann met Eve, so Eve"],
        "continuation": "was glad.",
        "gold": 1,
    }
    assert item(fields) == ("Ann met Eve, so ", ["Ann was glad.", "Eve was glad."], 1)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"question": "1+1?", "answer": "2"}, "1+1?\n2"),
        ({"context": "She is", "continuation": "glad"}, "She is glad"),
        ({"prompt": "def f():\n", "canonical_solution": "    pass\n"}, "def f():\n    pass\n"),
        ({"question": "q", "answer": "4", "solution": "2+2=4"}, "q\n2+2=4"),
        ({"prompt": "A whole text."}, "A whole text."),
    ],
)
def test_items_without_choices_become_texts(fields: dict[str, Any], text: str) -> None:
    made = benchmark_row(dict(fields), ORIGIN)
    assert (made["form"], made["prompt"], made["choices"], made["answer"]) == (
        "text",
        text,
        [],
        None,
    )


def test_names_come_from_the_row_then_from_the_source() -> None:
    made = benchmark_row({"benchmark": "b", "item_id": 7, "prompt": "x", "k": 1}, ORIGIN)
    assert (made["benchmark"], made["item_id"], made["metadata"]) == ("b", "7", '{"k": 1}')
    made = benchmark_row({"task_id": "HumanEval/1", "prompt": "x"}, ORIGIN)
    assert (made["benchmark"], made["item_id"]) == ("mmlu-dev", "HumanEval/1")
    assert benchmark_row({"prompt": "x"}, ORIGIN)["item_id"] == ORIGIN.id


def test_ingots_own_fields_pass_unchanged() -> None:
    row = {
        "benchmark": "docstrings",
        "item_id": "docstrings-0001",
        "form": "multiple_choice",
        "prompt": "The function does",
        "choices": [" this", " that"],
        "answer": 1,
        "requests": [],
        "metadata": "{}",
    }
    assert {k: v for k, v in benchmark_row(dict(row), ORIGIN).items() if k != "metadata"} == {
        k: v for k, v in row.items() if k != "metadata"
    }


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"text": "x"}, "unknown_shape"),
        ({**CHOICES}, "no_answer"),
        ({**CHOICES, "gold": 3}, "answer_out_of_range"),
        ({**CHOICES, "gold": -1}, "answer_out_of_range"),
        ({**CHOICES, "gold": True}, "answer_out_of_range"),
        ({**CHOICES, "answer": "purple"}, "answer_out_of_range"),
        ({"question": "q", "choices": ["a"], "gold": 0}, "bad_choices"),
        ({"question": "q", "choices": ["a", " "], "gold": 0}, "bad_choices"),
        ({"question": "q", "choices": ["a", "a"], "gold": 0}, "bad_choices"),
        ({"question": "q", "choices": [1, 2], "gold": 0}, "bad_choices"),
        ({"form": "multiple_choice", "prompt": "q", "choices": []}, "bad_choices"),
        ({"form": "essay", "prompt": "q"}, "unknown_form"),
        ({"prompt": " "}, "empty_prompt"),
    ],
)
def test_bad_items_have_reasons(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadExample) as found:
        benchmark_row(dict(fields), ORIGIN)
    assert found.value.reason == reason


def test_an_item_named_twice_is_bad_in_one_file_and_an_error_in_two(
    snapshot: Snapshot, run_stage: Run, read_table: Callable[..., Any]
) -> None:
    rows = [{"id": f"i{n % 5}", "prompt": f"text {n}"} for n in range(6)]
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    config = {"max_bad_share": 0.2}
    made = run_stage(Benchmarks, config, {"snapshot": snapshot({"a.jsonl": data})})
    assert made.counts["bad_duplicate_id"] == 1
    kept = read_table(made, "benchmarks").to_pylist()
    assert [row["prompt"] for row in kept] == [f"text {n}" for n in range(5)]
    both = snapshot({"a.jsonl": data, "b.jsonl": data})
    assert run_stage(Benchmarks, config, {"snapshot": both}).counts["rows_out"] == 10
    with pytest.raises(InputError, match=r"x i0.*a\.jsonl.*b\.jsonl"):
        run_stage(Benchmarks, {**config, "source": "x"}, {"snapshot": both})


def test_public_benchmarks_are_read_and_their_right_answers_stay(
    shared_data: Path, snapshot: Snapshot, run_stage: Run, read_table: Callable[..., Any]
) -> None:
    files = {path.name: path.read_bytes() for path in (shared_data / "bench").glob("*.zst")}
    made = run_stage(Benchmarks, {}, {"snapshot": snapshot(files)})
    listed = json.loads((shared_data / "MANIFEST.json").read_text())
    assert made.counts["rows_in"] == sum(
        entry["items"] for path, entry in listed.items() if path.startswith("bench/")
    )
    assert made.counts["rows_in"] - made.counts["rows_out"] == made.counts["bad_duplicate_id"] == 1
    rows = read_table(made, "benchmarks").to_pylist()
    (lake,) = [row for row in rows if row["item_id"] == "arc_challenge-fe18f8e9a3"]
    assert lake["choices"][lake["answer"]] == "deep, bowl-shaped lake"
