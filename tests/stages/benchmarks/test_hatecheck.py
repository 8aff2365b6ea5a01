"""Functional tests of hate speech as a benchmark, and an evaluation's parts by functional test."""

import json

import pytest

from flows.analysis.score_gaps import score_parts
from stages.evaluate.stage import Evaluate
from stages.examples.stage import Benchmarks

COLUMNS = {
    "id": "mhc_case_id",
    "text": "test_case",
    "label": "label_gold",
}
"""The published columns, for files that call them otherwise."""


@pytest.fixture
def german(shared_data, given, run_stage):
    import zstandard

    raw = (shared_data / "labels" / "multilingual-hatecheck.jsonl.zst").read_bytes()
    lines = zstandard.ZstdDecompressor().stream_reader(raw).read().splitlines()
    rows = [row for row in map(json.loads, lines) if row["lang"] == "german"][:60]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    listing = {"name": "mhc", "files": [{"name": "x.jsonl", "bytes": len(content), "sha256": ""}]}
    snapshot = given("snapshot", {"snapshot.json": listing, "files/x.jsonl": content})
    config = {"task": "multilingual_hatecheck_german", "rename": COLUMNS}
    return rows, run_stage(Benchmarks, config, {"snapshot": [snapshot]})


def test_messages_become_items_with_a_right_answer_each(german, read_table):
    rows, made = german
    items = read_table(made, "benchmarks").to_pylist()
    assert len(items) == len(rows)
    by_id = {item["item_id"]: item for item in items}
    for row in rows:
        item = by_id[row["id"]]
        right = item["choices"][item["answer"]]
        assert right == ("Ja" if row["label"] == "hateful" else "Nein")
        assert item["prompt"].startswith(row["text"])
        assert json.loads(item["metadata"])["functionality"] == row["functionality"]
        (request,) = item["requests"]
        assert request["prompt"].endswith("hasserfüllt?")
        assert [text.strip() for text in request["choices"]] == ["Ja", "Nein"]


def test_an_evaluation_is_read_by_functional_test(german, run_stage, store, make_model, given,
                                                  tokenizer):  # fmt: skip
    from stages.model.files import model_files
    from stages.tokenizer.training import transformers_config

    files = {
        **model_files(make_model(context=512)),
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": transformers_config("llama-bpe"),
        "state.json": {"stage": "pretrain", "training_step": 1, "tokens": 1},
    }
    rows, made = german
    inputs = {"checkpoint": [given("checkpoint", files)], "benchmarks": [(made, "benchmarks")]}
    quiet = {"text_prompts": [], "chat_prompts": []}
    measured = run_stage(Evaluate, quiet, inputs)
    parts = score_parts(store, measured, "functionality")
    assert {one.part for one in parts} == {row["functionality"] for row in rows}
    assert sum(one.count for one in parts) == len(rows)
    assert not any(one.by_item for one in parts)
    assert all(one.gap.p is None or one.adjusted >= one.gap.p for one in parts)
