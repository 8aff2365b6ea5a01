"""Rows about documents, found by id, address or file, and the duplicates of documents.

Only the columns that identify a row are read; of the rest, the row groups that hold a match. Search
text is compared literally: `*` or a control character is a character. Where a duplicate is dropped,
`filter` may keep another one in its place.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from artifacts_schema.errors import is_utf8
from artifacts_schema.kinds import KINDS
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.id_index import find_ids
from stages.engine.inputs import Input
from stages.engine.reading.rows import row_format
from stages.filter.duplicates import DuplicatesTable, list_pairs, pairs_with, rows_where
from stages.text.chat_rows import ID_COLUMN

WHOLE_ID = re.compile(r"[0-9a-f]{32}")
ID_PREFIX = re.compile(r"[0-9a-f]{6,31}")
FILE_ROW = re.compile(r"(.+):([1-9][0-9]{0,17})", re.DOTALL)
"""File name and row, counted from 1."""
_ORDINAL_FORMATS = ("json", "parquet", "arrow")
MIN_SUBSTRING = 4
"""Characters that a part of an address needs to be searched."""
EXACT_DUPLICATES_LISTED = 20
"""Documents of one text that are listed; all are counted."""


class Place(NamedTuple):
    """Location of a row."""

    manifest: Manifest
    output: str
    path: str
    row: int


PlacesById = dict[str, list[Place]]
"""Places by doc_id."""


@dataclass
class Match:
    """The documents that one text names: by id (whole or prefix), address, part of an address."""

    by_id: PlacesById = field(default_factory=dict)
    by_url: PlacesById = field(default_factory=dict)
    by_part: PlacesById = field(default_factory=dict)


# Rows ---------------------------------------------------------------------------------------------


def find_documents(
    store: Store, manifests: Iterable[Manifest], texts: Sequence[str], *, parts: bool = False
) -> dict[str, Match]:
    """What each of `texts` names among the documents and rejected records of `manifests`.

    Conversations and preference pairs are found by their ids. Parts of addresses are searched only
    with `parts`.
    """
    search = _Search(texts, parts)
    kinds = ("documents", "rejected", *ID_COLUMN)
    indexed: list[tuple[Manifest, str, Input]] = []
    for manifest, name, rows in open_outputs(store, manifests, kinds):
        column = ID_COLUMN.get(rows.kind, "doc_id")
        places = find_ids(rows, column, "*.parquet", search.ids, search.prefixes)
        if places is None:
            search.add_output(manifest, name, rows)
        else:
            search.add_places(manifest, name, places)
            indexed.append((manifest, name, rows))
    if search.keep_addresses():
        for output in indexed:
            search.add_output(*output)
    return search.matches


def open_outputs(
    store: Store, manifests: Iterable[Manifest], kinds: Sequence[str]
) -> Iterator[tuple[Manifest, str, Input]]:
    """Every output of these kinds, with its artifact and name."""
    for manifest in manifests:
        for name, output in manifest.outputs.items():
            if output.kind in kinds:
                yield manifest, name, Input.from_manifest(store, manifest, name, full_check=False)


def find_rows(
    source: Input, path: str, doc_ids: Iterable[str], columns: Sequence[str] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and values of the rows of a table with one of these ids, in order.

    The id column is `doc_id`, or that of conversations and preferences.
    """
    ids = _make_id_array(set(doc_ids))
    id_column = ID_COLUMN.get(source.kind, "doc_id")
    start = 0
    with source.open_table(path) as parquet:
        for group in range(parquet.num_row_groups):
            column = parquet.read_row_group(group, [id_column], use_threads=False)[id_column]
            places = pc.indices_nonzero(pc.is_in(column, value_set=ids))
            if len(places):
                names = None if columns is None else [id_column, *columns]
                table = parquet.read_row_group(group, columns=names, use_threads=False)
                rows = table.take(places).to_pylist()
                yield from zip((start + place for place in places.to_pylist()), rows, strict=True)
            start += len(column)


