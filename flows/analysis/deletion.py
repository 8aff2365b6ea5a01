"""Requests to forget documents: what holds them, and the list of documents that must not be used.

The list is an artifact that no stage makes, under a name. It holds ids and reasons, no text and no
address, so it may be kept without limit. A new list contains all of the previous one; its key
follows from its content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from artifacts_schema.errors import UsageError, printable
from artifacts_schema.identity import artifact_key, canonical_sha256, short
from artifacts_schema.kinds import KINDS
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.commit import Attempt
from artifacts_schema.store.lease import hold_lease
from artifacts_schema.store.verify import find_committed
from flows.analysis.artifacts import RefsByArtifact, refs_by_artifact
from flows.analysis.documents import (
    WHOLE_ID,
    Duplicate,
    PlacesById,
    find_documents,
    find_duplicates,
    find_rows,
)
from flows.analysis.retention import Holding, find_holdings, sort_manifests
from flows.recipe.snapshots import VERSION, commit_record
from stages.engine.inputs import Input
from stages.engine.outputs import TableWriter
from stages.text.chat_rows import ID_COLUMN

STAGE = "forget"
"""Stage name of the lists in the store; no program of that name exists."""
OUTPUT = "exclusions"
TABLE = "00000.parquet"
MAX_REASON = 200
"""Characters."""


@dataclass(frozen=True)
class ExtendedList:
    """A list after more documents were added: the new artifact, and which were new."""

    manifest: Manifest
    added: tuple[str, ...]
    known: tuple[str, ...]


def extend_list(store: Store, ref: str, reasons: Mapping[str, str]) -> ExtendedList:
    """Add documents (doc_id → reason) to the list under `ref` and point the name to the new list.

    A document on the list keeps its first reason. Extensions of one name take turns, so that none
    is lost. UsageError if the name means something else.
    """
    store.check_mounted()
    with hold_lease(store.backend, canonical_sha256({"ref": ref})) as lease:
        current = read_list(store, ref)
        merged = {**reasons, **current}
        manifest = _commit_list(store, merged)
        lease.check()
        while not store.name(ref, manifest):  # Collected before it was named.
            manifest = _commit_list(store, merged)
    return ExtendedList(
        manifest,
        added=tuple(doc_id for doc_id in reasons if doc_id not in current),
        known=tuple(doc_id for doc_id in reasons if doc_id in current),
    )


def read_list(store: Store, ref: str) -> dict[str, str]:
    """The reasons by doc_id of the list under `ref`; empty if there is no such name.

    UsageError if the name means something else, or a list that was removed.
    """
    named = store.ref(ref)
    if named is None:
        return {}
    if named.stage != STAGE:
        raise UsageError(
            f"'{ref}' names {named.stage} {short(named.key)}, not a list of forgotten documents",
            where="--as",
            hint="choose another name",
        )
    manifest = store.manifest(named.stage, named.key)
    if manifest is None:
        raise UsageError(
            f"the list {short(named.key)} under '{ref}' was removed, and what it held is not known",
            where=store.url,
            hint="choose another name with --as, and give every document again",
        )
    table = Input.from_manifest(store, manifest, OUTPUT).read_table(TABLE)
    return dict(zip(table["doc_id"].to_pylist(), table["reason"].to_pylist(), strict=True))


def _commit_list(store: Store, reasons: Mapping[str, str]) -> Manifest:
    """The artifact of this list."""
    rows = [{"doc_id": doc_id, "reason": reason} for doc_id, reason in sorted(reasons.items())]
    identity: dict[str, Any] = {"documents": canonical_sha256(rows)}
    key = artifact_key(STAGE, VERSION, identity, {})
    with hold_lease(store.backend, key):
        if (existing := find_committed(store, STAGE, key).whole) is not None:
            return existing
        attempt = Attempt(store.backend, STAGE, key, {OUTPUT: "exclusions"})
        schema = KINDS["exclusions"].tables["*.parquet"].arrow()
        with (
            attempt.create(OUTPUT, TABLE) as file,
            TableWriter(file, schema, kind="exclusions", path=TABLE) as writer,
        ):
            writer.write(pa.Table.from_pylist(rows, schema))
        attempt.set_rows(OUTPUT, TABLE, len(rows))
        counts, libraries = {"documents": len(rows)}, {"pyarrow": pa.__version__}
        return commit_record(store, attempt, identity, counts, libraries=libraries)


# Requests -----------------------------------------------------------------------------------------

_ORIGIN = ("url", "snapshot", "origin_file", "origin_offset")
_NAMED_IN_ERRORS = 5


@dataclass(frozen=True)
class Rerun:
    """A named filter artifact that holds the documents, and so is made again without them."""

    ref: str
    lists: list[str]
    """Keys of the lists of forgotten documents that it read."""
    derived: list[str]
    """Names of what was made of it, sources first."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"ref": self.ref, "lists": self.lists, "behind": self.derived}


