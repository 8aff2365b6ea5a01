"""Parquet and Arrow files that cost more than they give: what is read, and with how much memory."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from stages.engine.reading import columnar
from stages.engine.reading.row import FREE_EXPANSION, RowLimits
from stages.engine.reading.rows import read_rows

LIMITS = RowLimits(row=1_000_000, expansion=20)
MEMORY = 600 << 20
"""Above the libraries' own 80 MB, of what the bombs take: the free 64 MiB, a few times over."""
ROOT = Path(__file__).parents[4]


def parquet(table: pa.Table, **options) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **{"compression": "zstd", **options})
    return sink.getvalue()


def arrow(table: pa.Table, compression: str | None = "zstd", *, stream: bool = False) -> bytes:
    sink = io.BytesIO()
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as out:
        out.write_table(table)
    return sink.getvalue()


def repeated(rows: int, length: int) -> pa.Array:
    """So many rows of one value, which is held once."""
    values = pa.array(["y" * length])
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), values)


def one_value(length: int) -> pa.Table:
    return pa.table({"text": ["x" * length]})


# Thrift's compact protocol, for footers that no writer writes.


def number(value: int) -> bytes:
    out = b""
    while value >= 128:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def listed(field: int, items: list[bytes]) -> bytes:
    return bytes([field << 4 | 9, 0xFC]) + number(len(items)) + b"".join(items)


def footer(schema: list[bytes]) -> bytes:
    """A file of no rows with this schema."""
    meta = b"\x15\x02" + listed(1, schema) + b"\x16\x00" + listed(1, []) + b"\0"
    return b"PAR1" + meta + struct.pack("<I", len(meta)) + b"PAR1"


def group(children: int) -> bytes:
    return b"\x35\x02\x18\x01g\x15" + number(2 * children) + b"\0"


def leaf(name: bytes = b"x") -> bytes:
    return b"\x15\x0c\x25\x02\x18" + number(len(name)) + name + b"\0"


def lying_footer() -> bytes:
    """A bomb whose footer says that its column is small; its page's header tells the truth."""
    data = parquet(one_value(300_000_000), use_dictionary=False)
    size = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).total_uncompressed_size
    wide, narrow = (number(2 * n) for n in (size, 100))
    assert data.count(wide) >= 1
    cut = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    meta = data[cut:-8].replace(b"\x16" + wide, b"\x16" + narrow)
    return data[:cut] + meta + struct.pack("<I", len(meta)) + b"PAR1"


def one_list(items: pa.Array) -> pa.Table:
    """One row that holds all items."""
    return pa.table({"n": pa.ListArray.from_arrays(pa.array([0, len(items)], pa.int32()), items)})


def overlapping() -> bytes:
    """A footer that names one row group a hundred times, so that its bytes count as often."""
    data = parquet(pa.table({"text": ["w" * 500_000] * 3}))
    meta, same = (pq.read_metadata(io.BytesIO(data)) for _ in range(2))
    for _ in range(99):
        meta.append_row_groups(same)
    sink = io.BytesIO()
    meta.write_metadata_file(sink)
    cut = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    return data[:cut] + sink.getvalue()[4:]


def fixed_width() -> bytes:
    text = pa.array([b"y" * 900_000], pa.binary(900_000))
    rows = pa.DictionaryArray.from_arrays(pa.array([0] * 900, pa.int32()), text)
    return parquet(pa.table({"text": rows.dictionary_decode()}), store_schema=False)


