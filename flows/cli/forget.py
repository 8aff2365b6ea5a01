"""`ingot forget DOC_OR_URL…`: what holds a document, and the list that keeps it out from now on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.cli.options import json_option, store_option
from flows.cli.output import echo

if TYPE_CHECKING:
    from artifacts_schema.manifest import Manifest
    from artifacts_schema.store import Store
    from flows.cli.copies import Copy
    from flows.cli.exclusions import Extended
    from flows.cli.holdings import Holding

REF = "exclusions"
REASON = "forget request"
UNKNOWN = "(not in this store)"
COPIES_SHOWN = 3
SHOWN = 10
"""Documents that are named one by one."""


@click.command("forget")
@click.argument("documents", metavar="DOC_OR_URL…", nargs=-1)
@click.option(
    "--from",
    "listed",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Take ids or addresses from a file too, one a line; - for standard input.",
)
@click.option(
    "--suspects",
    metavar="RUN",
    help="Take the documents that a training run lists for its trouble, with its reasons.",
)
@click.option("--reason", metavar="TEXT", default=REASON, show_default=True, help="Why; kept.")
@click.option(
    "--as", "ref", metavar="REF", default=REF, show_default=True, help="Name of the list."
)
@click.option("--copies", is_flag=True, help="Put the verified copies of the documents on it too.")
@click.option("--dry-run", is_flag=True, help="Only say what holds the documents.")
@store_option
@json_option
def command(
    documents: tuple[str, ...],
    listed: Path | None,
    suspects: str | None,
    reason: str,
    ref: str,
    copies: bool,
    dry_run: bool,
    store: str,
    as_json: bool,
) -> None:
    """Say what holds documents, and put them on the list of those that must not be used.

    DOC_OR_URL is a document's id, 6 or more digits of it, or its whole address: then every document
    of that address is meant; or the id of a conversation or preference pair. The list keeps ids and
    reasons alone; `filter` drops what is on it.
    """  # fmt: skip
    from artifacts_schema.errors import UsageError
    from flows.cli.artifacts import open_store
    from flows.cli.copies import copies_of
    from flows.cli.exclusions import check_reason, extend, read_list
    from flows.cli.forgotten import documents_named, origins, places_of
    from flows.cli.holdings import holdings
    from flows.cli.output import print_json

    check_reason(reason)
    opened = open_store(store)
    on_list = read_list(opened, ref)
    manifests = list(opened.manifests())  # All: a list that misses a holder would be wrong.
    troubled = _suspects(opened, suspects) if suspects is not None else {}
    wanted = [*documents, *(_lines(listed) if listed else ()), *troubled]
    found = documents_named(opened, manifests, wanted)
    others = copies_of(opened, manifests, found)
    if copies:
        found |= places_of(opened, manifests, [copy.doc_id for copy in others])
        others = copies_of(opened, manifests, found)
    others = [copy for copy in others if copy.doc_id not in on_list]
    rows = origins(opened, found)
    for row in rows.values():
        if row["url"] and row["url"] in reason:
            raise UsageError(
                "the reason holds the address of a document",
                where="--reason",
                hint="the list keeps reasons for ever; say it without the address",
            )
    told = _Telling(opened, manifests, rows, others, holdings(opened, manifests, found))
    if not dry_run:
        told.extended = extend(opened, ref, {**dict.fromkeys(found, reason), **troubled})
        told.ref = ref
    if as_json:
        print_json(told.to_json())
    else:
        told.print()


def _lines(listed: Path) -> list[str]:
    """The filled lines of a file, or of standard input."""
    from artifacts_schema.errors import UsageError
    from artifacts_schema.files import open_regular

    try:
        stdin = str(listed) == "-"
        with click.open_file("-", "rb") if stdin else open_regular(listed) as file:
            lines = file.read().decode("utf-8-sig", "surrogateescape").split("\n")
            return [line.strip() for line in lines if line.strip()]
    except OSError as error:
        raise UsageError(error.strerror or str(error), where=f"--from {listed}") from None


def _suspects(store: Store, run: str) -> dict[str, str]:
    """doc_id → reason of the documents behind the training steps of a run that were in trouble."""
    from artifacts_schema.errors import UsageError
    from stages.engine.inputs import Input

    manifest, _ = store.resolve(run)
    if "training_run" not in manifest.outputs:
        raise UsageError("no training run", where=f"--suspects {run}")
    output = Input.of(store, manifest, "training_run")
    table = output.read_table("excluded.parquet") if output.has("excluded.parquet") else None
    if not table:
        raise UsageError(
            "no training step of this run was in trouble over its documents",
            where=f"--suspects {run}",
        )
    return dict(zip(table["doc_id"].to_pylist(), table["reason"].to_pylist(), strict=True))


class _Telling:
    """What a person is told of the documents, of what holds them, and of what comes next."""

    def __init__(
        self,
        store: Store,
        manifests: Sequence[Manifest],
        rows: dict[str, dict[str, Any]],
        copies: Sequence[Copy],
        holders: Sequence[Holding],
    ) -> None:
        from flows.cli.artifacts import names_of
        from flows.cli.forgotten import reruns

        self.rows, self.copies, self.holders = rows, copies, holders
        self.names = names_of(store)
        held = {(holding.manifest.stage, holding.manifest.key) for holding in holders}
        self.reruns = reruns(manifests, self.names, held)
        self.extended: Extended | None = None
        self.ref = ""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        told: dict[str, Any] = {
            "documents": [{"doc_id": doc_id, **row} for doc_id, row in self.rows.items()],
            "copies": [copy.plain() for copy in self.copies],
            "holdings": [holding.to_json() for holding in self.holders],
            "reruns": self.reruns,
        }
        if self.extended is not None:
            told["exclusions"] = {
                "ref": self.ref,
                "key": self.extended.manifest.key,
                "documents": self.extended.manifest.counts["documents"],
                "added": self.extended.added,
                "known": self.extended.known,
            }
        return told

    def print(self) -> None:
        """For people."""
        from flows.cli.artifacts import title
        from flows.cli.output import Column, clean, excerpt, print_table

        for doc_id, row in list(self.rows.items())[:SHOWN]:
            echo(f"{doc_id}  {excerpt(row['url'] or row['origin_file'] or UNKNOWN, 90)}")
        if len(self.rows) > SHOWN:
            echo(f"and {len(self.rows) - SHOWN:,} more documents (--json lists all)")
        if self.holders:
            echo()
            what = [(title(h.manifest, self.names), h.told) for h in self.holders]
            print_table(["held by", Column("what", wraps=True)], what)
        if self.copies:
            echo()
            self._print_copies()
        if self.extended is not None:
            echo()
            for line in [self._list(self.extended), *self._next(self.extended.manifest.key)]:
                echo(clean(line))

    def _print_copies(self) -> None:
        """Copies that are not among the documents."""
        shown = ", ".join(f"{c.doc_id} ({c.similarity:.2f})" for c in self.copies[:COPIES_SHOWN])
        more = ", …" if len(self.copies) > COPIES_SHOWN else ""
        count = f"{len(self.copies):,} {'copy' if len(self.copies) == 1 else 'copies'}"
        echo(f"{count} may be kept instead; --copies forgets them too:")
        echo(f"  {shown}{more}")

    def _list(self, extended: Extended) -> str:
        from artifacts_schema.identity import short

        count = int(extended.manifest.counts["documents"])
        known = f", {len(extended.known):,} were on it" if extended.known else ""
        return (
            f"{self.ref} {short(extended.manifest.key)}: {len(extended.added):,} added{known}, "
            f"{count:,} on the list"
        )

    def _next(self, key: str) -> list[str]:
        """What leaves the documents out, and what runs anew then."""
        lines = []
        if not self.reruns or any(not rerun["lists"] for rerun in self.reruns):
            lines += [
                "put it into the recipe, among the inputs of its filter step:",
                f'  exclusions: "@{self.ref}"',
            ]
        for rerun in self.reruns:
            if key in rerun["lists"]:
                lines.append(f"{rerun['ref']} was made with this list")
                continue
            recipe = rerun["ref"].rpartition("/")[0] + "/"
            behind = ", ".join(name.removeprefix(recipe) for name in rerun["behind"])
            lines.append(f"the next run makes {rerun['ref']} anew")
            if behind:
                lines.append(f"  and behind it what reads bytes that change: {behind}")
        kept = "what stands is unchanged, and the record stays in the files of its snapshot"
        return [*lines, kept]
