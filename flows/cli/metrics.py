"""`ingot metrics`: the runs of a store, as Prometheus reads them."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import click

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.files import write_whole
from artifacts_schema.store import Store
from artifacts_schema.store.runs import recorded_recipes
from flows.analysis.artifacts import open_store
from flows.cli.options import store_option
from flows.cli.output import echo, echo_error


@click.command("metrics")
@click.argument("recipes", nargs=-1, metavar="[RECIPE]...")
@click.option("--listen", metavar="HOST:PORT", help="Serve them on an address of loopback.")
@click.option(
    "--output", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="Write them to a file, whole or not at all.",
)  # fmt: skip
@click.option(
    "--every", metavar="SECONDS", type=click.FloatRange(min=1.0),
    help="Write the file again and again.",
)  # fmt: skip
@store_option
def metrics(
    recipes: tuple[str, ...], listen: str | None, output: Path | None, every: float | None,
    store: str,
) -> None:  # fmt: skip
    """Print metrics of the newest run of each RECIPE, by default of all, for Prometheus.

    They come from run records, events and manifests: no run needs to know of it. With --listen it
    serves them, and with --every it keeps writing them, until it is interrupted.
    """
    if listen is not None and output is not None:
        raise click.UsageError("--listen and --output exclude each other")
    if every is not None and output is None:
        raise click.UsageError("--every needs --output")
    opened = open_store(store)
    known = recorded_recipes(opened) if recipes else []
    for name in recipes:
        if name not in known:
            raise UsageError(f"no run of a recipe '{name}'{did_you_mean(name, known)}")
    with suppress(KeyboardInterrupt):
        if listen is not None:
            _serve(opened, recipes, listen)
        elif output is not None:
            _write(opened, recipes, output, every)
        else:
            from flows.interchange.metrics import StoreMetrics

            echo(StoreMetrics(opened, recipes).text().decode(), nl=False)


def _serve(store: Store, recipes: tuple[str, ...], listen: str) -> None:
    from flows.interchange.metrics import StoreMetrics
    from flows.interchange.metrics_server import MetricsServer, parse_address

    address = parse_address(listen)
    try:
        server = MetricsServer(address, StoreMetrics(store, recipes))
    except OSError as error:
        raise UsageError(error.strerror or str(error), where=f"--listen {listen}") from None
    with server:
        echo(server.url)
        server.serve_forever()


def _write(store: Store, recipes: tuple[str, ...], output: Path, every: float | None) -> None:
    """Write the file; again after `every` seconds, where a store that is away costs a line."""
    from flows.interchange.metrics import StoreMetrics

    source = StoreMetrics(store, recipes)
    is_away = False
    while True:
        try:
            text = source.text()
        except (IngotError, OSError) as error:
            if every is None:
                raise
            if not is_away:
                echo_error(error)
            is_away = True
        else:
            is_away = False
            write_whole(output, partial(_write_readable, text))
        if every is None:
            return
        time.sleep(every)


def _write_readable(text: bytes, draft: Path) -> None:
    draft.write_bytes(text)
    draft.chmod(0o644)  # The collector is another user.