def find_all_rows(
    source: Input, pattern: str, doc_ids: Collection[str], columns: Sequence[str] | None = None
) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Table, number and values of all rows of an output with one of these ids, in order."""
    id_column = ID_COLUMN.get(source.kind, "doc_id")
    places = find_ids(
        source, id_column, pattern, [one for one in doc_ids if WHOLE_ID.fullmatch(one)]
    )
    by_path: dict[str, set[int]] = {}
    for _, path, row in places or ():
        by_path.setdefault(path, set()).add(row)
    names = None if columns is None else [id_column, *columns]
    for path in source.paths(pattern) if places is None else sorted(by_path):
        rows = (
            find_rows(source, path, doc_ids, columns)
            if places is None
            else read_rows(source, path, by_path[path], names)
        )
        for row, values in rows:
            yield path, row, values


def read_rows(
    source: Input, path: str, rows: Collection[int], columns: Sequence[str] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and values of these rows of a table, in order; of it the row groups that hold them."""
    wanted, start = sorted(rows), 0
    with source.open_table(path) as parquet:
        for group in range(parquet.num_row_groups):
            end = start + parquet.metadata.row_group(group).num_rows
            own = [row for row in wanted if start <= row < end]
            if own:
                table = parquet.read_row_group(group, columns=columns, use_threads=False)
                values = table.take(pa.array([row - start for row in own], pa.int64())).to_pylist()
                yield from zip(own, values, strict=True)
            start = end


class _Search:
    """Texts that are searched together, and the matches of each."""

    def __init__(self, texts: Sequence[str], parts: bool) -> None:
        self.matches = {text: Match() for text in texts}
        texts = [text for text in self.matches if text and is_utf8(text)]
        self.ids = [text for text in texts if WHOLE_ID.fullmatch(text)]
        self.prefixes = [text for text in texts if ID_PREFIX.fullmatch(text)]
        whole = set(self.ids)
        self._ids = pa.array(self.ids, pa.string())
        self._urls = pa.array([text for text in texts if text not in whole], pa.string())
        self._parts = [text for text in texts if parts and len(text) >= MIN_SUBSTRING]

    def add_places(
        self, manifest: Manifest, name: str, places: Iterable[tuple[str, str, int]]
    ) -> None:
        """Record rows that an index has: id, table and row of each."""
        for doc_id, path, row in places:
            place = Place(manifest, name, path, row)
            if doc_id in self.matches:
                self.matches[doc_id].by_id.setdefault(doc_id, []).append(place)
            for prefix in self.prefixes:
                if doc_id.startswith(prefix):
                    self.matches[prefix].by_id.setdefault(doc_id, []).append(place)

    def keep_addresses(self) -> bool:
        """Look no more for ids, nor for what an id begins with; whether anything is left."""
        named = {text for text, match in self.matches.items() if match.by_id}
        left = [text for text in self._urls.to_pylist() if text not in named]
        whole = set(self.ids)
        self._ids, self.prefixes = pa.array([], pa.string()), []
        self._urls = pa.array(left, pa.string())
        self._parts = [text for text in self._parts if text not in named | whole]
        return bool(left or self._parts)

    def add_output(self, manifest: Manifest, name: str, rows: Input) -> None:
        """Record the rows of all tables of an output that match."""
        column = ID_COLUMN.get(rows.kind)
        columns = ["doc_id", "url"] if len(self._urls) or self._parts else ["doc_id"]
        for path in rows.paths("*.parquet"):
            table = rows.read_table(path, [column] if column else columns)
            table = table.rename_columns(["doc_id"]) if column else table
            self.add_table(table, (manifest, name, path))

    def add_table(self, table: pa.Table, place: tuple[Manifest, str, str]) -> None:
        """Record the rows of a table that match; `place` is its artifact, output and path."""
        ids = table["doc_id"]

        def add(places: PlacesById, row: int) -> None:
            places.setdefault(ids[row].as_py(), []).append(Place(*place, row))

        for row in _find_true(pc.is_in(ids, value_set=self._ids)):
            add(self.matches[ids[row].as_py()].by_id, row)
        for text in self.prefixes:
            for row in _find_true(pc.starts_with(ids, text)):
                add(self.matches[text].by_id, row)
        if "url" not in table.column_names:
            return
        urls = table["url"]
        for row in _find_true(pc.is_in(urls, value_set=self._urls)):
            add(self.matches[urls[row].as_py()].by_url, row)
        for text in self._parts:
            for row in _find_true(pc.match_substring(urls, text)):
                add(self.matches[text].by_part, row)


