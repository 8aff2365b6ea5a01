"""A database that reads tables of a store: of those in a bucket only the columns of a query.

It holds on disk what does not fit into memory.
"""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, Any

import duckdb
import pyarrow as pa
from fsspec import AbstractFileSystem

from artifacts_schema.errors import IngotError
from stages.engine.database import database_settings
from stages.engine.inputs import Input, Shard

_SCHEME = "ingot"


class CorpusDatabase:
    """A connection to DuckDB, and what its queries read of the store."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._remote = _RemoteTables()
        connection.register_filesystem(self._remote)

    def tables(self, source: Input, pattern: str = "*.parquet") -> list[str]:
        """The tables of an output with rows, as `read_parquet` takes their names: `[*]` for `*`.

        They are checked: whole where they lie on this machine or are small, else by block.
        """
        shards = [shard for shard in source.shards(pattern) if shard.rows]
        if source.backend.local:
            return [glob.escape(str(source.local_path(shard.path))) for shard in shards]
        sizes = {file.path: file.bytes for file in source.files}
        return [self._remote.add(shard, sizes[shard.path]) for shard in shards]

    def execute(
        self, query: str, values: dict[str, Any] | Sequence[Any] | None = None
    ) -> duckdb.DuckDBPyConnection:
        """The connection with the result of a query. Raises what a read of the store raised."""
        with self._remote.own_errors():
            return self._connection.execute(query, values)

    def table(self, query: str, values: dict[str, Any]) -> pa.Table:
        """The result of a query; it raises what `execute` raises."""
        with self._remote.own_errors():
            return self._connection.sql(query, params=values).to_arrow_table()

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Append rows, which have a value for each column of the table."""
        if rows:
            places = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)


@contextmanager
def open_database(memory: int) -> Iterator[CorpusDatabase]:
    """A database in a folder that goes at the end; `memory` bytes of it are held in memory."""
    with tempfile.TemporaryDirectory(prefix="ingot-corpus-") as folder:
        settings = database_settings(memory, folder)
        with duckdb.connect(f"{folder}/corpus.duckdb", config=settings) as connection:
            yield CorpusDatabase(connection)


class _RemoteTables(AbstractFileSystem):  # type: ignore[misc]
    """Tables of a bucket under names of their own, for DuckDB, which reads them by ranges."""

    protocol = _SCHEME
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self._tables: dict[str, tuple[Shard, int]] = {}
        self.error: IngotError | None = None
        """What a read raised: DuckDB passes on its text alone."""

    def add(self, shard: Shard, size: int) -> str:
        name = f"{_SCHEME}://{len(self._tables)}"
        self._tables[name] = shard, size
        return name

    def open(self, path: str, mode: str = "rb", **_: Any) -> _RemoteTable:
        shard, _size = self._tables[path]
        with self.remember():
            return _RemoteTable(shard.input.open_part(shard.path), self)

    def glob(self, path: str, **_: Any) -> list[str]:
        return [path]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        return {"name": path, "size": self._tables[path][1], "type": "file"}

    def modified(self, path: str) -> datetime:
        """The same for all: what was committed stays."""
        return datetime.fromtimestamp(0, UTC)

    @contextmanager
    def own_errors(self) -> Iterator[None]:
        """Raise what a read raised inside, not DuckDB's error that holds it."""
        try:
            yield
        except duckdb.Error:
            if self.error is not None:
                raise self.error from None
            raise

    @contextmanager
    def remember(self) -> Iterator[None]:
        """Keep the error that is raised inside."""
        try:
            yield
        except IngotError as error:
            self.error = error
            raise


class _RemoteTable:
    """An open table, as DuckDB reads it."""

    def __init__(self, file: IO[bytes], tables: _RemoteTables) -> None:
        self._file, self._tables = file, tables
        self.seek, self.tell, self.close = file.seek, file.tell, file.close

    def read(self, size: int) -> bytes:
        with self._tables.remember():
            return self._file.read(size)
