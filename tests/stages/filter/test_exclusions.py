"""Sorted lists name the ids that pyarrow's `is_in` names, whatever they hold."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given as draw
from hypothesis import strategies as st

from artifacts_schema.identity import document_id
from artifacts_schema.kinds import KINDS
from stages.engine import Context, Many, Stage
from stages.filter import exclusions
from stages.filter.exclusions import Exclusions

IDS = [document_id("s", str(number), "text") for number in range(40)]
NAMES = st.sampled_from([*IDS, "", "page 7", "é" * 32, "x" * 32])
LISTS = st.lists(st.lists(NAMES, max_size=12), max_size=5)


class Held:
    """Lists as inputs hold them, a table each."""

    def __init__(self, lists):
        self.lists = lists
        self.files = [File(f"{n}.parquet", len(one)) for n, one in enumerate(lists)]

    def read_table(self, path, columns):
        names = pa.array(self.lists[int(path.removesuffix(".parquet"))], pa.string())
        return pa.table({"doc_id": names}).select(columns)


class File:
    def __init__(self, path, rows):
        self.path, self.rows = path, rows


def expected(ids, lists):
    among = pa.array([name for one in lists for name in one], pa.string())
    return pc.is_in(pa.array(ids, pa.string()), value_set=among).to_pylist()


@draw(st.lists(NAMES, max_size=30), LISTS)
def test_they_are_those_of_is_in(ids, lists):
    found = Exclusions.read([Held(lists)]).include(pa.chunked_array([pa.array(ids, pa.string())]))
    assert found.tolist() == expected(ids, lists)


@draw(st.lists(NAMES, max_size=30), LISTS)
def test_different_names_of_one_number_are_told_apart(ids, lists):
    """64 bits leave none in practice: here there are three numbers."""
    with pytest.MonkeyPatch.context() as patched:
        count = exclusions.id_numbers
        patched.setattr(exclusions, "id_numbers", lambda names: count(names) % 3)
        found = Exclusions.read([Held(lists)]).include(
            pa.chunked_array([pa.array(ids, pa.string())])
        )
    assert found.tolist() == expected(ids, lists)


def test_short_lists_are_sorted_together_and_long_ones_alone(monkeypatch):
    monkeypatch.setattr(exclusions, "_ROWS_TOGETHER", 5)
    lists = [IDS[:2], IDS[2:4], IDS[4:11], [], IDS[11:12], [IDS[0]]]
    together = Exclusions.read([Held(lists)])
    assert [len(table) for table in together.tables] == [4, 7, 2]
    every = pa.chunked_array([pa.array(IDS, pa.string())])
    assert together.include(every).tolist() == [True] * 12 + [False] * 28


def test_a_shard_reads_names_only_where_a_number_is_equal(run_stage, given, monkeypatch):
    """And every shard the same sorted file."""
    read = []
    names_of = exclusions._names_of
    monkeypatch.setattr(
        exclusions, "_names_of", lambda file, group: read.append(group) or names_of(file, group)
    )

    class Looks(Stage):
        """Looks twice."""

        name, version, reproducible = "looks", 1, "bytes"
        inputs = {"exclusions": Many("exclusions")}
        outputs = {"exclusions": "exclusions"}

        def run(self, context: Context) -> None:
            lists = Exclusions.sort(context)
            for ids, wanted in ((IDS[:3], [True, False, True]), (IDS[20:], [False] * 20)):
                shard = pa.chunked_array([pa.array(ids, pa.string())])
                assert lists.include(shard).tolist() == wanted
            with context.table_writer(
                "exclusions", "0.parquet", KINDS["exclusions"].tables["*.parquet"].arrow()
            ):
                pass

    rows = [{"doc_id": name, "reason": "asked"} for name in (IDS[2], IDS[0], "other")]
    run_stage(Looks, {}, {"exclusions": [given("exclusions", {"0.parquet": rows})]})
    assert read == [0]
