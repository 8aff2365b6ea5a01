"""Free requests: asked by evaluate, judged by score."""

import json
import os
import shutil
import signal

import pytest
from forks import in_fork

from artifacts_schema.errors import InputError
from artifacts_schema.store import Store, failpoints
from stages.engine.runner import run_stage as run_spec
from stages.engine.spec import StageSpec
from stages.evaluate.score import Score
from stages.evaluate.stage import Evaluate

QUIET = {"text_prompts": [], "chat_prompts": []}


def task(name, **free):
    return {
        "name": name, "version": 1, "licence": "MIT", "source": "here", "chat": False,
        "formulations": {"free": {"max_new_tokens": 6, **free}},
    }  # fmt: skip


def item(benchmark, number, prompt, references, shots=0):
    request = {
        "formulation": "free", "shots": shots, "prompt": prompt, "choices": [],
        "references": references, "contexts": [],
    }  # fmt: skip
    return {
        "benchmark": benchmark, "item_id": str(number), "form": "free", "prompt": prompt,
        "choices": [], "answer": None, "requests": [request],
        "metadata": json.dumps({"cluster": number // 2}),
    }  # fmt: skip


@pytest.fixture
def rows():
    texts = [item("words", n, f"Question {n}: the keys are", ["values"]) for n in range(40)]
    return texts + [item("few", n, "A word", ["x"], shots=3) for n in range(3)]


@pytest.fixture
def asked(given, rows):
    tasks = [task("few", stop=["e"], samples=3, temperature=1.0), task("words")]
    return given("benchmarks", {"00000.parquet": rows, "tasks.json": tasks})


@pytest.fixture
def measured(run_stage, checkpoint, asked):
    return run_stage(Evaluate, QUIET, {"checkpoint": [checkpoint], "benchmarks": [asked]})


def test_every_free_request_is_asked_as_its_task_says(read_table, measured):
    rows = read_table(measured, "evaluation", "answers.parquet").to_pylist()
    assert len(rows) == 40 + 3 * 3
    for row in rows:
        assert 1 <= len(row["token_log_probabilities"]) <= 6
        assert all(value <= 0 for value in row["token_log_probabilities"])
        assert row["chat"] is False
    words = [row for row in rows if row["benchmark"] == "words"]
    assert {row["ending"] for row in words} <= {"length", "end"}
    assert len({row["prompt_digest"] for row in words}) == 40
    few = [row for row in rows if row["benchmark"] == "few"]
    assert [row["sample"] for row in few] == [0, 1, 2] * 3
    assert {row["shots"] for row in few} == {3}
    assert len({row["text"] for row in few}) > 1  # Of one prompt, drawn anew each time.
    assert not any("e" in row["text"] for row in few)
    lengths = read_table(measured, "evaluation", "items.parquet").to_pylist()
    assert {row["metric"] for row in lengths} == {"answer_tokens"}
    assert len(lengths) == 43


def test_answers_are_those_that_the_model_writes_alone(model, tokenizer, read_table, measured):
    """The last of 40 items, in a part of its own: the same text as from its prompt by itself."""
    from stages.scoring.generation import Generator, Sampling
    from stages.scoring.likelihood import encode_text

    row = read_table(measured, "evaluation", "answers.parquet").to_pylist()[-1]
    assert (row["benchmark"], row["item_id"]) == ("words", "39")
    begin = tokenizer.token_to_id("<|begin_of_text|>")
    ids = [begin, *encode_text(tokenizer, "Question 39: the keys are")]
    ends = {tokenizer.token_to_id("<|end_of_text|>")}
    with Generator(model, tokenizer) as generator:
        [alone] = generator.write([ids], Sampling(0.0), max_new_tokens=6, stop_ids=ends)
    assert row["text"] == alone.text
    assert row["token_log_probabilities"] == pytest.approx(alone.log_probabilities, abs=1e-4)


def test_score_judges_what_was_written_and_keeps_clusters(run_stage, read_table, measured):
    scored = run_stage(Score, {}, {"evaluation": [(measured, "evaluation")]})
    results = {
        (row["benchmark"], row["metric"]): row
        for row in read_table(scored, "evaluation", "results.parquet").to_pylist()
    }
    assert set(results) == {
        ("words", "exact_match"), ("few", "exact_match"), ("few", "exact_match_majority@3"),
    }  # fmt: skip
    assert results["words", "exact_match"]["count"] == 40
    assert results["few", "exact_match"]["shots"] == 3
    items = read_table(scored, "evaluation", "items.parquet").to_pylist()
    assert {row["cluster"] for row in items if row["benchmark"] == "few"} == {"0", "1"}
    answers = read_table(measured, "evaluation", "answers.parquet")
    assert read_table(scored, "evaluation", "answers.parquet").equals(answers)
    again = run_stage(Score, {"pass_at": [2]}, {"evaluation": [(scored, "evaluation")]})
    names = read_table(again, "evaluation", "results.parquet")["metric"].to_pylist()
    assert "exact_match_pass@2" in names


def test_a_benchmark_is_chosen_by_name_for_answers_too(run_stage, read_table, measured):
    scored = run_stage(Score, {"benchmarks": ["f*"]}, {"evaluation": [(measured, "evaluation")]})
    assert scored.counts["items"] == 43
    assert scored.counts["items_left_out"] == 40
    with pytest.raises(InputError, match="no item is left") as caught:
        run_stage(Score, {"benchmarks": ["gsm8k"]}, {"evaluation": [(measured, "evaluation")]})
    assert "few (free, 3 shots), words (free, 0 shots)" in caught.value.hint


def test_a_chat_task_is_skipped_without_a_template(run_stage, read_table, given, checkpoint, rows):
    tasks = [{**task("words"), "chat": True}, task("few")]
    asked = given("benchmarks", {"00000.parquet": rows, "tasks.json": tasks})
    measured = run_stage(Evaluate, QUIET, {"checkpoint": [checkpoint], "benchmarks": [asked]})
    assert measured.counts["answers_skipped"] == 40
    names = read_table(measured, "evaluation", "answers.parquet")["benchmark"].to_pylist()
    assert set(names) == {"few"}


def test_a_chat_task_and_questions_are_asked_in_the_chat_format(
    run_stage, read_table, given, chat_checkpoint, rows
):
    question = {
        "benchmark": "asked", "item_id": "0", "form": "question", "prompt": "What is a key?",
        "choices": ["value"], "answer": 0, "requests": [], "metadata": "{}",
    }  # fmt: skip
    tasks = [{**task("words"), "chat": True}, task("few")]
    asked = given("benchmarks", {"00000.parquet": [*rows, question], "tasks.json": tasks})
    inputs = {"checkpoint": [chat_checkpoint], "benchmarks": [asked]}
    measured = run_stage(Evaluate, {**QUIET, "max_items": 5}, inputs)
    written = read_table(measured, "evaluation", "answers.parquet").to_pylist()
    assert {(row["benchmark"], row["chat"]) for row in written} == {
        ("words", True), ("few", False), ("asked", True),
    }  # fmt: skip
    [one] = [row for row in written if row["benchmark"] == "asked"]
    assert (one["formulation"], one["shots"], one["references"]) == (None, None, ["value"])
    assert sum(row["benchmark"] == "words" for row in written) == 5
    named = {
        (row["metric"], row["item_id"]): row["value"]
        for row in read_table(measured, "evaluation", "items.parquet").to_pylist()
    }
    scored = run_stage(Score, {}, {"evaluation": [(measured, "evaluation")]})
    items = read_table(scored, "evaluation", "items.parquet").to_pylist()
    [again] = [row for row in items if row["metric"] == "named_in_a_sentence"]
    assert again["value"] == named["named_in_a_sentence", "0"]


@pytest.mark.faults
@pytest.mark.parametrize("stage", [Evaluate, Score])
def test_killed_after_each_part_it_goes_on_and_the_bytes_are_the_same(
    store, tmp_path, given, run_stage, checkpoint, asked, namespaces, stage
):
    """By SIGKILL of a fork, in a copy of the store: three parts of answers, two of programs."""
    if stage is Evaluate:
        config, inputs = QUIET, {"checkpoint": [checkpoint], "benchmarks": [asked]}
    else:
        tests = "assert double(2) == 4"
        texts = ["def double(x): return 2 * x", "def double(x): return x"]
        answers = [answer("code", n, texts[n % 2], [tests]) for n in range(22)]
        evaluation = given("evaluation", written(answers, [task("code", metric="code")]))
        config, inputs = {}, {"evaluation": [evaluation]}
    copied = Store.open(shutil.copytree(store.url, tmp_path / "copy").as_posix())
    before = run_stage(stage, config, inputs)
    references = {
        role: [copied.reference(manifest, output) for manifest, output in some]
        for role, some in inputs.items()
    }
    spec = StageSpec.make(stage, config, references, {"workers": 1})

    def kill(point):
        if point == "shard recorded":
            os.kill(os.getpid(), signal.SIGKILL)

    def run_killed():
        failpoints.on_failpoint = kill
        run_spec(copied, spec)

    kills = 0
    while (code := in_fork(run_killed)) == -signal.SIGKILL:
        kills += 1
    assert code == 0
    assert kills == (4 if stage is Evaluate else 2)
    after = copied.manifest(spec.stage, before.key)
    assert after.outputs["evaluation"].digest == before.outputs["evaluation"].digest
    assert after.counts == before.counts


# Judged answers that are written by hand


def answer(benchmark, number, text, references, sample=0):
    return {
        "benchmark": benchmark, "item_id": str(number), "formulation": "free", "shots": 0,
        "sample": sample, "prompt_digest": "0" * 16, "text": text,
        "token_log_probabilities": [-1.0], "ending": "end", "references": references,
        "chat": False,
    }  # fmt: skip


def written(answers, tasks):
    """Files of an evaluation with these answers."""
    tables = ("results", "items", "choices", "generations")
    empty = {f"{name}.parquet": [] for name in tables}
    return {**empty, "answers.parquet": answers, "tasks.json": tasks}


@pytest.fixture
def score(given, run_stage, read_table):
    """`score(tasks, answers, **config)` → results by (benchmark, metric), judgements, manifest."""

    def run(tasks, answers, **config):
        evaluation = given("evaluation", written(answers, tasks))
        manifest = run_stage(Score, config, {"evaluation": [evaluation]})
        results = read_table(manifest, "evaluation", "results.parquet").to_pylist()
        judged = read_table(manifest, "evaluation", "judgements.parquet").to_pylist()
        by_name = {(row["benchmark"], row["metric"]): row for row in results}
        return by_name, judged, manifest

    return run


GSM8K = {
    "extraction": [
        {"name": "strict", "pattern": r"#### (\-?[0-9\.\,]+)"},
        {"name": "flexible", "pattern": r"(-?[$0-9.,]{2,})|(-?[0-9]+)", "take": "last"},
    ],
    "normalise": {"case": True, "patterns": [",", r"\$", r"(?s).*#### ", r"\.$"]},
}


def test_rules_of_extraction_have_scores_of_their_own(score):
    texts = ["So 40 + 2 = 42.\n#### 42", "It is $1,042.", "The answer: 42", "No idea."]
    references = ["42", "1042", "41", "7"]
    answers = [
        answer("gsm8k", n, text, [reference])
        for n, (text, reference) in enumerate(zip(texts, references, strict=True))
    ]
    results, judged, _ = score([task("gsm8k", **GSM8K)], answers)
    assert results["gsm8k", "exact_match_strict"]["value"] == 1 / 4
    assert results["gsm8k", "exact_match_flexible"]["value"] == 2 / 4
    taken = {(row["item_id"], row["metric"]): row["answer"] for row in judged}
    assert taken["1", "exact_match_flexible"] == "$1,042."
    assert taken["1", "exact_match_strict"] is None
    assert taken["3", "exact_match_flexible"] is None


def test_votes_and_pass_at_k_of_several_samples(score):
    """Five samples of one item: 7 7 8 8 1; 8 is right. Another: all wrong."""
    answers = [answer("votes", 0, text, ["8"], n) for n, text in enumerate("77881")]
    answers += [answer("votes", 1, "3", ["8"], n) for n in range(5)]
    results, _, manifest = score([task("votes")], answers, pass_at=[1, 2, 10])
    values = {metric: row["value"] for (_, metric), row in results.items()}
    assert values == {
        "exact_match": pytest.approx((2 / 5 + 0) / 2),
        "exact_match_pass@2": pytest.approx((1 - 3 / 10) / 2),  # C(3, 2) / C(5, 2)
        "exact_match_majority@5": 0.0,  # 7 came first of the two that are as frequent.
    }
    assert manifest.counts["tied_votes"] == 1


def test_programs_are_run_and_how_they_end_is_kept(score, namespaces):
    tests = "def check(candidate):\n    assert candidate(3) == 9\ncheck(square)"
    begin = "def square(x):\n"
    texts = ["    return x * x\n", "    return x + x\n", "    while True: pass\n",
             "    return [0] * 10**10\n", "    import os; os._exit(0)\n"]  # fmt: skip
    answers = [answer("code", 0, text, [tests, begin], n) for n, text in enumerate(texts)]
    answers.append(answer("code", 1, "def square(x): return x ** 2", [tests]))
    results, judged, manifest = score(
        [task("code", metric="code")], answers, program_seconds=1, pass_at=[1, 3]
    )
    assert [row["outcome"] for row in judged] == [
        "passed", "failed", "timeout", "memory", "failed", "passed",
    ]  # fmt: skip
    assert judged[1]["detail"] == "AssertionError"
    assert results["code", "pass@1"]["value"] == pytest.approx((1 / 5 + 1) / 2)
    assert results["code", "pass@3"]["value"] == pytest.approx(1 - 4 / 10)  # Of item 0 alone.
    assert manifest.counts["programs_passed"] == 2
    assert manifest.layout["python"]  # What a program does may depend on it.


def test_instructions_are_counted_by_item_and_by_instruction(score):
    reference = json.dumps({
        "instruction_id_list": ["punctuation:no_comma", "startend:quotation"],
        "kwargs": [{}, {"end_phrase": None}],
    })  # fmt: skip
    answers = [
        answer("ifeval", 0, '"No comma here"', [reference]),
        answer("ifeval", 1, "No comma here", [reference]),
        answer("ifeval", 2, 'Sure, here it is:\n"No comma here"', [reference]),
    ]
    results, judged, _ = score([task("ifeval", metric="instructions")], answers)
    values = {metric: (row["value"], row["count"]) for (_, metric), row in results.items()}
    assert values == {
        "prompt_strict": (pytest.approx(1 / 3), 3),
        "prompt_loose": (pytest.approx(2 / 3), 3),
        "instruction_strict": (pytest.approx(3 / 6), 6),
        "instruction_loose": (pytest.approx(5 / 6), 6),
    }
    assert [row["weight"] for row in judged[:4]] == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("free", "references", "message"),
    [
        ({"metric": "code"}, [], "no test program"),
        ({"metric": "vibes"}, ["x"], "'vibes' is not known"),
        ({"metric": "instructions"}, ["x"], "not the JSON of IFEval"),
        ({"extraction": [{"name": "a", "pattern": "("}]}, ["x"], "missing"),
    ],
)
def test_what_cannot_be_judged_is_an_error_that_names_it(score, free, references, message):
    with pytest.raises(InputError, match=message) as caught:
        score([task("odd", **free)], [answer("odd", 7, "text", references)])
    assert caught.value.where
