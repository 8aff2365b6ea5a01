"""What the archive and the page say, carried from `pages` beside the documents into the signals.

Rules compare numbers, so marks that are words are counted beside the words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from artifacts_schema.kinds.pages import PAGE_COLUMNS
from stages.signals.signal import Signal

SOURCE = "the archive or the page, by ingest"
UNITS = {
    "http_status": "code",
    "characters_repaired": "characters",
    "url_repeats": "records",
    "nodes": "nodes",
    "doubt": "share",
    "main_share": "share",
    "link_share": "share",
}
AS_THEY_ARE = (
    "http_status",
    "truncated",
    "sniffed_type",
    "charset",
    "charset_told_by",
    "characters_repaired",
    "url_repeats",
    "ai_opt_out",
    "licence",
    "programming_language",
    "extractor",
    "doubt",
    "nodes",
    "main_share",
    "link_share",
)
"""Columns of `pages` that become signals under their own name."""


def _count(name: str, unit: str, description: str) -> Signal:
    return Signal(name, "int64", unit, SOURCE, description)


_DESCRIBED = {column.name: column for column in PAGE_COLUMNS}
PAGE_SIGNALS: tuple[Signal, ...] = (
    *(
        Signal(
            name,
            _DESCRIBED[name].type,
            UNITS.get(name, "name"),
            SOURCE,
            _DESCRIBED[name].description,
        )
        for name in AS_THEY_ARE
    ),
    _count("is_truncated", "0 or 1", "Whether the record is marked as truncated."),
    _count("robots_noindex", "0 or 1", "Whether robots directives hold `noindex` or `none`."),
    _count("ai_opt_out_marks", "marks", "Marks against use for AI."),
)
"""What is there when `pages` are given."""


def page_signals(pages: pa.Table) -> dict[str, Any]:
    """The columns of `PAGE_SIGNALS` for the rows of a pages table."""
    return {
        **{name: pages[name] for name in AS_THEY_ARE},
        "is_truncated": _counted(pages["truncated"], lambda mark: 1),
        "robots_noindex": _counted(pages["robots"], _noindex),
        "ai_opt_out_marks": _counted(pages["ai_opt_out"], lambda marks: len(marks.split())),
    }


def _noindex(directives: str) -> int:
    return int(not {"noindex", "none"}.isdisjoint(directives.split()))


def _counted(column: pa.ChunkedArray, count: Callable[[str], int]) -> Sequence[int]:
    """`count` of each string, 0 for null."""
    return [0 if value is None else count(value) for value in column.to_pylist()]
