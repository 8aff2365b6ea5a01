"""`ingot recipes`: the recipes that come with Ingot."""

from __future__ import annotations

import click

from flows.cli.options import json_option


@click.command("recipes")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@json_option
def command(as_json: bool) -> None:
    """List the recipes that come with Ingot, and the data that each needs.

    A name works wherever a recipe is asked for, and in `extends:` of one of your own.
    """
    from flows.cli.output import Column, echo, print_json, print_table
    from flows.recipe.bundled import bundled_recipes

    found = bundled_recipes()
    if as_json:
        print_json([one.to_json() for one in found])
        return
    rows = [(one.name, _needs(one.snapshots, one.missing), one.description) for one in found]
    print_table(["recipe", Column("data", wraps=True), Column("does", wraps=True)], rows)
    echo(f"\nthey lie in {found[0].path.rpartition('/')[0]}")


def _needs(snapshots: tuple[str, ...], missing: dict[str, str]) -> str:
    if not snapshots:
        return "none"
    if not missing:
        return f"here: {len(snapshots)} snapshots"
    return f"missing: {', '.join(missing)}"
