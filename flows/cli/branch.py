"""`ingot branch RUN@1.6M`: the recipe of a run that leaves another one at a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from flows.cli.options import store_option


@click.command("branch")
@click.argument("ref", metavar="RUN[@TOKENS]")
@click.option(
    "--tokens", metavar="N", help="Tokens behind the checkpoint, as a phase of their own: 50M."
)
@click.option(
    "--mixture", metavar="WEIGHTS", help="Its mixture, as '{web: 0.4, math: 0.6}'; or as before."
)
@click.option(
    "--decay",
    type=click.Choice(["linear", "1-sqrt", "cosine", "none"]),
    default="linear",
    show_default=True,
    help="How the learning rate leads to zero over that phase, from where it was.",
)
@click.option(
    "--set",
    "overrides",
    metavar="PATH=VALUE",
    multiple=True,
    help="Change a value of the run's config from there on, or of its execution by "
    "execution.PATH=VALUE; may be repeated.",
)
@click.option(
    "--input",
    "inputs",
    metavar="ROLE=REF[:OUTPUT]",
    multiple=True,
    help="Give more to a role, such as token shards of a candidate; may be repeated.",
)
@click.option("--name", metavar="NAME", help="The recipe's name; by default RECIPE-branch.")
@click.option(
    "--write", metavar="FILE", type=click.Path(path_type=Path), help="Write it to a new file."
)
@click.option("--run", "wanted", is_flag=True, help="Run it now, as ingot run --no-prefect does.")
@store_option
def command(
    ref: str, name: str | None, write: Path | None, wanted: bool, store: str, **how: Any
) -> None:
    """Print the recipe of a run that goes on behind a checkpoint of RUN, in another way.

    With --tokens a phase follows instead of what RUN did there: an annealing on another mixture.
    Without, the phases stay and --set changes something else, such as a tighter clip. RUN@1.6M is
    a permanent checkpoint; RUN alone its end. Either way it goes on in the same sample stream.
    """  # fmt: skip
    from flows.cli.artifacts import open_store
    from flows.cli.onward import Onward, deliver, names

    onward = Onward.of(open_store(store), ref)
    recipe, step = names(ref, "branch")
    deliver(_recipe(onward, name or recipe, step, **how), write, store, wanted=wanted)


def _recipe(
    onward: Any,
    name: str,
    step: str,
    tokens: str | None,
    mixture: str | None,
    decay: str,
    overrides: tuple[str, ...],
    inputs: tuple[str, ...],
) -> str:
    from artifacts_schema.errors import UsageError
    from flows.cli.longer import annealed, cut, number_of_tokens
    from flows.cli.onward import plain_phases
    from flows.recipe.overrides import presets_first, set_of_step
    from flows.recipe.reading import parse_value

    for text in inputs:
        role, reference = _input(onward.store, text)
        onward = onward.with_inputs(role, [reference])
    weights = parse_value(mixture, f"--mixture {mixture}") if mixture is not None else None
    if tokens is not None:
        more = number_of_tokens(tokens, "--tokens")
        phases = [*cut(onward), annealed(onward, more, decay, weights)]
    elif weights is not None:
        raise UsageError("of what phase?", where="--mixture", hint="say how long: --tokens 50M")
    else:
        phases = plain_phases(onward.config)
    changes: dict[str, Any] = {**onward.config.plain(), "phases": phases}
    changes.pop("optimizer_state")
    execution: dict[str, Any] = {}
    for text in presets_first(overrides):
        set_of_step(changes, execution, text)
    return str(onward.recipe(name, step, changes.pop("phases"), execution, **changes))


def _input(store: Any, text: str) -> tuple[str, Any]:
    from artifacts_schema.errors import UsageError
    from flows.cli.onward import STAGE
    from flows.recipe.reference import stored_input
    from stages.engine.registry import stage_named

    flag = f"--input {text}"
    role, equals, named = text.partition("=")
    if not equals or role not in ("train", "held_out"):
        raise UsageError("expected train=REF or held_out=REF", where=flag)
    return role, stored_input(store, stage_named(STAGE), role, named, where=flag)
