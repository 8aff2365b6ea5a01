"""`ingot schedule RECIPE`: run a recipe by the clock."""

from __future__ import annotations

from typing import Any

import click

from flows.cli.options import json_option, store_option
from flows.cli.output import echo


@click.command("schedule")
@click.argument("recipe", required=False)
@store_option
@click.option("--cron", metavar="CRON", help="When: minute hour day month weekday.")
@click.option("--timezone", metavar="ZONE", default="UTC", show_default=True, help="Whose clock.")
@click.option("--profile", metavar="NAME", help="Where and how steps run.")
@click.option("--through", metavar="STEP", help="Last step to bring up to date.")
@click.option(
    "--set",
    "overrides",
    metavar="STEP.PATH=VALUE",
    multiple=True,
    help="Change one value of the recipe; may be repeated.",
)
@click.option("--list", "is_list", is_flag=True, help="List all schedules.")
@click.option("--remove", "is_remove", is_flag=True, help="Remove RECIPE's (of --cron, if given).")
@click.option("--pool", metavar="NAME", default="ingot", show_default=True, help="Work pool.")
@json_option
def command(
    recipe: str | None,
    cron: str | None,
    is_list: bool,
    is_remove: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Run RECIPE at the times of --cron, in the worker that `ingot up` keeps.

    The recipe is checked now, and again at every run. A run finds what is unchanged made already,
    so a schedule costs what is new. Stopped machines miss their hours: they are not made up for.
    """  # fmt: skip
    if is_list:
        _list(as_json)
    elif recipe is None:
        raise click.UsageError("name a recipe, or use --list")
    elif is_remove:
        _remove(recipe, cron)
    elif cron is None:
        raise click.UsageError("say when: --cron '0 3 * * *'")
    else:
        _add(recipe, cron, as_json, **flags)


def _add(
    recipe: str,
    cron: str,
    as_json: bool,
    *,
    store: str,
    timezone: str,
    profile: str | None,
    through: str | None,
    overrides: tuple[str, ...],
    pool: str,
) -> None:
    from flows.cli.output import print_json
    from flows.cli.progress import tell
    from flows.orchestration.forms import check_recipe
    from flows.orchestration.run import absolute
    from flows.orchestration.standing import connect
    from flows.orchestration.worker import worker_pool
    from flows.recipe.pipeline import Request
    from flows.recipe.recipe import find_recipe, load_recipe

    asked = absolute(Request(recipe, store, profile, overrides, through=through))
    check_recipe(asked)
    connect()
    from flows.orchestration.schedule import add_schedule, check_cron

    chosen = {name: asked[name] for name in ("profile", "through", "overrides") if asked[name]}
    made = add_schedule(
        load_recipe(find_recipe(recipe)), check_cron(cron, timezone), chosen, asked["store"], pool
    )
    if as_json:
        print_json(made.to_json())
    else:
        echo(f"{made.recipe} runs at '{made.cron}' ({made.timezone}) in {asked['store']}")
    if worker_pool() != pool:
        tell(f"no worker takes runs of pool '{pool}' on this machine: start one with `ingot up`")


def _remove(recipe: str, cron: str | None) -> None:
    from artifacts_schema.errors import UsageError
    from flows.orchestration.standing import connect
    from flows.recipe.recipe import find_recipe, load_recipe

    name = load_recipe(find_recipe(recipe)).name
    connect()
    from flows.orchestration.schedule import remove_schedules

    removed = remove_schedules(name, cron)
    if not removed:
        raise UsageError(f"{name} has no such schedule", hint="see `ingot schedule --list`")
    for one in removed:
        echo(f"removed {one.recipe} at '{one.cron}' ({one.timezone})")


def _list(as_json: bool) -> None:
    from flows.cli.output import Column, print_json, print_table
    from flows.orchestration.standing import connect

    connect()
    from flows.orchestration.schedule import schedules

    found = schedules()
    if as_json:
        print_json([one.to_json() for one in found])
        return
    rows = [
        (one.recipe, one.cron, one.timezone, one.asked.get("through"), one.asked.get("store"))
        for one in found
    ]
    print_table(["recipe", "cron", "timezone", "through", Column("store", wraps=True)], rows)
