"""`ingot watch REF`: follow a run that is in progress here or on another machine."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import click

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import EXIT_FAILED, EXIT_OK, EXIT_RESUME, UsageError
from artifacts_schema.store import Store
from artifacts_schema.store.runs import find_run, recorded_recipes
from flows.analysis.artifacts import open_store
from flows.cli.options import json_option, store_option
from flows.cli.output import clean, echo, print_json
from flows.cli.progress import NAMES, format_end, format_left, format_live, open_display
from flows.recipe.observers import RunView, RunWatcher
from flows.recipe.plan import join_names
from flows.recipe.time_left import TimeLeft, estimate_left

LOOK_SECONDS = 1.0


def format_head(view: RunView) -> str:
    """`quickstart@…: running, 12 of 19 steps done, about 5 min left, since …`."""
    run = view.run
    done = sum(one.step.state in ("made", "reused") for one in view.steps)
    state = "its process is gone" if view.lost else run.state
    left = _estimate(view)
    parts = [state, f"{done} of {len(view.steps)} steps done", f"since {run.started}"]
    if left is not None:
        parts.insert(2, format_left(left))
    return f"{run.name}: {', '.join(parts)}"


def _estimate(view: RunView) -> TimeLeft | None:
    if view.is_over:
        return None
    return estimate_left(view.steps, view.run.jobs, time.time())


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
    view = watched.look()
    if once:
        _print_state(view)
        if view.lost or view.run.error:
            _print_end(watched, view)
        return EXIT_OK
    return _print_end(watched, _follow(watched, view))


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


def _follow(watched: RunWatcher, view: RunView) -> RunView:
    """Show the run until it is over; returns its last state."""
    with open_display(err=False) as display:
        display.print(format_head(view))
        if reused := _list_steps(view, "reused"):
            display.print(reused)
        while True:
            with display.lock:
                display.jobs = view.run.jobs
                display.keep([one.step.instance for one in view.steps])
                for one in view.steps:
                    display.show(one)
            if view.is_over:
                return view
            time.sleep(LOOK_SECONDS)
            view = watched.look()


def _print_state(view: RunView) -> None:
    """The lines of `_follow` up to now, and where each running step is."""
    echo(format_head(view))
    for one in view.steps:
        if one.step.state == "running":
            status = format_live(one.live) if one.live is not None else ""
            echo(f"{one.step.instance}: {status or 'running'}")
        elif one.step.state not in ("reused", "waiting"):
            echo(format_end(one))
    for state in ("reused", "waiting"):
        if line := _list_steps(view, state):
            echo(line)


def _list_steps(view: RunView, state: str) -> str:
    """`waiting: sft, dpo and 3 more`; empty if none is."""
    names = [one.step.instance for one in view.steps if one.step.state == state]
    return f"{state}: {join_names(names, NAMES)}" if names else ""


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
    left = _estimate(view)
    return {**plain, "lost": view.lost, "left": left and asdict(left), "steps": steps}
