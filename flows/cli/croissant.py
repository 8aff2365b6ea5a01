"""`ingot croissant REF`: what a data set is, in the words of Croissant."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import click

from artifacts_schema.files import write_whole
from flows.analysis.artifacts import open_store
from flows.cli.options import store_option
from flows.cli.output import echo, print_json


@click.command("croissant")
@click.argument("ref")
@click.option(
    "--output", "file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write; by default on stdout.",
)  # fmt: skip
@click.option("--url", metavar="URL", help="Where the folders of the outputs are published.")
@click.option(
    "--license", "licences", metavar="NAME", multiple=True,
    help="Licence, as SPDX names it or by its URL; may be repeated.",
)  # fmt: skip
@click.option("--creator", "creators", metavar="NAME", multiple=True, help="May be repeated.")
@click.option("--cite-as", metavar="TEXT", help="How to cite it, as BibTeX.")
@store_option
def croissant(
    ref: str, file: Path | None, url: str | None, licences: tuple[str, ...],
    creators: tuple[str, ...], cite_as: str | None, store: str,
) -> None:  # fmt: skip
    """Describe REF as Croissant metadata: its files, columns, sources, and what was dropped.

    REF is an artifact with documents, examples or tokens, or one OUTPUT of it as REF:OUTPUT. Put
    the file beside the folders of the outputs, which `ingot show` names, where you publish them.
    """
    from flows.interchange.croissant import Publication, describe_artifact

    if url is not None:
        parts = urlsplit(url)
        if parts.username is not None or parts.query or parts.fragment:
            raise click.UsageError("--url: the metadata would publish a login or query")
    opened = open_store(store)
    manifest, only = opened.resolve(ref)
    publication = Publication(url, licences, creators, cite_as)
    value = describe_artifact(opened, manifest, only, publication)
    if file is None:
        print_json(value)
    else:
        text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        write_whole(file, lambda draft: draft.write_text(text, encoding="utf-8"))
        echo(str(file))
    echo(f"to be filled in: {', '.join(publication.missing)}", err=True)
