"""The index tables of token shards: the document of every token, and where a document lies."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact

if TYPE_CHECKING:
    import pyarrow as pa

    from stages.engine import Input


@dataclass(frozen=True)
class Piece:
    """A run of one document's tokens within a sequence."""

    doc_id: str
    start: int
    length: int
    document_start: int
    language: str | None
    content_hash: str


def index_of(tokens_file: str) -> str:
    """The index table of a token file."""
    return tokens_file.removesuffix(".tokens") + ".index.parquet"


def pieces_of(
    given: Input, tokens_file: str, lines: Collection[int]
) -> Iterator[tuple[int, Piece]]:
    """The pieces of the given rows of a token file, each with its row, by row and start.

    CorruptArtifact for a row that the index does not name.
    """
    table = given.read_table(index_of(tokens_file))
    left = set(lines)
    for row in _rows(table, "sequence", sorted(left)).to_pylist():
        line = row.pop("sequence")
        left.discard(line)
        yield line, Piece(**row)
    if left:
        raise CorruptArtifact(
            f"no document for sequence {min(left)}", where=index_of(tokens_file), hint="pack again"
        )


def lines_of(given: Input, tokens_file: str, doc_ids: Collection[str]) -> NDArray[np.int64]:
    """The rows of a token file that hold any of these documents, ascending."""
    table = given.read_table(index_of(tokens_file), ["sequence", "doc_id"])
    found = _rows(table, "doc_id", sorted(doc_ids))["sequence"].to_pylist()
    return np.array(sorted(set(found)), dtype=np.int64)


def _rows(table: pa.Table, column: str, values: list[str] | list[int]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(values, table.schema.field(column).type)
    return table.filter(pc.is_in(table[column], value_set=wanted))
