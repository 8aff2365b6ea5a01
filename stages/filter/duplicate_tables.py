"""Rows of duplicates tables that given names lead to, a few row groups in memory at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artifacts_schema.kinds import KINDS

if TYPE_CHECKING:
    from stages.engine.inputs import Input

_ROW = KINDS["duplicates"].tables["*/*.parquet"].arrow()
_PARTNER = _ROW.field("partners").type.value_type
_LEAST_ROWS = 16_384
"""Rows that are compared with a set of names at once."""
_NAMES_A_ROW = 8
"""Names for each of these rows at most: a table of the names is made for each batch."""


class Table(NamedTuple):
    """A table of an input."""

    given: Input
    path: str

    def row_groups(self, columns: list[str]) -> Iterator[pa.Table]:
        """The table one row group at a time."""
        return self.given.row_groups(self.path, columns)


def pairs_touching(tables: Iterable[Table], names: pa.Array) -> pa.Table:
    """The pairs of which one or both sides are among `names`, as often as they are listed.

    `one` is the document whose row lists the pair, `two` the other; then what is told of the pair.
    """
    streams = (rows for table in tables for rows in table.row_groups(["doc_id", "partners"]))
    found = [no_pairs()]
    for rows in batches(streams, len(names)):
        pairs = pairs_of(rows)
        touching = pc.or_(
            pc.is_in(pairs["one"], value_set=names), pc.is_in(pairs["two"], value_set=names)
        )
        found.append(pairs.filter(touching))
    return pa.concat_tables(found)


def rows_where(
    tables: Iterable[Table], column: str, names: pa.Array, columns: Sequence[str]
) -> pa.Table:
    """`columns` of the rows of which `column` is one of `names`."""
    wanted = list(dict.fromkeys((column, *columns)))
    streams = (rows for table in tables for rows in table.row_groups(wanted))
    found = [_ROW.empty_table().select(wanted)]
    for rows in batches(streams, len(names)):
        found.append(rows.filter(pc.is_in(rows[column], value_set=names)))
    return pa.concat_tables(found).select(list(columns))


def pairs_of(rows: pa.Table) -> pa.Table:
    """The pairs that rows list: `one`, `two`, `similarity`, `containment`, `band`."""
    lists = rows["partners"].combine_chunks()
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    listing = np.flatnonzero(lengths)
    owners = pa.array(np.repeat(listing, lengths[listing]))
    flat = lists.flatten()
    told = {field.name: flat.field(field.name) for field in _PARTNER}
    one = rows["doc_id"].combine_chunks().take(owners)
    return pa.table({"one": one, "two": told.pop("doc_id"), **told})


def no_pairs() -> pa.Table:
    """The table of `pairs_of` without rows."""
    return pairs_of(_ROW.empty_table())


def batches(tables: Iterable[pa.Table], names: int) -> Iterator[pa.Table]:
    """Tables joined until they are worth a look at so many names."""
    held: list[pa.Table] = []
    enough = max(_LEAST_ROWS, names // _NAMES_A_ROW)
    for table in tables:
        held.append(table)
        if sum(map(len, held)) >= enough:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
