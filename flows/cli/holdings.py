"""Everything in a store that holds documents, or was made of something that does.

Text, tokens and rows beside the text are looked up. What was trained, measured or released is
followed by lineage: an artifact is named if it read an output that holds one of the documents, or
one that was made of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from artifacts_schema.errors import IngotError
from artifacts_schema.kinds import KINDS
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.cli.document_find import Place, outputs_of, rows_about
from stages.text.chat_rows import ID_COLUMN

How = Literal["text", "address", "rows", "tokens", "made"]

_TEXT = ("documents", *ID_COLUMN)
_HOLDS_DOCUMENTS = {**dict.fromkeys(_TEXT, "text"), "rejected": "address"}
"""Kinds whose rows are documents or records, and what of them they hold."""
_BESIDE = frozenset(
    kind.name
    for kind in KINDS.values()
    if kind.name not in (*_HOLDS_DOCUMENTS, "token_shards", "exclusions")
    and any(c.name == "doc_id" for table in kind.tables.values() for c in table.columns)
)
"""Kinds whose rows lie beside documents."""
STEPS_SHOWN = 5


@dataclass(frozen=True)
class Holding:
    """What an artifact holds of some documents: in words, and as plain values."""

    manifest: Manifest
    how: How
    told: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        named = {"stage": self.manifest.stage, "key": self.manifest.key, "how": self.how}
        return {**named, **self.details}


def holdings(
    store: Store, manifests: Iterable[Manifest], places: Mapping[str, Sequence[Place]]
) -> list[Holding]:
    """Whatever holds the documents whose rows lie at `places` (by doc_id), sources first."""
    found: list[Holding] = []
    touched: set[str] = set()  # Digests of outputs that hold a document, or were made of one.
    sequences: dict[str, dict[str, list[int]]] = {}
    rows = _by_artifact(places)
    for manifest in in_order(manifests):
        own = rows.get((manifest.stage, manifest.key), [])
        roles = _roles(manifest, touched)
        found += _rows_of_documents(manifest, own)
        touched |= {
            output.digest
            for name, output in manifest.outputs.items()
            if output.kind in _TEXT and any(place.output == name for _, place in own)
        }
        beside = [name for name, output in manifest.outputs.items() if output.kind in _BESIDE]
        if beside and (own or roles):
            found.append(_beside(manifest, beside, len(places)))
        for holding, held in _tokens(store, manifest, places):
            found.append(holding)
            digest = manifest.output(holding.details["output"]).digest
            sequences[digest] = held
            touched.add(digest)
        made = [o.digest for o in manifest.outputs.values() if _is_made(o.kind)]
        if made and roles:
            found.append(_made(store, manifest, roles, sequences))
            touched |= set(made)
    return found


def in_order(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Artifacts, each behind all that it was made of; else by stage, then key."""
    known = {(manifest.stage, manifest.key): manifest for manifest in manifests}
    ordered: dict[tuple[str, str], Manifest] = {}
    for start in sorted(known):
        waiting = [start]
        while waiting:
            name = waiting[-1]
            missing = [
                parent
                for references in known[name].inputs.values()
                for r in references
                if (parent := (r.stage, r.key)) in known and parent not in ordered
            ]
            waiting += missing
            if not missing:
                ordered.setdefault(waiting.pop(), known[name])
    return list(ordered.values())


def _roles(manifest: Manifest, touched: Collection[str]) -> list[str]:
    """The roles that were given something of `touched`."""
    return [
        role
        for role, references in manifest.inputs.items()
        if any(reference.digest in touched for reference in references)
    ]


def _is_made(kind: str) -> bool:
    """Whether outputs of a kind are judged by what they were made of, not by their rows."""
    return kind not in (*_HOLDS_DOCUMENTS, *_BESIDE, "token_shards", "exclusions")


def _by_artifact(
    places: Mapping[str, Sequence[Place]],
) -> dict[tuple[str, str], list[tuple[str, Place]]]:
    """doc_id and place of every row, by the stage and key of its artifact."""
    found: dict[tuple[str, str], list[tuple[str, Place]]] = {}
    for doc_id, given in places.items():
        for place in given:
            name = (place.manifest.stage, place.manifest.key)
            found.setdefault(name, []).append((doc_id, place))
    return found


def _rows_of_documents(manifest: Manifest, own: Sequence[tuple[str, Place]]) -> Iterator[Holding]:
    for kind, what in _HOLDS_DOCUMENTS.items():
        rows = [
            {"doc_id": doc_id, "output": place.output, "path": place.path, "row": place.row}
            for doc_id, place in own
            if manifest.output(place.output).kind == kind
        ]
        if rows:
            where = f"{rows[0]['path']} row {rows[0]['row']}"
            counted = f"{len(rows):,} {'documents' if kind == 'rejected' else kind}"
            told = f"{what}: {where if len(rows) == 1 else counted}"
            how: How = "address" if kind == "rejected" else "text"
            yield Holding(manifest, how, told, {"rows": rows})


def _beside(manifest: Manifest, outputs: Sequence[str], documents: int) -> Holding:
    told = f"rows about {'it' if documents == 1 else 'them'}: {', '.join(outputs)}"
    return Holding(manifest, "rows", told, {"outputs": list(outputs)})


def _tokens(
    store: Store, manifest: Manifest, doc_ids: Iterable[str]
) -> Iterator[tuple[Holding, dict[str, list[int]]]]:
    """Token shards that hold a document, and in which sequences by file."""
    for _, name, given in outputs_of(store, [manifest], ("token_shards",)):
        held: dict[str, set[int]] = {}
        tokens = 0
        for path in given.paths("*/*.index.parquet"):
            for _, row in rows_about(given, path, doc_ids, ["sequence", "length"]):
                file = path.removesuffix(".index.parquet") + ".tokens"
                held.setdefault(file, set()).add(row["sequence"])
                tokens += row["length"]
        if held:
            count = sum(len(rows) for rows in held.values())
            ordered = {file: sorted(rows) for file, rows in sorted(held.items())}
            told = f"tokens: {tokens:,} in {_counted(count, 'sequence')} of {name}"
            details = {"output": name, "tokens": tokens, "sequences": ordered}
            yield Holding(manifest, "tokens", told, details), ordered


def _made(
    store: Store,
    manifest: Manifest,
    roles: Sequence[str],
    sequences: Mapping[str, Mapping[str, Sequence[int]]],
) -> Holding:
    """What was trained, measured or released: from which roles, and in which training steps."""
    details: dict[str, Any] = {"roles": list(roles)}
    told = f"made from its {' and '.join(roles)}" if roles else ""
    if manifest.stage == "pretrain" and "train" in roles:
        from flows.cli.training_steps import steps_that_read

        others = [role for role in roles if role != "train"]
        also = f"; also made from its {' and '.join(others)}" if others else ""
        try:
            steps = steps_that_read(store, manifest, sequences)
        except IngotError as error:
            return Holding(manifest, "made", f"trained on the tokens{also} ({error})", details)
        details["training_steps"] = steps
        shown = ", ".join(f"{step:,}" for step in steps[:STEPS_SHOWN])
        more = ", …" if len(steps) > STEPS_SHOWN else ""
        read = f"{_counted(len(steps), 'training step')} read it: {shown}{more}"
        told = (read if steps else "no training step read it") + also
    return Holding(manifest, "made", told, details)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
