"""The stage through the engine: made inputs, held-out shards packed by the real pack stage."""

import json
import math

import pytest
import torch

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.identity import document_id
from artifacts_schema.store.gc import remove_artifact
from stages.evaluate.stage import Evaluate
from stages.model.files import model_files
from stages.scoring.likelihood import encode_text, unigram_nll
from stages.tokenizer.training import transformers_config

QUIET = {"text_prompts": [], "chat_prompts": []}


def question(item_id, answer=0, **changes):
    values = {
        "benchmark": "quiz",
        "item_id": item_id,
        "form": "multiple_choice",
        "prompt": f"Question {item_id}: the capital is",
        "choices": ["Paris", "Rome", "a dictionary of values"],
        "answer": answer,
        "metadata": "{}",
    }
    return {**values, **changes}


def rows_of(read_table, manifest, table="results.parquet"):
    return read_table(manifest, "evaluation", table).to_pylist()


def test_held_out_bits_per_byte_are_those_of_each_document_alone(
    run_stage, read_table, read_input, checkpoint, packed, model, tokenizer, texts
):
    inputs = {"checkpoint": [checkpoint], "held_out": [(packed, "held_out")]}
    made = run_stage(Evaluate, QUIET, inputs)
    counts = read_input(packed, "held_out").read_bytes("train_counts.bin")
    unigram = unigram_nll(torch.frombuffer(bytearray(counts), dtype=torch.int64).numpy())
    items = rows_of(read_table, made, "items.parquet")
    names = {document_id("made", "file", number): text for number, text in enumerate(texts)}
    assert {item["benchmark"] for item in items} == {"held_out/even", "held_out/odd"}
    sums = {"held_out/even": [0.0, 0.0, 0], "held_out/odd": [0.0, 0.0, 0]}
    assert {item["metric"] for item in items} == {"bits_per_byte", "bits_saved"}
    for item in (one for one in items if one["metric"] == "bits_per_byte"):
        text = names[item["item_id"]]
        ids = encode_text(tokenizer, text)
        assert len(ids) + 2 <= 64, "documents fit into a sequence, so none is cut"
        with torch.no_grad():
            log_p = torch.log_softmax(model(torch.tensor([[0, *ids]]))[0].double(), dim=-1)
        nll = -sum(float(log_p[i, token]) for i, token in enumerate(ids)) / math.log(2)
        assert item["value"] == pytest.approx(nll / len(text.encode()), abs=1e-4)
        total = sums[item["benchmark"]]
        total[0] += nll
        total[1] += float(unigram[ids].sum()) / math.log(2)
        total[2] += len(text.encode())
    for row in rows_of(read_table, made):
        nll, baseline, size = sums[row["benchmark"]]
        if row["metric"] == "bits_saved":
            assert row["value"] == pytest.approx(1 - nll / baseline, abs=1e-4)
            assert row["low"] < row["value"] < row["high"]
            continue
        assert row["value"] == pytest.approx(nll / size, abs=1e-4)
        assert row["baseline"] == pytest.approx(baseline / size)
        assert row["count"] == size
        assert row["standard_error"] > 0


def test_benchmarks_contamination_and_planted_defects_come_out_as_results(
    run_stage, read_table, given, checkpoint
):
    benchmarks = given(
        "benchmarks",
        {
            "00000.parquet": [question(str(number), answer=number % 3) for number in range(9)]
            + [question("t", benchmark="prose", form="text", choices=[], answer=None)]
        },
    )
    hit = [{"benchmark": "quiz", "item_id": "4", "ngrams": 1, "start": 0, "end": 5}]
    lost = [{"benchmark": "quiz", "item_id": "5", "ngrams": 1, "start": 0, "end": 5}]
    documents = [
        {"doc_id": "kept", "ngrams": 9, "ngrams_hit": 1, "hits": hit},
        {"doc_id": "dropped", "ngrams": 9, "ngrams_hit": 1, "hits": lost},
    ]
    counts = {"documents": 1, "ngrams": 3, "ngrams_hit": 1}
    contamination = given(
        "contamination",
        {
            "items.parquet": [
                {"benchmark": "quiz", "item_id": "4", **counts},
                {"benchmark": "quiz", "item_id": "5", **counts},
            ],
            "aaaaaaaaaaaa/00000.parquet": documents,
        },
    )
    verdict = {"failing": [], "edits": 0, "characters": 10}
    ledger = given(
        "ledger",
        {
            "aaaaaaaaaaaa/00000.parquet": [{"doc_id": "kept", "verdict": "kept", **verdict}],
            "bbbbbbbbbbbb/00000.parquet": [{"doc_id": "dropped", "verdict": "dropped", **verdict}],
        },
    )
    truth = given(
        "truth",
        {
            "00000.parquet": [
                {"defect": "garbled", "doc_id": "dropped", "count": 1, "detail": "noise"},
                {"defect": "broken_record", "doc_id": "torn", "count": 1, "detail": "cut"},
            ]
        },
    )
    inputs = {
        "checkpoint": [checkpoint],
        "benchmarks": [benchmarks],
        "contamination": [contamination],
        "ledger": [ledger],
        "truth": [truth],
    }
    made = run_stage(Evaluate, QUIET, inputs)
    results = {(row["benchmark"], row["metric"]): row for row in rows_of(read_table, made)}
    assert results["quiz", "accuracy"]["count"] == 9
    assert results["quiz", "accuracy"]["baseline"] == pytest.approx(1 / 3)
    # item 4 lies in a kept document, item 5 only in one that the filter dropped
    assert results["quiz", "accuracy_clean"]["count"] == 8
    assert results["prose", "bits_per_byte"]["baseline"] is None
    assert results["planted/garbled", "recall"]["value"] == 1.0
    assert results["planted/broken_record", "recall"]["value"] == 0.0
    assert results["planted/none", "kept"]["value"] == 1.0
    flagged = {
        (row["benchmark"], row["item_id"])
        for row in rows_of(read_table, made, "items.parquet")
        if row["contaminated"]
    }
    assert flagged == {("quiz", "4")}


