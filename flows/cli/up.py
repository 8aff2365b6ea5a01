"""`ingot up`: everything that runs recipes and stages from forms, on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from flows.cli.options import store_option


@click.command("up")
@store_option
@click.option("--port", type=click.IntRange(1, 65534), help="Port of the UI.  [default: 4200]")
@click.option("--pool", metavar="NAME", default="ingot", show_default=True, help="Work pool.")
@click.option(
    "--recipe", "recipes", metavar="FILE", multiple=True, type=click.Path(path_type=Path),
    help="A recipe of your own to make a form for; may be repeated.",
)  # fmt: skip
def command(store: str, port: int | None, pool: str, recipes: tuple[Path, ...]) -> None:
    """Start the Prefect server, a worker and the server of reports, all on loopback, and keep them.

    Every recipe and every stage becomes a form in the UI, filled in for --store. Run again, it
    brings the forms up to date and restarts nothing that lives. Where PREFECT_API_URL, or Prefect's
    own profile, names a server, the forms are made there and no server is started. The local server
    and the reports ask for the password in ~/.ingot/password, which only you can read.
    """
    import os

    from flows.cli.output import print_fields
    from flows.cli.progress import tell
    from flows.orchestration.background import log_of
    from flows.orchestration.password import password_file
    from flows.orchestration.standing import bring_up
    from flows.orchestration.worker import NAME

    place = store if "://" in store else os.path.abspath(store)
    standing = bring_up(place, recipes, pool, port, tell)
    server = standing.server
    if server.process is None:
        tell(f"using the Prefect server at {server.api}; none is started here")
    pipelines = [name for name in standing.forms if name.startswith("pipeline/")]
    print_fields(
        [
            ("Prefect UI", server.ui),
            ("sign in", f"with the line in {password_file()}"),
            ("recipes", "\n".join(pipelines)),
            ("stages", f"{len(standing.forms) - len(pipelines)} forms, stage/NAME"),
            ("store", standing.store),
            ("reports", standing.reports),
            ("work pool", standing.pool),
            ("worker log", log_of(NAME)),
            ("server log", log_of("prefect") if server.process is not None else ""),
        ]
    )
