"""Repeated URLs are counted across shards, whatever is compared at once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.ingest.shards import url_key, url_repeats


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("http://a.example/b", "https://A.EXAMPLE:443/b#part", True),
        ("http://a.example:80", "http://a.example/", True),
        ("http://a.example/b", "http://a.example/B", False),
        ("http://a.example/b?x=1", "http://a.example/b", False),
        ("http://a.example:8080/", "http://a.example/", False),
        ("src/a.py", "src/a.py", True),
        ("src/A.py", "src/a.py", False),
    ],
)
def test_addresses_of_one_page_have_one_key(one: str, two: str, same: bool) -> None:
    assert (url_key(one) == url_key(two)) is same


def test_no_url_has_no_key() -> None:
    assert url_key(None) == url_key("") == 0


@given(
    st.lists(st.lists(st.integers(0, 6), max_size=12), max_size=5),
    st.integers(1, 40),
)
def test_repeats_are_those_of_a_plain_count(shards: list[list[int]], at_once: int) -> None:
    seen: Counter[int] = Counter()
    expected = []
    for shard in shards:
        rows = {}
        for row, key in enumerate(shard):
            if key and seen[key]:
                rows[row] = seen[key]
            seen[key] += 1
        expected.append(rows)
    keys = [np.array(shard, dtype=np.uint64) for shard in shards]
    assert url_repeats(keys, at_once) == expected
