"""What archives and pages say of themselves, as figures for the report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.engine.figures import (
    Axis,
    Bars,
    Cell,
    Column,
    Figure,
    HistogramFigure,
    TableFigure,
    number,
)
from stages.engine.inputs import Input
from stages.engine.tally import LABEL, most_common, of_sample, sampled_groups, sentences

FIELDS = {
    "record_type": "record type",
    "declared_type": "declared type",
    "sniffed_type": "type by first bytes",
    "encodings": "encodings taken off",
    "truncated": "truncated",
    "charset": "character set",
    "charset_told_by": "character set told by",
    "programming_language": "programming language",
    "extractor": "main text found by",
}
"""How a record was read."""

DECLARED = {
    "author": "author",
    "published": "date of publication",
    "canonical_url": "address of its own",
    "robots": "robots directives",
    "ai_opt_out": "marks against use for AI",
    "tdm_policy": "TDM policy",
    "licence": "licence",
}
"""What a page may declare."""

VALUED = ("robots", "ai_opt_out", "licence")
SEVERAL = frozenset({"robots", "ai_opt_out", "encodings"})
"""Columns of several words, each of which counts."""
VALUES = 8
DOUBT_BINS = 20


@dataclass
class Pages:
    """What was counted of the pages."""

    rows: int = 0
    values: dict[str, Counter[str]] = field(default_factory=dict)
    declared: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    doubts: np.ndarray = field(default_factory=lambda: np.zeros(DOUBT_BINS, dtype=np.int64))

    def add(self, group: pa.Table) -> None:
        """Count a row group."""
        self.rows += len(group)
        for name in (*FIELDS, *VALUED):
            counted = self.values.setdefault(name, Counter())
            for row in pc.value_counts(group[name].drop_null()).to_pylist():
                for value in row["values"].split() if name in SEVERAL else (row["values"],):
                    counted[value[:LABEL]] += row["counts"]
        for name in DECLARED:
            self.declared[name] += len(group) - group[name].null_count
        self.repeated += pc.sum(pc.greater(group["url_repeats"], 0)).as_py() or 0
        doubts = group["doubt"].drop_null().to_numpy()
        self.doubts += np.histogram(doubts, DOUBT_BINS, (0, 1))[0]


def page_figures(pages: Input) -> list[Figure]:
    """How records were read, what pages declare, and the extractor's doubt."""
    columns = [*FIELDS, *DECLARED, "url_repeats", "doubt"]
    counted = Pages()
    for group in sampled_groups([pages], columns):
        counted.add(group)
    sample = of_sample(counted.rows, pages.rows)
    return [
        *_values("How records were read", {n: counted.values[n] for n in FIELDS}, sample),
        *_declared(counted, sample),
        *_values("What pages ask and allow", {n: counted.values[n] for n in VALUED}, sample),
        *_doubt(counted, sample),
    ]


def _values(title: str, values: dict[str, Counter[str]], note: str) -> list[Figure]:
    """The most common values of each field."""
    rows: list[tuple[Cell, ...]] = [
        (FIELDS.get(name) or DECLARED[name], *row)
        for name, counts in values.items()
        for row in most_common(counts, VALUES)
    ]
    columns = (Column("field"), Column("value"), number("documents"))
    return [TableFigure(title, columns, tuple(rows), note)] if rows else []


def _declared(counted: Pages, note: str) -> list[Figure]:
    """How many pages declare what; nothing where none does."""
    if not counted.declared.total() and not counted.repeated:
        return []
    rows: list[tuple[Cell, ...]] = [
        (label, counted.declared[name], counted.declared[name] / counted.rows)
        for name, label in DECLARED.items()
    ]
    rows.append(("the URL of an earlier one", counted.repeated, counted.repeated / counted.rows))
    columns = (Column("documents with"), number("number"), number("share", ".1%"))
    return [TableFigure("What pages declare", columns, tuple(rows), note)]


def _doubt(counted: Pages, sample: str) -> list[Figure]:
    if not counted.doubts.any():
        return []
    edges = tuple(bin / DOUBT_BINS for bin in range(DOUBT_BINS + 1))
    series = (Bars("documents", tuple(map(int, counted.doubts))),)
    note = sentences("Of the block classifier in its own result, from 0 to 1.", sample)
    return [HistogramFigure("Doubt in the main text", Axis("doubt"), edges, series, note=note)]
