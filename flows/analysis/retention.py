"""Everything in a store that holds documents, or was derived from something that does.

Text, tokens and side-table rows are looked up. What was trained, measured or released is followed
by lineage: an artifact is listed if it read an output that holds one of the documents, or one that
was derived from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from artifacts_schema.errors import IngotError
from artifacts_schema.kinds import KINDS
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.artifacts import ArtifactName
from flows.analysis.documents import Place, find_all_rows, open_outputs
from flows.analysis.training_batches import CLOCK_STAGES, find_training_steps
from flows.recipe.graph import sort_topologically
from stages.text.chat_rows import ID_COLUMN

How = Literal["text", "address", "rows", "tokens", "made"]

_TEXT = ("documents", *ID_COLUMN)
_HOLDS_DOCUMENTS = {**dict.fromkeys(_TEXT, "text"), "rejected": "address"}
"""Kinds whose rows are documents or records, and what they hold of a document."""
_SIDECAR_KINDS = frozenset(
    kind.name
    for kind in KINDS.values()
    if kind.name not in (*_HOLDS_DOCUMENTS, "token_shards", "excluded", "exclusions")
    and any(c.name == "doc_id" for table in kind.tables.values() for c in table.columns)
)
"""Other kinds with rows about documents."""
_ROW_KINDS = {*_HOLDS_DOCUMENTS, *_SIDECAR_KINDS, "token_shards", "excluded", "exclusions"}
"""Kinds that are searched by row; what was made of others is judged by lineage."""
STEPS_SHOWN = 5


@dataclass(frozen=True)
class Holding:
    """What an artifact holds of some documents, in words (`text`) and as plain values."""

    manifest: Manifest
    how: How
    text: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        manifest = self.manifest
        return {"stage": manifest.stage, "key": manifest.key, "how": self.how, **self.details}


def find_holdings(
    store: Store, manifests: Iterable[Manifest], places: Mapping[str, Sequence[Place]]
) -> list[Holding]:
    """Every artifact that holds the documents with rows at `places` (by doc_id), sources first."""
    holdings: list[Holding] = []
    touched: set[str] = set()  # Digests of outputs that hold a document, or were derived from one.
    sequences: dict[str, dict[str, list[int]]] = {}
    rows_by_artifact: dict[ArtifactName, list[tuple[str, Place]]] = {}
    for doc_id, group in places.items():
        for place in group:
            name = (place.manifest.stage, place.manifest.key)
            rows_by_artifact.setdefault(name, []).append((doc_id, place))
    for manifest in sort_manifests(manifests):
        rows = rows_by_artifact.get((manifest.stage, manifest.key), [])
        roles = [
            role
            for role, references in manifest.inputs.items()
            if any(reference.digest in touched for reference in references)
        ]
        holdings += _find_row_holdings(manifest, rows)
        touched |= {
            output.digest
            for name, output in manifest.outputs.items()
            if output.kind in _TEXT and any(place.output == name for _, place in rows)
        }
        tables = [name for name, o in manifest.outputs.items() if o.kind in _SIDECAR_KINDS]
        if tables and (rows or roles):
            text = f"rows about {'it' if len(places) == 1 else 'them'}: {', '.join(tables)}"
            holdings.append(Holding(manifest, "rows", text, {"outputs": tables}))
        for holding in _token_holdings(store, manifest, places):
            holdings.append(holding)
            digest = manifest.output(holding.details["output"]).digest
            sequences[digest] = holding.details["sequences"]
            touched.add(digest)
        derived = [o.digest for o in manifest.outputs.values() if o.kind not in _ROW_KINDS]
        if derived and roles:
            holdings.append(_describe_derived(store, manifest, roles, sequences))
            touched |= set(derived)
    return holdings


def sort_manifests(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Artifacts, each after its ancestors; else by stage, then key."""
    known = {(manifest.stage, manifest.key): manifest for manifest in manifests}
    reads = {
        name: [
            parent
            for reference in chain.from_iterable(known[name].inputs.values())
            if (parent := (reference.stage, reference.key)) in known
        ]
        for name in sorted(known)
    }
    return [known[name] for name in sort_topologically(reads)]


def _find_row_holdings(manifest: Manifest, rows: Sequence[tuple[str, Place]]) -> Iterator[Holding]:
    """Documents and records in an artifact."""
    for kind, content in _HOLDS_DOCUMENTS.items():
        own = [
            {"doc_id": doc_id, "output": place.output, "path": place.path, "row": place.row}
            for doc_id, place in rows
            if manifest.output(place.output).kind == kind
        ]
        if own:
            text = f"{len(own):,} {'documents' if kind == 'rejected' else kind}"
            if len(own) == 1:
                text = f"{own[0]['path']} row {own[0]['row']}"
            how: How = "address" if kind == "rejected" else "text"
            yield Holding(manifest, how, f"{content}: {text}", {"rows": own})


def _token_holdings(
    store: Store, manifest: Manifest, doc_ids: Collection[str]
) -> Iterator[Holding]:
    """Token shards that hold a document, with its sequences by file."""
    for _, name, shards in open_outputs(store, [manifest], ("token_shards",)):
        sequences: dict[str, set[int]] = {}
        tokens = 0
        columns = ["sequence", "length"]
        for path, _, row in find_all_rows(shards, "*/*.index.parquet", doc_ids, columns):
            file = path.removesuffix(".index.parquet") + ".tokens"
            sequences.setdefault(file, set()).add(row["sequence"])
            tokens += row["length"]
        if sequences:
            by_file = {file: sorted(rows) for file, rows in sorted(sequences.items())}
            count = sum(len(rows) for rows in sequences.values())
            text = f"tokens: {tokens:,} in {_format_count(count, 'sequence')} of {name}"
            details = {"output": name, "tokens": tokens, "sequences": by_file}
            yield Holding(manifest, "tokens", text, details)


def _describe_derived(
    store: Store,
    manifest: Manifest,
    roles: Sequence[str],
    sequences: Mapping[str, Mapping[str, Sequence[int]]],
) -> Holding:
    """What was trained, measured or released: from which roles, and in which training steps."""
    details: dict[str, Any] = {"roles": list(roles)}
    text = f"made from its {' and '.join(roles)}"
    if manifest.stage in CLOCK_STAGES and "train" in roles:
        others = [role for role in roles if role != "train"]
        also = f"; also made from its {' and '.join(others)}" if others else ""
        try:
            steps = find_training_steps(store, manifest, sequences)
        except IngotError as error:
            return Holding(manifest, "made", f"trained on the tokens{also} ({error})", details)
        details["training_steps"] = steps
        first = ", ".join(f"{step:,}" for step in steps[:STEPS_SHOWN])
        more = ", …" if len(steps) > STEPS_SHOWN else ""
        read = f"{_format_count(len(steps), 'training step')} read it: {first}{more}"
        text = (read if steps else "no training step read it") + also
    return Holding(manifest, "made", text, details)


def _format_count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
