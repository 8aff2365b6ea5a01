from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.filter import document_ids
from stages.filter.copies import LocalMaps
from stages.filter.links import leave_links, leave_named_links
from stages.filter.matching import LinkFiles, MatchedNames, match_names, number_ranges
from stages.filter.sidecars import AlignedShard


def names(*numbers: int) -> pa.StringArray:
    found = [hashlib.md5(str(number).encode()).hexdigest() for number in numbers]
    return pa.array(found, pa.string())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=6), st.integers(0, 3))
def test_ids_differ_when_none_is_there_twice(numbers: list[int], start: int) -> None:
    expected = len(set(numbers[start:])) == len(numbers[start:])
    assert document_ids.all_differ([names(*numbers).slice(start)]) == expected


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=3), max_size=5))
def test_ids_of_any_length_are_told_apart(given_names: list[str]) -> None:
    expected = len(set(given_names)) == len(given_names)
    assert document_ids.all_differ([pa.array(given_names, pa.string())]) == expected


def test_equal_numbers_of_different_ids_are_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(document_ids, "_FACTORS", document_ids._FACTORS * 0)
    assert document_ids.all_differ([names(1, 2, 3)])
    assert not document_ids.all_differ([names(1, 2), names(1)])


class FakeShard:
    """Some ids in row groups of three."""

    def __init__(self, ids: list[str]) -> None:
        self.ids, self.rows = ids, len(ids)

    def row_groups(self, columns: list[str]):
        assert columns == ["doc_id"]
        for start in range(0, self.rows, 3):
            yield pa.table({"doc_id": pa.array(self.ids[start : start + 3], pa.string())})


def ids_of(*shards: list[str]) -> document_ids.DocumentIds:
    return document_ids.DocumentIds(tuple(FakeShard(ids) for ids in shards))  # type: ignore[misc]


texts = st.one_of(
    st.integers(0, 30).map(lambda n: hashlib.md5(str(n).encode()).hexdigest()), st.text(max_size=2)
)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.lists(texts, max_size=8), max_size=4),
    st.lists(texts, unique=True),
    st.integers(1, 5),
    st.data(),
)
def test_documents_by_number_are_those_of_a_list(shards, wanted, least_rows, data):
    """Whatever the shards, row groups and batches are; also ids that are no 32 digits."""
    with mock.patch.object(document_ids, "_LEAST_ROWS", least_rows):
        check_against_a_list(shards, wanted, data)


def check_against_a_list(shards, wanted, data):
    every = [one for shard in shards for one in shard]
    ids = ids_of(*shards)
    assert len(ids) == len(every)
    for least in (1, 4, 100):
        batches = list(ids.batches(least))
        assert [one for _, batch in batches for one in batch.to_pylist()] == every
        assert [start for start, _ in batches] == list(
            np.cumsum([0, *(len(batch) for _, batch in batches)])[:-1]
        )
    names = pa.array(wanted, pa.string())
    if len(set(every)) == len(every):
        rows = ids.rows_of(names).tolist()
        assert rows == [every.index(one) if one in every else -1 for one in wanted]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(texts, max_size=8), max_size=4),
    st.lists(st.lists(texts, unique=True, max_size=8), max_size=3),
    st.sampled_from([1 << 30, 300, 64]),
    st.booleans(),
)
def test_names_are_matched_with_documents_of_any_shard(shards, wanted, memory, collide):
    """Names without a document have one number each, whichever shard refers to them.

    With `collide` every id of 32 digits has the same first number.
    """
    factors = document_ids._FACTORS * (0 if collide else 1)
    with mock.patch.object(document_ids, "_FACTORS", factors), TemporaryDirectory() as folder:
        maps = LocalMaps(Path(folder))
        items = [AlignedShard(f"{n}", (), (), None, FakeShard(ids)) for n, ids in enumerate(shards)]
        left = maps(lambda item, out: leave_links(item, out, "similarity"), items)
        starts = np.cumsum([0, *map(len, shards)])
        files = [
            LinkFiles.from_result(one, int(start)) for one, start in zip(left, starts, strict=False)
        ]
        named = maps(leave_names, [Names(f"{n}", names) for n, names in enumerate(wanted)])
        files += [LinkFiles.from_result(one, 0, numbered=False) for one in named]
        every = [one for shard in shards for one in shard]
        ranges = number_ranges(len(every), memory)
        assert len(ranges) == max(1, -(-len(every) * 64 // memory))
        if len(set(every)) < len(every):
            with pytest.raises(InputError, match="same doc_id"):
                maps(match_names, ranges, files=files)
            return
        matched = MatchedNames(ranges, maps(match_names, ranges, files=files), len(every))
        beyond: dict[str, int] = {}
        for result in (*left, *named):
            names = result.read_scratch("names")
            nodes = matched.read(names["number"].to_numpy()).tolist()
            for name, node in zip(names["doc_id"].to_pylist(), nodes, strict=True):
                if name in every:
                    assert node == every.index(name)
                else:
                    assert beyond.setdefault(name, node) == node
        assert sorted(beyond.values()) == list(range(len(every), matched.nodes))


@dataclass(frozen=True)
class Names:
    id: str
    names: list[str]


def leave_names(item, out):
    names = pa.chunked_array([pa.array(item.names, pa.string())])
    leave_named_links(out, (0,), [names], [names], {})


def test_a_file_of_matches_that_was_cut_is_refused(tmp_path):
    maps = LocalMaps(tmp_path)
    (named,) = maps(leave_names, [Names("0", names(1, 2, 3).to_pylist())])
    ranges = number_ranges(3, 1 << 30)
    files = [LinkFiles.from_result(named, 0, numbered=False)]
    results = maps(match_names, ranges, files=files)
    path = results[0].scratch_path("nodes")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptArtifact, match="byte 24"):
        MatchedNames(ranges, results, 0).read(named.read_scratch("names")["number"].to_numpy())
