"""Views applied to a text: chosen spans replaced."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc


class Edit(NamedTuple):
    """Characters [start, end) of a text, and what stands there instead."""

    start: int
    end: int
    replacement: str


def edits_by_row(spans: pa.ChunkedArray, views: Collection[str]) -> dict[int, list[Edit]]:
    """The edits of each row that has any, of the `spans` column of a views table."""
    found: dict[int, list[Edit]] = {}
    for row, given in _filled_rows(spans):
        edits = [
            Edit(span["start"], span["end"], span["replacement"])
            for span in given
            if span["view"] in views
        ]
        if edits:
            found[row] = joined(edits)
    return found


def joined(edits: Sequence[Edit]) -> list[Edit]:
    """The edits from left to right; what overlaps is one edit with the first one's replacement."""
    result: list[Edit] = []
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        if result and edit.start < result[-1].end:
            result[-1] = result[-1]._replace(end=max(result[-1].end, edit.end))
        else:
            result.append(edit)
    return result


def apply(text: str, edits: Sequence[Edit]) -> str:
    """`text` with each edit made; `edits` from left to right, without overlap."""
    pieces, last = [], 0
    for edit in edits:
        pieces += [text[last : edit.start], edit.replacement]
        last = edit.end
    return "".join([*pieces, text[last:]])


def _filled_rows(spans: pa.ChunkedArray) -> list[tuple[int, list[dict[str, Any]]]]:
    """Row number and spans of the rows that have any; the others never become Python objects."""
    filled = pc.indices_nonzero(pc.list_value_length(spans))
    return list(zip(filled.to_pylist(), spans.take(filled).to_pylist(), strict=True))
