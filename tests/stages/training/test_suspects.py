"""Which rows of a training step stand out, and the list of their documents."""

import json
import math

import pytest

from stages.training.diagnosis import excluded_table, format_suspects, outlier_rows
from stages.training.task import Suspect


@pytest.mark.parametrize(
    ("losses", "rows"),
    [
        ([2.0, 2.1, 1.9, 9.0, 2.05], [3]),
        ([2.0, 2.1, math.nan, 9.0, math.inf], [2, 4]),
        ([2.0] * 8 + [2.9], []),
        ([2.0] * 8 + [3.1], [8]),
        ([1.0, 2.0, 3.0, 4.0, 5.0], []),
        ([], []),
    ],
)
def test_rows_stand_out_by_what_is_not_finite_or_else_far_above_the_rest(losses, rows):
    """Of eight rows at 2.0 one is odd above 2 + half of 2 = 3: six times a sixth of that half."""
    assert outlier_rows(losses) == rows


def test_documents_are_told_by_source_with_the_first_of_them():
    found = [Suspect("web", "b"), Suspect("web", "a"), Suspect("code", "c"), Suspect("web", "d")]
    assert format_suspects(found) == "documents: 3 of web, 1 of code (c, a, b, …)"


def test_the_list_asks_for_the_rows_of_each_event_and_keeps_the_first_reason():
    asked = []

    def documents(step, rows):
        asked.append((step, rows))
        return [Suspect("web", f"{row:032x}") for row in rows]

    def event(step, kind, rows):
        details = json.dumps({"rows": rows})
        return {"training_step": step, "tokens": 0, "kind": kind, "details": details}

    events = [event(9, "not_finite", [1, 2]), event(5, "spike", [2]), event(7, "rollback", [8])]
    table = excluded_table(events, documents).to_pylist()
    assert asked == [(5, [2]), (9, [1, 2])]
    assert [(row["training_step"], row["reason"]) for row in table] == [
        (9, "training step 9: not finite"),
        (5, "training step 5: spike"),
    ]
