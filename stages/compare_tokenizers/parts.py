"""What is measured: shards of documents with the rows of them that are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stages.text.draw import draw

if TYPE_CHECKING:
    from stages.engine import Input, Shard

SALT = "tokenizer comparison"
_COLUMNS = ["doc_id", "duplicate_class", "source", "language", "text"]


@dataclass(frozen=True)
class Part:
    """A shard of documents, and which of its rows are measured."""

    id: str
    text: str
    """`documents` or `parallel`."""
    shard: Shard
    share: float = 1.0
    """Duplicate classes that are drawn."""
    rows: NDArray[np.int64] | None = None
    """Rows that are measured, rising; None: those that are drawn."""

    def documents(self) -> Iterator[dict[str, Any]]:
        """Source, language and text of each row that is measured; row groups are read in turn."""
        first = 0
        for table in self.shard.row_groups(_COLUMNS):
            here = pa.array(self._chosen(table, first), pa.int64())
            yield from table.select(["source", "language", "text"]).take(here).to_pylist()
            first += table.num_rows

    def _chosen(self, table: pa.Table, first: int) -> list[int]:
        """Rows of a row group that are measured; it begins with row `first` of the shard."""
        if self.rows is not None:
            inside = (self.rows >= first) & (self.rows < first + table.num_rows)
            return (self.rows[inside] - first).tolist()  # type: ignore[no-any-return]
        classes = table["duplicate_class"].to_pylist()
        ids = table["doc_id"].to_pylist()
        return [
            row
            for row, (own, of) in enumerate(zip(ids, classes, strict=True))
            if drawn(of or own, self.share)
        ]


def drawn(name: str, share: float) -> bool:
    """Whether a duplicate class or passage is in the sample; a larger share holds a smaller one."""
    return draw(name, SALT) < share


def parts_of(given: Sequence[Input], text: str) -> list[Part]:
    """All shards of the inputs of a role, in order."""
    width = max(2, len(str(len(given) - 1)))
    return [
        Part(f"{text}-{place:0{width}d}-{shard.id}", text, shard)
        for place, one in enumerate(given)
        for shard in one.shards()
    ]


def sampled(parts: Sequence[Part], max_bytes: int) -> list[Part]:
    """The parts with the share that gives about `max_bytes` of text in all."""
    total = sum(_text_bytes(part.shard) for part in parts)
    share = min(1.0, max_bytes / max(1, total))
    return [replace(part, share=share) for part in parts]


def _text_bytes(shard: Shard) -> int:
    """Bytes of a shard's texts before compression, as the file's footer tells: about."""
    with shard.input.open(shard.path) as file:
        footer = pq.ParquetFile(file).metadata
        place = footer.schema.to_arrow_schema().get_field_index("text")
        groups = range(footer.num_row_groups)
        return sum(footer.row_group(n).column(place).total_uncompressed_size for n in groups)
