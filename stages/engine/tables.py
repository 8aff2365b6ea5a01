"""How every table of a store is written: Parquet with zstd, the same bytes for the same rows."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Self

from artifacts_schema.kinds import kind_named

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP = 8_192
"""Rows of a row group: bounds what a reader of text holds in memory."""


class TableWriter:
    """Writes batches of one table into an open file; checks the schema against the kind."""

    def __init__(
        self, file: IO[bytes] | Any, schema: pa.Schema, *, kind: str | None, path: str
    ) -> None:
        import pyarrow.parquet as pq

        if kind is not None:
            table = kind_named(kind).table_for(path)
            if table is None:
                raise ValueError(f"kind '{kind}' has no table at '{path}'")
            table.check(schema, where=path)
        self.schema, self.rows = schema, 0
        self._writer = pq.ParquetWriter(file, schema, compression="zstd", version="2.6")

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        self._writer.write_table(table.cast(self.schema), row_group_size=ROW_GROUP)
        self.rows += table.num_rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the footer; after an error nothing more is written, now or by the collector."""
        try:
            if kind is None:
                self._writer.close()
        finally:
            self._writer.is_open = False
