"""The judge stage by an endpoint on loopback, and by a checkpoint."""

import json
import re
from types import SimpleNamespace

import pytest

from artifacts_schema.errors import InputError, Stopped, UsageError
from stages.judge.journal import Answer, Journal
from stages.judge.stage import ANSWERS, JOURNAL, Judge, open_journal

from .conftest import message as said
from .judge_server import completion

SHOWN = re.compile(r"<answer \w+>\n(.*?)\n</answer", re.DOTALL)


def shown(body):
    """The two answers in the order in which they are shown."""
    return SHOWN.findall(body["messages"][0]["content"])


def prefers_good(_, body):
    first, second = shown(body)
    if ("good" in first) == ("good" in second):
        return completion("Verdict: tie")
    return completion(f"I see. Verdict: {'A' if 'good' in first else 'B'}")


def always_first(*_):
    return completion("[[A]]")


@pytest.fixture
def judge(run_stage):
    def run(server, inputs, config=None, **execution):
        settings = {"url": server.url, "longest_wait": 0.01, "attempts": 2, "concurrency": 3}
        return run_stage(Judge, {"model": "m", **(config or {})}, inputs, {**settings, **execution})

    return run


@pytest.fixture
def scores(read_table):
    def read(manifest):
        rows = read_table(manifest, "evaluation", "results.parquet").to_pylist()
        return {(row["benchmark"], row["metric"]): row for row in rows}

    return read


def answers(words):
    return {f"Prompt {n}?": f"A {word} answer." for n, word in enumerate(words)}


def test_win_rate_has_an_interval_and_agreement_with_people_comes_first(
    serve, judge, scores, evaluation, preferences
):
    server = serve(prefers_good)
    inputs = {
        "a": [evaluation(answers(["good"] * 6 + ["poor"] * 2 + ["plain"] * 2))],
        "b": [evaluation(answers(["poor"] * 6 + ["good"] * 2 + ["plain"] * 2))],
        "preferences": [preferences(20)],
    }
    made = judge(server, inputs)
    rows = scores(made)
    assert next(iter(rows)) == ("human/people", "cohen_kappa")
    assert rows["human/people", "cohen_kappa"]["value"] == 1
    assert rows["human/people", "agreement"]["value"] == 1
    win = rows["judged/prompts", "win_rate"]
    assert win["value"] == pytest.approx((6 + 2 * 0.5) / 10)
    # Outcomes 1 ×6, 0 ×2, ½ ×2: sample variance .177778, over ten prompts.
    assert win["standard_error"] == pytest.approx((0.177778 / 10) ** 0.5, abs=1e-3)
    assert win["low"] < 0.7 < win["high"]
    assert win["baseline"] == 0.5
    assert rows["judged/prompts", "changed_with_order"]["value"] == 0
    assert len(server.bodies) == 2 * 28  # Two pairs are equal answers.
    assert made.counts["pairs_equal"] == 2
    # Labelled pairs are asked before any other.
    assert all("Question" in text for text in server.prompts[:40])


def test_a_judge_that_takes_the_first_has_ties_and_no_agreement(
    serve, judge, scores, evaluation, preferences
):
    inputs = {"a": [evaluation(answers(["good"] * 4))], "b": [evaluation(answers(["poor"] * 4))],
              "preferences": [preferences(30)]}  # fmt: skip
    rows = scores(judge(serve(always_first), inputs))
    assert rows["judged/prompts", "win_rate"]["value"] == 0.5
    assert rows["judged/prompts", "changed_with_order"]["value"] == 1
    assert rows["human/people", "agreement"]["value"] == 0.5
    assert rows["human/people", "cohen_kappa"]["value"] == 0


def test_nonsense_counts_on_neither_side(serve, judge, scores, evaluation, read_table):
    def reply(n, body):
        if "Prompt 0?" in body["messages"][0]["content"]:
            return completion("I cannot say.")
        if "Prompt 1?" in body["messages"][0]["content"]:
            return 400, {}, b"filtered"
        return prefers_good(n, body)

    inputs = {"a": [evaluation(answers(["good"] * 4))], "b": [evaluation(answers(["poor"] * 4))]}
    made = judge(serve(reply), inputs)
    rows = scores(made)
    assert rows["judged/prompts", "win_rate"]["value"] == 1
    assert rows["judged/prompts", "win_rate"]["count"] == 2
    assert rows["judged/prompts", "no_verdict"]["value"] == 0.5
    assert made.counts["pairs_without_verdict"] == 2
    kept = read_table(made, "answers", "answers.parquet").to_pylist()
    assert sorted(row["status"] for row in kept) == ["answered"] * 6 + ["refused"] * 2
    assert sum(row["verdict"] is None for row in kept) == 4
    with pytest.raises(InputError, match="2 of 4"):
        judge(serve(reply), inputs, {"max_bad_share": 0.4})