FILES = {
    "one_value.parquet": lambda: parquet(one_value(300_000_000), use_dictionary=False),
    "lying_footer.parquet": lying_footer,
    "dictionary.parquet": lambda: parquet(
        pa.table({"text": repeated(2000, 900_000)}), store_schema=False
    ),
    "dictionary_kept.parquet": lambda: parquet(pa.table({"text": repeated(2000, 900_000)})),
    "long_dictionary.parquet": lambda: parquet(
        pa.table({"text": repeated(500, 20_000_000)}),
        dictionary_pagesize_limit=1 << 30,
        store_schema=False,
    ),
    "nested_dictionary.parquet": lambda: parquet(
        pa.table({"text": pa.array([["z" * 100_000] * 300] * 30)})
    ),
    "groups.parquet": lambda: parquet(
        pa.table({"text": pa.array(["w" * 500_000] * 600)}), row_group_size=3
    ),
    "nulls.parquet": lambda: parquet(pa.table({"text": pa.nulls(9_000_000, pa.string())})),
    "deep.parquet": lambda: footer([group(1)] * 100_000 + [leaf()]),
    "wide.parquet": lambda: footer([group(900_000), *(leaf(b"%d" % n) for n in range(900_000))]),
    "columns.parquet": lambda: footer([group(50_000), *(leaf(b"%d" % n) for n in range(50_000))]),
    "list_of_zeros.parquet": lambda: parquet(one_list(pa.array(np.zeros(50_000_000, np.int64)))),
    "list_of_nulls.parquet": lambda: parquet(one_list(pa.nulls(50_000_000, pa.int64()))),
    "second_pages.parquet": lambda: parquet(
        one_list(pa.nulls(50_000_000, pa.int64())), data_page_version="2.0"
    ),
    "texts_in_list.parquet": lambda: parquet(
        one_list(repeated(2_000_000, 900)), store_schema=False
    ),
    "prefixes_in_list.parquet": lambda: parquet(
        one_list(pa.array(["p" * 400_000] * 2_000)),
        use_dictionary=False,
        column_encoding={"text.list.element": "DELTA_BYTE_ARRAY"},
    ),
    "fixed_width.parquet": fixed_width,
    "prefixes.parquet": lambda: parquet(
        pa.table({"text": ["p" * 900_000] * 900}),
        use_dictionary=False,
        column_encoding={"text": "DELTA_BYTE_ARRAY"},
    ),
    "overlapping.parquet": overlapping,
    "list_of_nulls.arrow": lambda: arrow(one_list(pa.nulls(50_000_000)), None),
    "fixed_list.arrow": lambda: arrow(
        pa.table({"n": pa.FixedSizeListArray.from_arrays(pa.nulls(50_000_000), 50_000_000)}), None
    ),
    "list_of_nothing.arrow": lambda: arrow(
        one_list(pa.Array.from_buffers(pa.struct([]), 20_000_000, [None])), None
    ),
    "null_columns.arrow": lambda: arrow(
        pa.table({f"n{n}": pa.nulls(1000) for n in range(20_000)}), None
    ),
    "values.json": lambda: b"[" + b"[]," * 30_000_000 + b"[]]",
    "lines.json": lambda: b"{\n" + b"  \n" * 12_000_000,
    "one_value.arrow": lambda: arrow(one_value(300_000_000)),
    "one_value_lz4.arrow": lambda: arrow(one_value(300_000_000), "lz4"),
    "dictionary.arrow": lambda: arrow(pa.table({"text": repeated(2000, 900_000)})),
    "runs.arrow": lambda: arrow(
        pa.table({"text": pc.run_end_encode(pa.array(["r" * 900_000] * 300))}), stream=True
    ),
    "nested_dictionary.arrow": lambda: arrow(
        pa.table({"text": pa.array([["a"]], pa.list_(pa.dictionary(pa.int32(), pa.string())))})
    ),
}
QUICK = ("lying_footer.parquet", "overlapping.parquet", "deep.parquet", "values.json",
         "nested_dictionary.arrow")  # fmt: skip
"""Those of `make test`: each kind of file, none that takes long to write."""


def of_tier(name: str, *values: Any) -> Any:
    """Parameters of a test of the file `name`."""
    marks = [] if name in QUICK else [pytest.mark.full]
    return pytest.param(name, *values, marks=marks, id=name)