@dataclass(frozen=True)
class DeletionReport:
    """Documents to forget, what holds them, and the list that they were put on."""

    ref: str
    documents: dict[str, dict[str, Any]]
    """Address and record by doc_id."""
    duplicates: list[Duplicate]
    """Neither among the documents nor on the list: a filter may keep them instead."""
    holdings: list[Holding]
    reruns: list[Rerun]
    refs: RefsByArtifact
    extended: ExtendedList | None
    """None of a dry run."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        values: dict[str, Any] = {
            "documents": [{"doc_id": doc_id, **row} for doc_id, row in self.documents.items()],
            "copies": [asdict(one) for one in self.duplicates],
            "holdings": [holding.to_json() for holding in self.holdings],
            "reruns": [rerun.to_json() for rerun in self.reruns],
        }
        if self.extended is not None:
            values["exclusions"] = {
                "ref": self.ref,
                "key": self.extended.manifest.key,
                "documents": self.extended.manifest.counts["documents"],
                "added": self.extended.added,
                "known": self.extended.known,
            }
        return values


def forget_documents(
    store: Store,
    texts: Sequence[str],
    *,
    reason: str,
    ref: str,
    suspects: str | None = None,
    with_duplicates: bool = False,
    dry_run: bool = False,
) -> DeletionReport:
    """Find what holds documents, and put them on the list `ref` unless it is a `dry_run`.

    `texts` are ids, prefixes of ids, or addresses; `suspects` names a training run whose excluded
    documents are added with their own reasons. UsageError if a text names nothing, or the reason
    is invalid; then nothing is written.
    """
    if not reason.strip() or not reason.isprintable() or len(reason) > MAX_REASON:
        raise UsageError(
            f"a reason is one line of 1 to {MAX_REASON} characters, without control characters",
            where="--reason",
        )
    on_list = read_list(store, ref)
    manifests = list(store.manifests())  # Raises if one is unreadable: it may hold a document.
    suspect_reasons = read_suspects(store, suspects) if suspects is not None else {}
    places = resolve_documents(store, manifests, [*texts, *suspect_reasons])
    duplicates = find_duplicates(store, manifests, places)
    if with_duplicates:
        ids = [one.doc_id for one in duplicates]
        matches = find_documents(store, manifests, ids)
        places |= {doc_id: match.by_id.get(doc_id, []) for doc_id, match in matches.items()}
        duplicates = find_duplicates(store, manifests, places)
    documents = _read_origins(store, places)
    if any(row["url"] and row["url"] in reason for row in documents.values()):
        raise UsageError(
            "the reason holds the address of a document",
            where="--reason",
            hint="the list keeps reasons for ever; say it without the address",
        )
    holdings, refs = find_holdings(store, manifests, places), refs_by_artifact(store)
    reasons = {**dict.fromkeys(places, reason), **suspect_reasons}
    return DeletionReport(
        ref,
        documents,
        [one for one in duplicates if one.doc_id not in on_list],
        holdings,
        _find_reruns(manifests, refs, holdings),
        refs,
        None if dry_run else extend_list(store, ref, reasons),
    )


def read_suspects(store: Store, run: str) -> dict[str, str]:
    """Reasons by doc_id of the documents in a run's training steps that had anomalies."""
    manifest, _ = store.resolve(run)
    if "training_run" not in manifest.outputs:
        raise UsageError("it is not a training run", where=f"--suspects {run}")
    output = Input.from_manifest(store, manifest, "training_run")
    table = output.read_table("excluded.parquet") if output.has("excluded.parquet") else None
    if not table:
        raise UsageError(
            "no training step of this run had an anomaly caused by its documents",
            where=f"--suspects {run}",
        )
    return dict(zip(table["doc_id"].to_pylist(), table["reason"].to_pylist(), strict=True))


