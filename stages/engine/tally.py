"""Counting and measuring tables of any length for a page, in one pass and bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from artifacts_schema.manifest import Manifest
from stages.engine.figures import (
    Axis,
    BarFigure,
    Bars,
    Column,
    Figure,
    HistogramFigure,
    TableFigure,
)
from stages.engine.inputs import Input
from stages.engine.page import Artifact

SAMPLED_ROWS = 200_000
"""Rows that distributions are measured on; enough to place a quantile within 0.2 %."""

BARS = 15
"""Labels that are shown of many."""

LABEL = 80
"""Characters of a label that comes from documents."""

PER_DECADE, DECADES = 10, 12
"""Bins of a logarithmic histogram: 10 from 1 to 10, and so on up to 10^12."""

NONE = "(none)"
_PRIMARY = r"^\s*(?P<primary>[a-z]{2,3})(?:[-_.][\w.-]*)?\s*$"
_HOST = r"^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#]*@)?(?:www\.)?(?P<host>[^/?#:@\s]+)"


def by_place(artifact: Artifact, role: str) -> list[Input | None]:
    """What was given to a role, in order; None for what was collected since."""
    found: list[Input | None] = []
    for reference in artifact.manifest.inputs.get(role, ()):
        try:
            found.append(Input.load(artifact.store, reference, full_check=False))
        except InputError:
            found.append(None)
    return found


def at_hand(artifact: Artifact, role: str) -> list[Input]:
    """What was given to a role, in order, without what was collected since."""
    return [given for given in by_place(artifact, role) if given is not None]


def sampled_groups(
    inputs: Sequence[Input], columns: Sequence[str], most: int = SAMPLED_ROWS
) -> Iterator[pa.Table]:
    """Row groups of all tables: all of them, or every k-th where there are more than `most` rows.

    Rows of long tables lie in groups of equal size, so that about `most` rows are read.
    """
    rows = sum(given.rows for given in inputs)
    step, number = max(1, math.ceil(rows / most)), 0
    for given in inputs:
        for path in given.paths("*.parquet"):
            with given.open(path) as file:
                parquet = pq.ParquetFile(file)
                for group in range(parquet.num_row_groups):
                    if number % step == 0:
                        yield parquet.read_row_group(group, columns=columns, use_threads=False)
                    number += 1


def cut_alike(*streams: Iterator[pa.Table]) -> Iterator[tuple[pa.Table, ...]]:
    """Tables of the same rows, cut into pieces differently: pieces of the same rows."""
    held: list[pa.Table] = [None] * len(streams)
    while True:
        for place, stream in enumerate(streams):
            while held[place] is None or not len(held[place]):
                held[place] = next(stream, None)
                if held[place] is None:
                    return
        rows = min(map(len, held))
        yield tuple(table.slice(0, rows) for table in held)
        held = [table.slice(rows) for table in held]


def languages(names: pa.ChunkedArray) -> pa.ChunkedArray:
    """Declared languages as primary subtags: `en-US` is `en`; `(none)`, `(other)` for no tag."""
    plain = pc.struct_field(pc.extract_regex(pc.utf8_lower(names), _PRIMARY), [0])
    return pc.if_else(pc.is_valid(names), pc.fill_null(plain, "(other)"), NONE)


def hosts(urls: pa.ChunkedArray) -> pa.ChunkedArray:
    """The web domains of addresses, without `www.`; null for what is no address."""
    return pc.utf8_lower(pc.struct_field(pc.extract_regex(urls, _HOST), [0]))


def add_counts(counts: dict[str, int], labels: pa.ChunkedArray, none: str = NONE) -> None:
    """Count the values of a column of texts; null as `none`."""
    for row in pc.value_counts(labels).to_pylist():
        name = none if row["values"] is None else row["values"][:LABEL]
        counts[name] = counts.get(name, 0) + row["counts"]


def most_common(counts: Mapping[str, int], most: int = BARS) -> list[tuple[str, int]]:
    """The greatest counts, falling, what is left over in a last row."""
    rows = ranked(counts)
    if len(rows) <= most:
        return rows
    rest = rows[most - 1 :]
    return [*rows[: most - 1], (f"{len(rest):,} others", sum(count for _, count in rest))]


def ranked(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Counts falling, equal ones by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def bars(
    title: str,
    counts: Mapping[str, int],
    *,
    value: str = "documents",
    label: str = "",
    note: str = "",
    most: int = BARS,
) -> list[Figure]:
    """The most common labels as a bar figure, the others in its note; none if nothing counted."""
    rows = ranked({name: count for name, count in counts.items() if count})
    if not rows:
        return []
    names, values = zip(*rows[:most], strict=True)
    rest = rows[most:]
    count = sum(count for _, count in rest)
    left = f"Not drawn: {len(rest):,} more, with {count:,} {value} together." if rest else ""
    series = (Bars(value, values),)
    text = sentences(note, left)
    return [BarFigure(title, names, Axis(value, format=","), series, label=label, note=text)]


def turned_away(manifest: Manifest, counted: str) -> list[Figure]:
    """Why records went no further, by the manifest's account, and its samples of them."""
    account = manifest.conservation
    if account is None or not account.dropped:
        return []
    share = 1 - account.out / account.records_in
    figures = bars(
        f"Turned away, by reason ({counted})",
        account.dropped,
        value=counted,
        label="reason",
        note=f"{share:.1%} of {account.records_in:,} {counted}.",
    )
    rows = tuple((r, text) for r, texts in sorted(manifest.samples.items()) for text in texts)
    if rows:
        columns = (Column("reason"), Column("sample"))
        figures.append(TableFigure(f"Samples of {counted} turned away", columns, rows))
    return figures


