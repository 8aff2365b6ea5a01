"""`ingot run --ask`: a question for each value of a recipe, and the command that it equals."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from artifacts_schema.errors import UsageError
from flows.cli.ask import describe, other_options, read_answer
from flows.cli.main import main
from flows.cli.run import run
from flows.recipe.fields import RecipeField

SHARE = RecipeField(
    "a.share", "A share.",
    {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0.5},
)  # fmt: skip
SHAPE = RecipeField(
    "a.decay", "", {"type": "string", "enum": ["linear", "cosine"], "default": "linear"}
)
NAMES = RecipeField("a.names", "", {"type": "array", "items": {"type": "string"}, "default": []})
COUNT = RecipeField("a.n", "", {"type": "integer", "minimum": 1, "default": 3})


def test_a_question_says_type_and_range():
    assert describe(SHARE.shape) == "number, ≥ 0, < 1"
    assert describe(SHAPE.shape) == "one of linear, cosine"
    assert describe(NAMES.shape) == "list of text"


def test_answers_are_read_as_the_field_takes_them():
    assert read_answer(SHARE, "0.25") == 0.25
    assert read_answer(SHAPE, "cosine") == read_answer(SHAPE, '"cosine"') == "cosine"
    assert read_answer(NAMES, "en, de") == read_answer(NAMES, '["en", "de"]') == ["en", "de"]
    assert read_answer(COUNT, "1_000") == 1000


@pytest.mark.parametrize(
    ("field", "answer"),
    [
        (SHARE, "1"),
        (SHARE, "-0.1"),
        (SHARE, "many"),
        (SHAPE, "round"),
        (COUNT, "1.5"),
        (COUNT, "0"),
    ],
)
def test_an_answer_out_of_range_or_of_another_type_is_refused(field, answer):
    with pytest.raises((UsageError, ValueError)):
        read_answer(field, answer)


def test_a_pipe_instead_of_a_terminal_is_refused(tmp_path):
    words = ["run", "quickstart", "--ask", "--no-prefect", "--store", str(tmp_path / "store")]
    result = CliRunner().invoke(main, words, input="1\n" * 100)
    assert isinstance(result.exception, UsageError) or result.exit_code == 2
    assert not (tmp_path / "store").exists()


def test_answers_at_a_terminal_become_the_command_that_is_printed(tmp_path):
    """One wrong answer is asked again; the changed value alone is in the command."""
    (tmp_path / "two.yaml").write_text(
        "name: two\nsteps:\n  sample: {stage: sample, config: {share: 0.5}}\n"
    )
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from flows.cli.ask import ask_settings; "
         "print(ask_settings('two.yaml', 'here', ('sample.x=1',)))"],
        stdin=follower, stdout=follower, stderr=follower, cwd=tmp_path,
    )  # fmt: skip
    os.close(follower)
    os.write(leader, b"7\n0.25\n")
    output, end = b"", time.monotonic() + 30
    while b"\n('sample.x=1'" not in output.replace(b"\r", b"") and time.monotonic() < end:
        if select.select([leader], [], [], 1)[0]:
            try:
                output += os.read(leader, 4096)
            except OSError:
                break
    assert process.wait(10) == 0
    os.close(leader)
    text = output.decode().replace("\r", "")
    assert "is not ≤ 1" in text or "is not < 1" in text
    assert (
        "equal to: ingot run two.yaml --store here --set sample.x=1 --set sample.share=0.25" in text
    )


def test_the_printed_command_has_every_option_that_was_typed(monkeypatch):
    """The words, parsed again, are the same request."""
    typed = [
        "quickstart", "--ask", "--store", "s3://bucket/team", "--profile", "big", "--from", "web",
        "--through", "pack", "--force", "filter", "--force", "pack", "--strict-code", "--jobs", "3",
        "--by", "ana lee", "--no-prefect", "--verify", "--set", "filter.rules=[]",
    ]  # fmt: skip
    context = run.make_context("run", [*typed])
    with context:
        words = ["quickstart", "--store", "s3://bucket/team", *other_options()]
    again = run.make_context("run", [*words, "--set", "filter.rules=[]"])
    assert again.params == {**context.params, "asks": False}