def resolve_documents(
    store: Store, manifests: Sequence[Manifest], texts: Sequence[str]
) -> PlacesById:
    """The places of every document that `texts` name, by doc_id.

    A whole id that nothing holds is a document without places: it may come later. UsageError if an
    id prefix or address names none, or a prefix names several.
    """
    if not texts:
        raise UsageError("no document is named", hint="give ids or addresses, or --from FILE")
    places: PlacesById = {}
    unknown: list[str] = []
    for text, match in find_documents(store, manifests, texts).items():
        if len(match.by_id) > 1:
            some = ", ".join(sorted(match.by_id)[:_NAMED_IN_ERRORS])
            raise UsageError(
                f"'{text}' begins the ids of {len(match.by_id)} documents: {some}",
                hint="give more digits",
            )
        named = match.by_id or match.by_url or ({text: []} if WHOLE_ID.fullmatch(text) else {})
        if not named:
            unknown.append(f"'{printable(text)}'")
        places |= named
    if unknown:
        some = ", ".join(unknown[:_NAMED_IN_ERRORS])
        more = f" and {len(unknown) - _NAMED_IN_ERRORS} more" if unknown[_NAMED_IN_ERRORS:] else ""
        raise UsageError(
            f"no document {some}{more}; nothing was written",
            where=store.url,
            hint="give an id, 6 or more digits of it, or the whole address: `ingot why` finds them",
        )
    return dict(sorted(places.items()))


def _read_origins(store: Store, places: PlacesById) -> dict[str, dict[str, Any]]:
    """Address and record of each document, by the first table that has it."""
    by_table: dict[tuple[str, str, str, str], tuple[Input, list[str]]] = {}
    for doc_id, group in places.items():
        for manifest, output, path, _ in group[:1]:
            source = Input.from_manifest(store, manifest, output, full_check=False)
            name = (manifest.stage, manifest.key, output, path)
            by_table.setdefault(name, (source, []))[1].append(doc_id)
    rows: dict[str, dict[str, Any]] = {doc_id: dict.fromkeys(_ORIGIN) for doc_id in places}
    for (_, _, _, path), (source, doc_ids) in by_table.items():
        id_column = ID_COLUMN.get(source.kind)  # A person knows a conversation by its data set.
        for _, row in find_rows(source, path, doc_ids, ["source"] if id_column else _ORIGIN):
            if id_column:
                rows[row[id_column]]["origin_file"] = row["source"]
            else:
                rows[row.pop("doc_id")] = row
    return rows


def _find_reruns(
    manifests: Sequence[Manifest], refs: RefsByArtifact, holdings: Sequence[Holding]
) -> list[Rerun]:
    """The named filter artifacts among the holders."""
    holders = {(holding.manifest.stage, holding.manifest.key) for holding in holdings}
    ordered = sort_manifests(manifests)
    reruns = []
    for position, manifest in enumerate(ordered):
        name = (manifest.stage, manifest.key)
        if manifest.stage != "filter" or name not in holders or name not in refs:
            continue
        family = {name}
        derived: list[str] = []
        for later in ordered[position + 1 :]:
            child = (later.stage, later.key)
            parents = {(r.stage, r.key) for r in chain.from_iterable(later.inputs.values())}
            if parents & family:
                family.add(child)
                derived += refs.get(child, [])[:1]
        lists = [r.key for r in manifest.inputs.get("exclusions", ()) if r.stage == STAGE]
        reruns.append(Rerun(refs[name][0], lists, derived))
    return reruns
