"""Helpers of pages: counting tables in one pass and bounded memory, and showing documents.

Which documents a page shows, how much of their text, and where two texts differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from os.path import commonprefix
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from artifacts_schema.manifest import Manifest
from stages.engine.inputs import Input
from stages.engine.page import (
    Artifact,
    Axis,
    BarFigure,
    Bars,
    Column,
    Figure,
    HistogramFigure,
    Part,
    TableFigure,
)

BARS = 15
"""Labels that are shown of many."""

LABEL = 80
"""Characters of a label that comes from documents."""

PER_DECADE, DECADES = 10, 12
"""Bins of a logarithmic histogram: 10 from 1 to 10, and so on up to 10^12."""

NONE = "(none)"
_PRIMARY = r"^\s*(?P<primary>[a-z]{2,3})(?:[-_.][\w.-]*)?\s*$"
_HOST = r"^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#]*@)?(?:www\.)?(?P<host>[^/?#:@\s]+)"


def inputs_in_order(artifact: Artifact, role: str) -> list[Input | None]:
    """The inputs of a role, in order; None for those collected since."""
    inputs: list[Input | None] = []
    for reference in artifact.manifest.inputs.get(role, ()):
        try:
            inputs.append(Input.load(artifact.store, reference, full_check=False))
        except InputError:
            inputs.append(None)
    return inputs


def available_inputs(artifact: Artifact, role: str) -> list[Input]:
    """The inputs of a role, in order, without those collected since."""
    return [source for source in inputs_in_order(artifact, role) if source is not None]


def align_tables(*streams: Iterator[pa.Table]) -> Iterator[tuple[pa.Table, ...]]:
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


def rejection_figures(manifest: Manifest, counted: str) -> list[Figure]:
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
        """Count numbers from 1 up; numbers between 0 and 1 count as 1, NaN is not counted."""
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
    bars = tuple(Bars(n, tuple(counts[first:last].tolist())) for n, counts in filled.items())
    zeros = sum(one.zeros for one in series.values())
    text = sentences(note, f"{zeros:,} with 0 {unit} are not drawn." if zeros else "")
    return [HistogramFigure(title, Axis(unit, "log", ",.0f"), edges, bars, count, text)]


def sentences(*parts: str) -> str:
    """Sentences of a note that are there, joined."""
    return " ".join(part for part in parts if part)


def numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """A column of numbers as float64, NaN for null."""
    values: NDArray[np.float64] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values


EXCERPT = 800
"""Characters of a sample."""

SIDE = 1_200
"""Characters of one side of a pair."""

CONTEXT = 200
"""Characters shown before the first difference."""

_WORDS_COMPARED = 400
"""Most words that `SequenceMatcher` compares: its time is quadratic in them."""

_UNSPACED = "\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3040-\\u30ff\\u3400-\\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")
"""A word, or one character of a script that is written without spaces."""

Row = dict[str, Any]


class LeastIds:
    """The rows with the least ids of each group.

    Ids are hashes, so this is an even choice among all rows, and the same each time.
    """

    def __init__(self, most: int, by: str = "doc_id") -> None:
        self.most, self.by = most, by
        self.groups: dict[str, list[Row]] = {}

    def offer(self, group: str, rows: pa.Table) -> None:
        """Consider rows for a group; the column `by` holds their ids."""
        if not len(rows):
            return
        least = pc.select_k_unstable(rows, k=self.most, sort_keys=[(self.by, "ascending")])
        held = [*self.groups.get(group, []), *rows.take(least).to_pylist()]
        self.groups[group] = sorted(held, key=lambda row: row[self.by])[: self.most]


def rows_by_id(
    inputs: Sequence[Input], ids: Iterable[str], columns: Sequence[str]
) -> dict[str, Row]:
    """The rows of these doc_ids, as far as the tables hold them; only their row groups are read."""
    wanted = pa.array(sorted(set(ids)), pa.string())
    rows: dict[str, Row] = {}
    for source in inputs:
        for path in source.paths("*.parquet"):
            if len(rows) == len(wanted):
                return rows
            with source.open_table(path) as parquet:
                rows |= _matching_rows(parquet, wanted, columns)
    return rows


def _matching_rows(
    parquet: pq.ParquetFile, wanted: pa.Array, columns: Sequence[str]
) -> dict[str, Row]:
    matches: dict[str, Row] = {}
    for group in range(parquet.num_row_groups):
        ids = parquet.read_row_group(group, columns=["doc_id"], use_threads=False)["doc_id"]
        places = pc.indices_nonzero(pc.is_in(ids, value_set=wanted))
        if len(places):
            names = ["doc_id", *columns]
            rows = parquet.read_row_group(group, columns=names, use_threads=False).take(places)
            matches |= {row["doc_id"]: row for row in rows.to_pylist()}
    return matches


def benchmark_items(
    benchmarks: Sequence[Input], wanted: Collection[tuple[str, str]]
) -> dict[tuple[str, str], Row]:
    """The rows of benchmark items by benchmark and item id, as far as the tables hold them."""
    ids = pa.array(sorted({item for _, item in wanted}), pa.string())
    columns = ["benchmark", "item_id", "prompt", "choices", "answer"]
    rows: dict[tuple[str, str], Row] = {}
    for shard in (shard for source in benchmarks for shard in source.shards()):
        for group in shard.row_groups(columns):
            for row in group.filter(pc.is_in(group["item_id"], value_set=ids)).to_pylist():
                rows[row["benchmark"], row["item_id"]] = row
    return {name: rows[name] for name in wanted if name in rows}


def excerpt(text: str, most: int = EXCERPT) -> str:
    """The beginning of a text, with an ellipsis if it is longer."""
    return text if len(text) <= most else text[: most - 2] + " …"


def diff_texts(left: str, right: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Both texts around their first difference, at most `SIDE` characters each, compared by words.

    The whole beginning of both where they do not differ.
    """
    same = len(commonprefix([left, right]))  # noqa: RUF071 - characters are meant, not paths.
    start = 0 if same == len(left) == len(right) else max(0, same - CONTEXT)
    return diff_from(left, right, start, start)


