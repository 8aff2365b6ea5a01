from __future__ import annotations

import json
from typing import Any

from artifacts_schema.store import Store
from stages.engine.page import Artifact, make_page
from stages.examples.stage import Preferences


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_pairs_tell_how_often_the_longer_answer_is_chosen(
    store: Store, run_stage: Any, snapshot: Any
) -> None:
    """Of three pairs the chosen answer is longer in two: 30 and 50 against 20, 10 against 40."""
    files = {
        "a.jsonl": lines(
            {"prompt": "p1", "chosen": "c" * 30, "rejected": "r" * 20},
            {"prompt": "p2", "chosen": "c" * 50, "rejected": "<b>" + "r" * 17},
            {"prompt": "p3", "chosen": "c" * 10, "rejected": "r" * 40},
            {"prompt": "p4", "chosen": "same", "rejected": "same"},
        )
    }
    manifest = run_stage(Preferences, {"max_bad_share": 0.5}, {"snapshot": snapshot(files)})
    found = make_page(Preferences, Artifact(store, manifest))
    page: dict[str, Any] = {figure.title: figure for figure in found}
    assert page["Preference pairs by source"].rows == (("a", 3, 30, 80 / 3, 2 / 3),)
    lengths = page["Characters an answer"]
    assert {series.name: sum(series.values) for series in lengths.series} == {
        "chosen": 3,
        "rejected": 3,
    }
    pairs = {pair.heading: pair for pair in page["Preference pairs"].pairs}
    assert set(pairs) == {"p1", "p2", "p3"}
    assert pairs["p2"].right[0].text == "<b>" + "r" * 17
    assert not pairs["p2"].right[0].differs
    assert page["Turned away, by reason (rows)"].labels == ("same_answer",)


def test_single_answers_have_a_table_of_their_own(
    store: Store, run_stage: Any, snapshot: Any
) -> None:
    files = {
        "a.jsonl": lines(
            {"prompt": "p1", "completion": "c" * 30, "label": True},
            {"prompt": "p2", "completion": "c" * 20, "label": True},
            {"prompt": "p3", "completion": "c" * 10, "label": False},
            {"prompt": "p4", "completion": "c" * 10, "label": True},
            {"prompt": "p5", "chosen": "c" * 10, "rejected": "r"},
        )
    }
    manifest = run_stage(Preferences, {}, {"snapshot": snapshot(files)})
    found = make_page(Preferences, Artifact(store, manifest))
    page: dict[str, Any] = {figure.title: figure for figure in found}
    assert page["Single answers by source"].rows == (("a", 4, 0.75),)
    assert page["Preference pairs by source"].rows == (("a", 1, 10, 1, 1),)
    lengths = page["Characters an answer"]
    assert {series.name: sum(series.values) for series in lengths.series} == {
        "chosen": 4,
        "rejected": 2,
    }
    assert [pair.heading for pair in page["Preference pairs"].pairs] == ["p5"]
