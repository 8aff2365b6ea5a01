"""The form of `ingot run --ask`: a question for each value that a recipe writes."""

from __future__ import annotations

import operator
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from artifacts_schema.errors import UsageError
from flows.cli.output import echo
from flows.recipe.fields import RecipeField, is_of, recipe_fields
from flows.recipe.recipe import find_recipe, load_recipe
from flows.recipe.yaml_document import parse_value

_LIMITS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("minimum", "≥", operator.ge),
    ("exclusiveMinimum", ">", operator.gt),
    ("maximum", "≤", operator.le),
    ("exclusiveMaximum", "<", operator.lt),
)
_NAMES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
}


def ask_settings(recipe: str, store: str, settings: tuple[str, ...]) -> tuple[str, ...]:
    """Ask for the values of `recipe` and print the command that is equal to the answers.

    Enter keeps a value. Values that `settings` already change are not asked for. Returns
    `settings` and those of the changed values; UsageError if there is no terminal to ask on.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "--ask needs a terminal to ask on", hint="in a script, use --set STEP.PATH=VALUE"
        )
    known = {text.partition("=")[0].strip() for text in settings}
    fields = [f for f in recipe_fields(load_recipe(find_recipe(recipe))) if f.path not in known]
    echo(f"{len(fields)} values of {recipe}; Enter keeps the one in brackets.")
    answers = [(field, ask(field)) for field in fields]
    changed = tuple(field.setting(value) for field, value in answers if value != field.default)
    words = ["ingot", "run", recipe, "--store", store, *other_options()]
    words += [word for text in (*settings, *changed) for word in ("--set", text)]
    echo(f"\nequal to: {shlex.join(words)}")
    return (*settings, *changed)


def other_options() -> list[str]:
    """The options of the running command that were typed, but the store, --set and --ask."""
    context, words = click.get_current_context(silent=True), list[str]()
    for one in context.command.params if context is not None else ():
        name = one.name or ""
        if not isinstance(one, click.Option) or name in ("store", "overrides", "asks"):
            continue
        assert context is not None
        if context.get_parameter_source(name) is not click.core.ParameterSource.COMMANDLINE:
            continue
        values = context.params[name]
        for value in values if one.multiple else [values]:
            words += [one.opts[0]] if one.is_flag else [one.opts[0], str(value)]
    return words


def ask(field: RecipeField) -> Any:
    """The answer to one question, asked again until it is valid."""
    echo(f"\n{field.path} ({describe(field.shape)})\n  {field.description}")
    text = field.setting(field.default).partition("=")[2]

    def convert(answer: str) -> Any:
        try:
            return read_answer(field, answer)
        except (UsageError, ValueError) as error:
            raise click.BadParameter(str(error)) from None

    return click.prompt("  value", default=text, value_proc=convert)


def describe(shape: Mapping[str, Any]) -> str:
    """`number, ≥ 0, < 1`: what a field takes."""
    if shape.get("type") == "array":
        return f"list of {describe(shape['items'])}"
    if "enum" in shape:
        return f"one of {', '.join(shape['enum'])}"
    limits = [f"{sign} {shape[key]:,}" for key, sign, _ in _LIMITS if key in shape]
    return ", ".join([_NAMES[shape["type"]], *limits])


def read_answer(field: RecipeField, answer: str) -> Any:
    """The value of an answer; UsageError or ValueError if the field does not take it.

    A text needs no quotes; a list may be written in brackets or as `a, b`.
    """
    shape = field.shape
    if shape["type"] == "array":
        inner = answer if answer.strip().startswith("[") else f"[{answer}]"
        values = parse_value(inner, field.path)
        for value in values:
            _check(shape["items"], value)
        return values
    value = (
        answer.strip().strip('"') if shape["type"] == "string" else parse_value(answer, field.path)
    )
    _check(shape, value)
    return value


def _check(shape: Mapping[str, Any], value: Any) -> None:
    """ValueError if a scalar is not of the type, or not in the range, of a JSON schema."""
    if not is_of(value, shape["type"]):
        raise ValueError(f"{value!r} is not a {_NAMES[shape['type']]}")
    if "enum" in shape and value not in shape["enum"]:
        raise ValueError(f"{value!r} is none of {', '.join(shape['enum'])}")
    for key, sign, holds in _LIMITS:
        if key in shape and not holds(value, shape[key]):
            raise ValueError(f"{value} is not {sign} {shape[key]}")
    if "pattern" in shape and not re.search(shape["pattern"], value):
        raise ValueError(f"{value!r} does not match {shape['pattern']}")
