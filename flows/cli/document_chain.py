"""Everything a store knows about a document: record, text, signals, verdicts, tokens.

Side tables lie row for row beside the documents they describe, so one look finds the row; token
indexes are searched. Only the columns that are needed are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from artifacts_schema.errors import UsageError
from artifacts_schema.kinds import beside
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.cli.copies import link_between, mates_of
from flows.cli.document_find import Found, look_up, outputs_of, read_row, rows_about
from flows.cli.failed_rules import failures
from flows.cli.output import clean
from stages.engine.inputs import Input
from stages.text.chat_rows import FOLDER, ID_COLUMN, texts_of

MOST_DOCUMENTS = 10
"""More documents than this under one address or prefix are an error that lists some."""

_BESIDE = ("signals", "views", "duplicates", "contamination", "ledger")
"""Kinds whose rows lie beside those of the documents, and are shown."""

_CORPUS = ("documents", *ID_COLUMN)
"""Kinds of which a filter's own are `corpus`."""

_ORDER = (
    "documents", "conversations", "preferences", "rejected", "signals", "views", "duplicates",
    "contamination", "exclusions", "ledger", "truth", "corpus", "token_shards",
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
            kind = manifest.output(output).kind
            text = _text(values, kind)
            if text is not None:
                values["characters"] = len(text)
                values["excerpt"] = text[:300]
            if kind in _CORPUS and _reads(manifest, kind):
                kind = "corpus"
            chain.sightings.append(Sighting(manifest, output, kind, path, row, values))
            if kind != "rejected":
                chain.sightings += _beside(store, manifests, given, path, row, doc_id)
        chain.sightings += _exclusions(store, manifests, doc_id)
        for sighting in chain.of("duplicates"):
            given = Input.of(store, sighting.manifest, sighting.output, full_check=False)
            sighting.values["mates"] = mates_of(given, doc_id, sighting.values).plain()
        for sighting in chain.of("ledger"):
            partner = sighting.values["partner"]
            link = partner and link_between(store, sighting.manifest, doc_id, partner)
            sighting.values["link"] = link.plain() if link else None
            failed = failures(sighting, chain.sightings)
            sighting.values["failures"] = [failure.plain() for failure in failed]
        chain.sightings.sort(key=lambda s: (_ORDER.index(s.kind), s.manifest.stage, s.manifest.key))
        chains.append(chain)
    return chains


def _find(store: Store, manifests: Sequence[Manifest], wanted: str) -> Found:
    """Rows by document, of the best sort of match that there is."""
    match = look_up(store, manifests, [wanted], parts=True)[wanted]
    for found, exact in ((match.by_id, False), (match.by_url, True), (match.by_part, False)):
        if len(found) > MOST_DOCUMENTS:
            some = ", ".join(sorted(found)[:5])
            raise UsageError(
                f"'{clean(wanted)}' names {len(found)} documents: {some}, …",
                hint="add --in REF to search less" if exact else "give more of it",
            )
        if found:
            return dict(sorted(found.items()))
    raise UsageError(
        f"no document '{clean(wanted)}'",
        where=store.url,
        hint="give 6 or more digits of its id, or its address; --all searches unnamed artifacts",
    )


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
            in_folder = f"{beside(documents.digest)}/{path}"
            places = {"signals": [path], "views": [path, in_folder]}.get(output.kind, [in_folder])
            if documents.kind in ID_COLUMN:
                places = [f"{FOLDER}/{in_folder}"]
            for place in places:
                if output.kind not in _BESIDE or not given.has(place):
                    continue
                values = read_row(given, place, row)
                if values.pop("doc_id") == doc_id:
                    yield Sighting(manifest, name, output.kind, place, row, values)


def _exclusions(store: Store, manifests: Sequence[Manifest], doc_id: str) -> Iterator[Sighting]:
    """Rows of the lists that a document is on."""
    for manifest, name, given in outputs_of(store, manifests, ("exclusions",)):
        for path in given.paths():
            for row, values in rows_about(given, path, [doc_id]):
                values.pop("doc_id")
                yield Sighting(manifest, name, "exclusions", path, row, values)


def _pieces(manifest: Manifest, given: Input, doc_id: str) -> Iterator[Sighting]:
    for path in given.paths("*.index.parquet"):
        for row, values in rows_about(given, path, [doc_id]):
            values.pop("doc_id")
            yield Sighting(manifest, given.output, "token_shards", path, row, values)


def _text(values: dict[str, Any], kind: str) -> str | None:
    """Take the text out of a row; of a conversation or pair its texts one below the other."""
    if kind not in ID_COLUMN:
        text: str | None = values.pop("text", None)
        return text
    texts = [text.text for text in texts_of(values, kind)]
    for name in ("messages", "prompt", "chosen", "rejected", "tools"):
        values.pop(name, None)
    return "\n".join(texts)


def _reads(manifest: Manifest, kind: str) -> bool:
    return any(r.kind == kind for given in manifest.inputs.values() for r in given)
