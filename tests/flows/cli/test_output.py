"""What people read: alignment, sizes, durations, and progress lines."""

from __future__ import annotations

import click
import pytest

from artifacts_schema.errors import IngotError
from flows.cli.output import Column, clean, duration, excerpt, plain_table, print_table, size
from flows.cli.progress import ProgressDisplay, ProgressObserver, format_left, format_progress
from flows.recipe.plan import Plan, PlannedStep
from flows.recipe.time_left import TimeLeft


def test_a_plain_table_is_aligned_by_width_on_screen():
    # A CJK character takes two cells.
    lines = plain_table([Column("name"), Column("n", right=True)], [["日本", "1"], ["abcd", "20"]])
    assert lines == ["name   n", "日本   1", "abcd  20"]


@pytest.mark.parametrize("width", [60, 34])
def test_a_table_wider_than_the_terminal_is_printed_by_rows_not_broken_inside_words(
    width, monkeypatch, capsys
):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    columns = [Column("benchmark"), Column("metric"), Column("n", right=True)]
    print_table(columns, [["arc_easy", "accuracy_by_bytes", "1,000"], ["piqa", "accuracy", "7"]])
    printed = click.unstyle(capsys.readouterr().out)
    words = {"arc_easy", "accuracy_by_bytes", "1,000", "piqa", "accuracy", "7"}
    assert words <= set(printed.split())
    assert max(len(line.rstrip()) for line in printed.splitlines()) <= width
    assert ("arc_easy    accuracy_by_bytes   1,000" in printed) == (width == 60)


@pytest.mark.parametrize(
    ("count", "told"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_234_567, "1.2 MB"),
                        (5e15, "5,000.0 TB")]
)  # fmt: skip
def test_sizes_are_decimal(count, told):
    assert size(count) == told


@pytest.mark.parametrize(
    ("seconds", "told"), [(4.21, "4.2 s"), (185, "3 min 05 s"), (7800, "2 h 10 min")]
)
def test_durations_use_two_units_at_most(seconds, told):
    assert duration(seconds) == told


def test_text_is_made_safe_and_short():
    assert clean("a\x1b[31mb\r\n\u202ec") == r"a\x1b[31mb\r\n\u202ec"
    assert excerpt("one\n\n two   three", 9) == "one two …"


def test_progress_lines_come_every_few_seconds_and_no_more(capsys):
    now = [0.0]
    lines = ProgressObserver(ProgressDisplay(now=lambda: now[0]))
    step = PlannedStep("read", "read", "lines", "run", "missing", "ab" * 32)
    lines.started(step)
    for second in range(31):
        now[0] = float(second)
        event = {"type": "progress", "done": second, "total": 30, "unit": "shards"}
        lines.event(step, {**event, "time": float(second)})
    assert capsys.readouterr().err.splitlines() == [
        "read: run abababababab",
        "read: 15 of 30 shards, 15.0 s left",
        "read: 30 of 30 shards",
    ]


def test_lines_tell_the_time_left_of_the_whole_run(capsys):
    """80 s of training are left after a fifth in 20 s; then export, which took 100 s before."""
    now = [0.0]
    lines = ProgressObserver(ProgressDisplay(now=lambda: now[0]))
    read = PlannedStep("read", "read", "lines", "reuse", "", "cd" * 32)
    train = PlannedStep("train", "train", "pretrain", "run", "missing", "ab" * 32)
    export = PlannedStep(
        "export", "export", "export", "run", "after train", reads=("train",), expected_seconds=100.0
    )
    lines.planned(Plan("demo", "store", (read, train, export)))
    lines.started(train)
    for second in (0, 10, 20):
        now[0] = float(second)
        event = {"done": second, "total": 100, "unit": "training steps", "time": float(second)}
        lines.event(train, {"type": "progress", **event})
        metric = {"loss": 5.25 - second / 10, "tokens": 200 * second, "time": float(second)}
        lines.event(train, {"type": "metric", **metric})
    assert capsys.readouterr().err.splitlines() == [
        "train: run abababababab",
        "train: 20 of 100 training steps, 1 min 20 s left, loss 4.250, 200 tokens/s; "
        "about 3 min left in all",
    ]
    lines.failed(train, IngotError("no"))
    assert capsys.readouterr().err == "train: failed\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "10 s"), (50.1, "1 min"), (61, "2 min"), (59 * 60, "59 min"),
                          (59 * 60 + 1, "1 h 00 min"), (7300, "2 h 10 min"), (180_000, "2.1 days")]
)  # fmt: skip
def test_the_time_left_is_rounded_up(seconds, text):
    assert format_left(TimeLeft(seconds, True)) == f"about {text} left"
    assert format_left(TimeLeft(seconds, False)) == f"at least {text} left"


def test_progress_names_its_series():
    event = {"done": 1200, "total": 5000, "unit": "tokens", "label": "train"}
    assert format_progress(event) == "train: 1,200 of 5,000 tokens"


def test_only_one_module_prints():
    """What a command prints is cleaned in `output` (and in rich texts made of cleaned parts)."""
    import re
    from pathlib import Path

    import flows

    raw = re.compile(r"\b(?:click\.s?echo|print|sys\.std(?:out|err)\.write)\(")
    folder = Path(flows.__file__).parent
    found = [
        f"{path.name}:{number}"
        for path in sorted([*folder.glob("cli/*.py"), *folder.glob("report/*.py")])
        if path.name != "output.py"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if raw.search(line) and not re.search(r"(?:def |\.)print\(", line)
    ]
    assert found == []