READ = """
import json, os, resource, sys
from collections import Counter
from pathlib import Path
import pyarrow.compute, pyarrow.parquet
from stages.engine.reading.rows import RowLimits, read_rows
from stages.engine.reading import columnar

class File:
    def __init__(self, path):
        self.name, self.bytes, self.open = path.name, path.stat().st_size, lambda: path.open("rb")

for path in map(Path, sys.argv[1:]):
    if (child := os.fork()) == 0:
        reasons = Counter()
        for row in read_rows(File(path), RowLimits(row=1_000_000, expansion=20)):
            reasons[row.reason or "row"] += 1
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        print(json.dumps([path.name, {"peak": peak, **reasons}]), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def is_full(item: pytest.Item) -> bool:
    """Whether it is a test of the full tier alone."""
    return item.get_closest_marker("full") is not None


@pytest.fixture(scope="module")
def told(request, tmp_path_factory) -> dict[str, dict[str, int]]:
    """File → rows, faults by reason, and the peak memory in bytes of the process that read it.

    The files are written by a process of their own, whose memory is not the reader's.
    """
    folder = tmp_path_factory.mktemp("bombs")
    long = any(item.path == request.path and is_full(item) for item in request.session.items)
    paths = [folder / name for name in (FILES if long else QUICK)]
    if (child := os.fork()) == 0:
        try:
            for path in paths:
                path.write_bytes(FILES[path.name]())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    done = subprocess.run(
        [sys.executable, "-c", READ, *map(str, paths)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("name", map(of_tier, FILES))
def test_a_bomb_takes_little_memory(told, name):
    assert told[name]["peak"] < MEMORY


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        of_tier("one_value.parquet", {"expansion": 1}),
        of_tier("lying_footer.parquet", {"expansion": 1}),
        of_tier("dictionary.parquet", {"expansion": 1}),
        of_tier("dictionary_kept.parquet", {"expansion": 1}),
        of_tier("long_dictionary.parquet", {"too_large": 3, "expansion": 1}),
        of_tier("list_of_zeros.parquet", {"expansion": 1}),
        of_tier("list_of_nulls.parquet", {"expansion": 1}),
        of_tier("second_pages.parquet", {"expansion": 1}),
        of_tier("texts_in_list.parquet", {"too_large": 1}),
        of_tier("prefixes_in_list.parquet", {"expansion": 1}),
        of_tier("fixed_width.parquet", {"expansion": 1}),
        of_tier("prefixes.parquet", {"expansion": 1}),
        of_tier("overlapping.parquet", {"malformed_record": 1}),
        of_tier("list_of_nulls.arrow", {"expansion": 1}),
        of_tier("fixed_list.arrow", {"expansion": 1}),
        of_tier("list_of_nothing.arrow", {"expansion": 1}),
        of_tier("null_columns.arrow", {"expansion": 1}),
        of_tier("values.json", {"too_large": 1}),
        of_tier("lines.json", {"malformed_json": 1}),
        of_tier("deep.parquet", {"malformed_record": 1}),
        of_tier("wide.parquet", {"malformed_record": 1}),
        of_tier("columns.parquet", {"too_large": 1}),
        of_tier("one_value.arrow", {"expansion": 1}),
        of_tier("one_value_lz4.arrow", {"expansion": 1}),
        of_tier("dictionary.arrow", {"expansion": 1}),
        of_tier("runs.arrow", {"expansion": 1}),
        of_tier("nested_dictionary.arrow", {}),
    ],
)
def test_a_bomb_is_counted(told, name, faults):
    assert {k: n for k, n in told[name].items() if k not in ("row", "peak")} == faults


@pytest.mark.full
def test_a_repeated_value_is_read_until_the_budget_is_spent(told):
    # A row of 900,000 bytes; the files are of 300 bytes and add nothing. Rows are read by the
    # batch, so the last ones that the budget would have held may be missing.
    most = FREE_EXPANSION // 900_000
    for name in ("dictionary.parquet", "dictionary_kept.parquet", "dictionary.arrow"):
        assert most // 2 <= told[name]["row"] <= most


def test_row_groups_that_overlap_give_no_row(told):
    assert "row" not in told["overlapping.parquet"]


LISTS = {
    "list": pa.list_(pa.null()),
    "large_list": pa.large_list(pa.null()),
    "struct": pa.list_(pa.struct([("a", pa.null())])),
    "empty_struct": pa.list_(pa.struct([])),
    "list_of_lists": pa.list_(pa.list_(pa.null())),
    "map": pa.map_(pa.int8(), pa.null()),
}


@pytest.mark.parametrize("kind", LISTS)
def test_values_that_take_no_bytes_count_in_the_row_that_has_them(read_bytes, kind):
    def row(count: int) -> list:
        if kind == "map":
            return [(n % 100, None) for n in range(count)]
        return [{"struct": {"a": None}, "empty_struct": {}, "list_of_lists": []}.get(kind)] * count

    items = pa.array([row(3), None, row(200), row(0), row(4)], LISTS[kind])
    data = arrow(pa.table({"n": range(5), "items": items}))
    rows = list(read_rows(read_bytes("x.arrow", data), RowLimits(row=1_000)))
    assert [row.reason for row in rows] == [None, None, "too_large", None, None]
    assert [len(row.value["items"] or []) for row in rows if row.value] == [3, 0, 0, 4]


@pytest.mark.parametrize("size", [3, 200])
def test_values_of_fixed_lists_count(read_bytes, size):
    items = pa.array([[None] * size] * 5, pa.list_(pa.null(), size))
    data = arrow(pa.table({"items": items.slice(1)}))
    rows = list(read_rows(read_bytes("x.arrow", data), RowLimits(row=1_000)))
    assert [row.reason for row in rows] == [None if size == 3 else "too_large"] * 4


def test_a_dense_union_is_not_read(read_bytes):
    ids, offsets = pa.array([0] * 4, pa.int8()), pa.array([0] * 4, pa.int32())
    union = pa.UnionArray.from_dense(ids, offsets, [pa.array(["u" * 1000])])
    (row,) = read_rows(read_bytes("x.arrow", arrow(pa.table({"text": union}))), LIMITS)
    assert row.reason == "malformed_record"


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_columns_of_tokens_and_of_messages_are_read(read_bytes, version):
    # A mask of ones takes almost no room in the file; the tokens beside it pay for it.
    draw = np.random.default_rng(7)
    tokens = [draw.integers(0, 30_000, 2_000).tolist() for _ in range(600)]
    table = pa.table(
        {
            "input_ids": pa.array(tokens, pa.list_(pa.int32())),
            "attention_mask": pa.array([[1] * 2_000] * 600, pa.list_(pa.int8())),
            "labels": pa.array([[-100] * 1_000 + one[1_000:] for one in tokens]),
            "messages": [[{"role": "user", "content": f"question {n}"}] * 4 for n in range(600)],
        }
    )
    data = parquet(table, data_page_version=version, row_group_size=200)
    rows = list(read_rows(read_bytes("x.parquet", data)))
    assert [row.value for row in rows] == table.to_pylist()


def test_texts_in_lists_that_may_be_a_bomb_are_measured_and_read(read_bytes):
    """Each row might repeat the whole dictionary 300 times; none does."""
    words = [os.urandom(500).hex() for _ in range(1_000)]
    lists = [[words[(7 * row + item) % 1_000] for item in range(300)] for row in range(6)]
    messages = [
        [{"role": "user", "content": word}, None, {"role": "tool", "content": None}]
        for word in words[:6]
    ]
    table = pa.table({"text": list("abcdef"), "words": lists, "messages": messages})
    data = parquet(table)
    rows = list(read_rows(read_bytes("x.parquet", data)))
    assert [row.value for row in rows] == table.to_pylist()


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_a_row_that_is_too_large_is_one_fault_among_rows(read_bytes, name):
    texts = ["a", "b" * 1_200_000, "c", "d" * 5_000_000, "e" * 900_000]
    table = pa.table({"n": range(5), "text": texts})
    data = parquet(table) if name.endswith("parquet") else arrow(table)
    rows = list(read_rows(read_bytes(name, data), LIMITS))
    assert [row.record for row in rows] == [0, 1, 2, 3, 4]
    assert [row.reason for row in rows] == [None, "too_large", None, "too_large", None]
    assert [row.value["text"][0] for row in rows if row.value] == ["a", "c", "e"]


@pytest.mark.full
def test_a_row_group_that_is_a_bomb_costs_itself_only(read_bytes):
    noise = [os.urandom(100).hex() for _ in range(10)]
    sink = io.BytesIO()
    schema = pa.schema([("text", pa.string())])
    with pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=False) as out:
        for texts in (noise, ["x" * 200_000_000], noise):
            out.write_table(pa.table({"text": texts}, schema=schema))
    rows = list(read_rows(read_bytes("x.parquet", sink.getvalue()), LIMITS))
    assert [row.record for row in rows if row.reason] == [10]
    assert [row.record for row in rows] == list(range(21))


@pytest.mark.parametrize("form", ["dictionary", "view", "runs", "plain"])
def test_every_way_to_hold_a_text_gives_the_same_rows(read_bytes, form):
    texts = ["a", None, "b" * 40, "a", "", "ü\0"] * 30
    column = {
        "dictionary": lambda: pa.array(texts).dictionary_encode(),
        "view": lambda: pa.array(texts, pa.string_view()),
        "runs": lambda: pc.run_end_encode(pa.array(texts)),
        "plain": lambda: pa.array(texts),
    }[form]()
    data = arrow(pa.table({"text": column, "n": range(len(texts))}), None)
    rows = [row.value for row in read_rows(read_bytes("x.arrow", data), LIMITS)]
    assert rows == [{"text": t.replace("\0", "") if t else t, "n": n} for n, t in enumerate(texts)]


def test_a_footer_that_would_fill_the_memory_is_not_read(read_bytes, monkeypatch):
    monkeypatch.setattr(columnar, "MAX_FOOTER", 100)
    data = footer([group(100), *(leaf(b"%d" % n) for n in range(100))])
    rows = list(read_rows(read_bytes("x.parquet", data), LIMITS))
    assert Counter(row.reason for row in rows) == {"too_large": 1}


@pytest.mark.parametrize("seed", range(30))
def test_damaged_page_headers_and_messages_are_faults(read_bytes, seed):
    import random

    draw = random.Random(seed)
    table = pa.table({"text": [f"text {n % 7}" for n in range(50)]})
    for name, whole in (("x.parquet", parquet(table)), ("x.arrow", arrow(table))):
        data = bytearray(whole)
        for _ in range(draw.randrange(1, 6)):
            data[draw.randrange(8, len(data))] = draw.randrange(256)
        for row in read_rows(read_bytes(name, bytes(data)), LIMITS):
            assert row.reason in (None, "malformed_record", "expansion", "too_large")
