"""`ingot watch REF`: follow a run that goes on here or elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from flows.cli.options import json_option, store_option
from flows.cli.output import echo

if TYPE_CHECKING:
    from flows.recipe.watching import View, Watched

LOOK_SECONDS = 1.0
LINE_SECONDS = 15.0
"""Time between two lines about one step where there is no terminal."""


@click.command("watch")
@click.argument("ref", required=False)
@click.option("--once", is_flag=True, help="Show how it stands now, and end.")
@store_option
@json_option
def command(ref: str | None, once: bool, store: str, as_json: bool) -> int:
    """Follow the newest run of the recipe REF, or the run RECIPE@ID, to its end.

    Without REF, the newest run in the store. It only looks on: leaving it stops nothing. Exit codes
    are the run's: 0 done, 1 failed, 75 stopped or gone.
    """
    from flows.cli.artifacts import open_store
    from flows.cli.output import print_json
    from flows.recipe.watching import Watched

    watched = Watched(*_chosen(open_store(store), ref))
    if as_json:
        print_json(_plain(watched.look()))
        return 0
    if once or not sys.stdout.isatty():
        return _in_lines(watched, once=once)
    return _on_terminal(watched)


def _chosen(store: Any, ref: str | None) -> tuple[Any, Any]:
    from artifacts_schema.config import did_you_mean
    from artifacts_schema.errors import UsageError
    from artifacts_schema.store.runs import find_run, recipes_run

    recipes = recipes_run(store)
    if not recipes:
        raise UsageError("no recipe has run in this store", where=store.url, hint="see `ingot run`")
    if ref is None:
        newest = [run for name in recipes if (run := find_run(store, name)) is not None]
        return store, max(newest, key=lambda run: run.id)
    found = find_run(store, ref)
    if found is None:
        name = ref.partition("@")[0]
        raise UsageError(f"no run of a recipe '{name}'{did_you_mean(name, recipes)}")
    return store, found


def _on_terminal(watched: Watched) -> int:
    from rich.console import Console
    from rich.live import Live as Screen

    from flows.cli.watch_screen import screen

    console = Console()
    view = watched.look()
    with Screen(screen(view), console=console, auto_refresh=False) as shown:
        while not view.is_over:
            time.sleep(LOOK_SECONDS)
            view = watched.look()
            shown.update(screen(view), refresh=True)
    return _last_line(watched, view)


def _in_lines(watched: Watched, *, once: bool) -> int:
    """A line when a step changes its state, and a few between."""
    from flows.cli.watch_screen import head_line, step_line

    told: dict[str, tuple[str, float]] = {}
    view = watched.look()
    width = max(len(one.step.instance) for one in view.steps)
    echo(head_line(view))
    while True:
        now = time.monotonic()
        for one in view.steps:
            state, since = told.get(one.step.instance, ("waiting", now))
            fresh = one.step.state != state
            if once or fresh or (one.live is not None and now - since > LINE_SECONDS):
                told[one.step.instance] = (one.step.state, now)
                echo(step_line(one, width))
        if once:
            return 0
        if view.is_over:
            return _last_line(watched, view)
        time.sleep(LOOK_SECONDS)
        view = watched.look()


def _last_line(watched: Watched, view: View) -> int:
    from artifacts_schema.errors import EXIT_FAILED, EXIT_OK, EXIT_RESUME
    from flows.cli.output import clean

    run = view.run
    if view.lost:
        going = watched.still_working(view)
        more = f"; still working: {', '.join(going)}" if going else ""
        echo(f"{run.name}: its process is gone{more}; `ingot run {run.recipe}` continues")
        return EXIT_RESUME
    echo(f"{run.name}: {run.state}" + (f": {clean(run.error)}" if run.error else ""))
    return {"done": EXIT_OK, "failed": EXIT_FAILED}.get(run.state, EXIT_RESUME)


def _plain(view: View) -> dict[str, Any]:
    """The view as plain values."""
    steps = []
    for one in view.steps:
        live = one.live
        told = live and {
            "progress": live.progress,
            "metric": live.metric,
            "tokens_per_second": live.tokens_per_second,
            "seconds_left": live.seconds_left,
        }
        account = one.manifest.conservation if one.manifest else None
        counted = account and account.model_dump()
        steps.append({**one.step.model_dump(mode="json"), "live": told, "records": counted})
    return {
        **view.run.model_dump(mode="json", exclude={"steps"}),
        "lost": view.lost,
        "steps": steps,
    }
