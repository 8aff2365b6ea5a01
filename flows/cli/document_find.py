"""Rows about documents by id or address, and about chat rows by id, in one look through the tables.

Only the columns that say who a row is about are read; of the rest, the row groups that hold a row.
What is looked for is compared, never interpreted: `*` or a control character is a character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input
from stages.text.chat_rows import ID_COLUMN

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

WHOLE_ID = re.compile(r"[0-9a-f]{32}")
_BEGINNING = re.compile(r"[0-9a-f]{6,31}")
SHORTEST_PART = 4
"""Characters that a part of an address needs to be looked for."""


class Place(NamedTuple):
    """Where a row lies."""

    manifest: Manifest
    output: str
    path: str
    row: int


Found = dict[str, list[Place]]
"""Places by doc_id."""


@dataclass
class Match:
    """The documents that one text names: by id (whole or its beginning), address, part of it."""

    by_id: Found = field(default_factory=dict)
    by_url: Found = field(default_factory=dict)
    by_part: Found = field(default_factory=dict)


def look_up(
    store: Store, manifests: Iterable[Manifest], wanted: Sequence[str], *, parts: bool = False
) -> dict[str, Match]:
    """What each of `wanted` names among the documents and rejected records of `manifests`.

    Conversations and preference pairs are found by their ids. Parts of addresses are looked for
    only with `parts`.
    """
    search = _Search(wanted, parts)
    kinds = ("documents", "rejected", *ID_COLUMN)
    for manifest, name, given in outputs_of(store, manifests, kinds):
        column = ID_COLUMN.get(given.kind)
        for path in given.paths("*.parquet"):
            table = given.read_table(path, [column] if column else search.columns)
            search.offer(
                table.rename_columns(["doc_id"]) if column else table, (manifest, name, path)
            )
    return search.matches


def outputs_of(
    store: Store, manifests: Iterable[Manifest], kinds: Sequence[str]
) -> Iterator[tuple[Manifest, str, Input]]:
    """Every output of these kinds."""
    for manifest in manifests:
        for name, output in manifest.outputs.items():
            if output.kind in kinds:
                yield manifest, name, Input.of(store, manifest, name, full_check=False)


def read_row(given: Input, path: str, row: int) -> dict[str, Any]:
    """One row of a table; only its row group is read."""
    with _open(given, path) as parquet:
        start = 0
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            if row < start + rows:
                table = parquet.read_row_group(group, use_threads=False)
                return dict(table.slice(row - start, 1).to_pylist()[0])
            start += rows
    raise UsageError(f"{path} has {start} rows, none is {row}")


def rows_about(
    given: Input, path: str, doc_ids: Iterable[str], columns: Sequence[str] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and values of the rows of a table whose id is one of these, in order.

    The column of ids is `doc_id`, or that of conversations and preferences.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(sorted(set(doc_ids)), pa.string())
    named = ID_COLUMN.get(given.kind, "doc_id")
    with _open(given, path) as parquet:
        start = 0
        for group in range(parquet.num_row_groups):
            ids = parquet.read_row_group(group, columns=[named], use_threads=False)[named]
            places = pc.indices_nonzero(pc.is_in(ids, value_set=wanted))
            if len(places):
                names = None if columns is None else [named, *columns]
                table = parquet.read_row_group(group, columns=names, use_threads=False)
                rows = table.take(places).to_pylist()
                yield from zip((start + place for place in places.to_pylist()), rows, strict=True)
            start += len(ids)


@contextmanager
def _open(given: Input, path: str) -> Iterator[pq.ParquetFile]:
    import pyarrow.parquet as pq

    with given.open(path) as file:
        yield pq.ParquetFile(file)


class _Search:
    """Texts that are looked for together, and what was found of each."""

    def __init__(self, wanted: Sequence[str], parts: bool) -> None:
        import pyarrow as pa

        self.matches = {text: Match() for text in wanted}
        named = [text for text in self.matches if _is_text(text)]
        ids = [text for text in named if WHOLE_ID.fullmatch(text)]
        self._ids = pa.array(ids, pa.string())
        self._beginnings = [text for text in named if _BEGINNING.fullmatch(text)]
        self._urls = pa.array([text for text in named if text not in set(ids)], pa.string())
        self._parts = [text for text in named if parts and len(text) >= SHORTEST_PART]
        self.columns = ["doc_id", "url"] if len(self._urls) or self._parts else ["doc_id"]

    def offer(self, table: pa.Table, where: tuple[Manifest, str, str]) -> None:
        """Note the rows of a table that are looked for."""
        import pyarrow.compute as pc

        ids = table["doc_id"]
        for row in _rows(pc.is_in(ids, value_set=self._ids)):
            _note(self.matches[ids[row].as_py()].by_id, ids, row, where)
        for text in self._beginnings:
            for row in _rows(pc.starts_with(ids, text)):
                _note(self.matches[text].by_id, ids, row, where)
        if "url" not in table.column_names:
            return
        urls = table["url"]
        for row in _rows(pc.is_in(urls, value_set=self._urls)):
            _note(self.matches[urls[row].as_py()].by_url, ids, row, where)
        for text in self._parts:
            for row in _rows(pc.match_substring(urls, text)):
                _note(self.matches[text].by_part, ids, row, where)


def _rows(mask: Any) -> list[int]:
    import pyarrow.compute as pc

    rows: list[int] = pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()
    return rows


def _note(found: Found, ids: pa.ChunkedArray, row: int, where: tuple[Manifest, str, str]) -> None:
    found.setdefault(ids[row].as_py(), []).append(Place(*where, row))


def _is_text(text: str) -> bool:
    """Whether it can be a value of a table: bytes of an argument that are no UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return bool(text)
