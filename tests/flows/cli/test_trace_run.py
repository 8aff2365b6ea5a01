"""`ingot trace RUN`: from a training step to its documents, and from a document to its steps."""

from __future__ import annotations

import json
from hashlib import blake2b

import pytest

from artifacts_schema.identity import document_id
from stages.pack.stage import Pack
from stages.pretrain.stage import Pretrain
from stages.tokenizer.stage import TokenizerStage

TEXTS = [
    {"text": f"{word} upon a time there was a {word}", "language": language, "source": source}
    for word, language, source in [
        ("once", "en", "books"),
        ("einst", "de", "web"),
        ("twice", "en", "web"),
        ("never", None, "web"),
        ("again and again", "en", "books"),
    ]
]
STEPS, ROWS = 9, 2


@pytest.fixture
def run(store, run_stage, make_documents):
    """A pretraining run of nine steps, step 4 left out, under the name `demo/pretrain`."""
    given = {"documents": [make_documents([TEXTS[:3], TEXTS[3:]])]}
    tokenizer = run_stage(TokenizerStage, {"vocabulary_size": 300, "held_share": 0}, given)
    inputs = {**given, "tokenizer": [(tokenizer, "tokenizer")]}
    packed = run_stage(Pack, {"sequence_length": 16, "held_out_share": 0}, inputs)
    phase = {"tokens": 16 * ROWS * STEPS, "sequences_per_batch": ROWS}
    config = {
        "model": {"width": 8, "layers": 1, "heads": 1, "kv_heads": 1, "context": 16},
        "phases": [{**phase, "learning_rate": {"peak": 0.1}}],
        "precision": "fp32",
        "skip": [{"first": 4, "last": 4}],
    }
    inputs = {"train": [(packed, "train")], "tokenizer": inputs["tokenizer"]}
    manifest = run_stage(Pretrain, config, inputs, {"device": "cpu", "threads": 1})
    store.set_ref("demo/pretrain", manifest.stage, manifest.key)
    store.set_ref("demo/pack", packed.stage, packed.key)
    return manifest


def doc_id(number):
    return document_id("given", "file", number)


def test_both_ways_between_documents_and_training_steps_agree(ingot, run, read_table):
    read = {}
    for step in range(1, STEPS + 1):
        told = ingot("trace", "demo/pretrain", "--training-step", step, "--json")
        if step == 4:
            assert told.exit_code == 2
            assert "the run skips this training step" in told.stderr
            continue
        pieces = json.loads(told.stdout)["pieces"]
        read[step] = {(piece["source"], piece["sequence"], piece["doc_id"]) for piece in pieces}
        assert {piece["row"] for piece in pieces} == set(range(ROWS))
        for piece in pieces:
            known = TEXTS[[doc_id(n) for n in range(len(TEXTS))].index(piece["doc_id"])]
            assert (piece["language"], piece["source"]) == (known["language"], known["source"])
            expected = blake2b(known["text"].encode(), digest_size=8).hexdigest()
            assert piece["content_hash"] == expected
            assert piece["snapshot"] == "given"
            assert piece["length"] > 0
    for number in range(len(TEXTS)):
        told = json.loads(
            ingot("trace", "demo/pretrain", "--document", doc_id(number), "--json").stdout
        )
        assert told["readings"]
        for reading in told["readings"]:
            place = reading["source"], reading["sequence"], doc_id(number)
            assert reading["steps"] == [step for step, found in read.items() if place in found]
    rows = read_table(run, "training_run", "metrics.parquet")["training_step"].to_pylist()
    assert rows == sorted(read)


def test_what_is_printed_names_record_language_and_hash(ingot, run):
    shown = ingot("trace", "demo/pretrain", "--training-step", 1).stdout.splitlines()
    assert shown[0].split() == [
        *("row", "source", "tokens", "language", "document", "content", "hash", "record")
    ]
    assert "given: file at " in shown[1]
    shown = ingot("trace", "demo/pretrain", "--document", doc_id(1)).stdout.splitlines()
    assert shown[0].split() == ["source", "sequence", "training", "steps"]
    assert shown[1].startswith("web")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo/pretrain", "--training-step", "10"], "the run has 9 training steps"),
        (["demo/pretrain", "--document", "f" * 32], "hold no document 'ffff"),
        (["demo/pack", "--document", "f" * 32], "is not a pretraining run"),
        (["demo/pack", "--training-step", "1"], "is not a pretraining run"),
        (["demo/pretrain", "--document", "f" * 32, "--training-step", "1"], "not both"),
    ],
)
def test_what_cannot_be_traced_is_said(ingot, run, arguments, message):
    result = ingot("trace", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
