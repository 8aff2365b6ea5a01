"""`ingot snapshot add NAME FILES…`: pin files from outside under a name."""

from __future__ import annotations

from pathlib import Path

import click

from flows.cli.options import json_option, store_option


@click.group("snapshot")
def command() -> None:
    """Pin files from outside under a name."""


@command.command("add")
@click.argument("name")
@click.argument("files", nargs=-1, required=True)
@click.option("--root", metavar="DIR", help="Names of files, and patterns, begin here.")
@store_option
@json_option
def add(name: str, files: tuple[str, ...], root: str | None, store: str, as_json: bool) -> None:
    """Pin FILES (paths, folders or patterns) as the snapshot NAME.

    A recipe reads it as "@snapshots/NAME". Files that changed make a new snapshot; files that moved
    do not.
    """
    from artifacts_schema.errors import UsageError
    from artifacts_schema.store import Store
    from flows.cli.output import print_json, size
    from flows.cli.progress import hashing
    from flows.recipe.recipe import SNAPSHOT_NAME, SnapshotFiles
    from flows.recipe.snapshots import take_snapshot

    if not SNAPSHOT_NAME.fullmatch(name):
        raise UsageError(f"'{name}' cannot be a name: use letters, digits, . _ and -")
    opened = Store.open(store)
    with hashing() as progress:
        source = SnapshotFiles(name, files, root, Path(), f"snapshot {name}")
        manifest = take_snapshot(opened, source, progress)
    ref = f"snapshots/{name}"
    opened.set_ref(ref, manifest.stage, manifest.key)
    digest = manifest.output("snapshot").digest
    if as_json:
        print_json({"ref": ref, "key": manifest.key, "digest": digest, **manifest.counts})
        return
    count, total = manifest.counts["files"], manifest.counts["bytes"]
    click.echo(f"{ref} {manifest.key[:12]}: {count:,} files, {size(total)}")