@dataclass
class LogHistogram:
    """Counts of positive numbers in bins of equal ratio; zero (and less) is counted apart."""

    zeros: int = 0
    counts: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(PER_DECADE * DECADES, dtype=np.int64)
    )

    def add(self, values: NDArray[np.float64] | NDArray[np.int64]) -> None:
        """Count numbers from 1 up; what lies between 0 and 1 counts as 1, NaN not at all."""
        known = values[~np.isnan(values)]
        positive = known[known > 0]
        self.zeros += len(known) - len(positive)
        # 1e-9: the edge itself belongs to the bin above it, whatever its logarithm rounds to.
        place = np.floor(np.log10(positive) * PER_DECADE + 1e-9).astype(np.int64)
        place = np.clip(place, 0, len(self.counts) - 1)
        self.counts += np.bincount(place, minlength=len(self.counts))


def log_histogram(
    title: str,
    unit: str,
    series: Mapping[str, LogHistogram],
    *,
    count: str = "documents",
    note: str = "",
) -> list[Figure]:
    """Histograms of one binning over each other, cut to the bins in use; none if all are empty."""
    filled = {name: one.counts for name, one in series.items() if one.counts.any()}
    if not filled:
        return []
    per_decade = PER_DECADE
    if sum(counts[:PER_DECADE].sum() for counts in filled.values()):
        per_decade //= 2  # Between 1 and 10 finer bins hold no whole number.
        filled = {name: counts.reshape(-1, 2).sum(axis=1) for name, counts in filled.items()}
    used = np.flatnonzero(np.sum(list(filled.values()), axis=0))
    first, last = int(used[0]), int(used[-1]) + 1
    edges = tuple(float(10 ** (place / per_decade)) for place in range(first, last + 1))
    shown = tuple(Bars(n, tuple(counts[first:last].tolist())) for n, counts in filled.items())
    zeros = sum(one.zeros for one in series.values())
    text = sentences(note, f"{zeros:,} with 0 {unit} are not drawn." if zeros else "")
    return [HistogramFigure(title, Axis(unit, "log", ",.0f"), edges, shown, count, text)]


def of_sample(measured: int, total: int, what: str = "documents") -> str:
    """A sentence on how many rows were measured, where it was not all of them."""
    if measured >= total:
        return ""
    return f"Measured on {measured:,} of {total:,} {what}, taken evenly."


def sentences(*parts: str) -> str:
    """Sentences of a note that are there, joined."""
    return " ".join(part for part in parts if part)


def numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """A column of numbers as float64, NaN for null."""
    values: NDArray[np.float64] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values
