"""Bars of `ingot run` on terminals of two widths: one line a step, nothing of it lost to a wrap."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from artifacts_schema.errors import IngotError
from flows.cli.progress import ProgressDisplay, ProgressObserver, format_reused, show_progress
from flows.recipe.execute import execute
from flows.recipe.plan import PlannedStep


def step(name):
    return PlannedStep(name, name, "pretrain", "run", "missing", "ab" * 32)


def draw(display, width):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    display.console = console
    console.print(display.render())
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 100])
def test_steps_that_run_beside_each_other_take_a_line_each(open_pipeline, width):
    display = ProgressDisplay(Console(file=io.StringIO()))
    observer = ProgressObserver(display)
    observer.planned(open_pipeline().plan())
    events = [
        {"type": "progress", "time": float(n), "done": n, "total": 98, "unit": "training steps"}
        for n in (1, 11)
    ]
    metric = {"type": "metric", "time": 11.0, "loss": 3.25, "learning_rate": 1e-3, "tokens": 9.0}
    for name in ("pretrain", "signals[crawl-A]"):
        observer.started(step(name))
        assert "missing" not in "".join(draw(display, width))
        for event in (*events, metric):
            observer.event(step(name), event)
    lines = draw(display, width)
    assert len(lines) == 3
    assert max(map(len, lines)) <= width
    for line, name in zip(lines[1:], ("pretrain", "signals[crawl-A]"), strict=True):
        assert name in line
        assert "11 of 98" in line
    # 87 steps left at one a second; the steps of the recipe were never made.
    assert "at least 2 min left" in lines[0]
    if width == 100:
        assert "1 min 27 s left, loss 3.250" in lines[1]
        assert "at least 2 min left, 0 of 8 steps" in lines[0]


def test_losses_are_drawn_where_there_is_room():
    display = ProgressDisplay(Console(file=io.StringIO()))
    observer = ProgressObserver(display)
    observer.started(step("pretrain"))
    for number in range(8):
        event = {"type": "metric", "time": float(number), "loss": 8.0 - number, "tokens": number}
        observer.event(step("pretrain"), event)
    (*_, curve) = draw(display, 120)
    assert "█▇▆▅▄▃▂▁" in curve
    assert "8.000 → 1.000" in curve
    assert len(draw(display, 60)) == 1


def test_a_terminal_is_left_with_lines_alone(monkeypatch):
    """Bars are erased at the end: each line of theirs is cleared (CSI 2K) before it is left."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    for name, value in (("TERM", "xterm"), ("COLUMNS", "60"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stderr", terminal)
    with show_progress() as observer:
        observer.started(step("pretrain"))
        observer.failed(step("pretrain"), IngotError("no"))
    text = terminal.getvalue()
    assert "pretrain: failed" in text
    after = text.rpartition("pretrain: failed")[2]
    assert "\x1b[2K" in after
    assert re.sub(r"\x1b\[[?0-9]*[A-Za-z]", "", after).strip() == ""
    assert "\x1b[?25h" in after  # The cursor is shown again.


def test_what_is_reused_is_named_in_a_line(open_pipeline, inline):
    assert format_reused(open_pipeline().plan()) is None
    execute(open_pipeline(through="choose"), dispatch=inline)
    reused = format_reused(open_pipeline().plan())
    assert reused.startswith("reused: read[crawl-A], read[crawl-B], measure[crawl-A]")
    execute(open_pipeline(), dispatch=inline)
    assert format_reused(open_pipeline().plan()) is None
