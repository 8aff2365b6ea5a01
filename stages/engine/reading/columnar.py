"""Rows of Parquet and Arrow files, a bounded batch at a time; faults are rows as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from stages.engine.reading.decoded_sizes import (
    chunk_place,
    decoded_group_bytes,
    decoded_stream_bytes,
    texts_in_lists,
)
from stages.engine.reading.row import (
    ARROW,
    FREE_EXPANSION,
    PARQUET,
    Damage,
    Row,
    RowLimits,
    scrubbed_row,
)

_ROWS = 1_000
_BATCH_BYTES = 32 << 20
_REPEATED_BYTES = 256 << 20
"""Bytes of a batch if every row repeated the longest value that its dictionaries may hold.

Writers fill dictionaries up to 1 MiB, so ordinary files are read a hundred rows at a time.
"""
_ROW_COST = 64
"""Bytes that a row is taken to have besides its values: rows of nulls take no room in a file."""
_VALUE_COST = 8
"""Bytes of a value's place in a Python list: nulls and empty structs have none in Arrow."""
MAX_FOOTER = 32 << 20
_MAX_ITEMS = 100_000  # Of one list in the footer; a reader takes about 1 kB for each column.
_FOOTER_LIMITS = {
    "thrift_string_size_limit": MAX_FOOTER,
    "thrift_container_size_limit": _MAX_ITEMS,
}
_MAX_COLUMNS = 10_000


class _Budget:
    """Decoded bytes that a file may have for its compressed ones; see `rows.decompress_stream`."""

    def __init__(self, expansion: int) -> None:
        self.expansion, self.left = expansion, FREE_EXPANSION

    def earn(self, compressed: int) -> None:
        """Take in compressed bytes."""
        self.left += self.expansion * compressed

    def spend(self, decoded: int) -> None:
        """Raise Damage if so many decoded bytes are too many."""
        if decoded > self.left:
            raise Damage("expansion", f"more than {self.expansion} times its compressed size")
        self.left -= decoded


def parquet_rows(stream: IO[bytes], start: int, end: int, limits: RowLimits) -> Iterator[Row]:
    """Rows of the row groups that begin in the bytes [start, end); a row's name is its ordinal.

    A broken row group, or one that holds far more than its compressed size, is one fault and the
    next is read. A file without a readable footer is one fault, in the part from 0.
    """
    import pyarrow.parquet as pq

    size = stream.seek(0, 2)
    try:
        _check_footer(stream, size)
        file = pq.ParquetFile(stream, **_FOOTER_LIMITS)
        if file.metadata.num_columns > _MAX_COLUMNS:
            raise Damage("too_large", f"{file.metadata.num_columns:,} columns")
        groups = _row_groups(file.metadata)
        if sum(_stored(file.metadata.row_group(number)) for number in range(len(groups))) > size:
            raise Damage("malformed_record", "row groups overlap")
    except _faults() as error:
        if start == 0:
            yield _fault(0, error)
        return
    budget = _Budget(limits.expansion)
    for number, (offset, ordinal, batch_rows) in enumerate(groups):
        if start <= offset < end:
            group = file.metadata.row_group(number)
            reader = file
            try:
                affordable = _affordable_rows(stream, group, file.schema, budget)
                if affordable == 0:  # One row may be too much: measure it before it is decoded.
                    paths = texts_in_lists(file.schema)
                    reader = pq.ParquetFile(stream, read_dictionary=paths, **_FOOTER_LIMITS)
            except _faults() as error:
                yield _fault(ordinal, error)
                continue
            batches = reader.iter_batches(
                batch_size=max(1, min(batch_rows, affordable)),
                row_groups=[number],
                use_threads=False,
            )
            yield from _rows(batches, ordinal, limits.row, budget)


def _check_footer(stream: IO[bytes], size: int) -> None:
    """Raise Damage for a footer that takes too much memory to read."""
    stream.seek(max(0, size - 8))
    tail = stream.read(8)
    if tail.endswith(PARQUET) and MAX_FOOTER < int.from_bytes(tail[:4], "little") < size:
        raise Damage("too_large", f"a footer of more than {MAX_FOOTER >> 20} MiB")
    stream.seek(0)


def _stored(group: Any) -> int:
    """Bytes that a row group takes in the file by its metadata."""
    chunks = (group.column(number) for number in range(group.num_columns))
    return sum(max(0, chunk.total_compressed_size) for chunk in chunks)


