"""`ingot runs`: what was run in a store, when, and how it ended."""

from __future__ import annotations

from typing import Any

import click

from flows.cli.options import json_option, store_option


@click.command("runs")
@click.argument("recipe", required=False)
@store_option
@json_option
def command(recipe: str | None, store: str, as_json: bool) -> None:
    """List the runs of RECIPE, or of all recipes, the newest first.

    The name of a run, RECIPE@ID, is what `ingot report`, its --against and `ingot watch` take.
    """
    from artifacts_schema.config import did_you_mean
    from artifacts_schema.errors import UsageError
    from artifacts_schema.store.runs import recipes_run, runs
    from flows.cli.artifacts import open_store
    from flows.cli.output import Column, print_json, print_table

    opened = open_store(store)
    known = recipes_run(opened)
    if recipe is not None and recipe not in known:
        raise UsageError(f"no run of a recipe '{recipe}'{did_you_mean(recipe, known)}")
    found = [run for name in ([recipe] if recipe else known) for run in runs(opened, name)]
    found.sort(key=lambda run: run.id, reverse=True)
    if as_json:
        print_json([run.model_dump(mode="json") for run in found])
        return
    numbers = [Column(title, right=True) for title in ("made", "reused", "of")]
    print_table(
        ["run", "state", "began (UTC)", *numbers, Column("changes", wraps=True)],
        [_row(run) for run in found],
    )


def _row(run: Any) -> tuple[Any, ...]:
    made = sum(step.state == "made" for step in run.steps)
    reused = sum(step.state == "reused" for step in run.steps)
    began = run.started[:16].replace("T", " ")
    return run.name, run.state, began, made, reused, len(run.steps), " ".join(run.overrides)
