"""Bars of `ingot run` on terminals of two widths: one line a step, nothing of it lost to a wrap."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from flows.cli.progress import BarObserver, format_reused, make_bars
from flows.recipe.execute import execute
from flows.recipe.plan import PlannedStep


def step(name):
    return PlannedStep(name, name, "pretrain", "run", "missing", "ab" * 32)


@pytest.mark.parametrize("width", [60, 100])
def test_steps_that_run_beside_each_other_take_a_line_each(open_pipeline, width):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    bars = make_bars(console)
    observer = BarObserver(bars)
    observer.planned(open_pipeline().plan())
    events = [
        {"type": "progress", "time": float(n), "done": n, "total": 98, "unit": "training steps"}
        for n in (1, 11)
    ]
    metric = {"type": "metric", "time": 11.0, "loss": 3.25, "learning_rate": 1e-3, "tokens": 9.0}
    for name in ("pretrain", "signals[crawl-A]"):
        observer.started(step(name))
        assert "missing" not in str(bars.tasks[-1].fields)
        for event in (*events, metric):
            observer.event(step(name), event)
    console.print(bars.make_tasks_table(bars.tasks))
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= width
    for line, name in zip(lines[1:], ("pretrain", "signals[crawl-A]"), strict=True):
        assert name in line
        assert "11 of 98" in line
    if width == 100:  # 87 steps left at one a second.
        assert "1 min 27 s left, loss 3.250" in lines[1]


def test_what_is_reused_is_named_in_a_line(open_pipeline, inline):
    assert format_reused(open_pipeline().plan()) is None
    execute(open_pipeline(through="choose"), dispatch=inline)
    reused = format_reused(open_pipeline().plan())
    assert reused.startswith("reused: read[crawl-A], read[crawl-B], measure[crawl-A]")
    execute(open_pipeline(), dispatch=inline)
    assert format_reused(open_pipeline().plan()) is None
