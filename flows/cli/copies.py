"""Copies of documents: which there are, and what makes one document a copy of another.

Where one is left out, `filter` may keep another in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from artifacts_schema.kinds import KINDS
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.cli.document_find import outputs_of
from stages.engine.inputs import Input

if TYPE_CHECKING:
    import pyarrow as pa

    from stages.filter.duplicate_tables import Table

MATES_LISTED = 20
"""Documents of one text that are listed; all are counted."""


@dataclass(frozen=True)
class Copy:
    """A document with the same text (1.0), or one as similar as that (0.0: not verified)."""

    doc_id: str
    similarity: float

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Mates:
    """Other documents of the same text: how many, and the first of them."""

    normalised: int
    """Whose text is the same once normalised, those that are the same to the byte included."""
    raw: int
    doc_ids: tuple[str, ...]
    """Those that are the same to the byte first."""

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Link:
    """What makes two documents copies; None where it is not known, or was not verified."""

    exact: Literal["raw", "normalised"] | None
    similarity: float | None
    containment: float | None
    band: int | None
    """The first band in which both agree; -1: found through a third document."""

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def copies_of(store: Store, manifests: Iterable[Manifest], doc_ids: Collection[str]) -> list[Copy]:
    """Documents that `duplicates` artifacts know as copies of these, most similar first.

    The mates of their exact classes, and all of the classes that these have pairs with.
    """
    import pyarrow as pa

    from stages.filter.duplicate_tables import pairs_touching, rows_where

    measured = [
        given
        for manifest, name, given in outputs_of(store, manifests, ("duplicates",))
        if _is_current(manifest, name)
    ]
    tables = _tables(measured)
    own = rows_where(tables, "doc_id", _names(doc_ids), ["exact_class"])
    classes = dict.fromkeys(own["exact_class"].to_pylist(), 1.0)
    pairs = pairs_touching(tables, pa.array(list(classes), pa.string()))
    for pair in pairs.to_pylist():
        similarity = pair["similarity"] or 0.0
        for name in (pair["one"], pair["two"]):
            classes[name] = max(similarity, classes.get(name, 0.0))
    members = rows_where(
        tables, "exact_class", pa.array(list(classes), pa.string()), ["doc_id", "exact_class"]
    )
    found: dict[str, float] = {}
    for row in members.to_pylist():
        similarity = classes[row["exact_class"]]
        found[row["doc_id"]] = max(similarity, found.get(row["doc_id"], 0.0))
    others = [Copy(doc_id, round(s, 4)) for doc_id, s in found.items() if doc_id not in doc_ids]
    return sorted(others, key=lambda copy: (-copy.similarity, copy.doc_id))


def mates_of(given: Input, doc_id: str, row: Mapping[str, Any]) -> Mates:
    """The documents of an artifact that say the same as one of them, by its row."""
    if "text_class" not in row:  # Of an older sort.
        return Mates(0, 0, ())
    import pyarrow as pa
    import pyarrow.compute as pc

    from stages.filter.duplicate_tables import rows_where

    classes = pa.array([row["exact_class"]], pa.string())
    rows = rows_where(_tables([given]), "exact_class", classes, ["doc_id", "text_class"])
    rows = rows.filter(pc.not_equal(rows["doc_id"], doc_id))
    same = pc.equal(rows["text_class"], row["text_class"])
    raw = rows["doc_id"].filter(same).to_pylist()
    others = rows["doc_id"].filter(pc.invert(same)).to_pylist()
    return Mates(len(rows), len(raw), tuple([*sorted(raw), *sorted(others)][:MATES_LISTED]))


def link_between(store: Store, manifest: Manifest, one: str, two: str) -> Link | None:
    """What makes two documents copies, by the duplicates that an artifact was given.

    None where no table tells: they were collected, or are of an older sort.
    """
    from stages.filter.duplicate_tables import pairs_of, rows_where

    given = []
    for reference in manifest.inputs.get("duplicates", ()):
        made = store.manifest(reference.stage, reference.key)
        if made is not None and _is_current(made, reference.output):
            given.append(Input.load(store, reference, full_check=False))
    tables = _tables(given)
    columns = ["doc_id", "exact_class", "text_class"]
    found = rows_where(tables, "doc_id", _names([one, two]), columns)
    rows = {row["doc_id"]: row for row in found.to_pylist()}
    if len(rows) < 2:
        return None
    exact, texts = ({row[name] for row in rows.values()} for name in columns[1:])
    if len(exact) == 1:
        return Link("raw" if len(texts) == 1 else "normalised", 1.0, 1.0, None)
    # A pair of two classes is listed in the row of the one or the other that stands for them.
    listing = rows_where(tables, "doc_id", _names(exact), ["doc_id", "partners"])
    for pair in pairs_of(listing).to_pylist():
        if {pair.pop("one"), pair.pop("two")} == exact:
            return Link(None, **pair)
    return None


def _is_current(manifest: Manifest, output: str) -> bool:
    """Whether tables of duplicates are of the sort that is written now."""
    return manifest.output(output).kind_version == KINDS["duplicates"].version


def _tables(measured: Sequence[Input]) -> list[Table]:
    from stages.filter.duplicate_tables import Table

    return [Table(given, path) for given in measured for path in given.paths("*/*.parquet")]


def _names(doc_ids: Collection[str]) -> pa.Array:
    import pyarrow as pa

    return pa.array(sorted(doc_ids), pa.string())
