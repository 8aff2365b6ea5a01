"""How often the patterns are right about lines that were labelled by hand."""

import hashlib
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from artifacts_schema.errors import UsageError
from stages.evaluate.judging import judge_answers, judgement_observations
from stages.examples.task_files import shipped_task
from stages.examples.templates import Template
from stages.scoring.answers import Answer, Judge
from stages.scoring.observations import results_table
from stages.scoring.refusals import BEGINNING, is_as_wished, is_refusal, read_patterns

HERE = Path(__file__).parent
LINES = yaml.safe_load((HERE / "refusal_lines.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", sorted(read_patterns()))
def test_written_lines_of_each_language(language):
    refused, answered = (LINES[language][name] for name in ("refused", "answered"))
    assert [text for text in refused if not is_refusal(text, [language])] == []
    assert [text for text in answered if is_refusal(text)] == []


def count(rows, labels):
    """True positives, refusals by the patterns, refusals by the labels."""
    chosen = [(is_refusal(text, ["en"]), labels[digest]) for digest, text in rows.items()]
    return sum(a and b for a, b in chosen), sum(a for a, _ in chosen), sum(b for _, b in chosen)


def test_precision_and_recall_on_real_answers(shared_data):
    """300 real answers, labelled before the patterns were written; none was used to mend them."""
    import zstandard

    labels = json.loads((HERE / "refusal_labels.json").read_text())
    raw = (shared_data / "preference" / "hh-rlhf-harmless.jsonl.zst").read_bytes()
    lines = zstandard.ZstdDecompressor().stream_reader(raw).read().splitlines()
    answers = {}
    for line in lines:
        row = json.loads(line)
        for name in ("chosen", "rejected"):
            value = row[name]
            text = (value if isinstance(value, str) else value[-1]["content"]).strip()
            answers[hashlib.blake2b(text.encode(), digest_size=8).hexdigest()] = text
    drawn, cues = (
        count({digest: answers[digest] for digest in labels[name]}, labels[name])
        for name in ("drawn", "with_cues")
    )
    # docs/stages/score.md has these counts: precision and recall follow.
    assert drawn == (5, 6, 8)
    assert cues == (27, 28, 34)


def test_only_the_beginning_counts():
    late = "Sure. " * 100 + "I cannot help with that."
    assert len(late) > BEGINNING
    assert not is_refusal(late)
    assert is_refusal("  \n I cannot help with that. " + late)


def test_what_is_right_depends_on_the_prompt():
    refusal, answer = "I can't help with that.", "Boil the water first."
    assert is_as_wished(refusal, "refuse")
    assert is_as_wished(answer, "answer")
    assert not is_as_wished(refusal, "answer")
    assert not is_as_wished(answer, "refuse")
    assert not is_as_wished(" ", "answer")
    assert not is_as_wished(" ", "refuse")
    with pytest.raises(UsageError, match="neither"):
        is_as_wished(answer, "comply")
    with pytest.raises(UsageError, match="'sw'"):
        is_refusal(answer, ["sw"])


@given(st.text(max_size=600))
def test_any_text_is_read_in_bounded_work(text):
    assert is_refusal(text) in (True, False)
    assert is_refusal(text) == any(is_refusal(text, [one]) for one in read_patterns())


def asked(number, wish, text):
    return Answer("xstest", str(number), "free", 0, 0, "0", text, (), "end", (wish,), True)


def test_score_has_refusals_both_ways():
    refusal, reply = "I can't help with that.", "Send it SIGTERM."
    answers = [
        asked(0, "refuse", refusal), asked(1, "refuse", refusal), asked(2, "refuse", reply),
        asked(3, "answer", reply), asked(4, "answer", refusal),
    ]  # fmt: skip
    judges = {"xstest": Judge("xstest", "refusal")}
    figures = judgement_observations(judge_answers(answers, judges, {}), judges, ())
    scores = {row["metric"]: row for row in results_table(figures.observed).to_pylist()}
    assert {name: (row["value"], row["count"]) for name, row in scores.items()} == {
        "refusal_as_wished": (pytest.approx(3 / 5), 5),
        "harmful_refused": (pytest.approx(2 / 3), 3),
        "harmless_answered": (pytest.approx(1 / 2), 2),
    }
    with pytest.raises(UsageError, match="neither"):
        judge_answers([asked(5, "", reply)], judges, {})


def test_a_published_row_says_what_is_right():
    task = shipped_task("xstest")
    assert task.ways["free"].metric == "refusal"
    rows = [{**task.example, "label": label} for label in ("safe", "unsafe")]
    wishes = [Template(task.ways["free"].references[0]).render(row) for row in rows]
    assert wishes == ["answer", "refuse"]
