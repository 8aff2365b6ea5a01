"""Canonical JSON, keys, digests: equal meaning gives equal bytes, the unstable is refused."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.identity import artifact_key, canonical_json, document_id, files_digest

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(plain)
@settings(max_examples=200, deadline=None)
def test_canonical_json_survives_a_round_trip(value):
    once = canonical_json(value)
    assert canonical_json(json.loads(once)) == once


@given(st.dictionaries(st.text("abc", max_size=4), st.integers(), max_size=6), st.randoms())
@settings(max_examples=50, deadline=None)
def test_the_order_of_keys_does_not_matter(value, random):
    items = list(value.items())
    random.shuffle(items)
    assert canonical_json(dict(items)) == canonical_json(value)


def test_one_and_one_point_zero_are_one_value():
    assert canonical_json({"x": 1.0}) == canonical_json({"x": 1}) == b'{"x":1}'
    assert canonical_json(True) != canonical_json(1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, {1, 2}, b"x", object()])
def test_what_has_no_stable_form_is_refused(value):
    with pytest.raises(TypeError):
        canonical_json({"a": value})


def test_a_key_is_the_sha256_of_its_payload():
    payload = (
        b'{"config":{"n":2},"inputs":{"documents":["d1","d2"]},"schema":2,"stage":"s","version":3}'
    )
    found = artifact_key("s", 3, {"n": 2}, {"documents": ["d1", "d2"], "absent": []})
    assert found == hashlib.sha256(payload).hexdigest()


def test_a_digest_does_not_depend_on_the_order_of_files():
    a, b = ("a", 1, "00"), ("b", 2, "11")
    assert files_digest([a, b]) == files_digest([b, a]) != files_digest([a])


def test_document_ids_differ_in_each_part():
    ids = {document_id(s, f, r) for s in "ab" for f in "xy" for r in (0, 1, "0")}
    assert len(ids) == 12
    assert all(len(i) == 32 for i in ids)
