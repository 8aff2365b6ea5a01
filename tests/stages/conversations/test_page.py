from __future__ import annotations

import json
from typing import Any

from artifacts_schema.store import Store
from stages.engine.page import Artifact, make_page
from stages.examples.stage import Conversations

HOSTILE = "<script>alert(1)</script>\x1b[31m"


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_conversations_are_counted_by_source_length_and_role(
    store: Store, run_stage: Any, snapshot: Any
) -> None:
    """Three conversations of 2, 2 and 3 messages; one row is no conversation."""
    files = {
        "a.jsonl": lines(
            {"prompt": "q" * 20, "completion": "a" * 40},
            {"prompt": "q" * 20, "completion": HOSTILE},
            {"text": "?"},
        ),
        "b.jsonl": lines({"system": "s" * 30, "prompt": "q" * 20, "completion": "a" * 100}),
    }
    config = {"max_bad_share": 0.5}
    manifest = run_stage(Conversations, config, {"snapshot": snapshot(files)})
    found = make_page(Conversations, Artifact(store, manifest))
    page: dict[str, Any] = {figure.title: figure for figure in found}

    characters = (20 + 40 + 20 + len(HOSTILE)) / 2
    assert page["Conversations by source"].rows == (("a", 2, 2, characters), ("b", 1, 3, 150))
    messages = page["Messages a conversation"]
    assert messages.labels == ("2", "3")
    assert messages.series[0].values == (2, 1)
    lengths = page["Characters a message"]
    assert {series.name: sum(series.values) for series in lengths.series} == {
        "user": 3,
        "assistant": 3,
        "system": 1,
    }
    samples = page["Conversations"].samples
    assert len(samples) == 3
    assert any(sample.text == f"user: {'q' * 20}\n\nassistant: {HOSTILE}" for sample in samples)
    assert page["Turned away, by reason (rows)"].labels == ("unknown_shape",)


def test_long_conversations_are_counted_together_and_cut_in_samples(
    store: Store, run_stage: Any, snapshot: Any
) -> None:
    turns = [{"role": r, "content": "x" * 2000} for r in ("user", "assistant")] * 10
    manifest = run_stage(
        Conversations, {}, {"snapshot": snapshot({"a.jsonl": lines({"messages": turns})})}
    )
    found = make_page(Conversations, Artifact(store, manifest))
    page: dict[str, Any] = {figure.title: figure for figure in found}
    assert page["Messages a conversation"].labels == ("more than 12",)
    (sample,) = page["Conversations"].samples
    assert len(sample.text) == 800
    assert "Turned away, by reason (rows)" not in page
