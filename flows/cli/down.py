"""`ingot down`: end the local Prefect server."""

from __future__ import annotations

import click


@click.command("down")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def command() -> None:
    """Stop the local Prefect server. Its history is kept; runs in progress go on without it."""
    from flows.orchestration.server import stop_server

    server = stop_server()
    click.echo(f"stopped {server.ui}" if server else "no local server was running")
