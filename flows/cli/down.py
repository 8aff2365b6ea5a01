"""`ingot down`: end what `ingot up` started."""

from __future__ import annotations

import click

from flows.cli.output import echo


@click.command("down")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def command() -> None:
    """Stop the local worker, reports and Prefect server.

    Runs that the worker started are stopped too: their stages save what they have, and the next run
    continues there. Runs of `ingot run` go on without the server. The server's history is kept.
    """
    from flows.orchestration.standing import bring_down

    stopped = bring_down()
    echo(f"stopped {', '.join(stopped)}" if stopped else "nothing was running")
