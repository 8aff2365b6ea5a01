"""`ingot store`: make a store, also one that a group shares, and check the modes of such a one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from artifacts_schema.errors import IngotError
from artifacts_schema.store import Store
from artifacts_schema.store.modes import WrongMode, user_name
from artifacts_schema.store.sharing import (
    check_modes,
    make_shared_store,
    mending_hint,
    recorded_group,
)
from flows.analysis.artifacts import open_store
from flows.cli.options import debug_option, json_option, store_option
from flows.cli.output import echo, print_json


@click.group("store")
def store() -> None:
    """Make a store, also one for a team; check its modes."""


@store.command("init")
@click.argument("url", metavar="PATH|URL")
@click.option("--group", metavar="NAME", help="Let the members of this group use it, nobody else.")
@debug_option
def init(url: str, group: str | None) -> None:
    """Make a store at PATH.

    With --group its folders and files are the group's, whatever the umask of who makes them. A
    store that is there already can be given to a group in the same way.
    """
    if group is None:
        Store.open(url)
        echo(f"store at {url}")
        return
    opened, left = make_shared_store(url, group)
    echo(f"store at {url}, shared by the group {group}")
    _print(left, "of another user")
    _fail_unless_mended(opened, left)


@store.command("check")
@click.option("--repair", "mend", is_flag=True, help="Correct what is yours.")
@store_option
@json_option
def check(mend: bool, store: str, as_json: bool) -> None:
    """Compare the group and mode of every folder and file with what a shared store needs.

    Exit 1 if one differs. Only its owner and root can correct it.
    """
    opened = open_store(store)
    group = recorded_group(opened)
    wrong = check_modes(opened, mend=mend)
    if as_json:
        print_json({"group": group, "wrong": [asdict(one) for one in wrong]})
    elif group is None:
        echo("no group shares this store")
    else:
        _print(wrong, "not repaired" if mend else "wrong")
        if not wrong:
            echo(f"every folder and file is shared by the group {group}")
    _fail_unless_mended(opened, wrong)


def _print(wrong: Sequence[WrongMode], word: str) -> None:
    for one in wrong:
        echo(f"{word}: {one}; {user_name(one.owner)} owns it")


def _fail_unless_mended(opened: Store, wrong: Sequence[WrongMode]) -> None:
    if wrong:
        raise IngotError(
            "modes of folders and files are not as the group needs them",
            where=opened.url,
            hint=mending_hint(opened, wrong),
        )
