"""`ingot extend` and `ingot branch`: recipes that continue a pretraining run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from artifacts_schema.errors import UsageError
from flows.analysis.artifacts import open_store
from flows.analysis.continued_run import (
    STAGE,
    ContinuedRun,
    branch_recipe,
    extend_recipe,
    parse_tokens,
)
from flows.cli.options import input_option, new_recipe_options
from flows.cli.output import echo
from flows.cli.run import print_results, run_here
from flows.cli.stage import parse_input
from flows.recipe.pipeline import Pipeline, Request
from flows.recipe.yaml_document import parse_value
from stages.engine.protocol import stage_named


@click.command("extend")
@click.argument("ref", metavar="RUN")
@click.option("--tokens", required=True, metavar="N", help="How many more: 2B, 1.5M, 800_000.")
@click.option(
    "--decay",
    type=click.Choice(["keep", "linear", "1-sqrt", "cosine", "none"]),
    default="keep",
    show_default=True,
    help="How the learning rate decays after them: as the run's own decay, by a shape, or not.",
)
@click.option(
    "--decay-tokens", metavar="N", help="Tokens of the decay, where a shape is given; on top."
)
@new_recipe_options
def extend(
    ref: str, tokens: str, decay: str, decay_tokens: str | None, name: str | None, **output: Any
) -> None:
    """Print the recipe of a run with N more tokens than RUN, at the rate before its decay.

    It continues after the permanent checkpoint before RUN's last decay (RUN@1.6M names another
    one), or after its end where nothing decays, and reads what an uninterrupted longer run would
    have read; RUN's own decay follows. RUN is a name in the store, or a key.
    """
    recipe = extend_recipe(
        ContinuedRun.open(open_store(output["store"]), ref),
        parse_tokens(tokens, "--tokens"),
        decay=decay,
        decay_tokens=parse_tokens(decay_tokens, "--decay-tokens") if decay_tokens else None,
        name=name,
    )
    _deliver(recipe, **output)


@click.command("branch")
@click.argument("ref", metavar="RUN[@TOKENS]")
@click.option(
    "--tokens", metavar="N", help="Tokens after the checkpoint, as a phase of their own: 50M."
)
@click.option(
    "--mixture", metavar="WEIGHTS", help="Its mixture, as '{web: 0.4, math: 0.6}'; or as before."
)
@click.option(
    "--decay",
    type=click.Choice(["linear", "1-sqrt", "cosine", "none"]),
    default="linear",
    show_default=True,
    help="How the learning rate decays to zero over that phase, from its value there.",
)
@click.option(
    "--set",
    "overrides",
    metavar="PATH=VALUE",
    multiple=True,
    help="Change a value of the run's config from there on, or of its execution by "
    "execution.PATH=VALUE; may be repeated.",
)
@input_option
@new_recipe_options
def branch(
    ref: str,
    tokens: str | None,
    mixture: str | None,
    inputs: tuple[str, ...],
    store: str,
    write: Path | None,
    run_now: bool,
    **changes: Any,
) -> None:
    """Print the recipe of a run that leaves RUN at a checkpoint.

    With --tokens a phase follows instead of what RUN did there: an annealing on another mixture.
    Without, the phases stay and --set changes something else, such as a tighter clip. RUN@1.6M is
    a permanent checkpoint; RUN alone its end. Either way it continues in the same sample stream.
    """  # fmt: skip
    run = ContinuedRun.open(open_store(store), ref)
    for text in inputs:
        roles = ("train", "held_out")
        role, reference = parse_input(run.store, stage_named(STAGE), text, roles)
        run = run.with_input(role, reference)
    weights = parse_value(mixture, f"--mixture {mixture}") if mixture is not None else None
    length = parse_tokens(tokens, "--tokens") if tokens is not None else None
    recipe = branch_recipe(run, tokens=length, mixture=weights, **changes)
    _deliver(recipe, write, store, run_now)


def _deliver(text: str, write: Path | None, store: str, run_now: bool) -> None:
    """Print a recipe, or write it to a new file; and run it, as `ingot run --no-prefect` does."""
    if write is None:
        echo(text, nl=False)
    elif write.exists():
        raise UsageError("it already exists", where=str(write), hint="choose another --write")
    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        path = write or Path(folder, "recipe.yaml")
        path.write_text(text, encoding="utf-8")
        if not run_now:
            return
        pipeline = Pipeline.open(Request(str(path), store))
        print_results(pipeline.store, run_here(pipeline))