def find_by_file(store: Store, manifests: Sequence[Manifest], text: str) -> PlacesById:
    """Documents and rejected records of a file, or of one row of it (`FILE:3`, counted from 1).

    FILE is a name within its snapshot, or a longer path that ends with one. A row that is known by
    its byte is counted among all that were read of the file, so blank lines have no number.
    """
    rows = _rows_of_file(store, manifests, text)
    if not rows and (match := FILE_ROW.fullmatch(text)) is not None:
        rows = _rows_of_file(store, manifests, match[1])
        wanted = {row["doc_id"] for row, number in _numbered(rows) if number == int(match[2])}
        rows = [(place, row) for place, row in rows if row["doc_id"] in wanted]
    places: PlacesById = {}
    for place, row in rows:
        places.setdefault(row["doc_id"], []).append(place)
    return places


def ordinal_row(row: Mapping[str, Any]) -> int | None:
    """The row in its file, counted from 1, of a record of JSON, Parquet or Arrow.

    None where a record is known by its bytes.
    """
    is_ordinal = row["origin_length"] == 0 and row_format(row["origin_file"]) in _ORDINAL_FORMATS
    return int(row["origin_offset"]) + 1 if is_ordinal else None


def _rows_of_file(
    store: Store, manifests: Iterable[Manifest], file: str
) -> list[tuple[Place, dict[str, Any]]]:
    """Place, id and origin of every row that was made of a file."""
    columns = ["doc_id", "origin_file", "origin_offset", "origin_length"]
    rows: list[tuple[Place, dict[str, Any]]] = []
    for manifest, name, source in open_outputs(store, manifests, ("documents", "rejected")):
        for path in source.paths("*.parquet"):
            table = source.read_table(path, columns)
            files = pc.unique(table["origin_file"]).to_pylist()
            own = [one for one in files if f"/{file}".endswith(f"/{one}")]
            places = _find_true(pc.is_in(table["origin_file"], value_set=pa.array(own, "string")))
            values = table.take(pa.array(places, pa.int64())).to_pylist()
            rows += [
                (Place(manifest, name, path, place), row)
                for place, row in zip(places, values, strict=True)
            ]
    return rows


def _numbered(
    rows: Iterable[tuple[Place, dict[str, Any]]],
) -> Iterator[tuple[dict[str, Any], int]]:
    """The rows of stages that read files, each with its number in its file, from 1."""
    files: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for place, row in rows:
        if any(output.kind == "rejected" for output in place.manifest.outputs.values()):
            files.setdefault((place.manifest.key, row["origin_file"]), []).append(row)
    for records in files.values():
        ordered = sorted(records, key=lambda row: int(row["origin_offset"]))
        for rank, row in enumerate(ordered, 1):
            yield row, ordinal_row(row) or rank


def _find_true(mask: Any) -> list[int]:
    rows: list[int] = pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()
    return rows


# Duplicates ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Duplicate:
    """A document with the same text (1.0), or one as similar as that (0.0: not verified)."""

    doc_id: str
    similarity: float


@dataclass(frozen=True)
class ExactDuplicates:
    """Other documents of the same text: how many, and the first of them."""

    normalised: int
    """Those with the same normalised text, identical bytes included."""
    raw: int
    """Those with identical bytes."""
    doc_ids: tuple[str, ...]
    """Identical bytes first."""


@dataclass(frozen=True)
class DuplicateLink:
    """What makes two documents duplicates; None where it is unknown, or was not verified."""

    exact: Literal["raw", "normalised"] | None
    similarity: float | None
    containment: float | None
    band: int | None
    """The first band in which both agree; -1: found through a third document."""


