"""Questions on documents: rows of SQuAD and HotpotQA, RULER's prompt, and what is refused."""

import json
import re
from collections import Counter

import pytest

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.store.gc import remove_artifact
from stages.evaluate.judging import judge_answers
from stages.long_context.families import Draws, Setting
from stages.long_context.questions import Question, QuestionSet, question_problem, render
from stages.long_context.stage import LongContext
from stages.scoring.answers import Answer, Judge, string_match_part

# RULER's template and prefix (scripts/data/synthetic/constants.py) and its documents (qa.py), at
# c3f5e3b; lm-evaluation-harness 0.4.13 has the same in lm_eval/tasks/ruler/qa_utils.py.
RULER = (
    "Answer the question based on the given documents. Only give me the answer and do not output "
    "any other words.\n\nThe following are given documents.\n\n{context}\n\nAnswer the question "
    "based on the given documents. Only give me the answer and do not output any other words."
    "\n\nQuestion: {query} Answer:"
)
CONFIG = {"families": ["qa_1"], "lengths": [512], "items": 6, "choices": 3, "answer_tokens": 8}


def paragraph(article, number):
    return f"House {article} has room {number}, whose keeper is person {article}x{number}. " * 2


def squad(articles=12, rooms=4):
    """A row a question, as SQuAD is on the Hub; of every article the last has no answer."""
    return [
        {
            "id": f"{article}-{number}",
            "title": f"House {article}",
            "context": paragraph(article, number),
            "question": f"Who keeps room {number} of house {article}?",
            "answers": {
                "text": [] if number == rooms - 1 else [f"person {article}x{number}"] * 2,
                "answer_start": [],
            },
        }
        for article in range(articles)
        for number in range(rooms)
    ]


def hotpot(count=20):
    """As HotpotQA's own file: paragraphs as pairs of a title and its sentences."""
    return [
        {
            "_id": f"q{one}",
            "question": f"Which rooms are next to room {one}?",
            "answer": f"rooms of {one}",
            "context": [
                [f"Room {one + n}", [f"Room {one + n} is blue.", f" It is {n} steps wide."]]
                for n in range(3)
            ],
        }
        for one in range(count)
    ]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture
def made(run_stage, read_table, given_tokenizer, snapshot):
    """`made({"qa_1": rows}, **config)` → the items."""

    def make(rows, **config):
        inputs = {
            role: snapshot({"rows.jsonl": one if isinstance(one, bytes) else lines(one)})
            for role, one in rows.items()
        }
        inputs["tokenizer"] = [given_tokenizer]
        manifest = run_stage(LongContext, {**CONFIG, **config}, inputs)
        return read_table(manifest, "benchmarks").to_pylist(), manifest

    return make


