"""Rows and faults of data files, at their offsets."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.engine.reading.rows import Row, RowLimits, metadata_json, read_rows, scrub, stem

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
