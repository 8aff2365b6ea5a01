"""Everything a store knows about a document: record, text, signals, verdicts, tokens.

Side tables lie row for row beside the documents they describe, so one look finds the row; token
indexes are searched. Only the columns that are needed are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError
from artifacts_schema.kinds import beside
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input

if TYPE_CHECKING:
    import pyarrow as pa

_ID = re.compile(r"[0-9a-f]{6,32}")
MOST_DOCUMENTS = 10
"""More documents than this under one address or prefix are an error that lists some."""

_ORDER = (
    "documents", "rejected", "signals", "views", "duplicates", "contamination", "ledger", "truth",
    "corpus", "token_shards",
)  # fmt: skip


@dataclass(frozen=True)
class Sighting:
    """A row about a document in a table of an artifact; `kind` is `corpus` for filtered copies."""

    manifest: Manifest
    output: str
    kind: str
    path: str
    row: int
    values: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "stage": self.manifest.stage,
            "key": self.manifest.key,
            "output": self.output,
            "kind": self.kind,
            "path": self.path,
            "row": self.row,
            "values": self.values,
        }


@dataclass
class Chain:
    """A document and every row about it, from its record to its tokens."""

    doc_id: str
    sightings: list[Sighting] = field(default_factory=list)

    def of(self, *kinds: str) -> list[Sighting]:
        """The sightings of some kinds, in the order of the pipeline."""
        return [s for s in self.sightings if s.kind in kinds]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"doc_id": self.doc_id, "sightings": [s.to_json() for s in self.sightings]}


def document_chains(store: Store, manifests: Sequence[Manifest], wanted: str) -> list[Chain]:
    """The chain of each document that `wanted` (id, id prefix, or address) names.

    Raises UsageError if there is none, or more than MOST_DOCUMENTS.
    """
    places = _find(store, manifests, wanted)
    chains = []
    for doc_id, seen in places.items():
        chain = Chain(doc_id)
        for manifest, output, path, row in seen:
            given = Input.of(store, manifest, output, full_check=False)
            values = read_row(given, path, row)
            text = values.pop("text", None)
            if text is not None:
                values["characters"] = len(text)
                values["excerpt"] = text[:300]
            kind = manifest.output(output).kind
            if kind == "documents" and _reads_documents(manifest):
                kind = "corpus"
            chain.sightings.append(Sighting(manifest, output, kind, path, row, values))
            if kind != "rejected":
                chain.sightings += _beside(store, manifests, given, path, row, doc_id)
        chain.sightings.sort(key=lambda s: (_ORDER.index(s.kind), s.manifest.stage, s.manifest.key))
        chains.append(chain)
    return chains


def read_row(given: Input, path: str, row: int) -> dict[str, Any]:
    """One row of a table; only its row group is read."""
    import pyarrow.parquet as pq

    with given.open(path) as file:
        parquet = pq.ParquetFile(file)
        start = 0
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            if row < start + rows:
                table = parquet.read_row_group(group, use_threads=False)
                return dict(table.slice(row - start, 1).to_pylist()[0])
            start += rows
    raise UsageError(f"{path} has {start} rows, none is {row}")


Place = tuple[Manifest, str, str, int]
"""Manifest, output, path and row."""


def _find(store: Store, manifests: Sequence[Manifest], wanted: str) -> dict[str, list[Place]]:
    """Rows by document, of the best sort of match that there is."""
    by_id: dict[str, list[Place]] = {}
    by_url: dict[str, list[Place]] = {}
    by_part: dict[str, list[Place]] = {}
    for manifest, name, given in _outputs(store, manifests, ("documents", "rejected")):
        for path in given.paths("*.parquet"):
            table = given.read_table(path, ["doc_id", "url"])
            for found, mask in _masks(table, wanted, by_id, by_url, by_part):
                _note(found, table, mask, (manifest, name, path))
    for found, exact in ((by_id, False), (by_url, True), (by_part, False)):
        if len(found) > MOST_DOCUMENTS:
            some = ", ".join(sorted(found)[:5])
            raise UsageError(
                f"'{wanted}' names {len(found)} documents: {some}, …",
                hint="add --in REF to search less" if exact else "give more of it",
            )
        if found:
            return dict(sorted(found.items()))
    raise UsageError(
        f"no document '{wanted}'",
        where=store.url,
        hint="give 6 or more digits of its id, or its address; --all searches unnamed artifacts",
    )


def _masks(
    table: pa.Table,
    wanted: str,
    by_id: dict[str, list[Place]],
    by_url: dict[str, list[Place]],
    by_part: dict[str, list[Place]],
) -> Iterator[tuple[dict[str, list[Place]], Any]]:
    import pyarrow.compute as pc

    if _ID.fullmatch(wanted):
        yield by_id, pc.starts_with(table["doc_id"], wanted)
    yield by_url, pc.equal(table["url"], wanted)
    if len(wanted) >= 4:
        yield by_part, pc.match_substring(table["url"], wanted)


def _note(
    found: dict[str, list[Place]], table: pa.Table, mask: Any, where: tuple[Manifest, str, str]
) -> None:
    import pyarrow.compute as pc

    for row in pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist():
        found.setdefault(table["doc_id"][row].as_py(), []).append((*where, row))


def _beside(
    store: Store,
    manifests: Sequence[Manifest],
    documents: Input,
    path: str,
    row: int,
    doc_id: str,
) -> Iterator[Sighting]:
    """Rows about a document in all that was made of the output that holds it."""
    for manifest in manifests:
        if not any(
            reference.digest == documents.digest
            for references in manifest.inputs.values()
            for reference in references
        ):
            continue
        for name, output in manifest.outputs.items():
            given = Input.of(store, manifest, name, full_check=False)
            if output.kind == "token_shards":
                yield from _pieces(manifest, given, doc_id)
                continue
            folder = {"signals": "", "views": ""}.get(output.kind, f"{beside(documents.digest)}/")
            place = folder + path
            if output.kind in _ORDER[2:7] and given.has(place):
                values = read_row(given, place, row)
                if values.pop("doc_id") == doc_id:
                    yield Sighting(manifest, name, output.kind, place, row, values)


def _pieces(manifest: Manifest, given: Input, doc_id: str) -> Iterator[Sighting]:
    import pyarrow.compute as pc

    for path in given.paths("*.index.parquet"):
        table = given.read_table(path)
        rows = pc.indices_nonzero(pc.equal(table["doc_id"], doc_id)).to_pylist()
        for row in rows:
            values = {name: table[name][row].as_py() for name in table.column_names}
            values.pop("doc_id")
            yield Sighting(manifest, given.output, "token_shards", path, row, values)


def _outputs(
    store: Store, manifests: Iterable[Manifest], kinds: tuple[str, ...]
) -> Iterator[tuple[Manifest, str, Input]]:
    for manifest in manifests:
        for name, output in manifest.outputs.items():
            if output.kind in kinds:
                yield manifest, name, Input.of(store, manifest, name, full_check=False)


def _reads_documents(manifest: Manifest) -> bool:
    return any(r.kind == "documents" for given in manifest.inputs.values() for r in given)
