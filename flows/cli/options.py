"""Flags that mean the same in every command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_STORE = "ingot-store"


def store_option(function: F) -> F:
    """`--store URL`, and `--debug`, which every command has."""
    debug = click.option(
        "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
    )
    store = click.option(
        "--store",
        metavar="URL",
        default=DEFAULT_STORE,
        envvar="INGOT_STORE",
        show_default=True,
        show_envvar=True,
        help="Where artifacts lie.",
    )
    return store(debug(function))


def json_option(function: F) -> F:
    """`--json`: machine-readable output on stdout."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def recipe_options(function: F) -> F:
    """The recipe, and what changes or selects a part of it."""
    for add in reversed(
        [
            click.argument("recipe"),
            store_option,
            click.option("--profile", metavar="NAME", help="Where and how steps run."),
            click.option("--from", "start", metavar="STEP", help="First step to bring up to date."),
            click.option("--through", metavar="STEP", help="Last step to bring up to date."),
            click.option(
                "--set", "overrides", metavar="STEP.PATH=VALUE", multiple=True,
                help="Change one value of the recipe; may be repeated.",
            ),
            click.option(
                "--force", metavar="STEP", multiple=True,
                help="Run a step although its artifact stands, and compare; may be repeated.",
            ),
            click.option(
                "--strict-code", is_flag=True,
                help="Run steps anew whose program changed at an equal version.",
            ),
            click.option(
                "--accept-code", is_flag=True,
                help="Go on from checkpoints that another program left of the same key.",
            ),
        ]
    ):  # fmt: skip
        function = add(function)
    return function


def pretraining_options(function: F) -> F:
    """Which pretraining steps of a recipe are meant, and what changes them."""
    for add in reversed(
        [
            click.option(
                "--step", metavar="STEP", help="A pretraining step of the recipe; by default all."
            ),
            click.option("--profile", metavar="NAME", help="Where and how steps run."),
            click.option(
                "--set", "overrides", metavar="STEP.PATH=VALUE", multiple=True,
                help="Change one value of the recipe; may be repeated.",
            ),
        ]
    ):  # fmt: skip
        function = add(function)
    return function


def request_of(
    recipe: str,
    store: str,
    profile: str | None,
    start: str | None,
    through: str | None,
    overrides: tuple[str, ...],
    force: tuple[str, ...],
    strict_code: bool,
    accept_code: bool,
) -> Any:
    """The `Request` that the flags of `recipe_options` make."""
    from flows.recipe.pipeline import Request

    return Request(
        recipe, store, profile, overrides, start, through, force, strict_code, accept_code
    )
