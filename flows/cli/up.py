"""`ingot up`: the local Prefect server."""

from __future__ import annotations

import click


@click.command("up")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def command() -> None:
    """Start the local Prefect server in the background, on loopback, and keep it.

    Nothing is started where PREFECT_API_URL, or Prefect's own profile, names a server.
    """
    from flows.orchestration.server import ensure_server, home

    server = ensure_server()
    click.echo(f"Prefect UI   {server.ui}")
    click.echo(f"Prefect API  {server.api}")
    if server.process is not None:
        click.echo(f"log          {home() / 'prefect.log'}")
