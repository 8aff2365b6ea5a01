"""`ingot prove-resume RECIPE`: whether a killed training run goes on to the very same bits."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from flows.cli.options import json_option, store_option
from flows.cli.output import echo


@click.command("prove-resume")
@click.argument("recipe")
@store_option
@click.option(
    "--step", metavar="STEP", help="The step to prove; by default the one that pretrains."
)
@click.option("--profile", metavar="NAME", help="Where and how the step runs.")
@click.option(
    "--set",
    "overrides",
    metavar="STEP.PATH=VALUE",
    multiple=True,
    help="Change one value of the recipe; may be repeated.",
)
@click.option(
    "--kills",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    metavar="N",
    help="How often it is killed: in random training steps, and once inside a save.",
)
@click.option(
    "--training-steps",
    type=click.IntRange(min=4),
    default=24,
    show_default=True,
    metavar="N",
    help="How long the run is; its phases keep their proportions.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Decides where it is killed.")
@click.option(
    "--keep",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where both runs are kept; by default nowhere.",
)
@json_option
def command(
    recipe: str,
    store: str,
    step: str | None,
    profile: str | None,
    overrides: tuple[str, ...],
    kills: int,
    training_steps: int,
    seed: int,
    keep: Path | None,
    as_json: bool,
) -> None:
    """Train twice, once with SIGKILLs, and compare everything bit by bit.

    The step of RECIPE is cut short and run in temporary stores: undisturbed, then killed at random
    training steps and inside a save and resumed each time. Batches, losses, gradient norms,
    held-out losses, weights, optimizer and permanent checkpoints are compared. Exit codes: 0
    bit-exact, 1 not.
    """  # fmt: skip
    import tempfile

    from flows.cli.output import print_json
    from flows.cli.progress import tell
    from flows.proving.proof import Asked, prove

    asked = Asked(recipe, store, step, overrides, profile, kills, training_steps, seed)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        proof = prove(asked, keep, tell)
    else:
        with tempfile.TemporaryDirectory(prefix="ingot-proof-") as folder:
            proof = prove(asked, Path(folder), tell)
    if as_json:
        print_json(_json(proof))
    else:
        echo(proof.verdict())
        for one in proof.differences[:10]:
            place = "run" if one.step is None else f"training step {one.step}"
            echo(f"  {place}: {one.what}")
    if not proof.bit_exact:
        raise click.exceptions.Exit(1)


def _json(proof: Any) -> dict[str, Any]:
    return {
        "step": proof.instance,
        "training_steps": proof.training_steps,
        "lives": [asdict(life) for life in proof.lives],
        "bit_exact": proof.bit_exact,
        "compared": proof.compared,
        "differences": [{"training_step": one.step, "what": one.what} for one in proof.differences],
    }
