"""`ingot snapshot add NAME FILES…`: pin files from outside under a name."""

from __future__ import annotations

import click

from flows.cli.options import json_option, store_option


@click.group("snapshot")
def command() -> None:
    """Pin files from outside under a name."""


@command.command("add")
@click.argument("name")
@click.argument("files", nargs=-1)
@click.option("--root", metavar="DIR|URL", help="Names of files, and patterns, begin here.")
@click.option("--paths", metavar="FILE|URL", help="A list of paths, one a line, instead of FILES.")
@click.option("--first", metavar="N", type=int, help="Take the first files only.")
@click.option("--share", metavar="X", type=float, help="Take this share of the files, by hash.")
@store_option
@json_option
def add(
    name: str,
    files: tuple[str, ...],
    root: str | None,
    paths: str | None,
    first: int | None,
    share: float | None,
    store: str,
    as_json: bool,
) -> None:
    """Pin FILES (paths, folders, patterns or URLs) as the snapshot NAME.

    A recipe reads it as "@snapshots/NAME". Files that changed make a new snapshot; files that moved
    do not. A file behind a URL is pinned by its server's ETag.
    """
    from artifacts_schema.errors import UsageError
    from artifacts_schema.store import Store
    from flows.cli.output import print_json, size
    from flows.cli.progress import hashing
    from flows.recipe.recipe import SNAPSHOT_NAME, snapshot_entry
    from flows.recipe.snapshots import provisional_note, take_snapshot

    if not SNAPSHOT_NAME.fullmatch(name):
        raise UsageError(f"'{name}' cannot be a name: use letters, digits, . _ and -")
    given = {"root": root, "paths": paths, "first": first, "share": share}
    source = snapshot_entry(name, {"files": list(files) or None, **given}, f"snapshot {name}")
    opened = Store.open(store)
    with hashing() as progress:
        manifest = take_snapshot(opened, source, progress)
    ref = f"snapshots/{name}"
    opened.set_ref(ref, manifest.stage, manifest.key)
    digest = manifest.output("snapshot").digest
    if as_json:
        print_json({"ref": ref, "key": manifest.key, "digest": digest, **manifest.counts})
        return
    count, total = manifest.counts["files"], manifest.counts["bytes"]
    click.echo(f"{ref} {manifest.key[:12]}: {count:,} files, {size(total)}")
    if note := provisional_note({name: manifest}):
        click.echo(note)
