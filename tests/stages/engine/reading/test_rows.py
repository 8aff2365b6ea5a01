"""Rows and faults of data files, at their offsets."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages.engine.reading.row import Row, RowLimits, scrub
from stages.engine.reading.rows import metadata_json, read_rows, stem

Rows = Callable[..., list[Row]]


@pytest.fixture(scope="module")
def rows(read_bytes: Callable[[str, bytes], Any]) -> Rows:
    """`rows(name, data, limits=None)` → what is read from a file of that name."""
    return lambda name, data, limits=None: list(read_rows(read_bytes(name, data), limits))


def told(found: list[Row]) -> list[tuple[int, Any]]:
    return [(row.record, row.value if row.reason is None else row.reason) for row in found]


LINES = b'{"a": 1}\n\n{"a": 2}\r\n{"a": 3}'


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.compress])
def test_lines_are_named_by_their_offset_in_the_decompressed_file(
    rows: Rows, compress: Any
) -> None:
    found = rows("x.jsonl", compress(LINES))
    assert told(found) == [(0, {"a": 1}), (10, {"a": 2}), (20, {"a": 3})]


def test_members_and_frames_one_after_another_are_one_file(rows: Rows) -> None:
    a, b = b'{"a": 1}\n{"a"', b": 2}\n"
    for compress in (gzip.compress, zstandard.compress):
        assert told(rows("x", compress(a) + compress(b))) == [(0, {"a": 1}), (9, {"a": 2})]


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_a_cut_file_gives_its_whole_lines_and_one_truncated(rows: Rows, compress: Any) -> None:
    import random

    noise = random.Random(5)
    lines = [json.dumps({"n": n, "x": noise.random()}) for n in range(40_000)]
    packed = compress("\n".join(lines).encode())
    found = rows("x.jsonl", packed[: len(packed) // 2])
    assert found[-1].reason == "truncated"
    assert all(row.reason is None for row in found[:-1])
    assert [row.value["n"] for row in found[:-1] if row.value] == list(range(len(found) - 1))


def test_faults_stand_beside_the_rows_and_stop_nothing(rows: Rows) -> None:
    data = b'{"a": 1}\n{"a": \n[1]\n{"a": "\xff"}\n' + b"[" * 100_000 + b'\n{"a": 2}\n'
    assert [value for _, value in told(rows("x.jsonl", data))] == [
        {"a": 1},
        "malformed_json",
        "not_an_object",
        "undecodable",
        "malformed_json",
        {"a": 2},
    ]


def test_a_line_over_the_limit_is_passed_over(rows: Rows) -> None:
    data = b'{"a": 1}\n{"a": "' + b"x" * 3_000_000 + b'"}\n{"a": 2}\n'
    found = rows("x.jsonl", data, RowLimits(row=1_000))
    assert told(found) == [(0, {"a": 1}), (9, "too_large"), (9 + 3_000_009 + 1, {"a": 2})]
    assert found[1].length == 3_000_009


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_a_bomb_ends_at_its_budget(rows: Rows, compress: Any) -> None:
    data = compress(b'{"a": 1}\n' + b" " * (80 << 20))
    found = rows("x.jsonl", data, RowLimits(expansion=10))
    assert [value for _, value in told(found)] == [{"a": 1}, "expansion"]


def test_json_arrays_and_single_tables_are_rows_by_ordinal(rows: Rows) -> None:
    value = [{"a": 1}, 5, {"a": 2}]
    expected = [(0, {"a": 1}), (1, "not_an_object"), (2, {"a": 2})]
    assert told(rows("x.json", json.dumps(value, indent=1).encode())) == expected
    wrapped = {"version": "1", "data": [{"a": 1}, {"a": 2}]}
    assert told(rows("x.json", json.dumps(wrapped).encode())) == [(0, {"a": 1}), (1, {"a": 2})]
    single = {"messages": [{"role": "user", "content": "x"}], "id": 1}
    assert told(rows("x.json", json.dumps(single).encode())) == [(0, single)]
    assert told(rows("x.json", b'{"a": 1}\n{"a": 2}')) == [(0, {"a": 1}), (9, {"a": 2})]


def test_json_of_too_many_values_is_one_fault_and_lines_of_it_are_rows(rows: Rows) -> None:
    limits = RowLimits(values=10)
    assert told(rows("x.json", b'[{"a": 1}, {"a": [2, 3]}]', limits)) == [
        (0, {"a": 1}),
        (1, {"a": [2, 3]}),
    ]
    assert told(rows("x.json", b"[" + b"[],\n" * 6 + b"[]]", limits)) == [(0, "too_large")]
    lines = b'{"a": [1, 2]}\n' * 10
    assert told(rows("x.json", lines, limits)) == [(14 * n, {"a": [1, 2]}) for n in range(10)]


def test_parquet_rows_and_a_broken_parquet_file(rows: Rows) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2], "t": ["x", "y\0"]}), sink)
    expected = [(0, {"a": 1, "t": "x"}), (1, {"a": 2, "t": "y"})]
    assert told(rows("x.parquet", sink.getvalue())) == expected
    assert told(rows("x.parquet", sink.getvalue()[:-20])) == [(0, "malformed_record")]


def test_values_hold_nothing_that_cannot_be_stored(rows: Rows) -> None:
    (row,) = rows("x.jsonl", b'{"a\\u0000": ["\\ud800x", "\\ud83d\\ude00"]}')
    assert row.value == {"a": ["\ufffdx", "\U0001f600"]}
    assert scrub("a\0b\ud800") == ("ab\ufffd", 2)


def test_metadata_is_sorted_and_holds_no_nan() -> None:
    assert metadata_json({"b": float("nan"), "a": "ü"}) == '{"a": "ü", "b": null}'


def test_stem_is_the_name_without_its_endings() -> None:
    assert stem("folder/mmlu-dev.jsonl.zst") == "mmlu-dev"
    assert stem("a.b.parquet") == "a.b"


@settings(max_examples=80, deadline=None)
@given(
    data=st.binary(max_size=300),
    head=st.sampled_from([b"", b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd", b'{"a": ', b"PAR1"]),
    name=st.sampled_from(["x.jsonl", "x.json", "x.parquet"]),
)
def test_arbitrary_bytes_never_crash_and_no_row_is_named_twice(
    rows: Rows, data: bytes, head: bytes, name: str
) -> None:
    found = rows(name, head + data)
    assert len({row.record for row in found}) == len(found)
    assert all((row.value is None) == (row.reason is not None) for row in found)


def parts_of_rows(source: Any, cuts: list[int], limits: RowLimits | None = None) -> list[Row]:
    edges = [*sorted({0, *(cut for cut in cuts if cut < source.bytes)}), None]
    return [
        row for start, end in pairwise(edges) for row in read_rows(source, limits, start or 0, end)
    ]


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    lines=st.lists(
        st.sampled_from(
            [b'{"a": 1}', b'{"a": "' + b"x" * 50 + b'"}', b"", b"[1]", b"{", b"\r", b"\xff"]
        ),
        max_size=12,
    ),
    end=st.sampled_from([b"", b"\n"]),
    cuts=st.lists(st.integers(1, 90), max_size=5),
)
def test_parts_of_plain_lines_hold_each_line_once(
    read_bytes: Callable[[str, bytes], Any], lines: list[bytes], end: bytes, cuts: list[int]
) -> None:
    source = read_bytes("x.jsonl", b"\n".join(lines) + end)
    limits = RowLimits(row=40)
    assert parts_of_rows(source, cuts, limits) == list(read_rows(source, limits))


def test_every_cut_of_plain_lines_gives_both_sides(
    read_bytes: Callable[[str, bytes], Any],
) -> None:
    source = read_bytes("x.jsonl", LINES)
    whole = list(read_rows(source))
    for cut in range(1, len(LINES)):
        assert parts_of_rows(source, [cut]) == whole
        begun = [row.record for row in whole if row.record >= cut]
        assert [row.record for row in read_rows(source, None, cut)] == begun


@pytest.mark.parametrize("name", ["x.jsonl.gz", "x.jsonl", "x.json", "x.arrow"])
def test_what_can_not_be_divided_is_in_the_first_part(
    read_bytes: Callable[[str, bytes], Any], name: str
) -> None:
    data = gzip.compress(LINES)
    if name == "x.arrow":
        data = ipc_file([1, 2, 3])
    source = read_bytes(name, data)
    assert parts_of_rows(source, [5, 20]) == list(read_rows(source))
    assert len(list(read_rows(source))) == 3


def parquet(count: int, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": list(range(count))}), sink, row_group_size=10, **options)
    return sink.getvalue()


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"compression": "zstd"}])
def test_parts_of_parquet_hold_each_row_group_once(
    read_bytes: Callable[[str, bytes], Any], options: dict[str, Any]
) -> None:
    data = parquet(95, **options)
    source = read_bytes("x.parquet", data)
    whole = list(read_rows(source))
    assert [row.record for row in whole] == list(range(95))
    last = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(9).column(0)
    begin = last.dictionary_page_offset or last.data_page_offset
    assert [row.record for row in read_rows(source, None, begin)] == list(range(90, 95))
    assert list(read_rows(source, None, begin + 1)) == []
    for step in (1, 50, 333):
        assert parts_of_rows(source, list(range(step, len(data), step))[:300]) == whole


def test_a_broken_row_group_costs_itself_only(read_bytes: Callable[[str, bytes], Any]) -> None:
    data = bytearray(parquet(30, compression="zstd", use_dictionary=False))
    begin = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(1).column(0).data_page_offset
    data[begin : begin + 4] = b"\xff" * 4
    source = read_bytes("x.parquet", bytes(data))
    found = list(read_rows(source))
    assert [row.record for row in found] == [*range(10), 10, *range(20, 30)]
    assert [row.record for row in found if row.reason] == [10]
    assert parts_of_rows(source, [begin, begin + 1]) == found


def test_a_broken_footer_is_told_once(read_bytes: Callable[[str, bytes], Any]) -> None:
    source = read_bytes("x.parquet", parquet(30)[:-20])
    assert [row.reason for row in parts_of_rows(source, [20, 40])] == ["malformed_record"]


def ipc_file(values: list[int], stream: bool = False, batch: int = 2) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"n": values, "t": [f"text {n}\0" for n in values]})
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=batch)
    return sink.getvalue()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", ["data-00000-of-00001.arrow", "unknown"])
def test_arrow_files_and_streams_are_rows_by_ordinal(rows: Rows, stream: bool, name: str) -> None:
    found = rows(name, ipc_file([7, 8, 9], stream))
    assert told(found) == [(n, {"n": 7 + n, "t": f"text {7 + n}"}) for n in range(3)]


@pytest.mark.parametrize("stream", [True, False])
def test_a_cut_arrow_file_ends_in_one_fault(rows: Rows, stream: bool) -> None:
    data = ipc_file(list(range(100)), stream, batch=10)
    for cut in range(1, len(data) - 20, 97):
        found = rows("x.arrow", data[:cut])
        assert [row.reason for row in found if row.reason] in ([], ["malformed_record"])
        assert [row.record for row in found] == list(range(len(found)))


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    form=st.sampled_from(["file", "stream", "parquet"]),
    edits=st.lists(st.tuples(st.integers(0, 3_000), st.binary(min_size=1, max_size=4)), max_size=4),
)
def test_a_damaged_table_of_columns_never_crashes(
    rows: Rows, form: str, edits: list[tuple[int, bytes]]
) -> None:
    data = bytearray(
        parquet(30) if form == "parquet" else ipc_file(list(range(30)), form == "stream")
    )
    for position, replacement in edits:
        at = position % len(data)
        data[at : at + len(replacement)] = replacement[: len(data) - at]
    found = rows("x.parquet" if form == "parquet" else "x.arrow", bytes(data))
    assert len({row.record for row in found}) == len(found)


@pytest.mark.parametrize("depth", [201, 600, 800, 950, 970, 3_000])
def test_a_row_that_is_nested_too_deeply_is_one_bad_row(rows: Rows, depth: int) -> None:
    deep = '{"text": "a\\u0000b", "m": ' + "[" * depth + "]" * depth + "}"
    lines = "\n".join(['{"text": "good"}', deep, '{"text": "good"}'])
    assert [row.reason for row in rows("x.jsonl", lines.encode())] == [None, "malformed_json", None]
    if depth < 900:  # Beyond, Python reads nothing of a file that is one value.
        found = rows("x.json", f'[{{"text": "good"}}, {deep}]'.encode())
        assert [row.reason for row in found] == [None, "malformed_json"]


def test_a_row_nested_to_the_limit_is_read(rows: Rows) -> None:
    deep = '{"text": "a\\u0000b", "m": ' + "[" * 198 + "{}" + "]" * 198 + "}"
    assert [row.reason for row in rows("x.jsonl", deep.encode())] == [None]


def test_bytes_that_are_no_utf8_are_replaced_up_to_a_share(rows: Rows) -> None:
    line = b'{"k\xff": "' + b"a" * 88 + b'\xc3(\xed\xa0\x80"}'  # 5 bad bytes of 104 characters
    (row,) = rows("x.jsonl", line, RowLimits(undecodable_share=0.05))
    assert (row.value, row.repaired) == ({"k\ufffd": "a" * 88 + "\ufffd(" + "\ufffd" * 3}, 5)
    assert told(rows("x.jsonl", line, RowLimits(undecodable_share=0.04))) == [(0, "undecodable")]
    broken = b'{"a": 1\xff}' + b" " * 100
    (row,) = rows("x.jsonl", broken, RowLimits(undecodable_share=0.05))
    assert row.reason == "malformed_json"


def test_a_row_counts_what_was_dropped_or_replaced(rows: Rows) -> None:
    (row,) = rows("x.jsonl", b'{"a\\u0000": ["\\ud800x", "\\ud83d\\ude00"]}')
    assert row.repaired == 2
    assert [row.repaired for row in rows("x.json", b'[{"a": "\\u0000"}, {"a": "b"}]')] == [1, 0]
