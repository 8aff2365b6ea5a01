"""The stage through the engine: its bytes, what it refuses, and items before a model."""

import json

import pytest

from artifacts_schema.errors import InputError, UsageError
from stages.engine.page import Artifact, make_page
from stages.evaluate.stage import Evaluate
from stages.long_context.stage import LongContext

SMALL = {"lengths": [1024], "items": 25, "families": ["niah_single_1", "niah_single_2"]}


def files(manifest):
    return [(file.path, file.sha256) for file in manifest.output("benchmarks").files]


def test_bytes_are_the_same_for_any_workers_and_after_kills(
    run_stage, given_tokenizer, prose, killed_at, store
):
    from artifacts_schema.store.gc import remove_artifact

    inputs = {"tokenizer": [given_tokenizer], "documents": [prose]}
    first = run_stage(LongContext, SMALL, inputs)
    remove_artifact(store, first)
    with killed_at("shard recorded", visit=2):
        run_stage(LongContext, SMALL, inputs)
    again = run_stage(LongContext, SMALL, inputs, {"workers": 2})
    assert files(again) == files(first)
    assert len(files(first)) == 2 * 2 + 1  # Parts of 20 items, and the tasks.


def test_rows_say_what_was_made_and_tasks_how_answers_are_judged(
    run_stage, read_table, read_input, given_tokenizer, prose
):
    made = run_stage(
        LongContext, {**SMALL, "items": 5}, {"tokenizer": [given_tokenizer], "documents": [prose]}
    )
    rows = read_table(made, "benchmarks").to_pylist()
    assert {row["benchmark"] for row in rows} == {"niah_single_1-1024", "niah_single_2-1024"}
    facts = [json.loads(row["metadata"]) for row in rows]
    assert [one["depth"] for one in facts[:5]] == [0, 25, 50, 75, 100]
    assert {(one["family"], one["haystack"]) for one in facts} == {
        ("niah_single_1", "noise"), ("niah_single_2", "documents"),
    }  # fmt: skip
    for row in rows:
        assert "special magic" in row["prompt"]
        assert "grass" not in row["prompt"], "decontamination reads no haystack"
    tasks = {task["name"]: task for task in read_input(made, "benchmarks").read_json("tasks.json")}
    free = tasks["niah_single_1-1024"]["formulations"]["free"]
    assert (free["metric"], free["max_new_tokens"]) == ("string_match_all", 128)
    assert made.counts["items"] == 10


def test_a_model_is_measured_on_them_by_ranking(
    run_stage, read_table, given, word_tokenizer, make_model, store
):
    from stages.model.files import model_files
    from stages.tokenizer.training import transformers_config

    model = make_model(context=512, vocabulary_size=word_tokenizer.get_vocab_size())
    checkpoint = given(
        "checkpoint",
        {
            **model_files(model),
            "tokenizer.json": word_tokenizer.to_str().encode(),
            "tokenizer_config.json": transformers_config("llama-bpe"),
            "state.json": {"stage": "pretrain", "training_step": 1, "tokens": 1},
        },
    )
    config = {"lengths": [256, 512], "items": 10, "families": ["niah_single_1"],
              "answer_tokens": 16}  # fmt: skip
    items = run_stage(LongContext, config, {"checkpoint": [checkpoint]})
    inputs = {"checkpoint": [checkpoint], "benchmarks": [(items, "benchmarks")]}
    made = run_stage(Evaluate, {"text_prompts": [], "chat_prompts": []}, inputs)
    results = read_table(made, "evaluation", "results.parquet").to_pylist()
    scores = {row["benchmark"]: row for row in results if row["metric"] == "accuracy"}
    assert set(scores) == {"niah_single_1-256", "niah_single_1-512"}
    for row in scores.values():
        assert (row["formulation"], row["shots"], row["count"]) == ("cloze", 0, 10)
        assert row["baseline"] == 0.25
    assert "prompts_cut" not in made.counts

    page = {figure.title: figure for figure in make_page(Evaluate, Artifact(store, made))}
    title = "Needles by length and depth: right answer ranked first among wrong ones"
    picture = next(one for one in make_page(Evaluate, Artifact(store, made)) if one.title == title)
    assert picture.rows == ("0 %", "25 %", "50 %", "75 %", "100 %")
    assert picture.columns == ("256", "512")
    items_rows = read_table(made, "evaluation", "items.parquet").to_pylist()
    right = {
        (row["benchmark"], int(row["item_id"])): row["value"]
        for row in items_rows
        if row["metric"] == "accuracy"
    }
    for place, cells in enumerate(picture.values):  # Items take the five depths in turn.
        for length, cell in zip((256, 512), cells, strict=True):
            name = f"niah_single_1-{length}"
            assert cell == (right[name, place] + right[name, place + 5]) / 2
    assert [row[-1] for row in page[title].rows] == [2] * 10
    assert make_page(LongContext, Artifact(store, items))[0].rows[0][:4] == (
        "niah_single_1", 256, "noise", 10,
    )  # fmt: skip


def test_what_cannot_be_made_is_refused(
    run_stage, given_tokenizer, make_documents, make_model, checkpoint
):
    tokenizer = {"tokenizer": [given_tokenizer]}
    for inputs in ({}, {**tokenizer, "checkpoint": [checkpoint]}):
        with pytest.raises(UsageError, match="one tokenizer"):
            LongContext.check_plan(LongContext.Config.parse(SMALL, where=""), inputs)
    for wrong in ({"lengths": [1024, 1024]}, {"lengths": []}, {"depths": [101]}, {"choices": 1}):
        with pytest.raises(UsageError):
            LongContext.Config.parse({**SMALL, **wrong}, where="config")
    with pytest.raises(InputError, match=r"niah_single_1 has .*, the length is 128") as caught:
        run_stage(LongContext, {**SMALL, "lengths": [128]}, tokenizer)
    assert "answer_tokens" in caught.value.hint
    endless = make_documents([["x" * 2000]])
    with pytest.raises(InputError, match="no sentence"):
        run_stage(LongContext, SMALL, {**tokenizer, "documents": [endless]})