def test_bad_items_are_counted_with_samples_and_too_many_fail_the_stage(
    run_stage, given, checkpoint
):
    good = [question(str(number)) for number in range(19)]
    bad = question("worse", answer=9)
    some = given("benchmarks", {"00000.parquet": [*good, bad]})
    made = run_stage(Evaluate, QUIET, {"checkpoint": [checkpoint], "benchmarks": [some]})
    assert made.counts["bad_items_answer_is_no_choice"] == 1
    assert made.counts["items"] == 20
    assert made.samples["answer_is_no_choice"] == ["quiz/worse"]
    many = given("benchmarks", {"00000.parquet": [*good[:3], bad]})
    with pytest.raises(InputError, match=r"1 of 4 .*quiz/worse"):
        run_stage(Evaluate, QUIET, {"checkpoint": [checkpoint], "benchmarks": [many]})


def test_benchmarks_without_items_are_an_error(run_stage, given, checkpoint):
    empty = given("benchmarks", {"00000.parquet": []})
    with pytest.raises(InputError, match="benchmarks: the benchmarks have no items"):
        run_stage(Evaluate, QUIET, {"checkpoint": [checkpoint], "benchmarks": [empty]})


def test_a_template_that_needs_a_role_which_no_question_has_says_so(
    run_stage, given, read_input, chat_checkpoint
):
    template = (
        "{% if messages[0].role != 'system' %}{{ raise_exception('needs a system role') }}"
        "{% endif %}{{ messages }}"
    )
    source = read_input(*chat_checkpoint)
    described = {**source.read_json("tokenizer_config.json"), "chat_template": template}
    files = {name: source.read_bytes(name) for name in source.paths()}
    state = {**source.read_json("state.json"), "chat_template": None}
    files |= {"tokenizer_config.json": described, "state.json": state}
    checkpoint = given("checkpoint", files)
    config = {"text_prompts": [], "chat_prompts": ["Hi"], "max_new_tokens": 2}
    with pytest.raises(InputError, match="needs a system role") as caught:
        run_stage(Evaluate, config, {"checkpoint": [checkpoint]})
    assert "chat template" in str(caught.value)


def test_generations_show_the_prompt_as_the_model_saw_it_and_follow_the_seed(
    run_stage, read_table, chat_checkpoint
):
    config = {"text_prompts": ["Keys"], "chat_prompts": ["Hi"], "max_new_tokens": 5}
    made = run_stage(Evaluate, config, {"checkpoint": [chat_checkpoint]})
    rows = rows_of(read_table, made, "generations.parquet")
    assert [(row["form"], row["prompt"]) for row in rows] == [
        ("text", "Keys"),
        ("chat", "<|begin_of_text|><|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"),
    ]
    again = run_stage(Evaluate, {**config, "seed": 1}, {"checkpoint": [chat_checkpoint]})
    assert rows_of(read_table, again, "generations.parquet") != rows


def test_a_model_that_never_saw_a_conversation_is_asked_no_chat_prompt(
    run_stage, read_table, checkpoint
):
    config = {"text_prompts": ["Keys"], "chat_prompts": ["Hi", "You"], "max_new_tokens": 5}
    made = run_stage(Evaluate, config, {"checkpoint": [checkpoint]})
    assert [row["form"] for row in rows_of(read_table, made, "generations.parquet")] == ["text"]
    assert made.counts["chat_prompts_skipped"] == 2


