"""`ingot plan RECIPE`: what a run would do, and why. Runs nothing."""

from __future__ import annotations

from typing import Any

import click

from flows.cli.options import json_option, recipe_options, request_of
from flows.cli.output import echo


@click.command("plan")
@recipe_options
@json_option
def command(as_json: bool, **flags: Any) -> None:
    """Say what a run of RECIPE would do, step by step, and why.

    RECIPE is a path, or the name of a recipe that comes with Ingot. Source files are hashed if they
    are new or changed; nothing else is done.
    """
    from dataclasses import replace

    from flows.cli.output import print_json
    from flows.cli.progress import hashing
    from flows.recipe.pipeline import Pipeline, store_to_read
    from flows.recipe.snapshots import provisional, provisional_note

    request = request_of(**flags)
    with store_to_read(request.store) as place:
        with hashing() as progress:
            pipeline = Pipeline.open(replace(request, store=place), progress=progress)
        plan = pipeline.plan()
    is_new = place != request.store
    if is_new:
        plan = replace(plan, store=request.store)
    if as_json:
        print_json({**plan.to_json(), "provisional": provisional(pipeline.snapshots)})
        return
    show_plan(plan)
    if is_new:
        echo(f"there is no store at {request.store} yet: a run makes it")
    if note := provisional_note(pipeline.snapshots):
        echo(note)


def show_plan(plan: Any) -> None:
    """The table and its summary line."""
    from artifacts_schema.identity import short
    from flows.cli.output import Column, print_table

    rows = [
        (
            step.instance,
            step.action,
            short(step.key) if step.key else "-",
            "; ".join(part for part in (step.cause, step.note) if part),
        )
        for step in plan.steps
    ]
    print_table(["step", "does", "key", Column("why", wraps=True)], rows)
    echo(f"\n{plan.recipe} in {plan.store}: {plan.summary()}")
