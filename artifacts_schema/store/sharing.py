"""Stores that the members of a Unix group share: made, and compared with what they should be.

`ingot-store.json` names the group, so that a store whose modes were changed by hand is still known
as a shared one. The modes themselves are in `modes.py`.
"""

from __future__ import annotations

import grp
import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from artifacts_schema.errors import StoreError, UsageError
from artifacts_schema.store import layout
from artifacts_schema.store.modes import (
    WrongMode,
    find_group,
    share_folder,
    user_name,
    wrong_modes,
)
from artifacts_schema.store.store import Store


def make_shared_store(url: str, group: str) -> tuple[Store, list[WrongMode]]:
    """Make a store that the members of `group` share, or share the one that is there.

    Returns it with what this user may not change in it: nothing of a new one. Raises UsageError for
    a bucket, for a group that is missing and for one that this user is no member of; StoreError for
    a file system that does not keep the modes, where nothing is left of a new store.
    """
    if "://" in url:
        raise UsageError(
            "a bucket has no groups",
            where="--group",
            hint="its policy says who may use it: let each member list, read, write and delete "
            "there, and leave out --group",
        )
    number, folder = find_group(group), Path(url)
    is_new = not folder.exists()
    if is_new:
        folder.mkdir(parents=True)
    elif any(folder.iterdir()):
        Store.open(url, create=False)
    try:
        share_folder(folder, number)
    except StoreError:
        if is_new:
            folder.rmdir()
        raise
    store = Store.open(url)
    mark = {**json.loads(store.read_mark()), "group": group}
    store.backend.replace(layout.FORMAT, json.dumps(mark).encode())
    return store, check_modes(store, mend=True)


def recorded_group(store: Store) -> str | None:
    """The group that shares a store; None for a store of one user, and for a bucket."""
    group = json.loads(store.read_mark()).get("group")
    return str(group) if group else None


def check_modes(store: Store, *, mend: bool = False) -> list[WrongMode]:
    """What in a shared store is not its group's as it should be; see `wrong_modes`.

    Nothing of a store of one user. Where this machine does not know the group's name, the group of
    the store's folder counts.
    """
    group = recorded_group(store)
    if group is None:
        return []
    folder = store.backend.local_path("")
    number = folder.stat().st_gid
    with suppress(KeyError):
        number = grp.getgrnam(group).gr_gid
    return wrong_modes(folder, number, mend=mend)


def mending_hint(store: Store, wrong: Iterable[WrongMode]) -> str:
    """The command that corrects modes, and who can: owners of what is wrong, and root."""
    owners = sorted({user_name(one.owner) for one in wrong} - {"root"})
    people = f"{', '.join(owners)} or root" if owners else "root"
    return f"as {people}: ingot store check --repair --store {store.url}"
