"""`ingot watch REF`: follow a run that is in progress here or on another machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import EXIT_FAILED, EXIT_OK, EXIT_RESUME, UsageError
from artifacts_schema.store import Store
from artifacts_schema.store.runs import find_run, recorded_recipes
from flows.analysis.artifacts import open_store
from flows.cli.options import json_option, store_option
from flows.cli.output import clean, duration, echo, print_json
from flows.cli.progress import LINE_SECONDS, format_live
from flows.recipe.observers import RunView, RunWatcher, StepView

if TYPE_CHECKING:
    from rich.console import RenderableType


LOOK_SECONDS = 1.0
BLOCKS = "▁▂▃▄▅▆▇█"
CURVE_WIDTH = 60
BAR_WIDTH = 24
STYLES = {
    "made": "green", "reused": "dim", "running": "bold", "failed": "bold red", "stopped": "yellow",
    "waiting": "dim",
}  # fmt: skip


def format_head(view: RunView) -> str:
    """`quickstart@…: running, 12 of 19 steps done, since 2026-11-21T17:52:23Z`."""
    run = view.run
    done = sum(one.step.state in ("made", "reused") for one in view.steps)
    state = "its process is gone" if view.lost else run.state
    return f"{run.name}: {state}, {done} of {len(view.steps)} steps done, since {run.started}"


def format_step(one: StepView, width: int = 0) -> str:
    """The state of one step, in a line; its name takes `width` characters."""
    return f"{one.step.instance:<{width}}  {one.step.state:<7}  {format_status(one)}".rstrip()


def format_status(one: StepView) -> str:
    """Progress and loss of a step, or its records and time, or its error."""
    if one.step.error:
        return clean(one.step.error)
    if one.manifest is not None:
        account = one.manifest.conservation
        parts = [f"{account.records_in:,} in, {account.out:,} out"] if account else []
        if one.step.seconds is not None:
            parts.append(duration(one.step.seconds))
        return ", ".join(parts)
    return "" if one.live is None else format_live(one.live)


def format_blocks(values: Sequence[float], width: int = CURVE_WIDTH) -> str:
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


def render_screen(view: RunView) -> RenderableType:
    """The whole view."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Any] = [Text(clean(format_head(view)), style="bold"), _render_steps(view)]
    for one in view.steps:
        if one.live is not None and one.live.losses:
            curve = Text(clean(f"{one.step.instance} loss  "), style="dim")
            curve.append(format_blocks(one.live.losses), style="cyan")
            first, last = one.live.losses[0], one.live.losses[-1]
            curve.append(f"  {first:.3f} → {last:.3f}", style="dim")
            parts.append(curve)
    return Group(*parts)


def _render_steps(view: RunView) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title in ("step", "state", "", "in", "out"):
        justify: Any = "right" if title in ("in", "out") else "left"
        table.add_column(title, justify=justify, no_wrap=True)
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
            Text(_format_details(one), style=style),
        )
    return table


def _format_details(one: StepView) -> str:
    """Time and most frequent drop reasons, or the status while it runs."""
    if one.manifest is None:
        return format_status(one)
    seconds = duration(one.step.seconds) if one.step.seconds is not None else ""
    dropped = one.manifest.conservation.dropped if one.manifest.conservation else {}
    most = sorted(dropped.items(), key=lambda item: -item[1])[:2]
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in most)
    return "  ".join(part for part in (seconds, clean(reasons)) if part)


@click.command("watch")
@click.argument("ref", required=False)
@click.option("--once", is_flag=True, help="Show its state now, and end.")
@store_option
@json_option
def watch(ref: str | None, once: bool, store: str, as_json: bool) -> int:
    """Follow the newest run of the recipe REF, or the run RECIPE@ID, to its end.

    Without REF, the newest run in the store. Leaving it stops nothing. Exit codes
    are the run's: 0 done, 1 failed, 75 stopped or gone.
    """
    watched = _find_run(open_store(store), ref)
    if as_json:
        print_json(_to_json(watched.look()))
        return 0
    if once or not sys.stdout.isatty():
        return _print_lines(watched, once=once)
    return _show_screen(watched)


def _find_run(store: Store, ref: str | None) -> RunWatcher:
    recipes = recorded_recipes(store)
    if not recipes:
        raise UsageError("no recipe has run in this store", where=store.url, hint="see `ingot run`")
    if ref is None:
        newest = [run for name in recipes if (run := find_run(store, name)) is not None]
        return RunWatcher(store, max(newest, key=lambda run: run.id))
    run = find_run(store, ref)
    if run is None:
        name = ref.partition("@")[0]
        raise UsageError(f"no run of a recipe '{name}'{did_you_mean(name, recipes)}")
    return RunWatcher(store, run)


def _show_screen(watched: RunWatcher) -> int:
    from rich.console import Console
    from rich.live import Live as Screen

    console = Console()
    view = watched.look()
    with Screen(render_screen(view), console=console, auto_refresh=False) as display:
        while not view.is_over:
            time.sleep(LOOK_SECONDS)
            view = watched.look()
            display.update(render_screen(view), refresh=True)
    return _print_end(watched, view)


def _print_lines(watched: RunWatcher, *, once: bool) -> int:
    """A line when a step changes its state, and a few between."""
    printed: dict[str, tuple[str, float]] = {}
    view = watched.look()
    width = max(len(one.step.instance) for one in view.steps)
    echo(format_head(view))
    while True:
        now = time.monotonic()
        for one in view.steps:
            state, since = printed.get(one.step.instance, ("waiting", now))
            changed = one.step.state != state
            if once or changed or (one.live is not None and now - since > LINE_SECONDS):
                printed[one.step.instance] = (one.step.state, now)
                echo(format_step(one, width))
        if once:
            return 0
        if view.is_over:
            return _print_end(watched, view)
        time.sleep(LOOK_SECONDS)
        view = watched.look()


def _print_end(watched: RunWatcher, view: RunView) -> int:
    run = view.run
    if view.lost:
        working = watched.still_working(view)
        more = f"; still working: {', '.join(working)}" if working else ""
        echo(f"{run.name}: its process is gone{more}; `ingot run {run.recipe}` continues")
        return EXIT_RESUME
    echo(f"{run.name}: {run.state}" + (f": {clean(run.error)}" if run.error else ""))
    return {"done": EXIT_OK, "failed": EXIT_FAILED}.get(run.state, EXIT_RESUME)


def _to_json(view: RunView) -> dict[str, Any]:
    steps = []
    for one in view.steps:
        live = one.live
        names = ("progress", "metric", "tokens_per_second", "seconds_left")
        current = live and {name: getattr(live, name) for name in names}
        account = one.manifest.conservation if one.manifest else None
        counted = account and account.model_dump()
        steps.append({**one.step.model_dump(mode="json"), "live": current, "records": counted})
    plain = view.run.model_dump(mode="json", exclude={"steps"})
    return {**plain, "lost": view.lost, "steps": steps}
