"""Rows of Parquet and Arrow files, a bounded batch at a time; faults are rows as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Any

from stages.engine.reading.rows import ARROW, Row, scrub_value

_ROWS = 1_000
_BATCH_BYTES = 32 << 20


def parquet_rows(stream: IO[bytes], start: int, end: int) -> Iterator[Row]:
    """Rows of the row groups that begin in the bytes [start, end); a row's name is its ordinal.

    A broken row group is one fault and the next is read. A file without a readable footer is one
    fault, in the part from 0.
    """
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(stream)
        groups = _row_groups(file.metadata)
    except _faults() as error:
        if start == 0:
            yield _fault(0, error)
        return
    for number, (offset, ordinal, batch_rows) in enumerate(groups):
        if start <= offset < end:
            batches = file.iter_batches(
                batch_size=batch_rows, row_groups=[number], use_threads=False
            )
            yield from _rows(batches, ordinal)


def _row_groups(metadata: Any) -> list[tuple[int, int, int]]:
    """(byte at which it begins, ordinal of its first row, rows worth a batch) of each row group.

    Offsets are made to ascend and to start at 0, so that parts hold each group once and in order
    whatever a file claims.
    """
    groups, offset, ordinal = [], 0, 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        begins = []
        for column in range(group.num_columns):
            chunk = group.column(column)
            begins.append(chunk.dictionary_page_offset or chunk.data_page_offset)
        if number:
            offset = max(offset, min(begins, default=0))
        mean = group.total_byte_size // max(1, group.num_rows)
        groups.append((offset, ordinal, max(1, min(_ROWS, _BATCH_BYTES // max(1, mean)))))
        ordinal += group.num_rows
    return groups


def arrow_rows(stream: IO[bytes]) -> Iterator[Row]:
    """Rows of an Arrow IPC file or stream, up to the first fault of a stream.

    Nothing in it is executed: extension types are read as what they are stored in.
    """
    import pyarrow as pa

    is_file = stream.read(len(ARROW)) == ARROW
    stream.seek(0)
    try:
        if is_file:
            file = pa.ipc.open_file(stream)
            count: int = file.num_record_batches
        else:
            batches = iter(pa.ipc.open_stream(stream))
    except _faults() as error:
        yield _fault(0, error)
        return
    if not is_file:
        yield from _rows(batches, 0)
        return
    ordinal = 0
    for number in range(count):
        for row in _rows(_one(file.get_batch, number), ordinal):
            yield row
            ordinal = row.record + 1


def _one(get: Callable[[int], Any], number: int) -> Iterator[Any]:
    yield get(number)


def _rows(batches: Iterator[Any], ordinal: int) -> Iterator[Row]:
    """Rows of record batches; the first fault ends them."""
    try:
        for batch in batches:
            batch.validate(full=True)
            step = max(1, min(_ROWS, batch.num_rows * _BATCH_BYTES // max(1, batch.nbytes)))
            for begin in range(0, batch.num_rows, step):
                for value in batch.slice(begin, step).to_pylist():
                    yield Row(ordinal, 0, scrub_value(value))
                    ordinal += 1
    except _faults() as error:
        yield _fault(ordinal, error)


def _fault(ordinal: int, error: BaseException) -> Row:
    return Row(ordinal, 0, None, "malformed_record", str(error)[:200])


def _faults() -> tuple[type[Exception], ...]:
    """What pyarrow raises on bytes that are not what they claim."""
    import pyarrow as pa

    return (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError, KeyError)
