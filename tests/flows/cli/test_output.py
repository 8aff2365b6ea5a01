"""What people read: alignment, sizes, durations, and progress lines."""

from __future__ import annotations

import pytest

from flows.cli.output import Column, clean, duration, excerpt, plain_table, size
from flows.cli.progress import BarObserver, LineObserver, format_progress
from flows.recipe.plan import Plan, PlannedStep


def test_a_plain_table_is_aligned_by_width_on_screen():
    # A CJK character takes two cells.
    lines = plain_table([Column("name"), Column("n", right=True)], [["日本", "1"], ["abcd", "20"]])
    assert lines == ["name   n", "日本   1", "abcd  20"]


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
    lines = LineObserver(now=lambda: now[0])
    step = PlannedStep("read", "read", "lines", "run", "missing", "ab" * 32)
    lines.started(step)
    for second in range(31):
        now[0] = float(second)
        event = {"type": "progress", "done": second, "total": 30, "unit": "shards"}
        lines.event(step, {**event, "time": float(second)})
    assert capsys.readouterr().err.splitlines() == [
        "read: run abababababab",
        "read: 15 of 30 shards, 15.0 s left",
        "read: 30 of 30 shards, 0.0 s left",
    ]


def test_bars_show_loss_speed_and_the_time_that_is_left():
    """At a tenth after 10 s, 90 s are left; 2,000 tokens in the last 10 s."""
    from io import StringIO

    from rich.console import Console
    from rich.progress import Progress, TextColumn

    status = TextColumn("{task.description} {task.fields[status]}", markup=False)
    progress = Progress(status, console=Console(file=StringIO(), width=200))
    bars = BarObserver(progress)
    running = PlannedStep("train", "train", "pretrain", "run", "missing", "ab" * 32)
    made = PlannedStep("read", "read", "lines", "reuse", "", "cd" * 32)
    bars.planned(Plan("demo", "store", (made, running)))
    bars.started(running)

    def shown():
        return [f"{task.description} {task.fields['status']}" for task in progress.tasks]

    assert shown() == ["all steps 1 of 2 steps", "train starting"]
    for second in (0, 10):
        metric = {"loss": 5.25 - second / 10, "tokens": 200 * second, "time": float(second)}
        bars.event(running, {"type": "metric", **metric})
        event = {"done": second, "total": 100, "unit": "training steps", "time": float(second)}
        bars.event(running, {"type": "progress", **event})
    expected = "train 10 of 100 training steps, 1 min 30 s left, loss 4.250, 200 tokens/s"
    assert shown()[1] == expected


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
