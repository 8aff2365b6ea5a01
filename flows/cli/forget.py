"""`ingot forget DOC_OR_URL…`: what holds a document, and the list that excludes it from now on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from artifacts_schema.errors import UsageError
from artifacts_schema.files import open_regular
from artifacts_schema.identity import short
from flows.analysis.artifacts import format_title, open_store
from flows.analysis.deletion import DeletionReport, ExtendedList, forget_documents
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, clean, echo, excerpt, print_json, print_table

DUPLICATES_SHOWN = 3
MOST_ROWS = 10
"""Documents that are named one by one."""


@click.command("forget")
@click.argument("documents", metavar="DOC_OR_URL…", nargs=-1)
@click.option(
    "--from",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Take ids or addresses from a file too, one a line; - for standard input.",
)
@click.option(
    "--suspects",
    metavar="RUN",
    help="Take the documents that a training run excludes for anomalies, with its reasons.",
)
@click.option(
    "--reason", metavar="TEXT", default="forget request", show_default=True, help="Why; kept."
)
@click.option(
    "--as", "ref", metavar="REF", default="exclusions", show_default=True, help="Name of the list."
)
@click.option(
    "--copies",
    "with_duplicates",
    is_flag=True,
    help="Put the verified duplicates of the documents on it too.",
)
@click.option("--dry-run", is_flag=True, help="Only say what holds the documents.")
@store_option
@json_option
def forget(
    documents: tuple[str, ...], file: Path | None, store: str, as_json: bool, **request: Any
) -> None:
    """Say what holds documents, and put them on the list of those that must not be used.

    DOC_OR_URL is a document's id, 6 or more digits of it, or its whole address: then every document
    of that address is meant; or the id of a conversation or preference pair. The list keeps only
    ids and reasons; `filter` drops what is on it.
    """  # fmt: skip
    report = forget_documents(
        open_store(store),
        [*documents, *(_read_lines(file) if file else ())],
        **request,
    )
    if as_json:
        print_json(report.to_json())
    else:
        _print_report(report)


def _read_lines(path: Path) -> list[str]:
    """The filled lines of a file, or of standard input."""
    try:
        is_stdin = str(path) == "-"
        with click.open_file("-", "rb") if is_stdin else open_regular(path) as file:
            lines = file.read().decode("utf-8-sig", "surrogateescape").split("\n")
            return [line.strip() for line in lines if line.strip()]
    except OSError as error:
        raise UsageError(error.strerror or str(error), where=f"--from {path}") from None


def _print_report(report: DeletionReport) -> None:
    for doc_id, row in list(report.documents.items())[:MOST_ROWS]:
        echo(f"{doc_id}  {excerpt(row['url'] or row['origin_file'] or '(not in this store)', 90)}")
    if len(report.documents) > MOST_ROWS:
        echo(f"and {len(report.documents) - MOST_ROWS:,} more documents (--json lists all)")
    if report.holdings:
        echo()
        rows = [(format_title(one.manifest, report.refs), one.text) for one in report.holdings]
        print_table(["held by", Column("what", wraps=True)], rows)
    if report.duplicates:
        count = len(report.duplicates)
        first = ", ".join(
            f"{one.doc_id} ({one.similarity:.2f})" for one in report.duplicates[:DUPLICATES_SHOWN]
        )
        more = ", …" if count > DUPLICATES_SHOWN else ""
        noun = "copy" if count == 1 else "copies"
        echo(f"\n{count:,} {noun} may be kept instead; --copies forgets them too:\n  {first}{more}")
    if (extended := report.extended) is not None:
        count = int(extended.manifest.counts["documents"])
        known = f", {len(extended.known):,} were on it" if extended.known else ""
        added = f"{len(extended.added):,} added{known}, {count:,} on the list"
        echo(f"\n{clean(report.ref)} {short(extended.manifest.key)}: {added}")
        for line in _format_next_steps(report, extended):
            echo(clean(line))


def _format_next_steps(report: DeletionReport, extended: ExtendedList) -> list[str]:
    """How to exclude the documents, and what is made again then."""
    lines = []
    if not report.reruns or any(not rerun.lists for rerun in report.reruns):
        lines += [
            "put it into the recipe, among the inputs of its filter step:",
            f'  exclusions: "@{report.ref}"',
        ]
    for rerun in report.reruns:
        if extended.manifest.key in rerun.lists:
            lines.append(f"{rerun.ref} was made with this list")
            continue
        recipe = rerun.ref.rpartition("/")[0] + "/"
        derived = ", ".join(name.removeprefix(recipe) for name in rerun.derived)
        lines.append(f"the next run makes {rerun.ref} again")
        if derived:
            lines.append(f"  and then what reads bytes that change: {derived}")
    return [
        *lines,
        "existing artifacts are unchanged, and the record stays in its snapshot's files",
    ]
