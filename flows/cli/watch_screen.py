"""What `ingot watch` shows: steps with bars, the funnel so far, the loss as a line of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flows.cli.output import clean, duration
from flows.cli.progress import progress_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from flows.recipe.watching import Live, StepView, View

BLOCKS = "▁▂▃▄▅▆▇█"
CURVE_WIDTH = 60
BAR_WIDTH = 24
STYLES = {
    "made": "green", "reused": "dim", "running": "bold", "failed": "bold red", "stopped": "yellow",
    "waiting": "dim",
}  # fmt: skip


def head_line(view: View) -> str:
    """`quickstart@…: running, 12 of 19 steps stand, since 2026-11-21T17:52:23Z`."""
    run = view.run
    stand = sum(one.step.state in ("made", "reused") for one in view.steps)
    state = "its process is gone" if view.lost else run.state
    return f"{run.name}: {state}, {stand} of {len(view.steps)} steps stand, since {run.started}"


def step_line(one: StepView, width: int = 0) -> str:
    """How one step stands, in a line; its name takes `width` characters."""
    return f"{one.step.instance:<{width}}  {one.step.state:<7}  {said(one)}".rstrip()


def said(one: StepView) -> str:
    """What there is to say about a step: progress and loss, or what it made, or its error."""
    if one.step.error:
        return clean(one.step.error)
    if one.manifest is not None:
        account = one.manifest.conservation
        parts = [f"{account.records_in:,} in, {account.out:,} out"] if account else []
        if one.step.seconds is not None:
            parts.append(duration(one.step.seconds))
        return ", ".join(parts)
    live = one.live
    if live is None:
        return ""
    parts = [progress_text(live.progress)] if live.progress else []
    parts += numbers(live)
    if live.seconds_left is not None:
        parts.append(f"{duration(live.seconds_left)} left")
    return ", ".join(parts)


def numbers(live: Live) -> list[str]:
    """Loss, held-out loss, learning rate and tokens a second, those that are known."""
    names = (("loss", "loss", ".3f"), ("held_out/all", "held out", ".3f"))
    parts = [f"{shown} {live.metric[k]:{f}}" for k, shown, f in names if _is_number(live, k)]
    if _is_number(live, "learning_rate"):
        parts.append(f"lr {live.metric['learning_rate']:.2e}")
    if live.tokens_per_second is not None:
        parts.append(f"{live.tokens_per_second:,.0f} tokens/s")
    return parts


def blocks(values: Sequence[float], width: int = CURVE_WIDTH) -> str:
    """Values as blocks of eight heights, the mean of each of at most `width` buckets."""
    finite = [value for value in values if value == value and abs(value) != float("inf")]
    if not finite:
        return ""
    size = max(1, -(-len(finite) // width))
    means = [
        sum(part) / len(part)
        for start in range(0, len(finite), size)
        if (part := finite[start : start + size])
    ]
    low, high = min(means), max(means)
    span = (high - low) or 1.0
    return "".join(BLOCKS[min(7, int(8 * (value - low) / span))] for value in means)


def screen(view: View) -> RenderableType:
    """The whole view."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Any] = [Text(clean(head_line(view)), style="bold"), _steps(view)]
    for one in view.steps:
        if one.live is not None and one.live.losses:
            curve = Text(clean(f"{one.step.instance} loss  "), style="dim")
            curve.append(blocks(one.live.losses), style="cyan")
            first, last = one.live.losses[0], one.live.losses[-1]
            curve.append(f"  {first:.3f} → {last:.3f}", style="dim")
            parts.append(curve)
    return Group(*parts)


def _steps(view: View) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title, right in (
        ("step", False),
        ("state", False),
        ("", False),
        ("in", True),
        ("out", True),
    ):
        table.add_column(title, justify="right" if right else "left", no_wrap=True)
    table.add_column("", overflow="fold")
    for one in view.steps:
        style = STYLES[one.step.state]
        account = one.manifest.conservation if one.manifest else None
        progress = one.live.progress if one.live else None
        bar: Any = ""
        if progress and one.step.state == "running":
            bar = ProgressBar(float(progress["total"]), float(progress["done"]), width=BAR_WIDTH)
        table.add_row(
            Text(clean(one.step.instance), style=style),
            Text(clean(one.step.state), style=style),
            bar,
            f"{account.records_in:,}" if account else "",
            f"{account.out:,}" if account else "",
            Text(_more(one), style=style),
        )
    return table


def _more(one: StepView) -> str:
    """What the columns do not say already."""
    if one.manifest is None:
        return said(one)
    seconds = duration(one.step.seconds) if one.step.seconds is not None else ""
    dropped = one.manifest.conservation.dropped if one.manifest.conservation else {}
    most = sorted(dropped.items(), key=lambda item: -item[1])[:2]
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in most)
    return "  ".join(part for part in (seconds, clean(reasons)) if part)


def _is_number(live: Live, name: str) -> bool:
    return isinstance(live.metric.get(name), int | float)
