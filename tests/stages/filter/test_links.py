"""What the stage takes from duplicates tables, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from copies_by_hand import copies, copy_row, folder, partner
from gopher_rows import NO_RULES, document

from artifacts_schema.errors import CorruptArtifact, InputError, UsageError

Make = Callable[..., Any]


def kept_by(decide: Any, roles: dict[str, Any], **policy: Any) -> tuple[list[str], dict[str, Any]]:
    """Ids of what stays, and the ledger."""
    _, kept, told = decide({**NO_RULES, "duplicates": policy}, **roles)
    return [row["doc_id"] for row in kept], told


@pytest.fixture
def contained(given: Make, make_documents: Make) -> dict[str, Any]:
    """b lies in a (containment 1, similarity .5); c says the same as a, d to the byte."""
    documents = make_documents([[document(d) for d in "abcd"]])
    rows = [
        copy_row("a", "a", [partner("b", 0.5, 1.0)]),
        copy_row("b", "b", [partner("a", 0.5, 1.0)]),
        copy_row("c", "a", [], text="c"),
        copy_row("d", "a", [], text="a"),
    ]
    tables = {f"{folder(documents)}/00000.parquet": rows}
    told = {"statistics.json": {"parameters": {"floor": 0.5, "measure": "containment"}}}
    return {"documents": documents, "duplicates": given("duplicates", {**tables, **told})}


def test_the_measure_is_similarity_or_containment(contained: Any, decide: Any) -> None:
    kept, told = kept_by(decide, contained)
    assert kept == ["a", "b"]
    kept, told = kept_by(decide, contained, measure="containment")
    assert kept == ["a"]
    assert (told["b"]["reason"], told["b"]["value"]) == ("near_duplicate", 1.0)
    assert [told[d]["reason"] for d in "cd"] == ["exact_duplicate"] * 2


def test_exact_is_normalised_or_raw_or_nothing(contained: Any, decide: Any) -> None:
    for exact, expected in (("normalised", "ab"), ("raw", "abc"), (None, "abcd")):
        kept, _ = kept_by(decide, contained, exact=exact, threshold=None)
        assert kept == list(expected)
    _, told = kept_by(decide, contained, exact="raw")
    assert [told[d]["reason"] for d in "cd"] == ["near_duplicate", "exact_duplicate"]
    assert (told["c"]["value"], told["c"]["threshold"]) == (1.0, 0.8)
    for was in (True, False):
        with pytest.raises(UsageError, match=r"duplicates\.exact"):
            kept_by(decide, contained, exact=was)


def test_containment_asks_for_a_floor_of_containment(
    given: Make, make_documents: Make, decide: Any
) -> None:
    documents = make_documents([[document("a")]])
    rows: Any = {f"{folder(documents)}/00000.parquet": [("a", "a", [])]}
    duplicates = copies(given, rows, measure="jaccard")
    roles = {"documents": documents, "duplicates": duplicates}
    with pytest.raises(UsageError, match="jaccard") as error:
        kept_by(decide, roles, measure="containment")
    assert error.value.hint == "set dedup.measure to containment"
    assert kept_by(decide, roles, measure="containment", threshold=None)[0] == ["a"]


def test_pairs_that_were_not_verified_are_refused_or_accepted(
    given: Make, make_documents: Make, decide: Any
) -> None:
    documents = make_documents([[document(d) for d in "abc"]])
    rows = [("a", "a", [("b", None)]), ("b", "b", [("a", None)]), ("c", "a", [])]
    duplicates = copies(given, {f"{folder(documents)}/00000.parquet": rows})
    roles = {"documents": documents, "duplicates": duplicates}
    with pytest.raises(UsageError, match="2 listed pairs") as error:
        kept_by(decide, roles)
    assert "duplicates.unverified to accept" in (error.value.hint or "")
    kept, told = kept_by(decide, roles, unverified="accept")
    assert kept == ["a"]
    assert (told["b"]["reason"], told["b"]["value"], told["b"]["threshold"]) == (
        "near_duplicate", None, 0.8,
    )  # fmt: skip
    # Nothing is decided by similarity, so nothing need be verified; only equality connects.
    _, kept_rows, _ = decide({**NO_RULES, "duplicates": {"threshold": None}}, **roles)
    assert [(row["doc_id"], row["duplicate_class"]) for row in kept_rows] == [
        ("a", "a"), ("b", "b"),
    ]  # fmt: skip


def test_each_documents_input_is_covered_by_one_of_several_duplicates(
    given: Make, make_documents: Make, decide: Any
) -> None:
    one = make_documents([[document("a")], [document("b")]])
    two = make_documents([[document("c")]])
    of_one: Any = {f"{folder(one)}/0000{n}.parquet": [(d, "a", [])] for n, d in enumerate("ab")}
    of_two = {f"{folder(two)}/00000.parquet": [("c", "c", [("x", 0.9)])]}
    first, second = copies(given, of_one), copies(given, of_two)
    roles: dict[str, Any] = {"documents": [one, two], "duplicates": [second, first]}
    assert kept_by(decide, roles)[0] == ["a", "c"]  # x is at hand nowhere, and no document kept.
    with pytest.raises(InputError, match=r"duplicates.*given_documents") as error:
        kept_by(decide, {**roles, "duplicates": first})
    assert two[0].key[:12] in error.value.what
    twice = copies(given, {**of_one, **of_two})
    with pytest.raises(InputError, match="duplicates") as error:
        kept_by(decide, {**roles, "duplicates": [first, twice, second]})
    assert one[0].key[:12] in error.value.what
    partly = copies(given, {**dict(list(of_one.items())[:1]), **of_two})
    with pytest.raises(InputError, match=r"duplicates.*given_documents"):
        kept_by(decide, {**roles, "duplicates": partly})
    shifted = copies(given, {**of_one, f"{folder(two)}/00000.parquet": [("z", "z", [])]})
    with pytest.raises(CorruptArtifact, match="duplicates"):
        kept_by(decide, {**roles, "duplicates": shifted})
    longer = copies(given, {**of_one, f"{folder(two)}/00000.parquet": []})
    with pytest.raises(CorruptArtifact, match="duplicates"):
        kept_by(decide, {**roles, "duplicates": longer})


def test_tables_of_other_documents_connect(given: Make, make_documents: Make, decide: Any) -> None:
    """c and d lie far apart, but through a and b of a snapshot that was retired they are a class.

    e is a's text, f is near b: by a~b they are near copies, though neither row says so.
    """
    old = make_documents([[document("a"), document("b")]])
    new = make_documents([[document(d) for d in "cdef"]])
    of_old = {
        f"{folder(old)}/00000.parquet": [("a", "a", [("b", 0.9)]), ("b", "b", [("a", 0.9)])],
    }
    of_new = {
        f"{folder(new)}/00000.parquet": [
            ("c", "c", [("a", 0.6)]),
            ("d", "d", [("b", 0.6)]),
            ("e", "a", []),
            ("f", "b", []),
        ],
    }
    duplicates = [copies(given, of_old), copies(given, of_new)]
    _, kept, told = decide(NO_RULES, documents=new, duplicates=duplicates)
    assert [(row["doc_id"], row["duplicate_class"]) for row in kept] == [
        ("c", "a"), ("d", "a"), ("e", "a"),
    ]  # fmt: skip
    assert (told["f"]["reason"], told["f"]["partner"]) == ("near_duplicate", "e")
    _, kept, _ = decide(NO_RULES, documents=new, duplicates=duplicates[1])
    assert [(row["doc_id"], row["duplicate_class"]) for row in kept] == [
        ("c", "a"), ("d", "b"), ("e", "a"), ("f", "b"),
    ]  # fmt: skip