@pytest.mark.full
def test_two_workers_measure_what_one_does(store, run_stage, given, checkpoint, packed):
    items = [question(str(number), answer=number % 3) for number in range(6)]
    inputs = {
        "checkpoint": [checkpoint],
        "benchmarks": [given("benchmarks", {"00000.parquet": items})],
        "held_out": [(packed, "held_out")],
    }
    one = run_stage(Evaluate, {}, inputs)
    remove_artifact(store, one)
    two = run_stage(Evaluate, {}, inputs, {"workers": 2})
    assert one.attempt != two.attempt
    assert one.output("evaluation").digest == two.output("evaluation").digest


def test_the_type_is_in_the_layout_and_moves_scores_by_rounding_alone(
    run_stage, read_table, checkpoint, packed
):
    """bfloat16 has 8 bits of mantissa: a part in 256 of each logit."""
    inputs, values = {"checkpoint": [checkpoint], "held_out": [(packed, "held_out")]}, []
    for dtype in ("float32", "bfloat16"):
        made = run_stage(Evaluate, {**QUIET, "dtype": dtype}, inputs, {"device": "cpu"})
        assert (made.layout["device"], made.layout["dtype"]) == ("cpu", dtype)
        values.append([row["value"] for row in rows_of(read_table, made)])
    assert values[0] != values[1]
    assert values[0] == pytest.approx(values[1], rel=0.01)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused(run_stage, checkpoint, packed):
    inputs = {"checkpoint": [checkpoint], "held_out": [(packed, "held_out")]}
    with pytest.raises(UsageError, match="no CUDA device"):
        run_stage(Evaluate, QUIET, inputs, {"device": "cuda:0"})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_measures_what_a_cpu_does(run_stage, read_table, checkpoint, packed):
    inputs, values = {"checkpoint": [checkpoint], "held_out": [(packed, "held_out")]}, []
    for device in ("cpu", "cuda"):
        config = {"seed": len(values), "temperature": 0}
        made = run_stage(Evaluate, config, inputs, {"device": device})
        values.append([row["value"] for row in rows_of(read_table, made)])
    assert values[0] == pytest.approx(values[1], rel=1e-4)


def test_shards_of_another_tokenizer_are_refused(
    run_stage, given, checkpoint, packed, read_input, tokenizer
):
    held_out = read_input(packed, "held_out")
    table = {**held_out.read_json("shards.json"), "vocabulary_size": 999}
    table["padded_vocabulary_size"] = 1024
    files = {path: held_out.read_bytes(path) for path in held_out.paths() if path[-1] != "t"}
    files = {path: raw for path, raw in files.items() if not path.endswith(".index.parquet")}
    files["shards.json"] = json.dumps(table).encode()
    other = given("token_shards", files)
    with pytest.raises(InputError, match=r"\b999\b"):
        run_stage(Evaluate, QUIET, {"checkpoint": [checkpoint], "held_out": [other]})


def test_a_checkpoint_without_weights_of_its_architecture_is_refused(
    run_stage, given, model, tokenizer
):
    files = model_files(model)
    config = {**json.loads(files["model.json"]), "layers": 5}
    broken = given(
        "checkpoint",
        {
            "model.json": json.dumps(config).encode(),
            "model.safetensors": files["model.safetensors"],
            "tokenizer.json": tokenizer.to_str().encode(),
            "tokenizer_config.json": transformers_config("llama-bpe"),
            "state.json": b"{}",
        },
    )
    with pytest.raises(InputError, match=r"'blocks\.2.* is missing"):
        run_stage(Evaluate, {}, {"checkpoint": [broken]})


def test_requests_that_cannot_be_answered_are_usage_errors(run_stage, given, checkpoint):
    with pytest.raises(UsageError, match="nothing to evaluate"):
        run_stage(Evaluate, QUIET, {"checkpoint": [checkpoint]})
    row = {"defect": "garbled", "doc_id": "x", "count": 1, "detail": "noise"}
    truth = given("truth", {"00000.parquet": [row]})
    with pytest.raises(UsageError, match="without a ledger"):
        run_stage(Evaluate, QUIET, {"checkpoint": [checkpoint], "truth": [truth]})


def test_a_checkpoint_in_several_files_has_the_scores_of_one(
    run_stage, given, checkpoint, read_input, in_several_files
):
    questions = [question(str(n)) for n in range(6)]
    some = given("benchmarks", {"quiz.parquet": questions})
    several = given("checkpoint", in_several_files(read_input(*checkpoint), 20_000))
    one, other = (
        run_stage(Evaluate, QUIET, {"checkpoint": [source], "benchmarks": [some]})
        for source in (checkpoint, several)
    )
    assert one.key != other.key
    assert one.output("evaluation").digest == other.output("evaluation").digest
