"""`ingot snapshot add NAME FILES…`: pin files from outside under a name."""

from __future__ import annotations

from typing import Any

import click

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.store import Store
from flows.cli.options import json_option, store_option
from flows.cli.output import echo, print_json, size
from flows.cli.progress import show_hashing
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
    if is_crawl_id(name) and not any(fields[place] for place in PLACES):
        fields["crawl"] = name
    source = snapshot_entry(name, fields, f"snapshot {name}")
    opened = Store.open(store)
    ref = f"snapshots/{name}"
    with show_hashing() as progress:
        manifest = take_snapshot(opened, source, progress)
        while not opened.name(ref, manifest):  # Collected before it was named.
            manifest = take_snapshot(opened, source, progress)
    digest = manifest.output("snapshot").digest
    if as_json:
        print_json({"ref": ref, "key": manifest.key, "digest": digest, **manifest.counts})
        return
    count, total = manifest.counts["files"], size(manifest.counts["bytes"])
    amount = f"{count:,} file{'s' if count != 1 else ''}, {total}"
    echo(f"{ref} {short(manifest.key)}: {amount}, digest {short(digest)}")
    if note := format_provisional({name: manifest}):
        echo(note)
