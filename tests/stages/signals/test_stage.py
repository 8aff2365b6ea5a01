"""The signals stage through the engine: rows beside the documents, spans, same bytes for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import Manifest
from stages.signals.columns import signals_of
from stages.signals.stage import STOP_WORDS, Signals

SHARDS = [
    ["The first text of the set, with jane@corp.com and 8.8.8.8.", "zweiter Text", "x"],
    ["another\nanother\nanother", " "],
]

Documents = tuple[Manifest, str]
Make = Callable[..., Manifest]
Read = Callable[..., Any]


@pytest.fixture
def documents(make_documents: Callable[..., Documents]) -> Documents:
    return make_documents(SHARDS)


def run(run_stage: Make, documents: Documents, config: Any = None, **options: Any) -> Manifest:
    return run_stage(Signals, config or {}, {"documents": [documents]}, **options)


def test_rows_and_shards_are_those_of_the_documents(
    documents: Documents, run_stage: Make, read_table: Read
) -> None:
    made = run(run_stage, documents)
    for path, texts in zip(("00000.parquet", "00001.parquet"), SHARDS, strict=True):
        ids = read_table(*documents, path)["doc_id"].to_pylist()
        signals = read_table(made, "signals", path)
        assert signals["doc_id"].to_pylist() == ids
        assert read_table(made, "views", path)["doc_id"].to_pylist() == ids
        assert signals["characters"].to_pylist() == [len(text) for text in texts]
    assert made.conservation is not None
    assert (made.conservation.records_in, made.conservation.out) == (5, 5)
    assert made.counts["emails"] == made.counts["ip_addresses"] == 1


def test_every_column_is_described(
    documents: Documents, run_stage: Make, read_table: Read, read_input: Read
) -> None:
    made = run(run_stage, documents)
    described = read_input(made, "signals").read_json("signals.json")
    schema = read_table(made, "signals").schema
    assert [column["name"] for column in described["columns"]] == schema.names[1:]
    assert schema.names[1:] == [signal.name for signal in signals_of()]
    assert all(
        column["description"] and column["source"] and column["unit"] and column["view"]
        for column in described["columns"]
    )
    assert described["stop_words"] == list(STOP_WORDS)
    assert schema.field("words").metadata[b"description"]


def test_personal_data_is_a_view(documents: Documents, run_stage: Make, read_table: Read) -> None:
    views = read_table(run(run_stage, documents), "views")["spans"].to_pylist()
    text = SHARDS[0][0]
    assert [
        (s["view"], text[s["start"] : s["end"]], s["label"], s["replacement"]) for s in views[0]
    ] == [
        ("personal_data", "jane@corp.com", "email", "email@example.com"),
        ("personal_data", "8.8.8.8", "ip_address", "192.0.2.1"),
    ]
    assert views[1:] == [[], [], [], []]


def test_a_sort_that_is_not_redacted_is_counted_all_the_same(
    documents: Documents, run_stage: Make, read_table: Read
) -> None:
    made = run(run_stage, documents, {"redact": ["email"]})
    assert [s["label"] for s in read_table(made, "views")["spans"].to_pylist()[0]] == ["email"]
    assert read_table(made, "signals")["ip_count"].to_pylist()[0] == 1


def test_stop_words_are_configurable(
    documents: Documents, run_stage: Make, read_table: Read
) -> None:
    made = run(run_stage, documents, {"stop_words": ["zweiter", "Text", "kein"]})
    assert read_table(made, "signals")["stop_words"].to_pylist() == [0, 2, 0, 0, 0]


def test_two_workers_give_the_same_bytes(documents: Documents, run_stage: Make, store: Any) -> None:
    one = run(run_stage, documents)
    two = run(run_stage, documents, execution={"workers": 2}, force=True)
    assert [out.digest for out in one.outputs.values()] == [
        out.digest for out in two.outputs.values()
    ]


def test_an_unknown_sort_of_personal_data_is_refused(documents: Documents, run_stage: Make) -> None:
    with pytest.raises(UsageError, match="redact"):
        run(run_stage, documents, {"redact": ["phone"]})