def diff_from(
    left: str,
    right: str,
    left_start: int,
    right_start: int,
    key: Callable[[str], str] = str,
    run: int = 1,
) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Two texts from a place on, at most `SIDE` characters each, with the differences marked.

    Words agree where their `key` is equal in at least `run` of them in a row.
    """
    left_words, right_words = _words(left, left_start), _words(right, right_start)
    keys = [[key(word.strip()) for word in words] for words in (left_words, right_words)]
    matcher = SequenceMatcher(None, keys[0], keys[1], autojunk=False)
    sides: tuple[list[Part], list[Part]] = ([], [])
    for operation, a, b, c, d in matcher.get_opcodes():
        differs = operation != "equal" or b - a < run
        _append(sides[0], left_words[a:b], differs)
        _append(sides[1], right_words[c:d], differs)
    return (
        _clip(sides[0], left_start, len(left)),
        _clip(sides[1], right_start, len(right)),
    )


def _words(text: str, start: int) -> list[str]:
    """The words of the text from `start`, each with the characters before it; joined, the text."""
    window = text[start : start + 2 * SIDE]
    ends = [word.end() for word in _WORD.finditer(window)][:_WORDS_COMPARED]
    return [window[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _append(parts: list[Part], words: Sequence[str], differs: bool) -> None:
    """Add words to the last part, or a part of them if the last one is of the other sort."""
    if words and parts and parts[-1].differs == differs:
        parts[-1] = Part(parts[-1].text + "".join(words), differs)
    elif words:
        parts.append(Part("".join(words), differs))


def _clip(parts: Sequence[Part], start: int, length: int) -> tuple[Part, ...]:
    """As many characters of the parts as a side may have, with ellipses where text is left out."""
    visible, left = [Part("… ")] if start else [], SIDE
    for part in parts:
        text = part.text[:left]
        left -= len(text)
        if text:
            visible.append(Part(text, part.differs))
    if start + SIDE - left < length:
        visible.append(Part(" …"))
    return tuple(visible)