def test_a_run_that_was_killed_asks_for_no_answer_again(
    serve, judge, scores, evaluation, monkeypatch
):
    inputs = {"a": [evaluation(answers(["good"] * 20))], "b": [evaluation(answers(["poor"] * 20))]}
    whole = judge(serve(prefers_good), inputs, {"seed": 1})

    class Killed(BaseException):
        pass

    add, added = Journal.add, []

    def die(journal, answer):
        add(journal, answer)
        added.append(answer)
        if len(added) in (7, 15, 16, 30, 38):
            raise Killed

    monkeypatch.setattr(Journal, "add", die)
    server, kills, made = serve(prefers_good), 0, None
    while made is None:
        try:
            made = judge(server, inputs)
        except Killed:
            kills += 1
    assert kills >= 4
    asked = [json.dumps(body, sort_keys=True) for body in server.bodies]
    assert len(asked) == len(set(asked)) == 40
    assert scores(made) == scores(whole)


def test_a_judge_that_goes_away_ends_the_run_and_what_it_said_is_kept(
    serve, judge, evaluation, scores
):
    away = [True]
    seen = set()

    def reply(n, body):
        text = body["messages"][0]["content"]
        if away[0] and len(seen) >= 5:
            return 503, {}, b""
        seen.add(text)
        return prefers_good(n, body)

    inputs = {"a": [evaluation(answers(["good"] * 10))], "b": [evaluation(answers(["poor"] * 10))]}
    server = serve(reply)
    with pytest.raises(Stopped, match="does not answer: status 503"):
        judge(server, inputs, concurrency=1)
    first, away[0] = set(seen), False
    before = len(server.bodies)
    assert scores(judge(server, inputs))["judged/prompts", "win_rate"]["value"] == 1
    assert not first & set(server.prompts[before:])
    assert len(server.bodies) - before == 20 - len(first)


def test_answers_of_an_earlier_run_are_not_paid_twice(serve, judge, evaluation, read_input):
    a, b = evaluation(answers(["good"] * 6)), evaluation(answers(["poor"] * 6))
    server = serve(prefers_good)
    first = judge(server, {"a": [a], "b": [b]}, {"max_pairs": 4})
    assert len(server.bodies) == 8
    second = judge(server, {"a": [a], "b": [b], "answers": [(first, "answers")]})
    assert len(server.bodies) == 12
    assert second.counts["answers_known"] == 8
    # Another criterion is another question.
    judge(server, {"a": [a], "b": [b], "answers": [(second, "answers")]}, {"criterion": "Which?"})
    assert len(server.bodies) == 24


