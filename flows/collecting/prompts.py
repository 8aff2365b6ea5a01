"""Prompts of a snapshot: what a model is to answer, out of rows in the shapes of instruction data.

A prompt is `prompt`, `messages`, `conversations`, `instruction` (with `input`) or `question`, as
for `conversations` and `preferences`, or the beginning of `chosen` where that is a whole
conversation. What the assistant says last is left out: the model is to answer there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifacts_schema.errors import InputError
from artifacts_schema.identity import canonical_sha256
from stages.engine.inputs import Input
from stages.engine.reading.row import rename_hint
from stages.engine.reading.rows import read_rows
from stages.engine.sources import SourceFile, snapshot_name, source_files
from stages.examples.conversion import BadExample, row_fields
from stages.examples.messages import (
    Message,
    check_order,
    message,
    parse_messages,
    take_tools,
    with_system,
)

_TEXTS = ("prompt", "instruction", "question")
_NAMES = ("prompt", "messages", "conversations", "instruction", "question", "chosen")


@dataclass(frozen=True)
class Prompt:
    """Messages that end with a user's or a tool's, and what the assistant may call (JSON text)."""

    id: str
    """32 hex digits: hash of messages and tools."""
    messages: list[Message]
    tools: str | None


def read_prompts(snapshot: Input, most: int | None = None) -> tuple[list[Prompt], Counter[str]]:
    """The prompts of a snapshot in the order of its files and rows, and the reasons of other rows.

    The first `most`, by default all. A prompt that occurred before is one of the other rows
    (`duplicate_prompt`). InputError where there is no prompt at all.
    """
    prompts: dict[str, Prompt] = {}
    reasons = Counter[str]()
    first_problem = ""
    for file in source_files(snapshot):
        for prompt in _file_prompts(file):
            if isinstance(prompt, BadExample):
                reasons[prompt.reason] += 1
                first_problem = first_problem or f"{file.name}: {prompt.reason} {prompt.detail}"
            elif prompt.id in prompts:
                reasons["duplicate_prompt"] += 1
            else:
                prompts[prompt.id] = prompt
            if len(prompts) == most:
                return list(prompts.values()), reasons
    if not prompts:
        raise InputError(
            f"no row has a prompt: {first_problem.strip() or 'the files are empty'}",
            where=f"snapshot '{snapshot_name(snapshot)}'",
            hint=f"a row has one of {', '.join(_NAMES)}",
        )
    return list(prompts.values()), reasons


def plain_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages without the fields that are absent: templates ask whether a message has them."""
    return [
        {name: value for name, value in one.items() if value not in (None, [])} for one in messages
    ]


def _file_prompts(file: SourceFile) -> Iterator[Prompt | BadExample]:
    for row in read_rows(file):
        try:
            yield _prompt(row_fields(row, {}))
        except BadExample as bad:
            yield bad


def _prompt(fields: dict[str, Any]) -> Prompt:
    tools = take_tools(fields)
    messages = with_system(fields, _messages(fields))
    while messages and messages[-1]["role"] == "assistant":
        messages = messages[:-1]
    check_order(messages, last=("user", "tool"))
    return Prompt(canonical_sha256({"messages": messages, "tools": tools})[:32], messages, tools)


def _messages(fields: dict[str, Any]) -> list[Message]:
    name = next((name for name in _NAMES if name in fields), None)
    if name is None:
        raise BadExample("missing_field", rename_hint(fields, ("prompt",)))
    value = fields[name]
    if not isinstance(value, str):
        return parse_messages(value)[0]
    if name not in _TEXTS:
        raise BadExample("not_messages", f"'{name}' is a text")
    more = fields.get("input") if name == "instruction" else None
    parts = [value, more] if isinstance(more, str) else [value]
    return [message("user", "\n\n".join(part for part in parts if part.strip()))]
