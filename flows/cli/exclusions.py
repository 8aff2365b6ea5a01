"""The list of documents that must not be used: an artifact that no stage made, under a name.

It holds ids and reasons, nothing of a document's text or address, so it may be kept for ever. A new
list holds all of the one before it; its key follows from what it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import artifact_key, sha256_of, short
from artifacts_schema.kinds import KINDS
from artifacts_schema.manifest import Code, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.commit import Attempt, commit
from artifacts_schema.store.damage import find_committed
from artifacts_schema.store.work import holding
from stages.engine.inputs import Input
from stages.engine.tables import TableWriter

STAGE = "forget"
"""Stage name under which the lists lie in the store; no program of that name exists."""
VERSION = 1
OUTPUT = "exclusions"
TABLE = "00000.parquet"
LONGEST_REASON = 200
"""Characters."""


@dataclass(frozen=True)
class Extended:
    """A list that took in more documents: what stands under the name now, and what was new."""

    manifest: Manifest
    added: tuple[str, ...]
    known: tuple[str, ...]


def extend(store: Store, ref: str, reasons: Mapping[str, str]) -> Extended:
    """Add documents (doc_id → reason) to the list under `ref` and move the name to the new list.

    A document that the list holds already keeps its first reason. Extensions of one name take
    turns, so that none is lost. UsageError if the name means something else.
    """
    store.check_mounted()
    with holding(store.backend, sha256_of({"ref": ref})) as turn:
        standing = read_list(store, ref)
        merged = {**reasons, **standing}
        manifest = _committed(store, merged)
        turn.check()
        while not store.name(ref, manifest):  # Collected before it was named.
            manifest = _committed(store, merged)
    return Extended(
        manifest,
        added=tuple(doc_id for doc_id in reasons if doc_id not in standing),
        known=tuple(doc_id for doc_id in reasons if doc_id in standing),
    )


def read_list(store: Store, ref: str) -> dict[str, str]:
    """doc_id → reason of the list under `ref`; empty if there is no such name.

    UsageError if the name means something else, or a list that was removed.
    """
    named = store.ref(ref)
    if named is None:
        return {}
    if named.stage != STAGE:
        raise UsageError(
            f"'{ref}' names {named.stage} {short(named.key)}, no list of forgotten documents",
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
    table = Input.of(store, manifest, OUTPUT).read_table(TABLE)
    return dict(zip(table["doc_id"].to_pylist(), table["reason"].to_pylist(), strict=True))


def check_reason(reason: str) -> None:
    """UsageError unless a reason is a short line of printable text."""
    if not reason.strip() or not reason.isprintable() or len(reason) > LONGEST_REASON:
        raise UsageError(
            f"a reason is one line of 1 to {LONGEST_REASON} characters, without control characters",
            where="--reason",
        )


def _committed(store: Store, reasons: Mapping[str, str]) -> Manifest:
    """The artifact that holds this list."""
    rows = [{"doc_id": doc_id, "reason": reason} for doc_id, reason in sorted(reasons.items())]
    identity: dict[str, Any] = {"documents": sha256_of(rows)}
    key = artifact_key(STAGE, VERSION, identity, {})
    with holding(store.backend, key):
        standing = find_committed(store, STAGE, key).whole
        return standing or _written(store, key, identity, rows)


def _written(
    store: Store, key: str, identity: dict[str, Any], rows: list[dict[str, str]]
) -> Manifest:
    import pyarrow as pa

    attempt = Attempt(store.backend, STAGE, key, {OUTPUT: "exclusions"})
    schema = KINDS["exclusions"].tables["*.parquet"].arrow()
    with (
        attempt.create(OUTPUT, TABLE) as file,
        TableWriter(file, schema, kind="exclusions", path=TABLE) as writer,
    ):
        writer.write(pa.Table.from_pylist(rows, schema))
    attempt.set_rows(OUTPUT, TABLE, len(rows))
    manifest = Manifest(
        stage=STAGE,
        version=VERSION,
        key=key,
        reproducible="bytes",
        config={},
        identity=identity,
        inputs={},
        outputs=attempt.outputs(),
        attempt=attempt.name,
        code=Code(digest="", libraries={"pyarrow": pa.__version__}),
        counts={"documents": len(rows)},
    )
    committed = commit(store, manifest)
    if committed.attempt != attempt.name:
        attempt.discard()
    return committed