def _affordable_rows(stream: IO[bytes], group: Any, schema: Any, budget: _Budget) -> int:
    """Rows of a row group that are decoded together, so that a batch stays within _REPEATED_BYTES.

    Every row may repeat the longest value of a dictionary, which is at most the whole dictionary.
    0 if the lists of one row may do so beyond that. Raises Damage if the pages, or the values of
    lists, are more than the budget.
    """
    budget.earn(_stored(group))
    decoded = decoded_group_bytes(stream, group, schema)
    if decoded.total > budget.left:
        budget.spend(decoded.total)
    rows = min(_REPEATED_BYTES, budget.left) // max(1, decoded.shared)
    if rows == 0 and decoded.prefixed_lists:
        budget.spend(budget.left + 1)
    return rows


def _row_groups(metadata: Any) -> list[tuple[int, int, int]]:
    """(byte at which it begins, ordinal of its first row, rows worth a batch) of each row group.

    Offsets are made to ascend and to start at 0, so that parts hold each group once and in order
    whatever a file claims.
    """
    groups, offset, ordinal = [], 0, 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        begins = [chunk_place(group.column(column))[0] for column in range(group.num_columns)]
        if number:
            offset = max(offset, min(begins, default=0))
        mean = group.total_byte_size // max(1, group.num_rows)
        groups.append((offset, ordinal, max(1, min(_ROWS, _BATCH_BYTES // max(1, mean)))))
        ordinal += group.num_rows
    return groups


def arrow_rows(stream: IO[bytes], limits: RowLimits) -> Iterator[Row]:
    """Rows of an Arrow IPC file or stream, up to its first fault.

    A file is read as the stream that it holds: its footer could lead to batches that nobody
    measured. Nothing is executed: extension types are read as what they are stored in.
    """
    import pyarrow as pa

    budget = _Budget(limits.expansion)
    budget.earn(stream.seek(0, 2))
    stream.seek(0)
    begin = len(ARROW) if stream.read(len(ARROW)) == ARROW else 0
    try:
        stream.seek(begin)
        decoded = decoded_stream_bytes(stream)
        if decoded > budget.left:
            budget.spend(decoded)
        stream.seek(begin)
        batches = iter(pa.ipc.open_stream(stream))
    except _faults() as error:
        yield _fault(0, error)
        return
    yield from _rows(batches, 0, limits.row, budget)


def _rows(batches: Iterator[Any], ordinal: int, longest: int, budget: _Budget) -> Iterator[Row]:
    """Rows of record batches, longer ones than `longest` bytes as faults; another fault ends it."""
    try:
        for batch in batches:
            batch.validate(full=True)
            for plain in _materialised(batch, longest):
                if isinstance(plain, int):
                    yield Row(ordinal, 0, None, "too_large", f"{plain} bytes")
                    ordinal += 1
                    continue
                budget.spend(_cost(plain) + _ROW_COST * plain.num_rows)
                for part in _fitting(plain, longest):
                    if (cost := _cost(part)) > longest:
                        yield Row(ordinal, 0, None, "too_large", f"{cost} bytes")
                        ordinal += 1
                        continue
                    for value in part.to_pylist():
                        yield scrubbed_row(ordinal, 0, value)
                        ordinal += 1
    except _faults() as error:
        yield _fault(ordinal, error)


def _materialised(batch: Any, longest: int) -> Iterator[Any]:
    """The batch in slices whose columns hold each row's value, however often it is repeated.

    In dictionaries, views and runs one value may be shared by many rows: `nbytes` counts it once.
    Where the lists of a row may repeat one, the row is measured before it is decoded; for a row of
    more than `longest` bytes its size comes instead.
    """
    import pyarrow as pa

    if any(_without_dictionaries(one.type) != one.type for one in batch.columns):
        for row in _slices(batch, 1):
            cost = sum(map(_expanded_bytes, row.columns))
            if cost > longest:
                yield cost
            else:
                columns = [column.cast(_text_of(column.type)) for column in row.columns]
                plain = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
                yield from _materialised(plain, longest)
        return
    shared = [column for column in batch.columns if _shares(column.type)]
    if not shared:
        yield from _slices(batch, _ROWS)
        return
    held = sum(
        column.dictionary.nbytes if pa.types.is_dictionary(column.type) else column.nbytes
        for column in shared
    )
    for part in _slices(batch, max(1, min(_ROWS, _BATCH_BYTES // max(1, held)))):
        columns = [_plain(column) for column in part.columns]
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _without_dictionaries(kind: Any) -> Any:
    """The type with texts in place of dictionaries of texts, inside lists and structs."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_struct(kind):
        fields = (kind.field(number) for number in range(kind.num_fields))
        return pa.struct([one.with_type(_text_of(one.type)) for one in fields])
    if types.is_map(kind):
        item = kind.item_field
        return pa.map_(_text_of(kind.key_type), item.with_type(_text_of(item.type)))
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_text_of(kind.value_type)))
    return kind


def _text_of(kind: Any) -> Any:
    from pyarrow import types

    return kind.value_type if types.is_dictionary(kind) else _without_dictionaries(kind)


def _expanded_bytes(array: Any) -> int:
    """Bytes of an array with each text of its dictionaries repeated in every row that has it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        lengths = pc.binary_length(array.dictionary)
        return int(pc.sum(lengths.take(array.indices)).as_py() or 0) + _VALUE_COST * len(array)
    inside = _inside(array)
    return sum(map(_expanded_bytes, inside)) if inside else int(array.nbytes)


def _slices(batch: Any, rows: int) -> Iterator[Any]:
    for begin in range(0, batch.num_rows, rows):
        yield batch.slice(begin, rows)


def _shares(kind: Any) -> bool:
    """Whether rows of this type may share one value; Damage where that is inside another type."""
    from pyarrow import BaseExtensionType, types

    shares = (
        types.is_dictionary(kind)
        or types.is_string_view(kind)
        or types.is_binary_view(kind)
        or types.is_run_end_encoded(kind)
    )
    views = types.is_list_view(kind) or types.is_large_list_view(kind)
    if views or (types.is_union(kind) and kind.mode == "dense"):  # Their rows may share as well.
        raise Damage("malformed_record", f"columns of {kind} are not read")
    if isinstance(kind, BaseExtensionType):
        return _shares(kind.storage_type)
    inside = [] if shares else [kind.field(number).type for number in range(kind.num_fields)]
    if any(_shares(one) for one in inside):
        raise Damage("malformed_record", f"columns of {kind} are not read")
    return shares


def _plain(column: Any) -> Any:
    """The column with a value of its own in each row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    if pa.types.is_run_end_encoded(column.type):
        return pc.run_end_decode(column)
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(column.type):
        return column.cast(pa.large_binary())
    return column


def _cost(batch: Any) -> int:
    """Bytes of a batch, about as Python's values have them."""
    return int(batch.nbytes) + _VALUE_COST * sum(map(_values, batch.columns))


def _values(array: Any) -> int:
    """Values of an array at all depths: rows, items of lists, fields of structs."""
    return len(array) + sum(map(_values, _inside(array)))


def _inside(array: Any) -> list[Any]:
    """The arrays in an array, of the slice that it is: items of lists, fields of structs."""
    from pyarrow import BaseExtensionType, types

    kind = array.type
    if isinstance(kind, BaseExtensionType):
        return _inside(array.storage)
    inside: list[Any] = []
    if types.is_struct(kind) or types.is_union(kind):
        inside = [array.field(number) for number in range(kind.num_fields)]
    elif types.is_fixed_size_list(kind):  # `values` is of the whole array, not of this slice.
        inside = [array.values.slice(array.offset * kind.list_size, len(array) * kind.list_size)]
    elif len(array) and (types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind)):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        inside = [array.values.slice(first, last - first)]
    return inside


def _fitting(batch: Any, most: int) -> Iterator[Any]:
    """The batch in pieces of at most `most` bytes, or of one row."""
    if batch.num_rows <= 1 or _cost(batch) <= most:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _fitting(batch.slice(0, half), most)
    yield from _fitting(batch.slice(half), most)


def _fault(ordinal: int, error: BaseException) -> Row:
    if isinstance(error, Damage):
        return Row(ordinal, 0, None, error.reason, error.detail)
    return Row(ordinal, 0, None, "malformed_record", str(error)[:200])


def _faults() -> tuple[type[Exception], ...]:
    """What pyarrow raises on bytes that are not what they claim."""
    import pyarrow as pa

    return (Damage, pa.ArrowException, OSError, ValueError, OverflowError, MemoryError, KeyError)
