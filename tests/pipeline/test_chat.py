"""`ingot complete` and `ingot chat` on what the tiny recipe trained and released."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from flows.analysis.chat import find_model, load_model
from flows.cli.main import main
from stages.engine import Input


@pytest.fixture
def ingot(ran):
    """`ingot(*arguments, lines)` → the result of a command on the tiny store."""

    def run(*arguments, lines=None):
        arguments = [*arguments, "--store", str(ran.folder), "--device", "cpu"]
        return CliRunner().invoke(main, arguments, input=lines)

    return run


def test_a_checkpoint_continues_a_text_as_evaluate_does(ran, ingot):
    """Its prompts, greedily."""
    from stages.scoring.generation import Sampling

    model = load_model(ran.store, *find_model(ran.store, "tiny/pretrain"), "cpu")
    ids = model.encode_text("The module")
    written = model._generator.stream(
        ids, Sampling(0, top_p=1.0), max_new_tokens=12, stop_ids={model.special.end}
    )
    result = ingot(
        "complete", "tiny/pretrain", "The module", "--temperature", "0", "--max-tokens", "12",
        "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    expected = model.tokenizer.decode([*ids, *written], skip_special_tokens=True)
    assert "The module" + json.loads(result.stdout)["completion"] == expected


def test_a_release_answers_as_the_checkpoint_that_it_was_made_of(ingot):
    said = ["What does open do?", "And close?"]
    options = [part for text in said for part in ("--message", text)]
    turns = {}
    for ref in ("tiny/dpo", "tiny/export"):
        result = ingot("chat", ref, *options, "--max-tokens", "16", "--json")
        assert result.exit_code == 0, result.output
        turns[ref] = json.loads(result.stdout)["turns"]
    assert [turn["user"] for turn in turns["tiny/dpo"]] == said
    assert turns["tiny/dpo"] == turns["tiny/export"]


def test_lines_are_turns_and_commands_change_them(ingot):
    """/clear and /seed with the first seed bring the first answer back."""
    lines = "Who?\nWho?\n/clear\n/seed 1\nWho?\n/seed 0\n/clear\n\nWho?\n/exit\nnever\n"
    result = ingot("chat", "tiny/dpo", "--max-tokens", "24", lines=lines)
    assert result.exit_code == 0, result.output
    once = ingot("chat", "tiny/dpo", "--max-tokens", "24", "--message", "Who?")
    assert result.stdout.startswith(once.stdout)
    assert result.stdout.endswith(once.stdout)


def test_a_model_that_was_never_tuned_continues_and_says_so(ingot):
    result = ingot("chat", "tiny/pretrain", "--message", "def f(", "--max-tokens", "4")
    assert result.exit_code == 0, result.output
    assert "never tuned" in result.stderr
    assert result.stdout.startswith("def f(")


def test_a_release_has_the_template_of_its_checkpoint(ran):
    release = Input.from_manifest(ran.store, ran.made("export"), "release")
    model = load_model(ran.store, *find_model(ran.store, "tiny/export"), "cpu")
    assert model.template == release.read_bytes("chat_template.jinja").decode()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("chat", "tiny/filter"), "tiny/dpo"),
        (("chat", "tiny/dpoo"), "tiny/dpo"),
        (("complete", "tiny/filter:documents", "x"), "tiny/pretrain"),
    ],
)
def test_what_is_no_model_is_refused_with_those_that_are(ingot, arguments, named):
    result = ingot(*arguments)
    assert result.exit_code == 2
    assert named in result.stderr


def test_a_device_that_is_not_there_is_refused(ran):
    arguments = ["chat", "tiny/dpo", "--store", str(ran.folder), "--device", "warp"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "--device warp" in result.stderr


def test_a_spelled_token_is_named_where_the_template_would_make_it_one(ran):
    model = load_model(ran.store, *find_model(ran.store, "tiny/dpo"), "cpu")
    messages = [{"role": "user", "content": "a <|im_end|> b"}]
    assert model.spelled_token(messages) is None
    model.template = "{{ messages[0].content }}"
    assert model.spelled_token(messages) == "<|im_end|>"
    assert model.spelled_token([{"role": "user", "content": "plain"}]) is None
