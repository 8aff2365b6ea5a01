"""`ingot run`, `ingot plan` and `ingot recipes`: what a recipe would do, and doing it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from artifacts_schema.identity import short
from artifacts_schema.store import Store
from flows.cli.ask import ask_settings
from flows.cli.options import by_option, debug_option, json_option, recipe_options
from flows.cli.output import Column, echo, print_json, print_table
from flows.cli.progress import (
    format_reused,
    print_line,
    show_hashing,
    show_progress,
    stop_on_signals,
)
from flows.recipe.dispatch import Dispatcher
from flows.recipe.execute import execute
from flows.recipe.pipeline import Pipeline, Request, bundled_recipes, store_to_read
from flows.recipe.plan import Plan
from flows.recipe.repair import check_reused
from flows.recipe.snapshots import count_provisional, format_provisional
from flows.report.overview import print_figures, summarise


@click.command("plan")
@recipe_options
@json_option
def plan(as_json: bool, **fields: Any) -> None:
    """Say what a run of RECIPE would do, step by step, and why.

    RECIPE is a path, or the name of a recipe that comes with Ingot. Source files are hashed if they
    are new or changed; nothing else is done.
    """
    request = Request(**fields)
    with store_to_read(request.store) as place:
        with show_hashing() as progress:
            pipeline = Pipeline.open(replace(request, store=place), progress=progress)
        plan = pipeline.plan()
    is_new = place != request.store
    if is_new:
        plan = replace(plan, store=request.store)
    profile = pipeline.profile
    Dispatcher(profile)  # Pools that cannot be used are an error now.
    places = [profile.resources(step.stage) for step in plan.steps]
    if as_json:
        value = plan.to_json()
        for line, resources in zip(value["steps"], places, strict=True):
            line["where"] = resources.plain()
        print_json({**value, "provisional": count_provisional(pipeline.snapshots)})
        return
    rows: list[tuple[str, ...]] = [
        (
            step.instance,
            step.action,
            short(step.key) if step.key else "-",
            "; ".join(part for part in (step.cause, step.note) if part),
        )
        for step in plan.steps
    ]
    columns: list[str | Column] = ["step", "does", "key", Column("why", wraps=True)]
    if profile.places:
        columns.insert(3, "where")
        rows = [(*row[:3], one.describe(), *row[3:]) for row, one in zip(rows, places, strict=True)]
    print_table(columns, rows)
    echo(f"\n{plan.recipe} in {plan.store}: {plan.summary()}")
    if is_new:
        echo(f"there is no store at {request.store} yet: a run makes it")
    if note := format_provisional(pipeline.snapshots):
        echo(note)


@click.command("recipes")
@debug_option
@json_option
def recipes(as_json: bool) -> None:
    """List the recipes that come with Ingot, and the data that each needs.

    A name is accepted wherever a recipe is, and in `extends:` of one of your own.
    """
    bundled = bundled_recipes()
    if as_json:
        print_json(bundled)
        return
    rows = []
    for one in bundled:
        data = f"here: {len(one['snapshots'])} snapshots" if one["snapshots"] else "none"
        if one["missing"]:
            data = f"missing: {', '.join(one['missing'])}"
        rows.append((one["name"], data, one["description"]))
    print_table(["recipe", Column("data", wraps=True), Column("does", wraps=True)], rows)
    echo(f"\nthey are in {bundled[0]['path'].rpartition('/')[0]}")


@click.command("run")
@recipe_options
@click.option("--jobs", type=click.IntRange(min=1), help="Steps that run at the same time.")
@by_option
@click.option("--no-prefect", is_flag=True, help="Run without Prefect: no server, no UI.")
@click.option(
    "--verify",
    "check",
    is_flag=True,
    help="Read every byte that would be reused first; what is damaged is made again.",
)
@click.option(
    "--ask", "asks", is_flag=True, help="Ask for each value that the recipe writes first."
)
def run(jobs: int | None, no_prefect: bool, check: bool, asks: bool, **fields: Any) -> None:
    """Bring RECIPE up to date: run what its plan says, reuse everything else.

    Killed at any moment, the same command continues. Exit codes: 0 done, 1 a step failed, 2 wrong
    recipe or input, 75 stopped on request.
    """
    if asks:
        fields["overrides"] = ask_settings(fields["recipe"], fields["store"], fields["overrides"])
    request = Request(**fields)
    with show_hashing() as progress:
        pipeline = Pipeline.open(request, progress=progress)
    plan = pipeline.plan()
    if check:
        for step, problem in check_reused(pipeline, plan):
            print_line(f"{step}: {problem.path}: {problem.what}")
        plan = pipeline.plan()
    print_line(f"{plan.recipe} in {plan.store}: {plan.summary()}")
    if reused := format_reused(plan):
        print_line(reused)
    if note := format_provisional(pipeline.snapshots):
        print_line(note)
    if plan.is_done:
        execute(pipeline)  # Starts nothing; the recipe's names may still point elsewhere.
    elif no_prefect:
        plan = run_here(pipeline, jobs)
    else:
        from flows.orchestration.control import run_pipeline

        with show_progress() as observer:
            plan = run_pipeline(pipeline, request, observer=observer, jobs=jobs, tell=print_line)
    print_results(pipeline.store, plan)


def run_here(pipeline: Pipeline, jobs: int | None = None) -> Plan:
    """Run a pipeline without Prefect; show its progress, stop on SIGINT and SIGTERM."""
    with show_progress() as observer, stop_on_signals() as stopping:
        return execute(pipeline, observers=(observer,), jobs=jobs, stopping=stopping)


def print_results(store: Store, plan: Plan) -> None:
    """The funnel, and the few figures that the stages' pages select for a summary."""
    made = [(step.instance, step.manifest) for step in plan.steps if step.manifest is not None]
    print_figures(summarise(store, made))
