"""Conversations and preference pairs as texts: each text of a row with its place, and back.

A place is a path within the row: `messages/3/content`, `chosen/0/tool_calls/1/arguments`, `tools`.
Of JSON text (arguments, tools) the strings and numbers are the pieces that are searched, decoded;
what replaces a part of one is encoded again, so JSON text stays JSON text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from artifacts_schema.errors import InputError
from artifacts_schema.kinds import sidecar_folder

if TYPE_CHECKING:
    from stages.engine import Input, Shard

Row = dict[str, Any]
FOLDER = "chat"
"""Side tables of chat rows lie in a folder of this name, in one for each output they describe."""
ID_COLUMN = {"conversations": "conversation_id", "preferences": "preference_id"}
"""Roles (and kinds) of chat rows, and the column of their ids."""
_MESSAGES = {"conversations": ("messages",), "preferences": ("prompt", "chosen", "rejected")}


@dataclass(frozen=True)
class ChatShard:
    """A shard of conversations or preferences; `path` is that of the tables that describe it."""

    id: str
    role: str
    shard: Shard
    path: str

    def rows(self) -> list[Row]:
        """All rows; by row group, as pyarrow cannot read 2 GiB of nested text into one array."""
        return [row for group in self.shard.row_groups() for row in group.to_pylist()]

    def ids(self, rows: Sequence[Row]) -> list[str]:
        """Their ids."""
        return [row[ID_COLUMN[self.role]] for row in rows]


def list_chat_shards(inputs: Mapping[str, Sequence[Input]], *, where: str) -> list[ChatShard]:
    """The shards of all inputs by role, in order. InputError if one output is listed twice."""
    shards: list[ChatShard] = []
    seen: set[str] = set()
    for role in ID_COLUMN:
        for number, one in enumerate(inputs.get(role, ())):
            if one.digest in seen:
                raise InputError(f"the same {role} are given twice", where=where)
            seen.add(one.digest)
            folder = f"{FOLDER}/{sidecar_folder(one.digest)}"
            shards += [
                ChatShard(f"{role}-{number:02d}-{shard.id}", role, shard, f"{folder}/{shard.path}")
                for shard in one.shards()
            ]
    return shards


class Text(NamedTuple):
    """A text of a row. `role` is that of its message; None for the definitions of tools."""

    place: str
    role: str | None
    text: str
    is_json: bool = False


def list_texts(row: Row, kind: str) -> Iterator[Text]:
    """Every text of a row that a model may be given, in order; empty ones are left out."""
    if row["tools"]:
        yield Text("tools", None, row["tools"], True)
    for column in _MESSAGES[kind]:
        for number, message in enumerate(row[column]):
            place, role = f"{column}/{number}", message["role"]
            for name in ("content", "reasoning"):
                if message[name]:
                    yield Text(f"{place}/{name}", role, message[name])
            for call, called in enumerate(message["tool_calls"]):
                yield Text(f"{place}/tool_calls/{call}/arguments", role, called["arguments"], True)


def replace_text(row: Row, place: str, change: Any) -> None:
    """Replace the text at `place` by `change(text)`, in the row itself."""
    *way, last = place.split("/")
    holder: Any = row
    for step in way:
        holder = holder[int(step) if isinstance(holder, list) else step]
    holder[last] = change(holder[last])


_LITERAL = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+-]*', re.DOTALL)
_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.",
    re.DOTALL,
)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Piece:
    """What is searched of a text: all of it, or a string or number of JSON text, decoded.

    `literal` is that one as it is written, from character `start` of the text on; None for a text
    that is no JSON.
    """

    text: str
    literal: str | None = None
    start: int = 0
    owner: Text | None = field(default=None, compare=False)

    @cached_property
    def _places(self) -> list[int]:
        """Where each character of the string begins in the text, and where the last one ends."""
        assert self.literal is not None
        inner = self.literal[1:-1]
        starts = [self.start + 1 + match.start() for match in _CHARACTER.finditer(inner)]
        return [*starts, self.start + 1 + len(inner)]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The place in the text of the characters [start, end) of the piece."""
        if self.literal is None:
            return start, end
        if not self.literal.startswith('"'):
            return self.start, self.start + len(self.literal)
        return self._places[start], self._places[end]

    def clipped(self, start: int, end: int) -> tuple[int, int] | None:
        """What may be replaced of the characters [start, end) of the text; None if nothing may."""
        if self.literal is None:
            return start, end
        if end <= self.start or start >= self.start + len(self.literal):
            return None
        if not self.literal.startswith('"'):
            return self.start, self.start + len(self.literal)
        places = self._places
        first = max(bisect_right(places, start) - 1, 0)
        last = min(bisect_left(places, end), len(places) - 1)
        return (places[first], places[last]) if first < last else None

    def replacement(self, replacement: str) -> str:
        """What is written in place of a span: encoded where the text is JSON."""
        if self.literal is None:
            return replacement
        encoded = json.dumps(replacement, ensure_ascii=False)
        return encoded[1:-1] if self.literal.startswith('"') else encoded


def split_pieces(text: Text) -> list[Piece]:
    """The pieces of a text, from left to right."""
    if not text.is_json or not _is_json(text.text):
        return [Piece(text.text, owner=text)]
    pieces = []
    for match in _LITERAL.finditer(text.text):
        literal = match.group()
        # Of half a surrogate pair no table can hold the text.
        value = _LONE_SURROGATE.sub("\ufffd", str(json.loads(literal))) if literal[0] == '"' else ""
        if value or literal[0] != '"':
            pieces.append(Piece(value or literal, literal, match.start(), text))
    return pieces


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
