from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
