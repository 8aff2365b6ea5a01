"""What is known of documents that are not to be decided on.

They have rows in duplicates tables, and verdicts in the ledgers of earlier runs. Both are read a
few row groups at a time; what is held are the rows that given names lead to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artifacts_schema.errors import CorruptArtifact, InputError
from artifacts_schema.kinds import beside
from stages.engine.tally import cut_alike
from stages.filter.coverage import folders_of, name_of
from stages.filter.duplicate_tables import Table, batches, no_pairs, pairs_touching
from stages.filter.names import absent

if TYPE_CHECKING:
    from stages.engine import Input

_MEMBER = pa.schema(
    [(n, pa.string()) for n in ("doc_id", "exact_class", "text_class", "verdict")]
    + [("age", pa.int64())]
)


@dataclass(frozen=True)
class Folder:
    """Duplicates tables of one documents output, and the ledger that decided on it, if any.

    `age` is the place of that ledger among all.
    """

    duplicates: Input
    name: str
    ledger: Input | None
    age: int

    def tables(self) -> list[Table]:
        """The duplicates tables."""
        return [Table(self.duplicates, path) for path in self.duplicates.paths(f"{self.name}/*")]

    def members(self) -> Iterator[pa.Table]:
        """Row by row `_MEMBER`; the verdict is null where no ledger decided."""
        columns = ["doc_id", "exact_class", "text_class"]
        for table in self.tables():
            if self.ledger is None:
                for rows in table.row_groups(columns):
                    verdicts = pa.nulls(len(rows), pa.string())
                    yield self._told(rows, verdicts)
                continue
            told = self.ledger.row_groups(table.path, ["doc_id", "verdict"])
            for rows, verdicts in cut_alike(table.row_groups(columns), told):
                if not rows["doc_id"].equals(verdicts["doc_id"]):
                    raise CorruptArtifact(
                        f"rows of ledger {name_of(self.ledger)} are not those of duplicates "
                        f"{name_of(self.duplicates)}",
                        where="filter",
                    )
                yield self._told(rows, verdicts["verdict"])

    def _told(self, rows: pa.Table, verdicts: pa.Array | pa.ChunkedArray) -> pa.Table:
        age = pa.array(np.full(len(rows), self.age))
        names = [rows[name] for name in _MEMBER.names[:3]]
        return pa.table([*names, verdicts, age], names=_MEMBER.names)


@dataclass(frozen=True)
class Earlier:
    """Documents that are not to be decided on, in the order in which they were."""

    folders: tuple[Folder, ...] = ()

    @classmethod
    def of(
        cls, duplicates: Sequence[Input], ledgers: Sequence[Input], documents: Sequence[Input]
    ) -> Earlier:
        """All that `duplicates` and `ledgers` tell of other documents than `documents`.

        InputError if two describe the same documents, or a ledger decides on documents that are to
        be decided on now, or on some that no duplicates describe.
        """
        now = {beside(given.digest): given for given in documents}
        measured = _by_folder(duplicates)
        decided = _by_folder(ledgers)
        for folder, (ledger, _) in decided.items():
            if folder in now:
                raise InputError(
                    f"ledger {name_of(ledger)} decided on documents {name_of(now[folder])} already",
                    where="filter",
                    hint="leave those documents out, or the ledger",
                )
            if folder not in measured or _rows(ledger, folder) != _rows(
                measured[folder][0], folder
            ):
                raise InputError(
                    f"no duplicates describe the documents of ledger {name_of(ledger)}",
                    where="filter",
                    hint="give the duplicates of the earlier run too",
                )
        others = [folder for folder in measured if folder not in now]
        found = [
            Folder(measured[f][0], f, *decided.get(f, (None, 0)))
            for f in [*decided, *(f for f in others if f not in decided)]
        ]
        return cls(tuple(found))

    def connected(self, names: pa.Array) -> pa.Table:
        """The pairs (see `pairs_touching`) that lead from classes to others, and on from these."""
        tables = [table for folder in self.folders for table in folder.tables()]
        found, seen, reached = [no_pairs()], names, names
        while len(reached) and tables:
            pairs = pairs_touching(tables, reached)
            found.append(pairs)
            ends = pa.chunked_array([*pairs["one"].chunks, *pairs["two"].chunks], pa.string())
            reached = absent(pc.unique(ends), seen)
            seen = pa.concat_arrays([seen, reached])
        return pa.concat_tables(found)

    def members(self, classes: pa.Array) -> tuple[pa.Table, pa.Table]:
        """Of each of `classes` the first kept document of each raw text, and those that name it.

        Two tables with the columns of `_MEMBER`. The first is in the order in which the documents
        were decided on; the second holds the one that stands for the class and the least id of each
        age.
        """
        kept, least, stand = ([_MEMBER.empty_table()] for _ in range(3))
        streams = (rows for folder in self.folders for rows in folder.members())
        for rows in batches(streams, len(classes)):
            found = rows.filter(pc.is_in(rows["exact_class"], value_set=classes))
            kept.append(_first(found.filter(pc.equal(found["verdict"], "kept"))))
            least.append(_least(found))
            stand.append(found.filter(pc.equal(found["doc_id"], found["exact_class"])))
        names = pa.concat_tables([_least(pa.concat_tables(least)), *stand])
        return _first(pa.concat_tables(kept)), names

    def kept_of(self, names: pa.Array) -> pa.StringArray:
        """Those of `names` that an earlier run kept."""
        streams = (
            rows
            for folder in self.folders
            if folder.ledger is not None
            for table in folder.tables()
            for rows in folder.ledger.row_groups(table.path, ["doc_id", "verdict"])
        )
        found = [pa.array([], pa.string())]
        for rows in batches(streams, len(names)):
            stays = pc.and_(
                pc.equal(rows["verdict"], "kept"), pc.is_in(rows["doc_id"], value_set=names)
            )
            found += rows["doc_id"].filter(stays).chunks
        return pa.concat_arrays(found)


def _first(rows: pa.Table) -> pa.Table:
    """The first row of each raw text, in their order."""
    keys = ["exact_class", "text_class"]
    more = ["doc_id", "verdict", "age"]
    found = rows.group_by(keys, use_threads=False).aggregate([(name, "first") for name in more])
    return _as_members(found.rename_columns([*keys, *more]))


def _least(rows: pa.Table) -> pa.Table:
    """The least id of each class and age; what else is told is that of none."""
    keys = ["exact_class", "age"]
    found = rows.group_by(keys, use_threads=False).aggregate([("doc_id", "min")])
    found = found.rename_columns([*keys, "doc_id"])
    for name in ("text_class", "verdict"):
        found = found.append_column(name, pa.nulls(len(found), pa.string()))
    return _as_members(found)


def _as_members(rows: pa.Table) -> pa.Table:
    return rows.select(_MEMBER.names).cast(_MEMBER)


def _by_folder(side: Sequence[Input]) -> dict[str, tuple[Input, int]]:
    """The input that describes each documents output, and its place; InputError if two do."""
    found: dict[str, tuple[Input, int]] = {}
    for place, given in enumerate(side):
        for folder in folders_of(given):
            if folder in found:
                raise InputError(
                    f"{name_of(found[folder][0])} and {name_of(given)} describe the same documents",
                    where="filter",
                    hint=f"give one of the two as {given.kind}",
                )
            found[folder] = given, place
    return found


def _rows(given: Input, folder: str) -> dict[str, int]:
    return {f.path: f.rows or 0 for f in given.files if f.path.startswith(f"{folder}/")}
