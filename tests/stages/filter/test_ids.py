from __future__ import annotations

import hashlib
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import InputError
from stages.filter import document_ids


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
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(every), max_size=len(every))))
    names = pa.array(wanted, pa.string())
    among = ids.kept_among(names, kept.astype(bool)).to_pylist()
    stays = {one for one, stay in zip(every, kept, strict=True) if stay}
    assert set(among) == stays & set(wanted)
    if len(set(every)) < len(every):
        with pytest.raises(InputError, match="same doc_id"):
            ids.check_different()
        return
    ids.check_different()
    rows = ids.rows_of(names).tolist()
    assert rows == [every.index(one) if one in every else -1 for one in wanted]
    chosen = np.array(sorted(row for row in rows if row >= 0), dtype=np.int64)
    assert ids.at(chosen).to_pylist() == [every[row] for row in chosen]


@pytest.mark.parametrize("twice", [False, True])
def test_ids_are_compared_in_parts_where_they_are_many(monkeypatch, twice):
    monkeypatch.setattr(document_ids, "AT_ONCE", 7)
    ids = names(*range(40)).to_pylist()
    many = ids_of(ids[:20], ids[20:] + ids[:1] * twice)
    if twice:
        with pytest.raises(InputError, match="same doc_id"):
            many.check_different()
    else:
        many.check_different()
