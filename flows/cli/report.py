"""`ingot report REF`: one HTML file that shows what a run, or an artifact, came from and to."""

from __future__ import annotations

from pathlib import Path

import click

from artifacts_schema.errors import UsageError
from artifacts_schema.store import Store
from flows.analysis.artifacts import open_store
from flows.cli.options import json_option, store_option
from flows.cli.output import echo, print_json, size
from flows.report.html import is_report
from flows.report.report import plain_report, write_report


@click.command("report")
@click.argument("ref")
@click.option("--against", metavar="REF", help="A second run; what differs from it is marked.")
@click.option(
    "--output", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write; by default REF-report.html in this folder.",
)  # fmt: skip
@click.option(
    "--corpus",
    is_flag=True,
    help="The corpus before and after: what was added and removed, copies, drift.",
)
@click.option("--full", is_flag=True, help="Open every chapter, and print all of it.")
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@store_option
@json_option
def report(
    ref: str, against: str | None, output: Path | None, corpus: bool, full: bool, show: bool,
    store: str, as_json: bool,
) -> None:  # fmt: skip
    """Write a report of REF: a self-contained HTML file, to be read, printed or sent.

    REF is a recipe (its newest run), RECIPE@ID, a name such as quickstart/export, or a key. A run
    that is not finished is shown as far as it came. Below its first page, steps are folded; paper
    shows those that are open. With --json, the figures as plain values on stdout, and no file.

    With --corpus, a page about what REF keeps, against the run after --against; without that,
    against the same corpus without its newest snapshot.
    """
    opened = open_store(store)
    if as_json:
        _print_json(opened, ref, against, corpus=corpus)
        return
    path = output or _default_path(ref, "corpus" if corpus else "report")
    if corpus:
        from flows.report.corpus_page import write_corpus

        write_corpus(opened, ref, path, against=against, full=full)
    else:
        write_report(opened, ref, path, against=against, full=full)
    echo(f"{path}  {size(path.stat().st_size)}")
    if show:
        click.launch(path.resolve().as_uri())


def _default_path(ref: str, what: str) -> Path:
    """`quickstart-report.html`, or of `what` else; UsageError if there is another file."""
    name = "".join(c if c.isalnum() or c in "._-@" else "-" for c in ref.lstrip("@."))
    path = Path(f"{name}-{what}.html")
    if path.exists() and not is_report(path):
        raise UsageError(
            "this file is not a report of Ingot's",
            where=str(path),
            hint="name another with --output",
        )
    return path


def _print_json(store: Store, ref: str, against: str | None, *, corpus: bool) -> None:
    if corpus:
        from flows.report.corpus_page import plain_corpus

        print_json(plain_corpus(store, ref, against))
        return
    plain = plain_report(store, ref)
    if against is not None:
        plain = {"A": plain_report(store, against), "B": plain}
    print_json(plain)
