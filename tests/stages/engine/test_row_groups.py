"""Row groups are cut by rows, and by bytes where texts are long."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.engine import outputs
from stages.engine.outputs import ROW_GROUP, ROW_GROUP_BYTES, TableWriter

SCHEMA = pa.schema([("doc_id", pa.string()), ("text", pa.string()), ("number", pa.int64())])


def table_of(lengths):
    return pa.table(
        {
            "doc_id": [str(n) for n in range(len(lengths))],
            "text": [None if n is None else "x" * n for n in lengths],
            "number": list(range(len(lengths))),
        },
        schema=SCHEMA,
    )


def written(*tables):
    file = io.BytesIO()
    with TableWriter(file, SCHEMA, kind=None, path="t") as writer:
        for table in tables:
            writer.write(table)
    assert writer.rows == sum(map(len, tables))
    return file.getvalue()


def groups_of(data):
    file = pq.ParquetFile(io.BytesIO(data))
    return [file.read_row_group(n) for n in range(file.num_row_groups)]


def strings_of(table):
    return sum(len(value or "") for name in ("doc_id", "text") for value in table[name].to_pylist())


def test_ordinary_tables_have_the_bytes_that_rows_alone_give():
    """Artifacts of earlier versions keep their digests."""
    table = table_of([200] * (2 * ROW_GROUP + 5))
    plain = io.BytesIO()
    with pq.ParquetWriter(plain, SCHEMA, compression="zstd", version="2.6") as writer:
        writer.write_table(table, row_group_size=ROW_GROUP)
    assert written(table) == plain.getvalue()
    assert [len(one) for one in groups_of(written(table))] == [ROW_GROUP, ROW_GROUP, 5]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.integers(0, 900), max_size=60), st.integers(1, 12))
def test_no_group_has_more_rows_or_bytes_than_it_may_and_no_row_is_lost(lengths, rows):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(outputs, "ROW_GROUP", rows)
        patched.setattr(outputs, "ROW_GROUP_BYTES", 1_000)
        table = table_of(lengths)
        data = written(table)
        assert data == written(table)
    groups = groups_of(data)
    assert pa.concat_tables([table.slice(0, 0), *groups]).equals(table)
    for group in groups:
        assert len(group) <= rows
        assert len(group) == 1 or strings_of(group) <= 1_000


def test_documents_of_a_megabyte_are_63_a_group():
    """64 MiB of text and ids: not 8,192 of them, 8 GiB, which no reader could hold or read."""
    lengths = [1 << 20] * 130
    groups = groups_of(written(table_of(lengths)))
    assert [len(one) for one in groups] == [63, 63, 4]
    assert all(strings_of(one) <= ROW_GROUP_BYTES for one in groups)
