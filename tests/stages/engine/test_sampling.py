"""What a page reads of a large output: a bounded and even choice of its tables."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from artifacts_schema.file_table import File
from artifacts_schema.store import Store
from stages.engine import Input
from stages.engine.sampling import (
    MOST_ROWS,
    MOST_TABLES,
    named_alike,
    sample_note,
    sampled,
    sampled_groups,
)


@pytest.fixture(scope="module")
def output_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Input]:
    """`output_of([rows, …])` → an output with a table of so many rows each, and a file of JSON."""
    backend = Store.open(str(tmp_path_factory.mktemp("store"))).backend

    def make(rows: list[int]) -> Input:
        held = [*rows, None]
        names = [*(f"{n:06d}.parquet" for n in range(len(rows))), "statistics.json"]
        files = tuple(
            File(path=path, bytes=1, sha256="0" * 64, rows=count)
            for path, count in zip(names, held, strict=True)
        )
        return Input(backend, "folder", "stage", "key", "output", "documents", "digest", files)

    return make


def test_long_tables_are_sampled_evenly(
    make_documents: Callable[..., Any], read_input: Callable[..., Input]
) -> None:
    """Ten row groups of ten rows: of 50 rows, every second group."""
    given = make_documents([[f"{s} {n}" for n in range(10)] for s in range(10)])
    documents = read_input(*given)
    groups = list(sampled_groups([documents], ["text"], most=50))
    assert [group["text"][0].as_py() for group in groups] == ["0 0", "2 0", "4 0", "6 0", "8 0"]
    assert sum(map(len, sampled_groups([documents], ["text"], most=100))) == 100


@drawn(st.integers(0, 3 * MOST_TABLES), st.integers(1, MOST_ROWS // 8))
def test_as_many_tables_as_the_bounds_allow_at_even_distances(
    output_of: Callable[..., Input], tables: int, rows: int
) -> None:
    whole = output_of([rows] * tables)
    part = sampled(whole)
    places = [int(Path(path).stem) for path in part.paths("*.parquet")]
    assert len(places) == min(tables, MOST_TABLES, MOST_ROWS // rows)
    gaps = {after - before for before, after in pairwise([*places, tables])}
    assert not gaps or max(gaps) - min(gaps) <= 1
    assert part.has("statistics.json")
    assert (part is whole) == (len(places) == tables)


def test_a_table_beyond_the_bound_is_read_nevertheless(output_of: Callable[..., Input]) -> None:
    """Row groups of it are chosen where a distribution is measured."""
    part = sampled(output_of([3 * MOST_ROWS, 10, 10]))
    assert part.paths("*.parquet") == ["000000.parquet"]


def test_tables_of_the_same_rows_go_together(output_of: Callable[..., Input]) -> None:
    others = ["0a18c0ffee00/000002.parquet", "00-000003.parquet", "statistics.json"]
    beside = named_alike(output_of([1] * 5), others)
    assert beside.paths("*.parquet") == ["000002.parquet", "000003.parquet"]


def test_a_note_says_how_much_was_measured() -> None:
    assert sample_note(5, 5) == ""
    assert sample_note(5, 1234, "rows") == "Measured on 5 of 1,234 rows, taken evenly."
