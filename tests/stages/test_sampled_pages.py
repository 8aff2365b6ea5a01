"""Pages of large outputs: what they open is bounded, and a figure of a part says so."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from artifacts_schema.store import Store
from stages.decontaminate.stage import Decontaminate
from stages.dedup.stage import Dedup
from stages.engine import Input, sampling
from stages.engine.page import Artifact, Figure, make_page, make_summary
from stages.filter.stage import Filter
from stages.ingest.stage import Ingest
from stages.signals.stage import Signals

LEAK = "which of the planets that go around the sun has the most moons of all"
PART = "Measured on 12 of 36 "


def texts(number: int) -> list[str]:
    """Three documents of a shard; the second is that of the shard three before."""
    asked = f"It was asked in shard {number}: {LEAK} Jupiter! And so on."
    return [
        f"A text of its own, number {number}, with more words so that it can be compared well.",
        f"A text of several shards, number {number % 3}, word for word and letter for letter.",
        asked if number % 2 == 0 else f"Write to ann{number}@corp.com about shard {number}.",
    ]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The tables that were opened since, by stage and output."""
    tables: dict[str, set[str]] = defaultdict(set)
    local_path = Input.local_path

    def noted(self: Input, path: str) -> Path:
        if path.endswith(".parquet"):
            tables[f"{self.stage}:{self.output}"].add(path)
        return local_path(self, path)

    monkeypatch.setattr(Input, "local_path", noted)
    return tables


def figures_of(stage: Any, store: Store, manifest: Any) -> dict[str, Figure]:
    artifact = Artifact(store, manifest)
    both = (*make_summary(stage, artifact), *make_page(stage, artifact))
    return {figure.title: figure for figure in both}


def test_pages_open_no_more_tables_of_an_output_than_the_bound(
    store: Store,
    run_stage: Callable[..., Any],
    make_documents: Callable[..., Any],
    given: Callable[..., Any],
    opened: dict[str, set[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """12 shards of three documents, of which a page may open four."""
    documents = {"documents": [make_documents([texts(number) for number in range(12)])]}
    item = {"benchmark": "exam", "item_id": "planets", "form": "multiple_choice", "prompt": LEAK}
    item |= {"choices": ["Mars", "Jupiter"], "answer": 1, "metadata": "{}"}
    benchmarks = [given("benchmarks", {"00000.parquet": [item]})]
    signals = run_stage(Signals, {}, documents)
    dedup = run_stage(Dedup, {}, documents)
    config = {"ngram": 5, "min_words": 5}
    searched = run_stage(Decontaminate, config, {**documents, "benchmarks": benchmarks})
    inputs = {
        **documents,
        "signals": [(signals, "signals")],
        "views": [(signals, "views")],
        "duplicates": [(dedup, "duplicates")],
    }
    kept = run_stage(Filter, {"rules": ["gopher@datatrove"]}, inputs)
    made = {Signals: signals, Dedup: dedup, Decontaminate: searched, Filter: kept}
    monkeypatch.setattr(sampling, "MOST_TABLES", 4)
    opened.clear()
    pages = {s.name: figures_of(s, store, manifest) for s, manifest in made.items()}

    opened["decontaminate:contamination"].discard("items.parquet")
    counts = {name: len(paths) for name, paths in opened.items()}
    assert set(counts.values()) <= {1, 4}, counts  # One: of the benchmarks.
    assert {"signals:signals", "signals:views", "dedup:duplicates", "filter:ledger"} <= {*counts}
    measured = {
        "signals": {
            "Documents by script",
            "Personal data and secrets found",
            "Spans to be replaced",
        },
        "dedup": {"Clusters of copies, by size", "Largest clusters of copies"},
        "decontaminate": {"Documents with the most benchmark text"},
        "filter": {
            "Rules, thresholds and what they drop (documents)",
            "What each preset would keep (documents)",
            "Documents kept, by source and snapshot",
            "Documents by verdict",
        },
    }
    for name, titles in measured.items():
        for title in titles:
            assert PART in pages[name][title].note, title
    whole = pages["filter"]["Documents dropped, by first failing rule"]
    assert sum(filter(None, whole.series[0].values)) == 36 - kept.conservation.out
    assert PART not in whole.note
    texts_shown = [sample.text for sample in pages["filter"]["Documents by verdict"].samples]
    assert texts_shown
    assert all(texts_shown)


def test_documents_and_rejected_records_are_those_of_the_same_tables(
    store: Store,
    run_stage: Callable[..., Any],
    snapshot: Callable[..., Any],
    opened: dict[str, set[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """12 files of three documents and a torn row; a page may open the tables of four."""
    fine = b"".join(json.dumps({"text": f"text {number}"}).encode() + b"\n" for number in range(3))
    files = {f"{number:02d}.jsonl": fine + b"{torn\n" for number in range(12)}
    manifest = run_stage(Ingest, {"max_bad_share": 0.5}, {"snapshot": snapshot(files)})
    monkeypatch.setattr(sampling, "MOST_TABLES", 4)
    opened.clear()
    page = figures_of(Ingest, store, manifest)
    assert {name: len(paths) for name, paths in opened.items()} == {
        "ingest:documents": 4,
        "ingest:pages": 4,
        "ingest:rejected": 4,
    }
    by_file = page["Records by file"]
    assert by_file.rows == tuple((f"{number:02d}.jsonl", 3, 1) for number in (0, 3, 6, 9))
    assert PART in by_file.note
    assert dict(page["Records read and documents made"].rows)["records read"] == 48
