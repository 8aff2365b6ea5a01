"""Duplicates tables, and the documents of earlier runs that they and earlier ledgers describe.

Tables are read a few row groups at a time; only rows with the names in question are held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, InputError
from artifacts_schema.kinds import KINDS, sidecar_folder
from stages.engine.inputs import Input
from stages.engine.tally import align_tables
from stages.filter.document_ids import DocumentIds, id_numbers
from stages.filter.sidecars import document_folders, input_label


def encode_names(
    parts: Sequence[pa.Array | pa.ChunkedArray],
) -> tuple[pa.Array, list[NDArray[np.int64]]]:
    """The different names in several arrays, and each array as places among these."""
    chunks = [c for part in parts for c in getattr(part, "chunks", [part]) if len(c)]
    if not chunks:
        return pa.array([], pa.string()), [np.empty(0, np.int64) for _ in parts]
    encoded = pa.chunked_array(chunks).dictionary_encode()
    places = np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
    stops = np.cumsum([len(part) for part in parts])
    return encoded.chunk(0).dictionary, np.split(places.astype(np.int64), stops[:-1])


def number_names(
    doc_ids: pa.StringArray, parts: Sequence[pa.Array | pa.ChunkedArray]
) -> tuple[pa.Array, list[NDArray[np.int64]]]:
    """Every name in several arrays as a row of `doc_ids`, or as a number beyond those.

    Returns the names that are beyond, in the order of their numbers, and the numbers.
    """
    names, places = encode_names(parts)
    places_of_ids = pc.index_in(doc_ids, value_set=names)
    number = np.full(len(names), -1, dtype=np.int64)
    number[places_of_ids.drop_null().to_numpy()] = np.flatnonzero(
        places_of_ids.is_valid().to_numpy(False)
    )
    beyond = np.flatnonzero(number < 0)
    number[beyond] = len(doc_ids) + np.arange(len(beyond))
    return names.take(pa.array(beyond)), [number[place] for place in places]


def missing_names(names: pa.Array, among: pa.Array) -> pa.Array:
    """The names that are not `among` others."""
    return names.filter(pc.invert(pc.is_in(names, value_set=among)))


_ROW = KINDS["duplicates"].tables["*/*.parquet"].arrow()
_PARTNER = _ROW.field("partners").type.value_type
_LEAST_ROWS = 16_384
"""Rows that are compared with a set of names together."""
_NAMES_A_ROW = 8
"""Names for each of these rows at most: a table of the names is made for each batch."""


class DuplicatesTable(NamedTuple):
    """A table of an input."""

    input: Input
    path: str

    def row_groups(self, columns: list[str]) -> Iterator[pa.Table]:
        """The table one row group at a time."""
        return self.input.row_groups(self.path, columns)


NO_NUMBERS = np.empty(0, dtype=np.uint64)


def pairs_with(
    tables: Iterable[DuplicatesTable], names: pa.Array, numbers: NDArray[np.uint64] = NO_NUMBERS
) -> pa.Table:
    """The pairs of which one or both sides are among `names`, as often as they are listed.

    `one` is the document whose row lists the pair, `two` the other; then the measures of the pair.
    Those of ids that may have one of the sorted `numbers` are there too, with a few of others.
    """
    streams = (rows for table in tables for rows in table.row_groups(["doc_id", "partners"]))
    matching = [empty_pairs()]
    for rows in join_batches(streams, len(names)):
        pairs = list_pairs(rows)
        touching = pc.or_(
            _are_in(pairs["one"], names, numbers), _are_in(pairs["two"], names, numbers)
        )
        matching.append(pairs.filter(touching))
    return pa.concat_tables(matching)


def _are_in(ids: pa.ChunkedArray, names: pa.Array, numbers: NDArray[np.uint64]) -> pa.Array:
    """Whether each id is one of `names`, or may have one of the sorted `numbers`."""
    named = pc.is_in(ids, value_set=names).combine_chunks()
    if not len(numbers) or not len(ids):
        return named
    own = id_numbers(ids.combine_chunks())
    places = np.minimum(np.searchsorted(numbers, own), len(numbers) - 1)
    return pc.or_(named, pa.array(numbers[places] == own))


def rows_where(
    tables: Iterable[DuplicatesTable], column: str, names: pa.Array, columns: Sequence[str]
) -> pa.Table:
    """`columns` of the rows of which `column` is one of `names`."""
    wanted = list(dict.fromkeys((column, *columns)))
    streams = (rows for table in tables for rows in table.row_groups(wanted))
    matching = [_ROW.empty_table().select(wanted)]
    for rows in join_batches(streams, len(names)):
        matching.append(rows.filter(pc.is_in(rows[column], value_set=names)))
    return pa.concat_tables(matching).select(list(columns))


def list_pairs(rows: pa.Table) -> pa.Table:
    """The pairs that rows list: `one`, `two`, `similarity`, `containment`, `band`."""
    lists = rows["partners"].combine_chunks()
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    listing = np.flatnonzero(lengths)
    owners = pa.array(np.repeat(listing, lengths[listing]))
    flat = lists.flatten()
    measures = {field.name: flat.field(field.name) for field in _PARTNER}
    one = rows["doc_id"].combine_chunks().take(owners)
    return pa.table({"one": one, "two": measures.pop("doc_id"), **measures})


def empty_pairs() -> pa.Table:
    """The table of `list_pairs` without rows."""
    return list_pairs(_ROW.empty_table())


def join_batches(tables: Iterable[pa.Table], names: int) -> Iterator[pa.Table]:
    """Tables joined until they have enough rows to be compared with `names` names."""
    held: list[pa.Table] = []
    enough = max(_LEAST_ROWS, names // _NAMES_A_ROW)
    for table in tables:
        held.append(table)
        if sum(map(len, held)) >= enough:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


_MEMBER = pa.schema(
    [(n, pa.string()) for n in ("doc_id", "exact_class", "text_class", "verdict")]
    + [("age", pa.int64())]
)


@dataclass(frozen=True)
class EarlierFolder:
    """Duplicates tables of one documents output, and the ledger that decided on it, if any.

    `age` is the place of that ledger among all.
    """

    duplicates: Input
    name: str
    ledger: Input | None
    age: int

    def tables(self) -> list[DuplicatesTable]:
        """The duplicates tables."""
        return [
            DuplicatesTable(self.duplicates, path)
            for path in self.duplicates.paths(f"{self.name}/*")
        ]

    def members(self) -> Iterator[pa.Table]:
        """Row by row `_MEMBER`; the verdict is null where no ledger decided."""
        columns = ["doc_id", "exact_class", "text_class"]
        for table in self.tables():
            if self.ledger is None:
                for rows in table.row_groups(columns):
                    verdicts = pa.nulls(len(rows), pa.string())
                    yield self._earlier_rows(rows, verdicts)
                continue
            verdict_groups = self.ledger.row_groups(table.path, ["doc_id", "verdict"])
            for rows, verdicts in align_tables(table.row_groups(columns), verdict_groups):
                if not rows["doc_id"].equals(verdicts["doc_id"]):
                    raise CorruptArtifact(
                        f"rows of ledger {input_label(self.ledger)} are not those of duplicates "
                        f"{input_label(self.duplicates)}",
                        where="filter",
                    )
                yield self._earlier_rows(rows, verdicts["verdict"])

    def _earlier_rows(self, rows: pa.Table, verdicts: pa.Array | pa.ChunkedArray) -> pa.Table:
        age = pa.array(np.full(len(rows), self.age))
        names = [rows[name] for name in _MEMBER.names[:3]]
        return pa.table([*names, verdicts, age], names=_MEMBER.names)


@dataclass(frozen=True)
class EarlierDocuments:
    """Documents that are not to be decided on, in the order in which they were."""

    folders: tuple[EarlierFolder, ...] = ()

    @classmethod
    def read(
        cls, duplicates: Sequence[Input], ledgers: Sequence[Input], documents: Sequence[Input]
    ) -> EarlierDocuments:
        """What `duplicates` and `ledgers` hold about other documents than `documents`.

        InputError if two describe the same documents, or a ledger decides on documents that are to
        be decided on now, or on some that no duplicates describe.
        """
        now = {sidecar_folder(input_.digest): input_ for input_ in documents}
        measured = _inputs_by_folder(duplicates)
        decided = _inputs_by_folder(ledgers)
        for folder, (ledger, _) in decided.items():
            if folder in now:
                raise InputError(
                    f"ledger {input_label(ledger)} decided on documents "
                    f"{input_label(now[folder])} already",
                    where="filter",
                    hint="leave those documents out, or the ledger",
                )
            if folder not in measured or _row_counts(ledger, folder) != _row_counts(
                measured[folder][0], folder
            ):
                raise InputError(
                    f"no duplicates describe the documents of ledger {input_label(ledger)}",
                    where="filter",
                    hint="give the duplicates of the earlier run too",
                )
        others = [folder for folder in measured if folder not in now]
        earlier = [
            EarlierFolder(measured[f][0], f, *decided.get(f, (None, 0)))
            for f in [*decided, *(f for f in others if f not in decided)]
        ]
        return cls(tuple(earlier))

    def connected(self, names: pa.Array, ids: DocumentIds) -> pa.Table:
        """The pairs (see `pairs_with`) that lead from documents and classes on to others.

        They lead from the documents of `ids` and from `names`, and on from all that is met.
        """
        tables = [table for folder in self.folders for table in folder.tables()]
        connected, seen, frontier = [empty_pairs()], names, names
        numbers = ids.sorted_numbers() if tables else np.empty(0, np.uint64)
        while tables and (len(frontier) or len(numbers)):
            pairs = pairs_with(tables, frontier, numbers)
            connected.append(pairs)
            ends = pa.chunked_array([*pairs["one"].chunks, *pairs["two"].chunks], pa.string())
            frontier = missing_names(pc.unique(ends), seen)
            frontier = frontier.filter(pa.array(ids.rows_of(frontier) < 0))
            seen = pa.concat_arrays([seen, frontier])
            numbers = np.empty(0, np.uint64)
        return pa.concat_tables(connected)

    def members(self, classes: pa.Array, ids: DocumentIds) -> tuple[pa.Table, pa.Table]:
        """Of each of `classes` the first kept document of each raw text, and those that name it.

        Classes may also be named by a document of `ids`. Two tables with the columns of `_MEMBER`.
        The first is in the order in which the documents were decided on; the second holds the
        representative of the class and the least id of each age.
        """
        kept, least, stand = ([_MEMBER.empty_table()] for _ in range(3))
        numbers = ids.sorted_numbers() if self.folders else np.empty(0, np.uint64)
        streams = (rows for folder in self.folders for rows in folder.members())
        for rows in join_batches(streams, len(classes)):
            matching = rows.filter(_are_in(rows["exact_class"], classes, numbers))
            kept.append(_first_rows(matching.filter(pc.equal(matching["verdict"], "kept"))))
            least.append(_least_ids(matching))
            stand.append(matching.filter(pc.equal(matching["doc_id"], matching["exact_class"])))
        names = pa.concat_tables([_least_ids(pa.concat_tables(least)), *stand])
        return _first_rows(pa.concat_tables(kept)), names

    def kept_among(self, names: pa.Array) -> pa.StringArray:
        """Those of `names` that an earlier run kept."""
        streams = (
            rows
            for folder in self.folders
            if folder.ledger is not None
            for table in folder.tables()
            for rows in folder.ledger.row_groups(table.path, ["doc_id", "verdict"])
        )
        kept = [pa.array([], pa.string())]
        for rows in join_batches(streams, len(names)):
            stays = pc.and_(
                pc.equal(rows["verdict"], "kept"), pc.is_in(rows["doc_id"], value_set=names)
            )
            kept += rows["doc_id"].filter(stays).chunks
        return pa.concat_arrays(kept)


def _first_rows(rows: pa.Table) -> pa.Table:
    """The first row of each raw text, in their order."""
    keys = ["exact_class", "text_class"]
    more = ["doc_id", "verdict", "age"]
    groups = rows.group_by(keys, use_threads=False)
    first_rows = groups.aggregate([(name, "first") for name in more])
    return _as_members(first_rows.rename_columns([*keys, *more]))


def _least_ids(rows: pa.Table) -> pa.Table:
    """The least id of each class and age; the other columns are null."""
    keys = ["exact_class", "age"]
    least = rows.group_by(keys, use_threads=False).aggregate([("doc_id", "min")])
    least = least.rename_columns([*keys, "doc_id"])
    for name in ("text_class", "verdict"):
        least = least.append_column(name, pa.nulls(len(least), pa.string()))
    return _as_members(least)


def _as_members(rows: pa.Table) -> pa.Table:
    return rows.select(_MEMBER.names).cast(_MEMBER)


def _inputs_by_folder(side: Sequence[Input]) -> dict[str, tuple[Input, int]]:
    """The input that describes each documents output, and its place; InputError if two do."""
    by_folder: dict[str, tuple[Input, int]] = {}
    for place, input_ in enumerate(side):
        for folder in document_folders(input_):
            if folder in by_folder:
                raise InputError(
                    f"{input_label(by_folder[folder][0])} and {input_label(input_)} "
                    "describe the same documents",
                    where="filter",
                    hint=f"give one of the two as {input_.kind}",
                )
            by_folder[folder] = input_, place
    return by_folder


def _row_counts(input_: Input, folder: str) -> dict[str, int]:
    return {f.path: f.rows or 0 for f in input_.files if f.path.startswith(f"{folder}/")}
