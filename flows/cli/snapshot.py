"""`ingot snapshot add` and `watch`: pin files from outside under a name, now or when they come."""

from __future__ import annotations

import os
import time
from typing import Any

import click

from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.cli.options import json_option, store_option
from flows.cli.output import echo, print_json, size
from flows.cli.progress import print_line, show_hashing
from flows.recipe.recipe import SNAPSHOT_NAME, snapshot_entry
from flows.recipe.snapshot_entry import PLACES, is_crawl_id
from flows.recipe.snapshots import format_provisional, take_snapshot


@click.group("snapshot")
def snapshot() -> None:
    """Pin files from outside under a name."""


@snapshot.command("add")
@click.argument("name")
@click.argument("files", nargs=-1)
@click.option("--crawl", metavar="ID", help="A crawl of Common Crawl, where NAME is not its id.")
@click.option("--records", metavar="KIND", help="Of a crawl: warc (the default), wet or wat.")
@click.option("--via", metavar="HOW", help="Of a crawl: https (the default) or s3.")
@click.option("--mirror", metavar="DIR|URL", help="Of a crawl: another place that holds it.")
@click.option("--dataset", metavar="ORG/NAME", help="A data set of the Hugging Face Hub.")
@click.option("--model", metavar="ORG/NAME", help="A model of the Hugging Face Hub.")
@click.option("--revision", metavar="REV", help="Of either: a branch, tag or commit.")
@click.option("--root", metavar="DIR|URL", help="Names of files, and patterns, begin here.")
@click.option("--paths", metavar="FILE|URL", help="A list of paths, one a line, instead of FILES.")
@click.option("--first", metavar="N", type=int, help="Take the first files only.")
@click.option("--share", metavar="X", type=float, help="Take this share of the files, by hash.")
@store_option
@json_option
def add(name: str, files: tuple[str, ...], store: str, as_json: bool, **fields: Any) -> None:
    """Pin FILES (paths, folders, patterns or URLs) as the snapshot NAME.

    \b
    ingot snapshot add notes data/notes
    ingot snapshot add CC-MAIN-2024-33 --first 10
    ingot snapshot add math 'data/*.parquet' --dataset org/name --first 2
    ingot snapshot add qwen tokenizer.json tokenizer_config.json --model org/name

    A recipe reads it as "@snapshots/NAME". Files that changed make a new snapshot; files that moved
    do not. A file behind a URL is pinned by its checksum if the server sends one, else by its
    ETag.
    """
    if not SNAPSHOT_NAME.fullmatch(name):
        raise UsageError(f"'{name}' cannot be a name: use letters, digits, . _ and -")
    fields["files"] = list(files) or None
    if is_crawl_id(name) and not any(fields.get(place) for place in PLACES):
        fields["crawl"] = name
    source = snapshot_entry(name, fields, f"snapshot {name}")
    opened = Store.open(store)
    ref = f"snapshots/{name}"
    with show_hashing() as progress:
        manifest = take_snapshot(opened, source, progress)
        while not opened.name(ref, manifest):  # Collected before it was named.
            manifest = take_snapshot(opened, source, progress)
    _print_taken(name, manifest, as_json)
    if as_json:
        return
    if note := format_provisional({name: manifest}):
        echo(note)


@snapshot.command("watch")
@click.argument("place", metavar="FOLDER|BUCKET|LIST", required=False)
@click.option("--series", metavar="NAME", default="", help="Begins the names: NAME-FOLDER.")
@click.option("--crawls", is_flag=True, help="Watch Common Crawl's list of crawls instead.")
@click.option("--marker", metavar="FILE", help="A folder is complete once it holds this file.")
@click.option("--since", metavar="NAME", default="", help="Take this name and later ones only.")
@click.option("--first", metavar="N", type=int, help="Of each crawl: take the first files only.")
@click.option("--share", metavar="X", type=float, help="Of each crawl: take this share of files.")
@click.option("--records", metavar="KIND", help="Of each crawl: warc (the default), wet or wat.")
@click.option(
    "--settle",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=60.0,
    show_default=True,
    help="Without a marker: a folder is complete if it has not changed for so long.",
)
@click.option(
    "--every",
    metavar="SECONDS",
    type=click.FloatRange(0.1),
    default=300.0,
    show_default=True,
    help="Look so often.",
)
@click.option("--once", is_flag=True, help="Take what is complete, and end; for a cron job.")
@store_option
@json_option
def watch(
    place: str | None,
    series: str,
    crawls: bool,
    marker: str | None,
    since: str,
    settle: float,
    every: float,
    once: bool,
    store: str,
    as_json: bool,
    **fields: Any,
) -> None:
    """Take a snapshot of each folder below FOLDER once its files are settled.

    \b
    ingot snapshot watch /data/crawls --series crawl
    ingot snapshot watch s3://bucket/crawls --series crawl --marker _SUCCESS
    ingot snapshot watch --crawls --since CC-MAIN-2026-40 --share 0.001

    A recipe reads all of them by `snapshots: {crawls: {series: "crawl-*"}}`. Where a Prefect server
    runs, each is told to it, and `ingot schedule RECIPE --on-snapshot 'crawl-*'` runs the recipe
    then. With --once and without a marker, it looks twice, --settle seconds apart.
    """  # fmt: skip
    from flows.recipe.arrivals import CRAWLS, Place, Watch

    if crawls == (place is not None):
        raise UsageError("name a folder or a bucket, or --crawls", hint="one of them")
    if crawls and fields["first"] is None and fields["share"] is None:
        raise UsageError(
            "a whole crawl is up to 100 TB: say how much of each",
            where="--crawls",
            hint="--first 10 takes ten files, --share 0.001 every thousandth, --share 1 all",
        )
    location = CRAWLS if place is None else place
    entry = {name: value for name, value in fields.items() if value is not None}
    opened = Store.open(store)
    watched = Watch(
        opened,
        Place(location, series, marker, since, entry),
        settle=settle,
        say=print_line,
    )
    looked_again = False
    while True:
        for name, manifest in watched.once():
            _print_taken(name, manifest, as_json)
            _tell_server(store, name, manifest)
        if not once:
            time.sleep(every)
        elif watched.waits() and not looked_again:
            looked_again = True
            time.sleep(settle)
        else:
            return


def _print_taken(name: str, manifest: Manifest, as_json: bool) -> None:
    """One line, or one JSON value, about a snapshot."""
    ref, digest = f"snapshots/{name}", manifest.output("snapshot").digest
    if as_json:
        print_json({"ref": ref, "key": manifest.key, "digest": digest, **manifest.counts})
        return
    count, total = manifest.counts["files"], size(manifest.counts["bytes"])
    amount = f"{count:,} file{'s' if count != 1 else ''}, {total}"
    echo(f"{ref} {short(manifest.key)}: {amount}, digest {short(digest)}")


def _tell_server(store: str, name: str, manifest: Manifest) -> None:
    """Send the event, where there is a server."""
    try:
        _send_event(store, name, manifest)
    except IngotError as error:
        print_line(f"no event about {name}: {error.what}")
        print_line("a schedule, or `ingot run`, finds the snapshot too")


def _send_event(store: str, name: str, manifest: Manifest) -> None:
    from flows.orchestration.control import connect_server

    connect_server()
    from flows.orchestration.snapshot_events import SnapshotTaken, send

    place = store if "://" in store else os.path.abspath(store)
    send(SnapshotTaken.about(place, name, manifest))