def parts(row):
    """Documents and question of an item's prompt, which must be RULER's."""
    (free,) = [one for one in row["requests"] if one["formulation"] == "free"]
    prompt = free["prompt"]
    context = prompt.split("The following are given documents.\n\n")[1].split("\n\nAnswer the")[0]
    query = re.search(r"\n\nQuestion: (.*) Answer:$", prompt)[1]
    assert prompt == RULER.format(context=context, query=query)
    documents = re.split(r"(?:\A|\n\n)Document (\d+):\n", context)[1:]
    assert documents[::2] == [str(n) for n in range(1, len(documents) // 2 + 1)]
    return documents[1::2], query, free["references"]


def test_a_prompt_is_rulers():
    documents = ["One.", "Two\nlines."]
    context = "Document 1:\nOne.\n\nDocument 2:\nTwo\nlines."
    prompt, question = render(documents, "Who?")
    assert prompt == RULER.format(context=context, query="Who?")
    assert question == "Question: Who? Answer:"


def test_items_hold_the_document_of_their_question_and_others_of_its_article_first(made):
    rows, manifest = made({"qa_1": squad()})
    assert manifest.counts["questions"] == 12 * 3 - 6, "five are drawn for each of six items"
    assert len(rows) == 6
    for row in rows:
        facts = json.loads(row["metadata"])
        article, number = map(int, facts["question"].split("-"))
        documents, query, references = parts(row)
        assert query == f"Who keeps room {number} of house {article}?"
        assert references == [f"person {article}x{number}"]
        own = {paragraph(article, n) for n in range(4)}
        assert paragraph(article, number) in documents
        # Four paragraphs of an article: all are there where at least four documents are.
        assert own <= set(documents) if len(documents) >= 4 else set(documents) <= own
        assert len(documents) == facts["size"] == len(set(documents))
        assert 512 - 80 < facts["tokens"] <= 512
        assert row["prompt"] == f"Question: {query} Answer:"
        assert row["choices"][row["answer"]] == f" person {article}x{number}"
        assert len(set(row["choices"])) == 3
    assert len({json.loads(row["metadata"])["question"] for row in rows}) == 6


def test_bytes_are_the_same_for_any_workers_and_other_ones_by_another_seed(
    run_stage, given_tokenizer, snapshot, store
):
    inputs = {"tokenizer": [given_tokenizer], "qa_1": snapshot({"rows.jsonl": lines(squad())})}

    def files(config, workers):
        manifest = run_stage(LongContext, {**CONFIG, **config}, inputs, {"workers": workers})
        remove_artifact(store, manifest)
        return [(file.path, file.sha256) for file in manifest.output("benchmarks").files]

    assert files({}, 1) == files({}, 2)
    assert files({}, 1) != files({"seed": 1}, 1)


def test_squads_own_file_and_rows_of_the_hub_are_the_same_questions(made):
    flat = squad()
    articles = [
        {
            "title": f"House {article}",
            "paragraphs": [
                {
                    "context": one["context"],
                    "qas": [
                        {
                            "id": one["id"],
                            "question": one["question"],
                            "is_impossible": not one["answers"]["text"],
                            "answers": [{"text": text} for text in one["answers"]["text"]],
                        }
                    ],
                }
                for one in flat
                if one["title"] == f"House {article}"
            ],
        }
        for article in range(12)
    ]
    assert made({"qa_1": articles})[0] == made({"qa_1": flat})[0]


def test_hotpotqa_puts_all_paragraphs_of_a_row_and_both_its_shapes_are_read(made):
    plain = hotpot()
    columns = [
        {
            **row,
            "context": {
                "title": [title for title, _ in row["context"]],
                "sentences": [sentences for _, sentences in row["context"]],
            },
        }
        for row in plain
    ]
    config = {"families": ["qa_2"], "lengths": [256], "items": 4}
    rows, _ = made({"qa_2": plain}, **config)
    for row in rows:
        one = int(json.loads(row["metadata"])["question"][1:])
        documents, _, _ = parts(row)
        for n in range(3):
            assert f"Room {one + n}\nRoom {one + n} is blue. It is {n} steps wide." in documents
    assert made({"qa_2": columns}, **config)[0] == rows


def test_the_own_document_lies_anywhere():
    """300 items of five documents: each place has 60, four standard deviations are 28."""
    questions = QuestionSet(
        (Question("q", "?", ("yes",), (0,)), Question("r", "?", ("no",), (1,))),
        tuple(f"Text {n}." for n in range(9)),
        {},
    )
    counts = Counter()
    for number in range(300):
        setting = Setting(0, None, 2)
        prompt = question_problem(questions, 0, Draws(number), 5, setting).prompt
        counts[re.search(r"Document (\d):\nText 0\.", prompt)[1]] += 1
    assert set(counts) == set("12345")
    assert all(abs(count - 60) < 28 for count in counts.values())


def test_an_answer_that_holds_any_reference_is_right():
    assert string_match_part("It was Maud ELLIS.", ["M. Ellis", "maud ellis"]) == 1.0
    assert string_match_part("nobody", ["M. Ellis", "maud ellis"]) == 0.0
    with pytest.raises(ValueError, match="no reference"):
        string_match_part("any", [])
    answer = Answer("qa_1-512", "0", "free", 0, 0, "", "in 1905", (), "end", ("1905", "05"), False)
    (judged,) = judge_answers([answer], {"qa_1-512": Judge("qa_1-512", "string_match_part")}, {})
    assert (judged.metric, judged.value) == ("string_match_part", 1.0)


def test_a_family_without_rows_and_rows_without_their_family_are_refused_by_name(made):
    for families, rows in (
        (["qa_1"], {}),
        (["qa_2"], {"qa_1": squad()}),
        (["vt"], {"qa_1": squad()}),
    ):
        config = LongContext.Config.parse({**CONFIG, "families": families}, where="")
        with pytest.raises(UsageError, match=r"qa_[12]") as caught:
            LongContext.check_plan(config, {"tokenizer": ["one"], **rows})
        assert "families" in caught.value.hint
    assert not {"qa_1", "qa_2"} & set(LongContext.Config().families)


@pytest.mark.parametrize(
    ("rows", "config", "message"),
    [
        ([{"text": "no question"}], {}, r"no row of SQuAD or HotpotQA; its fields are text"),
        ([{"question": "Q?", "context": [["title"]]}], {}, r"no row of SQuAD"),
        (b'{"question": \n', {}, "malformed_json"),
        ([{**row, "answers": []} for row in squad(1)], {}, "no question has an answer"),
        (squad(1), {}, r"3 of 3 questions of qa_1 fit into 512 tokens .*, 6 are needed"),
        (squad(12), {"lengths": [64]}, r"0 of 30 questions of qa_1 fit into 64 tokens"),
        (squad(3), {"lengths": [4096]}, r"all 12 documents of qa_1 have .* the length is 4,096"),
        ([{**r, "answers": ["x"]} for r in squad(3)], {}, r"0 wrong answers, 2 are needed"),
    ],
)
def test_rows_that_make_no_items_are_refused(made, rows, config, message):
    with pytest.raises(InputError, match=message):
        made({"qa_1": rows}, **config)
