"""`ingot notify`: messages about runs by a webhook, Slack or e-mail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from artifacts_schema.errors import UsageError
from flows.cli.options import debug_option, json_option
from flows.cli.output import echo, print_json, print_table

OCCASIONS = ("failure", "regression", "completion")


@click.command("notify")
@click.argument("name", required=False)
@click.option(
    "--url-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File (mode 0600) with the URL that messages go to.",
)
@click.option(
    "--on",
    "occasions",
    type=click.Choice(OCCASIONS),
    multiple=True,
    default=("failure", "regression"),
    help="When; may be repeated.  [default: failure and regression]",
)
@click.option("--list", "is_list", is_flag=True, help="List all.")
@click.option("--remove", "is_remove", is_flag=True, help="Send no more messages under NAME.")
@debug_option
@json_option
def notify(
    name: str | None,
    url_file: Path | None,
    occasions: tuple[Any, ...],
    is_list: bool,
    is_remove: bool,
    as_json: bool,
) -> None:
    """Send a message when a run fails, when a score falls, or when a run is complete.

    FILE holds one line: https://… of a webhook, which gets JSON; https://hooks.slack.com/… ; or
    mailtos://USER:PASSWORD@SERVER?to=ADDRESS. Whoever knows it can write there, so it is a secret.
    The same NAME again replaces address and occasions.
    """
    if is_list:
        _list(as_json)
        return
    if name is None or (not is_remove and url_file is None):
        raise click.UsageError("name the messages and give --url-file, or use --list")
    from flows.orchestration.control import connect_server

    connect_server()
    from flows.orchestration import notifications

    if is_remove or url_file is None:
        if not notifications.stop_notifying(name):
            raise UsageError(f"no messages '{name}' are sent", hint="see `ingot notify --list`")
        echo(f"removed {name}")
        return
    target = notifications.read_target(url_file)
    notifications.notify(name, target, occasions)
    if as_json:
        print_json({"name": name, "on": list(occasions)})
    else:
        echo(f"{name}: a message at each {', '.join(occasions)}")


def _list(as_json: bool) -> None:
    from flows.orchestration.control import connect_server

    connect_server()
    from flows.orchestration.notifications import list_notifications

    rows = list_notifications()
    if as_json:
        print_json([{"name": name, "on": occasion} for name, occasion in rows])
    else:
        print_table(["name", "on"], rows)
