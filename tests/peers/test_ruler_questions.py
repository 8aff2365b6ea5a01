"""Questions on documents beside lm-evaluation-harness's `ruler_qa_squad` and `ruler_qa_hotpot`.

INGOT_PEERS_LM_EVAL names a Python that has lm_eval[hf] (`setup.sh`). Both sides read the same rows;
ours is rendered on the documents that theirs drew, so that every other character is compared.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stages.long_context.questions import read_questions, render

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

THEIRS = """
import json, sys
from lm_eval.tasks.ruler import qa_utils
rows, read, sizes = json.load(open(sys.argv[1]))
qa_utils.download_json = lambda url: rows
questions, documents = getattr(qa_utils, read)()
texts = [
    [qa_utils.generate_input_output(n, size, questions, documents)[0] for size in sizes]
    for n in range(len(questions))
]
json.dump([questions, documents, texts, qa_utils.CONFIG], open(sys.argv[2], "w"))
"""


def squad() -> dict[str, Any]:
    """SQuAD's own file: three articles, whose last paragraph has no answer."""

    def paragraph(article: int, number: int) -> dict[str, Any]:
        answers = [{"text": f"keeper {article}{number}"}, {"text": f"the keeper {article}{number}"}]
        question = {
            "id": f"{article}-{number}",
            "question": f"Who keeps room {number}?",
            "is_impossible": number == 3,
            "answers": answers if number < 3 else [],
        }
        return {
            "context": f"Room {number} of house {article}.\nIt has {{braces}}.",
            "qas": [question],
        }

    articles = [
        {"title": f"House {a}", "paragraphs": [paragraph(a, n) for n in range(4)]} for a in range(3)
    ]
    return {"version": "v2.0", "data": articles}


def hotpot() -> list[dict[str, Any]]:
    """HotpotQA's own file: five questions on three paragraphs, which overlap."""
    return [
        {
            "_id": f"q{one}",
            "question": f"Which rooms are next to room {one}?",
            "answer": f"rooms of {one}",
            "context": [[f"Room {one + n}", ["It is blue.", " It is wide."]] for n in range(3)],
        }
        for one in range(5)
    ]


@pytest.fixture(scope="module")
def python() -> str:
    named = os.environ.get("INGOT_PEERS_LM_EVAL")
    if not named:
        pytest.skip("needs INGOT_PEERS_LM_EVAL: sh tests/peers/setup.sh FOLDER")
    return named


@pytest.mark.parametrize(("rows", "read"), [(squad(), "read_squad"), (hotpot(), "read_hotpotqa")])
def test_questions_documents_and_prompts_are_the_harnesss(
    python, rows, read, tmp_path: Path, snapshot, read_input
):
    given, answer = tmp_path / "rows.json", tmp_path / "texts.json"
    given.write_text(json.dumps([rows, read, [3, 5]]))
    subprocess.run([python, "-c", THEIRS, str(given), str(answer)], check=True, timeout=250)
    theirs, documents, texts, config = json.loads(answer.read_text())
    (reference,) = snapshot({"rows.json": json.dumps(rows).encode()})
    ours = read_questions(read_input(*reference))
    assert list(ours.documents) == documents
    assert [(one.text, list(one.answers)) for one in ours.questions] == [
        (one["query"], one["outputs"]) for one in theirs
    ]
    assert [sorted(one.own) for one in ours.questions] == [sorted(one["context"]) for one in theirs]
    assert [sorted(one.near) for one in ours.questions] == [
        sorted(one.get("more_context", [])) for one in theirs
    ]
    for one, group in zip(ours.questions, texts, strict=True):
        for text in group:
            context = text.split("The following are given documents.\n\n")[1]
            context = context.split("\n\nAnswer the question")[0]
            drawn = re.split(r"(?:\A|\n\n)Document \d+:\n", context)[1:]
            assert set(drawn) <= set(documents)
            assert render(drawn, one.text)[0] == f"{text} {config['answer_prefix']}"
