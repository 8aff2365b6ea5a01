"""Instruction data in its common shapes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from artifacts_schema.errors import InputError
from artifacts_schema.identity import document_id
from artifacts_schema.manifest import Manifest
from stages.examples.conversion import BadExample, Origin
from stages.examples.messages import message
from stages.examples.shapes import conversation_row
from stages.examples.stage import Conversations

Snapshot = Callable[..., list[tuple[Manifest, str]]]
ORIGIN = Origin("0" * 32, "x.jsonl", "x")
USER, REPLY = message("user", "q"), message("assistant", "a")


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({"messages": [USER, REPLY]}, [USER, REPLY]),
        (
            {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]},
            [USER, REPLY],
        ),
        ({"instruction": "q", "output": "a"}, [USER, REPLY]),
        (
            {"instruction": "q", "input": "on this", "output": "a"},
            [message("user", "q\n\non this"), REPLY],
        ),
        ({"prompt": "q", "completion": "a"}, [USER, REPLY]),
        (
            {"system": "be kind", "prompt": "q", "response": "a"},
            [message("system", "be kind"), USER, REPLY],
        ),
    ],
)
def test_shapes_of_data_sets(fields: dict[str, Any], messages: list[dict[str, str]]) -> None:
    made = conversation_row({**fields, "license": "MIT"}, ORIGIN)
    assert made["messages"] == messages
    assert json.loads(made["metadata"]) == {"license": "MIT"}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"text": "x"}, "unknown_shape"),
        ({"instruction": "q"}, "unknown_shape"),
        ({"instruction": "q", "output": 5}, "no_text_content"),
        ({"instruction": "q", "output": " "}, "empty_message"),
        ({"messages": [USER]}, "wrong_last_role"),
        ({"messages": [REPLY]}, "role_order"),
    ],
)
def test_bad_rows_have_reasons(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadExample) as found:
        conversation_row(fields, ORIGIN)
    assert found.value.reason == reason


def test_rows_are_kept_in_order_named_by_their_place_and_the_bad_ones_counted(
    snapshot: Snapshot, run_stage: Callable[..., Manifest], read_table: Callable[..., Any]
) -> None:
    good = {"messages": [USER, REPLY]}
    files = {"a.jsonl": lines(*[good] * 9) + b"{broken\n" + lines(good, {"messages": [USER]})}
    config = {"max_bad_share": 0.2}
    made = run_stage(Conversations, config, {"snapshot": snapshot(files, "chats")})
    assert made.conservation is not None
    assert made.conservation.model_dump() == {
        "records_in": 12,
        "out": 10,
        "dropped": {"malformed_json": 1, "wrong_last_role": 1},
    }
    rows = read_table(made, "conversations").to_pylist()
    length = len(lines(good))
    assert rows[1]["conversation_id"] == document_id("chats", "a.jsonl", length)
    assert {row["source"] for row in rows} == {"a"}
    with pytest.raises(InputError, match=r"\b2 of 12\b"):
        run_stage(Conversations, {}, {"snapshot": snapshot(files, "chats")})


def test_other_names_are_mapped_and_rows_limited(
    snapshot: Snapshot, run_stage: Callable[..., Manifest], read_table: Callable[..., Any]
) -> None:
    files = {"a.json": json.dumps([{"frage": "q", "antwort": f"a{n}"} for n in range(5)]).encode()}
    config = {"rename": {"frage": "instruction", "antwort": "output"}, "max_items": 2}
    made = run_stage(Conversations, {**config, "source": "s"}, {"snapshot": snapshot(files)})
    rows = read_table(made, "conversations").to_pylist()
    assert [row["messages"][1]["content"] for row in rows] == ["a0", "a1"]
    assert {row["source"] for row in rows} == {"s"}


def test_a_snapshot_without_conversations_is_an_error(
    snapshot: Snapshot, run_stage: Callable[..., Manifest]
) -> None:
    with pytest.raises(InputError) as caught:
        run_stage(Conversations, {}, {"snapshot": snapshot({"a.jsonl": b"\n"}, "chats")})
    assert caught.value.where == "snapshot 'chats'"


def test_the_same_bytes_for_one_worker_and_two(
    snapshot: Snapshot, run_stage: Callable[..., Manifest]
) -> None:
    row = {"messages": [USER, REPLY]}
    given = snapshot({f"{n}.jsonl": lines(*[row] * (n + 1)) for n in range(3)})
    one = run_stage(Conversations, {}, {"snapshot": given}, {"workers": 1})
    two = run_stage(Conversations, {}, {"snapshot": given}, {"workers": 2}, force=True)
    assert one.output("conversations").digest == two.output("conversations").digest


def test_public_instruction_sets_are_read_whole(
    shared_data: Path, snapshot: Snapshot, run_stage: Callable[..., Manifest]
) -> None:
    files = {path.name: path.read_bytes() for path in (shared_data / "sft").glob("*.zst")}
    made = run_stage(Conversations, {}, {"snapshot": snapshot(files)})
    assert made.counts["rows_out"] == 768 + 758 + 1606 + 815 + 222 + 3000 + 5500 + 149
