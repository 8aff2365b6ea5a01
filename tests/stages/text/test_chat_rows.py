"""Texts of chat rows and back: what is replaced in JSON text leaves JSON text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from chat_data import MAIL, PAIRS, TALKS, call, conversation, message
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.text.chat_rows import ChatShard, Text, list_texts, replace_text, split_pieces

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def replaced(text: str, start: int, end: int, by: str) -> str:
    return text[:start] + by + text[end:]


@settings(max_examples=200, deadline=None)
@given(VALUES, st.booleans(), st.text(max_size=4), st.data())
def test_a_span_of_a_piece_is_replaced_and_nothing_else(
    value: Any, ascii_only: bool, by: str, data: Any
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    pieces = split_pieces(Text("tools", None, text, is_json=True))
    for piece in pieces:
        start = data.draw(st.integers(0, len(piece.text) - 1))
        end = data.draw(st.integers(start + 1, len(piece.text)))
        made = replaced(text, *piece.span(start, end), piece.replacement(by))
        json.loads(made)
        if piece.literal is not None and piece.literal.startswith('"'):
            after = split_pieces(Text("tools", None, made, is_json=True))
            expected = piece.text[:start] + by + piece.text[end:]
            assert not expected or expected in [one.text for one in after]


@settings(max_examples=200, deadline=None)
@given(VALUES, st.booleans(), st.data())
def test_a_span_of_the_whole_text_is_clipped_to_its_pieces(
    value: Any, ascii_only: bool, data: Any
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    for piece in reversed(split_pieces(Text("tools", None, text, is_json=True))):
        if (place := piece.clipped(start, end)) is not None:
            text = replaced(text, *place, piece.replacement("-"))
    json.loads(text)


def test_every_text_of_a_row_has_its_place() -> None:
    assert [(text.place, text.role) for text in list_texts(TALKS[0], "conversations")] == [
        ("messages/0/content", "user"),
        ("messages/1/reasoning", "assistant"),
        ("messages/1/tool_calls/0/arguments", "assistant"),
        ("messages/2/content", "tool"),
        ("messages/3/content", "assistant"),
    ]
    places = [text.place for text in list_texts(PAIRS[0], "preferences")]
    assert places == ["prompt/0/content", "chosen/0/content", "rejected/0/content"]
    row = conversation("a", message("user", "x"), message("assistant", "y"), tools="[]")
    assert next(list_texts(row, "conversations")) == Text("tools", None, "[]", is_json=True)


def test_a_text_is_changed_at_its_place_alone() -> None:
    row = conversation("a", message("assistant", "one", tool_calls=[call("{}"), call("[1]")]))
    replace_text(row, "messages/0/tool_calls/1/arguments", lambda text: text + "2")
    assert [one["arguments"] for one in row["messages"][0]["tool_calls"]] == ["{}", "[1]2"]
    assert row["messages"][0]["content"] == "one"


def test_rows_are_read_by_row_group() -> None:
    """pyarrow cannot read 2 GiB of nested text at once, but each of its row groups."""

    class Nested:
        def read(self) -> pa.Table:
            raise pa.ArrowNotImplementedError("chunked array outputs")

        def row_groups(self) -> Iterator[pa.Table]:
            yield from (pa.Table.from_pylist([row]) for row in TALKS)

    shard: Any = Nested()
    assert ChatShard("a", "conversations", shard, "a").rows() == TALKS


@pytest.mark.parametrize(
    "text", ["not JSON", '{"a": ', f'{{"a" "{MAIL}"}}', "[" * 100_000, "1" * 10_000]
)
def test_what_is_no_json_is_searched_as_it_stands(text: str) -> None:
    (piece,) = split_pieces(Text("tools", None, text, is_json=True))
    assert piece.text == text
    assert piece.span(0, len(text)) == (0, len(text))


def test_half_of_a_surrogate_pair_is_no_obstacle() -> None:
    text = '{"a": "\\ud83d anna", "b": "\\ud83d\\ude00 anna"}'
    for piece in split_pieces(Text("tools", None, text, is_json=True)):
        if "anna" in piece.text:
            start = piece.text.index("anna")
            assert text[slice(*piece.span(start, start + 4))] == "anna"
