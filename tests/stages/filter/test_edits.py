from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.kinds import KINDS
from stages.filter.edits import Edit, Spans, apply_edits, leaves_nothing, select_edits

SPANS = KINDS["views"].tables["*.parquet"].arrow().field("spans").type
Span = dict[str, Any]


def span(view: str, start: int, end: int, replacement: str = "", label: str = "x") -> Span:
    return {
        "view": view,
        "start": start,
        "end": end,
        "label": label,
        "replacement": replacement,
    }


def rows_of(*rows: list[Span]) -> Spans:
    return Spans.from_columns(pa.chunked_array([pa.array(list(rows), SPANS)]))


def test_spans_of_the_chosen_views_are_replaced_by_character() -> None:
    text = "Grüße an ada@example.net und 8.8.8.8 😀!"
    rows = rows_of(
        [],
        [
            span("line_rules", 0, 5),
            span("personal_data", 9, 24, "email@example.com"),
            span("personal_data", 29, 36, "192.0.2.1"),
        ],
        [span("line_rules", 0, 1)],
    )
    found = select_edits(rows, ("personal_data",))
    assert found.counts.tolist() == [0, 2, 0]
    assert apply_edits(text, found.for_row(1)) == "Grüße an email@example.com und 192.0.2.1 😀!"
    both = select_edits(rows, ("personal_data", "line_rules"))
    assert apply_edits(text, both.for_row(1)) == " an email@example.com und 192.0.2.1 😀!"
    assert select_edits(rows, ()).counts.tolist() == [0, 0, 0]


def test_overlapping_spans_are_one_edit_that_hides_all_of_them() -> None:
    row = [
        span("v", 4, 8, "B"), span("v", 2, 6, "A"), span("v", 8, 9, "C"), span("v", 3, 4, "D"),
    ]  # fmt: skip
    edits = select_edits(rows_of(row), ["v"]).for_row(0)
    assert edits == [Edit(2, 8, "A"), Edit(8, 9, "C")]
    assert apply_edits("0123456789", edits) == "01AC9"


def test_of_spans_that_begin_together_the_longer_then_the_first_view_decides() -> None:
    row = [span("b", 0, 4, "B"), span("a", 0, 4, "A"), span("a", 5, 6, "a"), span("b", 5, 9, "b")]
    assert [edit.replacement for edit in select_edits(rows_of(row), ["a", "b"]).for_row(0)] == [
        "A",
        "b",
    ]
    assert [edit.replacement for edit in select_edits(rows_of(row), ["b", "a"]).for_row(0)] == [
        "B",
        "b",
    ]


def test_spans_of_one_row_do_not_reach_into_the_next() -> None:
    rows = rows_of([span("v", 0, 100)], [span("v", 1, 2)], [], [span("v", 0, 1), span("v", 1, 3)])
    found = select_edits(rows, ["v"])
    assert [[(e.start, e.end) for e in found.for_row(row)] for row in range(4)] == [
        [(0, 100)], [(1, 2)], [], [(0, 1), (1, 3)],
    ]  # fmt: skip


def test_sorts_of_personal_data_that_are_kept_are_left_alone() -> None:
    row = [
        span("personal_data", 0, 1, "", "email"),
        span("personal_data", 2, 3, "", "phone"),
        span("secrets", 4, 5, "", "aws_key"),
        span("mojibake", 6, 7, "", "email"),
    ]
    views = ("personal_data", "secrets", "mojibake")

    def places(*keep: str) -> list[int]:
        return [edit.start for edit in select_edits(rows_of(row), views, keep).for_row(0)]

    assert places() == [0, 2, 4, 6]
    assert places("email") == [2, 4, 6]
    assert places("secret", "phone") == [0, 6]


def test_rows_that_are_only_cut_may_be_left_empty() -> None:
    rows = rows_of(
        [span("v", 0, 3), span("v", 4, 6, " ")], [span("v", 0, 3, "x")], [], [span("v", 1, 2)]
    )
    found = select_edits(rows, ["v"])
    assert found.only_cut().tolist() == [0, 3]
    assert leaves_nothing("abc de\n", found.for_row(0))
    assert not leaves_nothing("abc dex", found.for_row(0))
    assert not leaves_nothing("xb ", found.for_row(3))
    assert leaves_nothing(" b ", found.for_row(3))


TEXTS = st.lists(
    st.tuples(
        st.text(max_size=20),
        st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted), max_size=6),
    ),
    max_size=5,
)


@settings(max_examples=60, deadline=None)
@given(TEXTS)
def test_what_lies_in_no_span_stays_and_nothing_else(texts: list[tuple[str, Any]]) -> None:
    rows = [
        [span("v", min(a, len(text)), min(b, len(text))) for a, b in spans] for text, spans in texts
    ]
    found = select_edits(rows_of(*rows), ["v"])
    for row, (text, _) in enumerate(texts):
        hidden = {i for given in rows[row] for i in range(given["start"], given["end"])}
        expected = "".join(c for i, c in enumerate(text) if i not in hidden)
        assert apply_edits(text, found.for_row(row)) == expected
        assert leaves_nothing(text, found.for_row(row)) == (not expected.strip())
