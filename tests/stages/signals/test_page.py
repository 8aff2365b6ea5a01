from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from artifacts_schema.store import Store
from stages.engine.page import Artifact, Figure, make_page
from stages.signals.stage import Signals


@pytest.fixture
def figures(store: Store, run_stage: Any, make_documents: Any) -> Callable[..., dict[str, Figure]]:
    """`figures([[text, …], …])` → the page of the texts' signals, by title."""

    def make(shards: list[list[str]]) -> dict[str, Figure]:
        manifest = run_stage(Signals, {}, {"documents": [make_documents(shards)]})
        found = make_page(Signals, Artifact(store, manifest))
        assert len({figure.title for figure in found}) == len(found)
        return {figure.title: figure for figure in found}

    return make


def test_quantiles_are_those_of_the_texts(figures: Callable[..., Any]) -> None:
    """1, 2, …, 11 words over three shards: median 6, 5 % at 1.5, 95 % at 10.5."""
    texts = [" ".join(["word"] * n) for n in range(1, 12)]
    page = figures([texts[:4], texts[4:5], texts[5:]])
    rows = {row[0]: row for row in page["Counts: quantiles over documents"].rows}
    assert rows["words"][1:7] == (1, 1.5, 6, 10.5, 11, 0)
    lengths = page["Words a document"]
    assert sum(lengths.series[0].values) == 11
    shares = {row[0]: row for row in page["Shares and means: quantiles over documents"].rows}
    assert shares["mean_word_length"][1:6] == (4, 4, 4, 4, 4)
    assert shares["alphabetic_word_share"][5] == 1


def test_scripts_and_stop_words_are_counted(figures: Callable[..., Any]) -> None:
    page = figures([["the end of it", "нет", "да", "12345"], ["to be"]])
    scripts = page["Documents by script"]
    assert dict(zip(scripts.labels, scripts.series[0].values, strict=True)) == {
        "Cyrillic": 2,
        "Latin": 2,
        "(none)": 1,
    }
    stop_words = page["Different stop words in a document"]
    assert stop_words.series[0].values == (3, 0, 2, 0, 0, 0, 0, 0, 0)


def test_zeros_of_a_share_are_told_and_not_drawn(figures: Callable[..., Any]) -> None:
    """Of two texts one repeats one of its two lines."""
    page = figures([["a line\na line", "one line\nanother line"]])
    histogram = page["Repeated lines and paragraphs"]
    assert [series.name for series in histogram.series] == ["duplicate_line_share"]
    assert [place for place, n in enumerate(histogram.series[0].values) if n] == [10]
    assert "duplicate_line_share 1, duplicate_paragraph_share 2" in histogram.note


def test_personal_data_is_counted_and_never_shown(figures: Callable[..., Any]) -> None:
    page = figures([["ann@corp.com and bob@corp.com", "7.7.7.7"], ["eve@corp.com", "nothing"]])
    assert page["Personal data and secrets found"].rows == (
        ("email_count", 2, 3, 2),
        ("ip_count", 1, 1, 1),
        *((name, 0, 0, 0) for name in ("phone_count", "iban_count", "card_count", "secret_count")),
    )
    spans = page["Spans to be replaced"].rows
    assert [row for row in spans if row[0] == "personal_data"] == [
        ("personal_data", "email", 3),
        ("personal_data", "ip_address", 1),
    ]
    assert "corp.com" not in repr(page)
    assert "7.7.7.7" not in repr(page)


def test_without_documents_the_page_says_so(figures: Callable[..., Any]) -> None:
    page = figures([[]])
    assert "None" in page["Signals"].text


def test_other_signals_are_tabled_by_their_own_description(
    store: Store, given: Callable[..., Any]
) -> None:
    """Columns that this page never heard of, one of them with nulls."""
    columns = [
        {"name": "perplexity", "type": "float64?", "unit": "1", "description": "Of a model."},
        {"name": "depth", "type": "int64", "unit": "levels", "description": "Of headings."},
    ]
    rows = [
        {"doc_id": "a", "perplexity": -4.0, "depth": 1.0},
        {"doc_id": "b", "perplexity": None, "depth": 3.0},
    ]
    files = {"signals.json": {"columns": columns, "stop_words": []}, "00000.parquet": rows}
    manifest, output = given("signals", files)
    views = {"kind": "views", "kind_version": 1, "digest": "", "files": ()}
    whole = manifest.model_copy(
        update={
            "outputs": {
                "signals": manifest.output(output),
                "views": type(manifest.output(output))(**views),
            }
        }
    )
    page = {figure.title: figure for figure in make_page(Signals, Artifact(store, whole))}
    (perplexity,) = page["Shares and means: quantiles over documents"].rows
    (depth,) = page["Counts: quantiles over documents"].rows
    assert perplexity[1:7] == (-4.0, -4.0, -4.0, -4.0, -4.0, 0.0)
    assert depth[1:7] == (1, 1.1, 2, 2.9, 3, 0)
