"""Preference data in its common shapes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from artifacts_schema.manifest import Manifest
from stages.examples.conversion import BadExample, Origin
from stages.examples.messages import message
from stages.examples.shapes import preference_row
from stages.examples.stage import Preferences

ORIGIN = Origin("0" * 32, "x.jsonl", "x")
USER, GOOD, BAD = (
    message("user", "q"),
    message("assistant", "yes"),
    message("assistant", "no"),
)


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": "q", "chosen": "yes", "rejected": "no"},
        {"prompt": [USER], "chosen": "yes", "rejected": "no"},
        {"prompt": [USER], "chosen": [GOOD], "rejected": [BAD]},
        {"prompt": "q", "chosen": [USER, GOOD], "rejected": [USER, BAD]},
        {"chosen": [USER, GOOD], "rejected": [USER, BAD]},
        {
            "conversations": [{"from": "human", "value": "q"}],
            "chosen": {"from": "gpt", "value": "yes"},
            "rejected": {"from": "gpt", "value": "no"},
        },
        {"instruction": "q", "input": "", "chosen": "yes", "rejected": "no"},
    ],
)
def test_shapes_of_data_sets(fields: dict[str, Any]) -> None:
    made = preference_row({**fields, "margin": 2}, ORIGIN)
    assert (made["prompt"], made["chosen"], made["rejected"]) == ([USER], [GOOD], [BAD])
    assert json.loads(made["metadata"]) == {"margin": 2}


@pytest.mark.parametrize("label", [True, False, 1, 0])
@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": "q", "completion": "yes"},
        {"prompt": [USER], "completion": [GOOD]},
        {"instruction": "q", "input": "", "completion": "yes"},
    ],
)
def test_an_answer_with_a_label_is_a_row_of_one_side(fields: dict[str, Any], label: Any) -> None:
    """TRL's unpaired rows, standard and conversational."""
    made = preference_row({**fields, "label": label, "score": 2}, ORIGIN)
    sides = ([GOOD], []) if label else ([], [GOOD])
    assert (made["prompt"], made["chosen"], made["rejected"]) == ([USER], *sides)
    assert json.loads(made["metadata"]) == {"score": 2}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"prompt": "q", "completion": "yes", "label": "good"}, "bad_label"),
        ({"prompt": "q", "completion": "yes", "label": 0.5}, "bad_label"),
        ({"prompt": "q", "completion": "yes", "label": 2}, "bad_label"),
        ({"prompt": "q", "completion": " ", "label": True}, "empty_answer"),
        ({"prompt": "q", "completion": [USER, GOOD], "label": True}, "role_order"),
        ({"completion": "yes", "label": True}, "missing_field"),
        ({"prompt": "q", "completion": "yes"}, "missing_field"),
        ({"prompt": "q", "completion": "yes", "label": True, "chosen": "a"}, "missing_field"),
        ({"prompt": "q", "chosen": "yes"}, "missing_field"),
        ({"chosen": "yes", "rejected": "no"}, "missing_field"),
        ({"prompt": "q", "chosen": "yes", "rejected": " yes\n"}, "same_answer"),
        ({"prompt": "q", "chosen": "", "rejected": "no"}, "empty_answer"),
        ({"prompt": " ", "chosen": "yes", "rejected": "no"}, "empty_message"),
        ({"prompt": [USER, GOOD], "chosen": "yes", "rejected": "no"}, "wrong_last_role"),
        ({"chosen": [USER, GOOD], "rejected": [{**USER, "content": "p"}, BAD]}, "prompts_differ"),
        ({"prompt": "q", "chosen": [GOOD, USER, GOOD], "rejected": "no"}, "prompts_differ"),
        (
            {"prompt": "q", "chosen": "yes", "rejected": [BAD, message("system", "s"), BAD]},
            "prompts_differ",
        ),
        (
            {"system": "s", "chosen": [message("tool", "t"), GOOD], "rejected": "no"},
            "wrong_last_role",
        ),
        ({"prompt": "q", "chosen": 5, "rejected": "no"}, "not_messages"),
    ],
)
def test_bad_rows_have_reasons(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadExample) as found:
        preference_row(fields, ORIGIN)
    assert found.value.reason == reason


def test_an_input_that_is_no_text_is_kept_in_the_metadata() -> None:
    fields = {"instruction": "q", "input": {"table": 1}, "chosen": "yes", "rejected": "no"}
    made = preference_row(fields, ORIGIN)
    assert made["prompt"] == [USER]
    assert json.loads(made["metadata"]) == {"input": {"table": 1}}


def test_public_preference_sets_are_read(
    shared_data: Path,
    snapshot: Callable[..., list[tuple[Manifest, str]]],
    run_stage: Callable[..., Manifest],
    read_table: Callable[..., Any],
) -> None:
    files = {path.name: path.read_bytes() for path in (shared_data / "preference").glob("*.zst")}
    made = run_stage(Preferences, {}, {"snapshot": snapshot(files)})
    # Three dialogues of hh-rlhf hold an empty turn, so that one speaker stands twice in a row.
    assert made.counts["bad_role_order"] == 3
    rows = read_table(made, "preferences").to_pylist()
    assert len(rows) == 221 + 196 + 1618 - 3
    assert len({row["preference_id"] for row in rows}) == len(rows)
    assert all(row["prompt"][-1]["role"] == "user" for row in rows)
