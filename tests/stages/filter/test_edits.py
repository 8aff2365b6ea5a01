from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from artifacts_schema.kinds import KINDS
from stages.filter.edits import Edit, apply, edits_by_row, joined

SPANS = KINDS["views"].tables["*.parquet"].arrow().field("spans").type


def span(view: str, start: int, end: int, replacement: str) -> dict[str, object]:
    return {"view": view, "start": start, "end": end, "label": "x", "replacement": replacement}


def test_spans_of_the_chosen_views_are_replaced_by_character() -> None:
    text = "Grüße an ada@example.net und 8.8.8.8 😀!"
    rows = [
        [],
        [
            span("line_rules", 0, 5, ""),
            span("personal_data", 9, 24, "email@example.com"),
            span("personal_data", 29, 36, "192.0.2.1"),
        ],
        [span("line_rules", 0, 1, "")],
    ]
    found = edits_by_row(pa.chunked_array([pa.array(rows, SPANS)]), ("personal_data",))
    assert list(found) == [1]
    assert apply(text, found[1]) == "Grüße an email@example.com und 192.0.2.1 😀!"


def test_overlapping_spans_are_one_edit_that_hides_all_of_them() -> None:
    edits = joined([Edit(4, 8, "B"), Edit(2, 6, "A"), Edit(8, 9, "C"), Edit(3, 4, "D")])
    assert edits == [Edit(2, 8, "A"), Edit(8, 9, "C")]
    assert apply("0123456789", edits) == "01AC9"


@given(
    st.text(max_size=20),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted), max_size=6),
)
def test_what_lies_in_no_span_stays_and_nothing_else(text: str, spans: list[list[int]]) -> None:
    edits = [Edit(min(a, len(text)), min(b, len(text)), "") for a, b in spans]
    hidden = {i for edit in edits for i in range(edit.start, edit.end)}
    expected = "".join(c for i, c in enumerate(text) if i not in hidden)
    assert apply(text, joined(edits)) == expected
