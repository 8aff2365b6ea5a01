"""Options that mean the same in every command."""

from __future__ import annotations

from collections.abc import Callable
from glob import escape, glob
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_STORE = "ingot-store"

debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
profile_option = click.option("--profile", metavar="NAME", help="Where and how steps run.")
set_option = click.option(
    "--set",
    "overrides",
    metavar="STEP.PATH=VALUE",
    multiple=True,
    help="Change one value of the recipe; may be repeated.",
)
through_option = click.option("--through", metavar="STEP", help="Last step to bring up to date.")
by_option = click.option(
    "--by", metavar="NAME", default="", help="Who asks, for `ingot cost`.  [default: login name]"
)
accept_code_option = click.option(
    "--accept-code",
    is_flag=True,
    help="Resume from checkpoints that a different program wrote for the same key.",
)
input_option = click.option(
    "--input",
    "inputs",
    metavar="ROLE=REF[:OUTPUT]",
    multiple=True,
    help="Add an artifact to a role; may be repeated, in order.",
)


def combine(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """One decorator for several options, in the order in which the help lists them."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


store_option = combine(
    click.option(
        "--store",
        metavar="URL",
        default=DEFAULT_STORE,
        envvar="INGOT_STORE",
        show_default=True,
        show_envvar=True,
        help="Where artifacts are stored.",
    ),
    debug_option,
)
"""`--store`, and `--debug`, which every command has."""


def complete_recipe(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Bundled recipes and YAML files that begin so; else whatever files the shell finds."""
    from flows.recipe.recipe import BUNDLED

    names = [path.stem for path in BUNDLED.glob("*.yaml") if path.stem.startswith(incomplete)]
    files = glob(f"{escape(incomplete)}*.y*ml")
    items = [CompletionItem(name) for name in sorted([*names, *files])]
    return items or [CompletionItem(incomplete, type="file")]


recipe_options = combine(
    click.argument("recipe", shell_complete=complete_recipe),
    store_option,
    profile_option,
    click.option("--from", "start", metavar="STEP", help="First step to bring up to date."),
    through_option,
    set_option,
    click.option(
        "--force",
        metavar="STEP",
        multiple=True,
        help="Rerun a step even if its artifact exists, and compare; may be repeated.",
    ),
    click.option(
        "--strict-code",
        is_flag=True,
        help="Rerun steps whose program changed at an equal version.",
    ),
    accept_code_option,
)
"""The fields of `flows.recipe.pipeline.Request`."""

pretraining_options = combine(
    click.option(
        "--step", metavar="STEP", help="A pretraining step of the recipe; by default all."
    ),
    profile_option,
    set_option,
)

new_recipe_options = combine(
    click.option("--name", metavar="NAME", help="Name of the recipe; by default RECIPE-COMMAND."),
    click.option(
        "--write",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Write it to a new file.",
    ),
    click.option("--run", "run_now", is_flag=True, help="Run it, as ingot run --no-prefect does."),
    store_option,
)
"""What to do with a recipe that a command made."""