def find_duplicates(
    store: Store, manifests: Iterable[Manifest], doc_ids: Collection[str]
) -> list[Duplicate]:
    """Duplicates of these documents that `duplicates` artifacts list, most similar first.

    The members of their exact classes, and of all classes that these have pairs with.
    """
    tables = _open_duplicates(
        source
        for manifest, name, source in open_outputs(store, manifests, ("duplicates",))
        if _is_current(manifest, name)
    )
    own = rows_where(tables, "doc_id", _make_id_array(doc_ids), ["exact_class"])
    classes = dict.fromkeys(own["exact_class"].to_pylist(), 1.0)
    pairs = pairs_with(tables, pa.array(list(classes), pa.string()))
    for pair in pairs.to_pylist():
        similarity = pair["similarity"] or 0.0
        for name in (pair["one"], pair["two"]):
            classes[name] = max(similarity, classes.get(name, 0.0))
    members = rows_where(
        tables, "exact_class", pa.array(list(classes), pa.string()), ["doc_id", "exact_class"]
    )
    similarities: dict[str, float] = {}
    for row in members.to_pylist():
        similarity = classes[row["exact_class"]]
        similarities[row["doc_id"]] = max(similarity, similarities.get(row["doc_id"], 0.0))
    duplicates = [
        Duplicate(doc_id, round(similarity, 4))
        for doc_id, similarity in similarities.items()
        if doc_id not in doc_ids
    ]
    return sorted(duplicates, key=lambda one: (-one.similarity, one.doc_id))


def find_exact_duplicates(source: Input, doc_id: str, row: Mapping[str, Any]) -> ExactDuplicates:
    """The documents of an artifact with the same text as one of them, by its row."""
    if "text_class" not in row:  # An older version of the table.
        return ExactDuplicates(0, 0, ())
    classes = pa.array([row["exact_class"]], pa.string())
    rows = rows_where(_open_duplicates([source]), "exact_class", classes, ["doc_id", "text_class"])
    rows = rows.filter(pc.not_equal(rows["doc_id"], doc_id))
    same = pc.equal(rows["text_class"], row["text_class"])
    raw = sorted(rows["doc_id"].filter(same).to_pylist())
    others = sorted(rows["doc_id"].filter(pc.invert(same)).to_pylist())
    return ExactDuplicates(len(rows), len(raw), tuple([*raw, *others][:EXACT_DUPLICATES_LISTED]))


def find_link(store: Store, manifest: Manifest, one: str, two: str) -> DuplicateLink | None:
    """What makes two documents duplicates, by the `duplicates` inputs of an artifact.

    None if no table says: they were collected, or are of an older version.
    """
    sources = []
    for reference in manifest.inputs.get("duplicates", ()):
        measured = store.manifest(reference.stage, reference.key)
        if measured is not None and _is_current(measured, reference.output):
            sources.append(Input.load(store, reference, full_check=False))
    tables = _open_duplicates(sources)
    columns = ["doc_id", "exact_class", "text_class"]
    table = rows_where(tables, "doc_id", _make_id_array([one, two]), columns)
    rows = {row["doc_id"]: row for row in table.to_pylist()}
    if len(rows) < 2:
        return None
    exact, texts = ({row[name] for row in rows.values()} for name in columns[1:])
    if len(exact) == 1:
        return DuplicateLink("raw" if len(texts) == 1 else "normalised", 1.0, 1.0, None)
    # A pair of two classes is listed in the row of one of their representatives.
    listing = rows_where(tables, "doc_id", _make_id_array(exact), ["doc_id", "partners"])
    for pair in list_pairs(listing).to_pylist():
        if {pair.pop("one"), pair.pop("two")} == exact:
            return DuplicateLink(None, **pair)
    return None


def _is_current(manifest: Manifest, output: str) -> bool:
    """Whether a table of duplicates has the current version."""
    return manifest.output(output).kind_version == KINDS["duplicates"].version


def _open_duplicates(sources: Iterable[Input]) -> list[DuplicatesTable]:
    return [
        DuplicatesTable(source, path) for source in sources for path in source.paths("*/*.parquet")
    ]


def _make_id_array(doc_ids: Collection[str]) -> pa.Array:
    return pa.array(sorted(doc_ids), pa.string())
