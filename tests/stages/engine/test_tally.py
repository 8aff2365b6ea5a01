from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.gc import remove_artifact
from stages.engine import Stage
from stages.engine.page import Artifact, BarFigure, HistogramFigure
from stages.engine.protocol import Many
from stages.engine.tally import (
    LogHistogram,
    add_counts,
    align_tables,
    available_inputs,
    bars,
    hosts,
    inputs_in_order,
    languages,
    log_histogram,
    most_common,
    rejection_figures,
)


def histogram(values: list[float]) -> HistogramFigure:
    counted = LogHistogram()
    counted.add(np.array(values))
    (figure,) = log_histogram("Lengths", "characters", {"documents": counted})
    assert isinstance(figure, HistogramFigure)
    return figure


def test_logarithmic_bins_hold_their_lower_edge() -> None:
    """Ten bins a decade: 10 and 12 lie in [10, 12.6), 1000 is the lower edge of its own."""
    figure = histogram([10, 12, 1000])
    assert figure.edges[0] == pytest.approx(10)
    assert figure.edges[-1] == pytest.approx(10**3.1)
    assert figure.series[0].values == (2, *[0] * 19, 1)


def test_every_power_of_ten_opens_a_decade() -> None:
    figure = histogram([10.0**power for power in range(1, 12)])
    assert [place for place, count in enumerate(figure.series[0].values) if count] == [
        *range(0, 101, 10)
    ]


def test_below_ten_bins_are_wide_enough_for_whole_numbers() -> None:
    """Five a decade: [1, 1.58), [1.58, 2.51), [2.51, 3.98), [3.98, 6.31), [6.31, 10)."""
    figure = histogram([1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert figure.series[0].values == (1, 1, 1, 3, 3)
    assert figure.edges == pytest.approx([10 ** (place / 5) for place in range(6)])


def test_zeros_are_told_and_not_drawn() -> None:
    figure = histogram([0, 0, 20, float("nan")])
    assert figure.series[0].values == (1,)
    assert figure.note == "2 with 0 characters are not drawn."


def test_nothing_counted_is_no_figure() -> None:
    assert log_histogram("Lengths", "characters", {"documents": LogHistogram()}) == []
    assert bars("Languages", {"en": 0}) == []


def test_the_rest_of_many_labels_is_one_row_or_a_sentence() -> None:
    counts = {"a": 1, "b": 7, "c": 3, "d": 2}
    assert most_common(counts, 4) == [("b", 7), ("c", 3), ("d", 2), ("a", 1)]
    assert most_common(counts, 3) == [("b", 7), ("c", 3), ("2 others", 3)]
    (figure,) = bars("Languages", counts, most=3)
    assert isinstance(figure, BarFigure)
    assert figure.labels == ("b", "c", "d")
    assert figure.note == "Not drawn: 1 more, with 1 documents together."


def test_counts_of_a_column_name_what_is_absent() -> None:
    counts = {"en": 1}
    add_counts(counts, pa.chunked_array([["en", None], ["en", "x" * 200]]))
    assert counts == {"en": 3, "(none)": 1, "x" * 80: 1}


def test_languages_are_primary_subtags() -> None:
    told = ["en-US", "DE", " pt_BR ", "zh-Hans-CN", "<b>en</b>", "english", "", None]
    assert languages(pa.chunked_array([told])).to_pylist() == [
        "en",
        "de",
        "pt",
        "zh",
        *["(other)"] * 3,
        "(none)",
    ]


def test_hosts_are_what_stands_between_the_slashes() -> None:
    urls = [
        "https://www.Example.org:8080/a?b=www.c.org",
        "http://user@news.example/x",
        "logging/config.py",
        None,
    ]
    expected = ["example.org", "news.example", None, None]
    assert hosts(pa.chunked_array([urls])).to_pylist() == expected


def test_streams_of_the_same_rows_are_cut_alike() -> None:
    def stream(*sizes: int) -> Any:
        starts = np.cumsum((0, *sizes))
        return iter([pa.table({"n": range(a, a + s)}) for a, s in zip(starts, sizes, strict=False)])

    pieces = list(align_tables(stream(3, 0, 4), stream(1, 6), stream(7)))
    assert [[len(table) for table in piece] for piece in pieces] == [[1] * 3, [2] * 3, [4] * 3]
    assert all(a["n"].equals(b["n"]) and b["n"].equals(c["n"]) for a, b, c in pieces)
    assert list(align_tables(stream(0), stream())) == []


class Reader(Stage):
    """Reads documents and writes nothing of them."""

    name, version, reproducible = "reader", 1, "bytes"
    inputs = {"documents": Many("documents")}
    outputs = {"rejected": "rejected"}

    def run(self, context: Any) -> None:
        context.conserve(records_in=3, out=1, dropped={"torn": 2})
        context.sample("torn", "row 7")


def test_collected_inputs_keep_their_place(
    store: Store,
    run_stage: Callable[..., Manifest],
    make_documents: Callable[..., Any],
) -> None:
    given = [make_documents([["one"]], snapshot="a"), make_documents([["two"]], snapshot="b")]
    artifact = Artifact(store, run_stage(Reader, {}, {"documents": given}))
    assert [found.digest for found in available_inputs(artifact, "documents")] == [
        manifest.output(output).digest for manifest, output in given
    ]
    remove_artifact(store, given[0][0])
    assert [found is None for found in inputs_in_order(artifact, "documents")] == [True, False]
    assert len(available_inputs(artifact, "documents")) == 1
    assert available_inputs(artifact, "signals") == []


def test_rows_turned_away_are_counted_and_shown(
    store: Store, run_stage: Callable[..., Manifest]
) -> None:
    figures = rejection_figures(run_stage(Reader, {}), "rows")
    assert [figure.title for figure in figures] == [
        "Turned away, by reason (rows)",
        "Samples of rows turned away",
    ]
    assert figures[0].note == "66.7% of 3 rows."
