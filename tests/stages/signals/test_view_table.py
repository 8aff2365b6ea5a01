"""The views table: rows equal to those that a dictionary for each span would give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.kinds import KINDS
from stages.filter.edits import apply_edits
from stages.signals.config import LINE_VIEWS
from stages.signals.line_views import make_line_views
from stages.signals.outputs import Cuts, Span, make_view_table
from stages.text.batch import split_texts
from tests.stages.signals.line_texts import edited_texts

SCHEMA = KINDS["views"].tables["*.parquet"].arrow()
ROWS = 3
IDS = pa.chunked_array([["a" * 32, "b" * 32], ["c" * 32]])

spans = st.lists(
    st.builds(
        Span,
        st.integers(0, 5),
        st.integers(6, 9),
        st.sampled_from(["email", "ip_address", "nav"]),
        st.sampled_from(["", "\n", "é", "[e-mail]"]),
    ),
    max_size=3,
)
found = st.lists(
    st.fixed_dictionaries({"mojibake": spans, "personal_data": spans, "secrets": spans}),
    min_size=ROWS,
    max_size=ROWS,
)
further = st.lists(
    st.lists(st.tuples(st.sampled_from(["boilerplate", "a", "zz"]), spans), max_size=2).map(
        lambda views: [{"view": v, **span._asdict()} for v, found in views for span in found]
    ),
    min_size=ROWS,
    max_size=ROWS,
)


def cuts(view: str, *rows: tuple[int, int, int, str, str]) -> Cuts:
    """Cuts of (row, start, end, label, replacement)."""
    labels, replacements = ("kept", "policy", "white_space"), ("", "\n")
    return Cuts(
        view,
        np.array([row[0] for row in rows], dtype=np.int64),
        np.array([row[1] for row in rows], dtype=np.int32),
        np.array([row[2] for row in rows], dtype=np.int32),
        np.array([labels.index(row[3]) for row in rows], dtype=np.uint8),
        labels,
        np.array([replacements.index(row[4]) for row in rows], dtype=np.uint8),
        replacements,
    )


@settings(max_examples=100, deadline=None)
@given(found, further, st.booleans())
def test_rows_equal_those_of_dictionaries(
    views: list[dict[str, list[Span]]], more: list[list[dict[str, Any]]], with_further: bool
) -> None:
    given_cuts = [
        cuts("c4@code", (0, 1, 2, "policy", ""), (2, 0, 4, "white_space", "\n")),
        cuts("refinedweb", (2, 3, 8, "policy", "")),
        cuts("c4@fineweb"),
    ]
    expected: list[list[dict[str, Any]]] = []
    for row, by_view in enumerate(views):
        rows = [
            {"view": view, **span._asdict()} for view, listed in by_view.items() for span in listed
        ]
        for cut in given_cuts:
            rows += [
                {
                    "view": cut.view,
                    "start": int(cut.starts[i]),
                    "end": int(cut.ends[i]),
                    "label": cut.label_names[cut.labels[i]],
                    "replacement": cut.replacement_names[cut.replacements[i]],
                }
                for i in np.flatnonzero(cut.text_of == row)
            ]
        rows += more[row] if with_further else []
        expected.append(sorted(rows, key=lambda s: (s["view"], s["start"], s["end"])))
    column = pa.chunked_array([pa.array(more, type=SCHEMA.field("spans").type)])
    table = make_view_table(IDS, views, given_cuts, column if with_further else None)
    assert table.schema == SCHEMA
    assert table["doc_id"].to_pylist() == IDS.to_pylist()
    assert table["spans"].to_pylist() == expected


def test_no_documents_and_no_spans() -> None:
    none = pa.chunked_array([], type=pa.string())
    assert make_view_table(none, []).num_rows == 0
    nothing = [{"mojibake": [], "personal_data": [], "secrets": []}] * ROWS
    assert make_view_table(IDS, nothing)["spans"].to_pylist() == [[]] * ROWS


def test_further_spans_of_a_sliced_column_stay_with_their_rows() -> None:
    span = {"view": "boilerplate", "start": 0, "end": 3, "label": "nav", "replacement": ""}
    column = pa.chunked_array(
        [
            pa.array([[span] * 5, [], [span]], type=SCHEMA.field("spans").type).slice(1),
            pa.array([[span, span]], type=SCHEMA.field("spans").type),
        ]
    )
    table = make_view_table(IDS, [{}] * ROWS, (), column)
    assert table["spans"].to_pylist() == [[], [span], [span, span]]


@pytest.mark.parametrize("view", LINE_VIEWS)
def test_the_spans_of_two_batches_give_the_edited_texts(view: str) -> None:
    texts = [
        " One two three four five. \r\nno\n",
        "Sign-in a b\nx\nSee it all[1] here, in full.\x85",
    ]
    texts.append(texts[0] + texts[1] + "Then come two other lines.\n3 likes")
    both = [
        make_line_views(split_texts(part), [view], split_texts)[0]
        for part in (texts[:2], texts[2:])
    ]
    moved = [both[0].cuts, both[1].cuts.moved(2)]
    table = make_view_table(IDS, [{}] * ROWS, moved)
    edited = [*edited_texts(both[0], texts[:2]), *edited_texts(both[1], texts[2:])]
    for text, row, left in zip(texts, table["spans"].to_pylist(), edited, strict=True):
        given_spans = [Span(s["start"], s["end"], s["label"], s["replacement"]) for s in row]
        assert apply_edits(text, given_spans) == left
