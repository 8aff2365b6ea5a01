from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from copies_by_hand import copies, folder
from gopher_rows import NO_RULES, document, quality
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from artifacts_schema.errors import UsageError
from stages.filter.config import Criterion, DuplicatesPolicy
from stages.filter.decide import decision_order, priority_keys

Make = Callable[..., Any]
TEXTS = {"a": "12345", "b": "1234567", "c": "123", "d": "1234567"}
DATES = {
    "a": "2024-05-01",
    "b": None,
    "c": "2023-01-01T10:00:00Z",
    "d": "2024-05-01T00:00:00+02:00",
}
SOURCES = {"a": "web", "b": "books", "c": "code", "d": "web"}
SNAPSHOTS = {"a": "crawl-1", "b": "crawl-2", "c": "crawl-1", "d": "crawl-3"}
SCORES = {"a": 0.5, "b": None, "c": 0.9, "d": 0.5}


@pytest.fixture
def equal(given: Make, make_documents: Make) -> dict[str, Any]:
    """Four documents that say the same, in two shards."""
    rows = [
        {**document(d, TEXTS[d], SOURCES[d]), "date": DATES[d], "snapshot": SNAPSHOTS[d]}
        for d in "abcd"
    ]
    documents = make_documents([rows[:1], rows[1:]])
    tables = {"00000.parquet": "a", "00001.parquet": "bcd"}
    signals = {p: [quality(d, fine=SCORES[d]) for d in ids] for p, ids in tables.items()}
    classes: Any = {
        f"{folder(documents)}/{p}": [(d, "a", []) for d in ids] for p, ids in tables.items()
    }
    return {
        "documents": documents,
        "signals": given("signals", signals),
        "duplicates": copies(given, classes),
    }


@pytest.mark.parametrize(
    ("priority", "stays"),
    [
        ([], "a"),
        ([{"by": "source", "order": ["code", "books"]}], "c"),
        ([{"by": "source", "order": ["nowhere"]}], "a"),
        ([{"by": "snapshot", "order": ["crawl-3", "crawl-2"]}], "d"),
        ([{"by": "length"}], "b"),
        ([{"by": "quality", "signal": "fine"}], "c"),
        # Midnight at +02:00 lies before midnight at UTC; the unknown date comes last both ways.
        ([{"by": "date", "first": "latest"}], "a"),
        ([{"by": "date", "first": "earliest"}], "c"),
        ([{"by": "source", "order": ["web"]}, {"by": "length"}], "d"),
        ([{"by": "length"}, {"by": "date", "first": "latest"}], "d"),
        ([{"by": "source", "order": ["web"]}, {"by": "quality", "signal": "fine"}], "a"),
    ],
)
def test_of_copies_the_one_stays_that_the_criteria_want(
    equal: Any, decide: Any, priority: Any, stays: str
) -> None:
    config = {**NO_RULES, "duplicates": {"priority": priority}}
    _, kept, told = decide(config, **equal)
    assert [row["doc_id"] for row in kept] == [stays]
    assert {told[d]["partner"] for d in "abcd" if d != stays} == {stays}


def test_lengths_are_those_of_the_texts_where_no_signal_counts_them(
    equal: Any, decide: Any
) -> None:
    config = {**NO_RULES, "duplicates": {"priority": [{"by": "length"}]}}
    _, kept, _ = decide(config, documents=equal["documents"], duplicates=equal["duplicates"])
    assert [row["doc_id"] for row in kept] == ["b"]


def test_a_signal_that_was_not_measured_is_named(equal: Any, decide: Any) -> None:
    config = {**NO_RULES, "duplicates": {"priority": [{"by": "quality", "signal": "edu_score"}]}}
    with pytest.raises(UsageError, match="'edu_score'") as error:
        decide(config, **equal)
    assert error.value.hint == "give `signals` a classifier named 'edu'"
    without = {role: equal[role] for role in ("documents", "duplicates")}
    with pytest.raises(UsageError, match="signal 'edu_score'") as error:
        decide(config, **without)
    assert error.value.hint == "connect the signals of the documents"


@pytest.mark.parametrize(
    ("criterion", "told"),
    [
        ({"by": "source"}, "`by: source` needs `order`"),
        ({"by": "snapshot", "order": []}, "`by: snapshot` needs `order`"),
        ({"by": "quality"}, "`by: quality` needs `signal`"),
        ({"by": "date"}, "`by: date` needs `first`"),
        ({"by": "length", "signal": "x"}, "`signal` says nothing about `by: length`"),
        ({"by": "quality", "signal": "x", "first": "latest"}, "`first` says nothing about"),
        ({"by": "source", "order": ["a", "a"]}, "`order` names one twice"),
        ({"by": "size"}, "input should be 'source'"),
        ({"by": "length", "ordre": ["a"]}, "did you mean 'order'?"),
    ],
)
def test_criteria_that_say_too_little_or_too_much_are_refused(criterion: Any, told: str) -> None:
    with pytest.raises(UsageError) as error:
        DuplicatesPolicy.parse({"priority": [criterion]}, where="test")
    assert told in error.value.what


def test_dates_of_every_precision_are_compared() -> None:
    dates = ["2024", "2024-05", "2024-05-01T10:00:00", "2023-12-31", "May 2024", None, "20240601"]
    rows = pa.table({"date": pa.array(dates, pa.string())})
    (keys,) = priority_keys(
        [Criterion(by="date", first="earliest")], rows, None, lambda: np.empty(0, np.int64)
    )
    assert np.argsort(keys, kind="stable").tolist() == [3, 0, 1, 2, 6, 4, 5]
    assert np.isinf(keys[[4, 5]]).all()


@settings(max_examples=50, deadline=None)
@drawn(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=12), st.integers(0, 12))
def test_the_order_is_that_of_the_first_criterion_that_differs(
    rows: list[tuple[int, int]], cut: int
) -> None:
    keys = np.array(rows, dtype=float).reshape(-1, 2).T
    order = decision_order([keys[:, :cut], keys[:, cut:]], 2).tolist()
    assert order == sorted(range(len(rows)), key=lambda row: (*rows[row], row))
    assert decision_order([np.empty((0, len(rows)))], 0).tolist() == list(range(len(rows)))
