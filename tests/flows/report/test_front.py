"""The first page: sentences that follow from the numbers, and commands that exist."""

from __future__ import annotations

from dataclasses import replace

import pytest
from click.testing import CliRunner

from flows.cli.main import main
from flows.recipe.execute import execute
from flows.report.front import front_page
from flows.report.report import report_html
from flows.report.subject import find_subject, load_pages
from stages.engine.page import (
    Axis,
    BarFigure,
    Bars,
    CurveFigure,
    Estimate,
    IntervalFigure,
    Series,
    TextFigure,
)


@pytest.fixture
def ran(open_pipeline, inline, store):
    execute(open_pipeline(), dispatch=inline)
    return store


def as_kinds(subject, instance, *kinds, **counts):
    """`subject` with the outputs of one step said to be of these kinds, and these counts."""

    def changed(step):
        if step.instance != instance:
            return step
        output = next(iter(step.manifest.outputs.values()))
        outputs = {kind: output.model_copy(update={"kind": kind}) for kind in kinds}
        made = step.manifest.model_copy(
            update={"outputs": outputs, "counts": counts, "conservation": None}
        )
        return replace(step, manifest=made)

    return replace(subject, steps=tuple(map(changed, subject.steps)))


def front_of(store, instance, *kinds, **counts):
    subject = as_kinds(find_subject(store, "demo"), instance, *kinds, **counts)
    return front_page(subject, load_pages(subject))


def test_the_first_sentence_counts_records_and_names_the_most_frequent_reason(ran):
    # a/one.txt: 3 lines and an empty one, a/two.txt: 1, b/three.txt: 2; "pi" and "mu" are short.
    front = front_page(subject := find_subject(ran, "demo"), load_pages(subject))
    assert front.verdict[0].startswith("7 records were read and 4 documents kept (57.1%)")
    assert "(choose, 2)" in front.verdict[0]
    assert {fact.label: fact.value for fact in front.facts}["documents kept"] == 4
    assert front.curve is front.scores is front.sample is None


def loss(*values, name="held out"):
    x = tuple(100 * place for place in range(len(values)))
    axis = Axis("loss, nats", format=".4f")
    return CurveFigure("Loss", Axis("tokens", format=",.0f"), axis, (Series(name, x, values),))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ((6.0, 4.0, 3.0), "held-out loss fell from 6 to 3 nats."),
        ((6.0, 7.0, 8.0), "held-out loss rose from 6 to 8 nats."),
        ((6.0, 3.0, 4.0), "was lowest (3) before its end, at 100 tokens."),
    ],
)
def test_the_second_sentence_says_how_the_loss_moved(ran, given_pages, values, sentence):
    other = CurveFigure("Rate", Axis("x"), Axis("learning rate"), (Series("", (1, 2), (1.0, 2.0)),))
    given_pages(choose=[other, loss(*values)])
    front = front_of(ran, "choose", "training_run", tokens=1234)
    assert front.curve.title == "Loss (choose)"
    (said,) = [one for one in front.verdict if one.startswith("choose trained")]
    assert "on 1,234 tokens" in said
    assert said.endswith(sentence)


def test_the_third_sentence_sorts_scores_by_what_their_intervals_hold(ran, given_pages):
    accuracy = IntervalFigure(
        "a", Axis("accuracy", format=".2f"),
        (
            Estimate("clear", 0.6, 0.5, 0.7, 0.25), Estimate("chance", 0.26, 0.2, 0.32, 0.25),
            Estimate("bad", 0.1, 0.05, 0.15, 0.25), Estimate("bare", 0.9),
            Estimate("clear · by_bytes", 0.6, 0.5, 0.7, 0.25),
        ),
    )  # fmt: skip
    given_pages(choose=[accuracy])
    front = front_of(ran, "choose", "evaluation")
    assert front.verdict[-1] == (
        "Of 3 scores with a baseline, 1 is better than it beyond chance (clear of choose), "
        "1 is no different from it (chance of choose) and 1 is worse than it (bad of choose)."
    )
    # A variant of a metric is a row, and no further score.
    rows = [row[-1] for row in front.scores.rows]
    assert rows == ["better", "no different", "worse", "better", ""]


def test_a_text_of_the_model_is_shown_if_its_evaluation_kept_one(ran, given_pages, monkeypatch):
    given_pages()
    text = TextFigure("a chat sample", "Hello\u25b8" + "x" * 1000)
    monkeypatch.setattr("flows.report.subject.make_summary", lambda *_: (text,))
    sample = front_of(ran, "choose", "evaluation").sample
    assert sample.text.startswith("Hello")
    assert len(sample.text) < 500


def test_every_command_named_exists_with_its_options(ran, open_pipeline, inline):
    execute(open_pipeline("choose.least.characters=5"), dispatch=inline)
    front = front_of(ran, "choose", "checkpoint", "training_run", "ledger")
    lines = [command.line.split() for command in front.commands]
    assert {"complete", "report"} <= {words[1] for words in lines}
    assert any("--against" in words for words in lines)
    for _, command, *words in lines:
        options = [word for word in words if word.startswith("--")]
        shown = CliRunner().invoke(main, [command, "--help"])
        assert shown.exit_code == 0, command
        assert all(option in shown.output for option in options)


def test_an_unfinished_run_is_told_how_to_continue(ran):
    subject = find_subject(ran, "demo")
    subject = replace(subject, run=subject.run.model_copy(update={"state": "failed"}))
    front = front_page(subject, load_pages(subject))
    assert front.commands[0].line == "ingot run demo.yaml"


def test_a_single_bar_is_a_number_and_no_picture(ran, given_pages, read_page):
    bar = BarFigure("Scripts", ("Latin",), Axis("documents", format=","), (Bars("n", (233,)),))
    given_pages(choose=[bar])
    html = report_html(ran, "demo")
    steps = html[html.index('id="step-choose"') : html.index('id="lineage"')]
    assert "<svg" not in steps
    assert "233" in read_page(html).text


def test_every_table_has_a_caption(ran, given_pages, kinds):
    given_pages(choose=kinds())
    html = report_html(ran, "demo")
    assert html.count("<caption>") == html.count("<table") > 5
