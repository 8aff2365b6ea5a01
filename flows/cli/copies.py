"""Verified copies of documents: where one is left out, `filter` may keep another in its place."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.cli.document_find import outputs_of, rows_about

if TYPE_CHECKING:
    from stages.engine.inputs import Input


@dataclass(frozen=True)
class Copy:
    """A document with the same text (1.0), or one that is verified to be as similar as that."""

    doc_id: str
    similarity: float

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def copies_of(store: Store, manifests: Iterable[Manifest], doc_ids: Collection[str]) -> list[Copy]:
    """Documents that any `duplicates` artifact knows as copies of these, most similar first."""
    found: dict[str, float] = {}
    for _, _, given in outputs_of(store, manifests, ("duplicates",)):
        for doc_id, similarity in _copies(given, doc_ids).items():
            found[doc_id] = max(similarity, found.get(doc_id, 0.0))
    others = [Copy(doc_id, round(s, 4)) for doc_id, s in found.items() if doc_id not in doc_ids]
    return sorted(others, key=lambda copy: (-copy.similarity, copy.doc_id))


def _copies(given: Input, doc_ids: Collection[str]) -> dict[str, float]:
    """Mates of the exact classes of the documents, and all of the classes these are similar to."""
    import pyarrow as pa
    import pyarrow.compute as pc

    paths = given.paths("*/*.parquet")
    tables = [given.read_table(path, ["doc_id", "exact_class"]) for path in paths]
    if not tables:
        return {}
    table = pa.concat_tables(tables)
    own = pc.is_in(table["doc_id"], value_set=pa.array(sorted(doc_ids), pa.string()))
    classes = dict.fromkeys(table["exact_class"].filter(own).to_pylist(), 1.0)
    near = [
        partner
        for path in paths
        for _, row in rows_about(given, path, classes, ["partners"])
        for partner in row["partners"]
    ]
    for partner in near:
        name, similarity = partner["doc_id"], float(partner["similarity"])
        classes[name] = max(similarity, classes.get(name, 0.0))
    members = table.filter(pc.is_in(table["exact_class"], value_set=pa.array(list(classes))))
    ids, firsts = members["doc_id"].to_pylist(), members["exact_class"].to_pylist()
    return {doc_id: classes[first] for doc_id, first in zip(ids, firsts, strict=True)}