def test_no_key_is_kept(serve, judge, evaluation, store, monkeypatch, caplog):
    monkeypatch.setenv("JUDGE_KEY", "sk-very-secret")
    inputs = {"a": [evaluation(answers(["good"]))], "b": [evaluation(answers(["poor"]))]}
    server = serve(prefers_good)
    made = judge(server, inputs, key_variable="JUDGE_KEY")
    assert server.headers[0]["Authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in made.model_dump_json()
    assert "sk-very-secret" not in caplog.text
    from pathlib import Path

    files = [path for path in Path(store.url.removeprefix("file://")).rglob("*") if path.is_file()]
    assert files
    assert not any(b"sk-very-secret" in path.read_bytes() for path in files)


def test_answers_to_items_are_paired_by_item_and_sample(serve, judge, given, scores, read_table):
    def with_answers(texts):
        rows = [
            {"benchmark": "tasks", "item_id": item, "formulation": "free", "shots": 0,
             "sample": sample, "prompt_digest": "0", "text": text,
             "token_log_probabilities": [], "ending": "end", "references": [], "chat": True}
            for (item, sample), text in texts.items()
        ]  # fmt: skip
        return given(
            "evaluation",
            {"results.parquet": [], "items.parquet": [], "choices.parquet": [],
             "answers.parquet": rows, "generations.parquet": [], "tasks.json": []},
        )  # fmt: skip

    items = [
        {"benchmark": "tasks", "item_id": name, "form": "free", "prompt": f"Do {name}",
         "choices": [], "answer": None, "metadata": "{}", "requests": []}
        for name in ("x", "y", "z")
    ]  # fmt: skip
    inputs = {
        "a": [with_answers({("x", 0): "good", ("x", 1): "good", ("y", 0): "poor"})],
        "b": [with_answers({("x", 0): "poor", ("x", 1): "poor", ("z", 0): "poor"})],
        "benchmarks": [given("benchmarks", {"00000.parquet": items, "tasks.json": []})],
    }
    made = judge(serve(prefers_good), inputs)
    win = scores(made)["judged/tasks", "win_rate"]
    assert (win["value"], win["count"]) == (1, 2)
    assert win["standard_error"] is None  # Two answers to one question are one unit.
    assert made.counts["answers_without_partner"] == 2
    compared = read_table(made, "answers", "comparisons.parquet").to_pylist()
    assert {row["prompt"] for row in compared} == {"Do x"}


def test_a_checkpoint_judges_by_the_likelier_letter_and_equal_ones_tie(
    run_stage, chat_checkpoint, checkpoint, evaluation, preferences, read_table, scores
):
    inputs = {"a": [evaluation({"Q?": "yes"})], "b": [evaluation({"Q?": "no"})]}
    config = {"criterion": "Which?", "max_bad_share": 1.0}
    made = run_stage(Judge, config, {**inputs, "checkpoint": [checkpoint]})
    rows = read_table(made, "answers", "answers.parquet").to_pylist()
    # The context of 64 tokens holds no pair: no verdict, and no loss.
    assert {row["status"] for row in rows} == {"refused"}
    assert scores(made)["judged/prompts", "no_verdict"]["value"] == 1
    # In another type it is another judge, whose answers are not those that are known.
    wider = run_stage(Judge, {**config, "dtype": "float64"}, {**inputs, "checkpoint": [checkpoint]})
    requests = read_table(wider, "answers", "answers.parquet")["request"].to_pylist()
    assert not set(requests) & {row["request"] for row in rows}


def test_rows_of_one_answer_are_left_out_and_counted(serve, judge, given, scores):
    rows = [
        {"preference_id": f"{n:032x}", "source": "people", "tools": None, "metadata": "{}",
         "prompt": [said("user", f"Question {n}?")],
         "chosen": [said("assistant", f"A good answer {n}.")],
         "rejected": [said("assistant", f"A poor answer {n}.")] if n % 3 else []}
        for n in range(12)
    ]  # fmt: skip
    made = judge(
        serve(prefers_good), {"preferences": [given("preferences", {"00000.parquet": rows})]}
    )
    assert made.counts["single_answers"] == 4
    assert scores(made)["human/people", "agreement"]["count"] == 8


def test_what_cannot_be_judged_is_refused(run_stage, checkpoint, evaluation, preferences):
    one, other = evaluation({"Q?": "yes"}), evaluation({"R?": "no"})
    for config, inputs, message in (
        ({}, {"a": [one], "b": [other]}, "no judge"),
        ({"model": "m"}, {"a": [one]}, "one evaluation alone"),
        ({"model": "m"}, {}, "nothing to judge"),
        ({"model": "m"}, {"preferences": [preferences(1)], "checkpoint": [checkpoint]}, "two"),
        ({"model": "m"}, {"preferences": [preferences(1)]}, "no address"),
    ):
        with pytest.raises(UsageError, match=message):
            run_stage(Judge, config, inputs)
    with pytest.raises(InputError, match="no pair of answers"):
        run_stage(Judge, {"model": "m"}, {"a": [one], "b": [other]})


def test_real_preferences_are_asked_about(serve, judge, shared_data, run_stage, given, scores):
    import zstandard

    from stages.examples.stage import Preferences

    raw = (shared_data / "preference" / "hh-rlhf-harmless.jsonl.zst").read_bytes()
    lines = zstandard.ZstdDecompressor().stream_reader(raw).read().splitlines(keepends=True)[:40]
    content = b"".join(lines)
    listing = {"name": "hh", "files": [{"name": "hh.jsonl", "bytes": len(content), "sha256": ""}]}
    made = given("snapshot", {"snapshot.json": listing, "files/hh.jsonl": content})
    pairs = run_stage(Preferences, {"source": "hh"}, {"snapshot": [made]})
    # A judge that takes the shorter answer: what people preferred is counted here by hand.
    rows = [json.loads(line) for line in lines]

    def size(row, name):
        value = row[name]
        return len(value if isinstance(value, str) else value[-1]["content"])

    expected = sum(
        0.5 if size(r, "chosen") == size(r, "rejected") else size(r, "chosen") < size(r, "rejected")
        for r in rows
    ) / len(rows)

    def shorter(_, body):
        first, second = shown(body)
        if len(first) == len(second):
            return completion("Verdict: tie")
        return completion(f"Verdict: {'A' if len(first) < len(second) else 'B'}")

    judged = judge(serve(shorter), {"preferences": [(pairs, "preferences")]})
    assert scores(judged)["human/hh", "agreement"]["value"] == pytest.approx(expected)
    assert judged.counts["requests"] == 80


def test_answers_of_another_machine_are_joined_with_those_of_this_one(tmp_path, monkeypatch):
    """A remote store has what another machine published; here is what was not published yet."""
    path, published = tmp_path / JOURNAL, tmp_path / "published.jsonl"
    for file, names in ((published, "ab"), (path, "bcde")):
        for name in names:
            Journal(file).add(Answer(name * 64, f"Verdict of {name}", "answered"))

    class Killed(BaseException):
        pass

    class State:
        @staticmethod
        def published():
            return [ANSWERS]

        @staticmethod
        def fetch(name):
            path.write_bytes(published.read_bytes())
            return True

    context = SimpleNamespace(work=tmp_path, state=State())
    add, added = Journal.add, []

    def die(journal, answer):
        add(journal, answer)
        added.append(answer)
        if len(added) == 2:
            raise Killed

    monkeypatch.setattr(Journal, "add", die)
    with pytest.raises(Killed):
        open_journal(context)
    assert sorted(name[0] for name in open_journal(context).answers) == list("abcde")
    assert not (tmp_path / "kept.jsonl").exists()
