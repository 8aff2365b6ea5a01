"""`ingot extend RUN --tokens 2B`: the recipe of a longer run, which goes on where that one was."""

from __future__ import annotations

from pathlib import Path

import click

from flows.cli.options import store_option


@click.command("extend")
@click.argument("ref", metavar="RUN")
@click.option("--tokens", required=True, metavar="N", help="How many more: 2B, 1.5M, 800_000.")
@click.option(
    "--decay",
    type=click.Choice(["keep", "linear", "1-sqrt", "cosine", "none"]),
    default="keep",
    show_default=True,
    help="How the learning rate decays behind them: as the run's own decay, by a shape, or not.",
)
@click.option(
    "--decay-tokens", metavar="N", help="Tokens of the decay, where a shape is given; on top."
)
@click.option("--name", metavar="NAME", help="The recipe's name; by default RECIPE-extended.")
@click.option(
    "--write", metavar="FILE", type=click.Path(path_type=Path), help="Write it to a new file."
)
@click.option("--run", "wanted", is_flag=True, help="Run it now, as ingot run --no-prefect does.")
@store_option
def command(
    ref: str,
    tokens: str,
    decay: str,
    decay_tokens: str | None,
    name: str | None,
    write: Path | None,
    wanted: bool,
    store: str,
) -> None:
    """Print the recipe of a run with N more tokens than RUN, at the rate before its decay.

    It goes on behind the permanent checkpoint before RUN's last decay (RUN@1.6M names another one),
    or behind its end where nothing decays, and reads what an uninterrupted longer run would have
    read; RUN's own decay follows. RUN is a name in the store, or a key.
    """
    from flows.cli.artifacts import open_store
    from flows.cli.longer import number_of_tokens
    from flows.cli.onward import Onward, deliver, names

    onward = Onward.of(open_store(store), ref)
    more = number_of_tokens(tokens, "--tokens")
    last = number_of_tokens(decay_tokens, "--decay-tokens") if decay_tokens else None
    text = _recipe(onward, more, decay, last, name or names(ref, "extended")[0])
    deliver(text, write, store, wanted=wanted)


def _recipe(onward: object, more: int, decay: str, last: int | None, name: str) -> str:
    from artifacts_schema.errors import UsageError
    from flows.cli.longer import annealed, decay_start, lengthened, without_decay
    from flows.cli.onward import Onward, names

    assert isinstance(onward, Onward)
    if (last is None) != (decay in ("keep", "none")):
        raise UsageError(
            "a shape and its tokens belong together",
            where="--decay",
            hint="--decay linear --decay-tokens 200M",
        )
    start = decay_start(onward)
    if onward.at_the_end and start is not None:
        onward = onward.before(start)
    phases = lengthened(onward, more)
    if decay != "keep":
        phases = without_decay(phases)
    if last is not None:
        peak = {"peak": None}
        decays = annealed(onward, last, decay, None)
        phases.append({**decays, "learning_rate": {**decays["learning_rate"], **peak}})
    return onward.recipe(name, names(onward.ref, "extended")[1], phases)
