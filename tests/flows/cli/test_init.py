"""`ingot init`: recipes of a few lines that `ingot plan` accepts, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from artifacts_schema.store import Store
from flows.cli.main import main
from flows.recipe.pipeline import Pipeline, Request

CHAT = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}


@pytest.fixture
def data(tmp_path, monkeypatch):
    """`data(name, *rows)` writes a file of rows in the folder `data` of the current folder."""
    monkeypatch.chdir(tmp_path)

    def write(name, *rows):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    return write


def init(*arguments):
    return CliRunner().invoke(main, ["init", *arguments])


def planned(path):
    """The steps that a plan of the recipe has; it must accept every config."""
    Store.open("store")
    return [step.instance for step in Pipeline.open(Request(str(path), "store")).plan().steps]


PRETRAINING = ["text", "signals[text]", "dedup", "filter", "tokenizer", "pack", "pretrain",
               "evaluate", "export"]  # fmt: skip
TUNING = ["conversations", "chat_signals", "chat_filter", "pack_chat", "sft", "evaluate_chat"]


def test_rows_of_text_give_a_base_model(data):
    data("a.jsonl", *[{"text": "some words of text " * 50}] * 40)
    result = init("data")
    assert result.exit_code == 0, result.output
    assert sorted(planned("data.yaml")) == sorted(PRETRAINING)
    text = Path("data.yaml").read_text()
    assert len(text.splitlines()) <= 20
    assert "code: null" in text
    assert "ingot complete data/export" in result.stdout


def test_conversations_beside_text_are_tuned_on(data):
    data("a.jsonl", *[{"body": "some words of text " * 50}] * 40)
    data("chats/b.jsonl", *[CHAT] * 20)
    data("x.py", "code")
    result = init("data", "--name", "mine")
    assert result.exit_code == 0, result.output
    steps = planned("mine.yaml")
    assert set(steps) == {*PRETRAINING, *TUNING, "code", "signals[code]"}
    text = Path("mine.yaml").read_text()
    assert len(text.splitlines()) <= 20
    assert 'text_field: "body"' in text
    assert "ingot chat mine/export" in result.stdout


def test_conversations_of_the_sample_where_the_folder_has_none(data):
    data("a.jsonl", *[{"text": "some words of text " * 50}] * 40)
    assert init("data", "--chat", "sample").exit_code == 0
    assert set(planned("data.yaml")) == {*PRETRAINING, *TUNING, "sample"}
    assert len(Path("data.yaml").read_text().splitlines()) <= 20


def test_code_alone_is_a_corpus(data, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x.py").write_text("def f(x):\n    return x + 1\n" * 2000)
    assert init("data").exit_code == 0
    assert "code" in planned("data.yaml")
    assert "text" not in planned("data.yaml")


def test_names_that_yaml_would_read_otherwise_are_quoted(data):
    data('odd: "name" #1/{a}.jsonl', *[{"text": "some words of text " * 50}] * 40)
    assert init("data").exit_code == 0
    assert "text" in planned("data.yaml")


def test_another_text_field_is_offered_and_taken(data):
    row = {"text": "a text of some words " * 20, "content": "other words of a text " * 30}
    data("a.jsonl", *[row] * 40)
    shown = init("data")
    assert "text in 'text', not 'content' (by its name; --text-field)" in shown.stdout
    assert init("data", "--text-field", "content", "--name", "two").exit_code == 0
    assert 'text_field: "content"' in Path("two.yaml").read_text()


def test_rows_with_another_field_are_left_out_aloud(data):
    data("a/x.jsonl", *[{"text": "some words of text " * 50}] * 40)
    data("b/x.jsonl", *[{"story": "some words of text " * 5}] * 4)
    result = init("data")
    assert result.exit_code == 0
    assert "its text is 'story', not 'text'" in result.stdout
    assert "b/**" not in Path("data.yaml").read_text()


def test_nothing_is_replaced(data):
    data("a.jsonl", *[{"text": "some words of text " * 50}] * 40)
    assert init("data").exit_code == 0
    before = Path("data.yaml").read_text()
    result = init("data")
    assert result.exit_code == 2
    assert "data.yaml" in result.stderr
    assert Path("data.yaml").read_text() == before


def test_json_holds_recipe_groups_and_plan(data):
    data("a.jsonl", *[{"text": "some words of text " * 50}] * 40)
    answer = json.loads(init("data", "--write", "-", "--json").stdout)
    assert answer["groups"][0]["text_field"] == "text"
    assert answer["plan"]["tokens"] > 0
    assert answer["recipe"].startswith("# By `ingot init`")


@pytest.mark.parametrize(
    ("rows", "options", "word"),
    [
        ([], (), "no file"),
        ([{"id": 1}], (), "no field holds text"),
        ([{"text": "short"}], (), "less than one batch"),
        ([CHAT] * 20, (), "no texts"),
        ([{"text": "some words " * 999}] * 9, ("--chat", "own"), "--chat own"),
        ([{"text": "some words " * 999}] * 9, ("--text-field", "bodi"), "not 'bodi'"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_on_is_refused_with_the_reason(data, rows, options, word):
    data("a.jsonl", *rows)
    result = init("data", *options)
    assert result.exit_code == 2, result.output
    assert word in result.stderr
