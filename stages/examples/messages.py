"""Chat messages in the shapes that data sets use, brought to the one that the kinds describe."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from stages.engine.reading.rows import metadata_json
from stages.engine.strict_json import parse_json
from stages.examples.conversion import BadExample

Message = dict[str, Any]
"""A row of `artifacts_schema.kinds.examples.MESSAGES`; every key is there."""
MessageFields = dict[str, Any]
"""Fields of a message other than the known ones."""

_CALL_ROLES = ("function_call", "tool_call")
"""What the assistant says by LLaMA-Factory's and ms-swift's names; the text is the call's JSON."""
_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "prompter": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "tool": "tool",
    "tool_response": "tool",
    "function": "tool",
    "function_response": "tool",
    "observation": "tool",
    **dict.fromkeys(_CALL_ROLES, "assistant"),
}
"""Name of a speaker → role."""
_REASONING = ("reasoning_content", "reasoning", "thinking")
_CALL_FIELDS = ("id", "type", "index", "function", "name", "arguments", "parameters", "input")
_WEIGHTS = {"weight": int | float, "train": bool, "training": bool, "loss": bool}
"""OpenAI's field, axolotl's two, ms-swift's."""


def message(role: str, content: str, **fields: Any) -> Message:
    """A message of the kind's shape; what is not in `fields` is absent."""
    absent = dict.fromkeys(("reasoning", "tool_call_id", "name", "weight"))
    return {"role": role, "content": content, **absent, "tool_calls": [], **fields}


def parse_messages(value: Any) -> tuple[list[Message], dict[str, MessageFields]]:
    """Messages of a list, and by position the fields of each that have no place in the kind.

    Messages are {"role", "content"} or ShareGPT's {"from", "value"}, with tool calls, reasoning and
    weights under the names that OpenAI's API, axolotl, ms-swift and LLaMA-Factory use. Nulls mean
    absent: a Parquet file has every key in every message. A content may be a list of parts; its
    texts are joined. Raises BadExample with not_messages, unknown_role, no_text_content,
    bad_tool_call, bad_weight.
    """
    if not isinstance(value, list) or not value:
        raise BadExample("not_messages", f"{type(value).__name__} instead of a list of messages")
    messages, extra = [], {}
    for position, item in enumerate(value):
        one, fields = parse_message(item)
        messages.append(one)
        if fields:
            extra[str(position)] = fields
    return messages, extra


def parse_message(value: Any) -> tuple[Message, MessageFields]:
    """One message and its other fields; see `parse_messages`."""
    if not isinstance(value, dict):
        raise BadExample("not_messages", f"{type(value).__name__} instead of a message")
    fields = {name: item for name, item in value.items() if item is not None}
    speaker = _take(fields, ("role", "from"))
    name = speaker.strip().lower() if isinstance(speaker, str) else None
    role = _ROLES.get(name) if name is not None else None
    if role is None:
        raise BadExample("unknown_role", str(speaker))
    content, reasoning, parts = _content(_take(fields, ("content", "value")), fields)
    parts += _as_list(_take(fields, ("tool_calls",)) or [])
    if one_call := _take(fields, ("function_call",)):
        parts.append(one_call)
    calls = [_tool_call(part, fields, position) for position, part in enumerate(parts)]
    if name in _CALL_ROLES and not calls and (spelt := _spelt_calls(content, fields)):
        content, calls = "", spelt
    if calls and role != "assistant":
        raise BadExample("bad_tool_call", f"calls by {role}")
    if content is None:
        if not calls:
            raise BadExample("no_text_content", "no content")
        content = ""
    for key in _REASONING:
        if isinstance(fields.get(key), str):
            reasoning.append(fields.pop(key))
    thoughts = list(dict.fromkeys(text for text in reasoning if text.strip()))
    made = message(
        role,
        content,
        reasoning="\n".join(thoughts) or None,
        tool_calls=calls,
        tool_call_id=_take_text(fields, "tool_call_id"),
        name=_take_text(fields, "name"),
        weight=_weight(fields),
    )
    return made, fields


def check_order(messages: Sequence[Message], last: Sequence[str] = ("assistant",)) -> None:
    """Raise BadExample unless the messages are a talk: contents there, turns in order, ended right.

    A system message comes first; then the user; no role speaks twice in a row, except tools,
    which answer the assistant. An assistant's content may be empty where it calls tools, a tool's
    wherever it had nothing to say.
    """
    for one in messages:
        if not one["content"].strip() and not one["tool_calls"] and one["role"] != "tool":
            raise BadExample("empty_message", one["role"])
    roles = [one["role"] for one in messages]
    if not roles or roles[-1] not in last:
        raise BadExample("wrong_last_role", f"{'-'.join(roles)}, the last should be {last[0]}")
    talk = roles[1:] if roles[0] == "system" else roles
    before = None
    for role in talk:
        if role not in _FOLLOWERS[before]:
            raise BadExample("role_order", "-".join(roles))
        before = role


_FOLLOWERS: dict[str | None, tuple[str, ...]] = {
    None: ("user",),
    "user": ("assistant",),
    "assistant": ("user", "tool"),
    "tool": ("assistant", "tool"),
}


def take_tools(fields: dict[str, Any]) -> str | None:
    """Take the definitions of tools out of a row's `fields`, as JSON text of a list.

    None where there are none; a `tools` that is something else stays in `fields`.
    """
    for name in ("tools", "functions"):
        value = fields.get(name)
        if isinstance(value, str):
            try:
                value = _parse(value) if value.strip() else []
            except ValueError:
                continue
        if isinstance(value, dict):
            value = [value]
        if isinstance(value, list):
            del fields[name]
            if value:
                return _json([_parse_tool(tool) for tool in value])
    return None


def with_system(fields: dict[str, Any], messages: list[Message]) -> list[Message]:
    """The messages after the system prompt that some data sets keep in a field of its own."""
    system = fields.get("system")
    if isinstance(system, str) and system.strip() and messages[0]["role"] != "system":
        del fields["system"]
        return [message("system", system), *messages]
    return messages


def shift_positions(extra: Mapping[str, MessageFields], by: int) -> dict[str, MessageFields]:
    """Other fields of messages, whose positions are `by` further on."""
    return {str(int(position) + by): fields for position, fields in extra.items()}


def with_message_fields(
    fields: dict[str, Any], extra: Mapping[str, Mapping[str, MessageFields]]
) -> str:
    """JSON for `metadata`: a row's other fields, and those of messages, by column and position."""
    extra = {column: by_position for column, by_position in extra.items() if by_position}
    if not extra:
        return metadata_json(fields)
    name = "message_fields"
    while name in fields:
        name += "_"
    return metadata_json({**fields, name: extra})


def _take(fields: dict[str, Any], names: tuple[str, ...]) -> Any:
    """Remove and return the first of `names` that is there."""
    return next((fields.pop(name) for name in names if name in fields), None)


def _take_text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    del fields[name]
    return str(value) or None


def _content(content: Any, rest: MessageFields) -> tuple[str | None, list[str], list[Any]]:
    """Text, reasoning and tool calls (as they are) of a content, which may be a list of parts.

    What else a part has goes to `rest`.
    """
    if content is None or isinstance(content, str):
        return content, [], []
    if not isinstance(content, list):
        raise BadExample("no_text_content", f"{type(content).__name__} instead of a text")
    texts: list[str] = []
    reasoning: list[str] = []
    calls: list[Any] = []
    for position, item in enumerate(content):
        part = {"type": "text", "text": item} if isinstance(item, str) else item
        kind = part.get("type") if isinstance(part, dict) else type(part).__name__
        if kind == "tool_use":
            calls.append(part)
            continue
        thought = kind in ("reasoning", "thinking")
        names = (*_REASONING, "text") if thought else ("text",)
        named = part if isinstance(part, dict) else {}
        text = next((named[name] for name in names if isinstance(named.get(name), str)), None)
        if text is None:
            raise BadExample("no_text_content", f"a part of type {kind}")
        (reasoning if thought else texts).append(text)
        _keep_others(rest, "content_parts", position, named, ("type", *names))
    return ("\n".join(texts) if texts else None), reasoning, calls


def _keep_others(
    rest: MessageFields, name: str, position: int, value: Mapping[str, Any], known: Sequence[str]
) -> None:
    """Put the other fields of `value` under `name` and `position` into `rest`."""
    others = {key: item for key, item in value.items() if key not in known and item is not None}
    if others:
        rest.setdefault(name, {})[str(position)] = others


def _as_list(value: Any) -> list[Any]:
    """Tool calls as a list, or as JSON text of one."""
    if isinstance(value, str):
        try:
            value = _parse(value)
        except ValueError:
            raise BadExample("bad_tool_call", value[:80]) from None
    if not isinstance(value, list):
        raise BadExample("bad_tool_call", f"{type(value).__name__} instead of a list of calls")
    return value


def _tool_call(call: Any, rest: MessageFields, position: int = 0) -> dict[str, Any]:
    """OpenAI's call ({"function": {"name", "arguments"}}), a bare one, or Anthropic's `input`."""
    if not isinstance(call, dict):
        raise BadExample("bad_tool_call", f"{type(call).__name__} instead of a call")
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    _keep_others(rest, "other_tool_call_fields", position, {**call, **inner}, _CALL_FIELDS)
    name = inner.get("name")
    if not isinstance(name, str) or not name.strip():
        raise BadExample("bad_tool_call", "a call without the name of a tool")
    candidates = (inner.get(key) for key in ("arguments", "parameters", "input"))
    arguments = next((value for value in candidates if value is not None), None)
    index = call.get("id")
    return {
        "id": None if index is None else str(index),
        "name": name,
        "arguments": _arguments(arguments),
    }


def _arguments(value: Any) -> str:
    """JSON text; text that is JSON stays as it is, character by character."""
    if not isinstance(value, str):
        return _json(_without_nulls(value if value is not None else {}))
    if not value.strip():
        return "{}"
    try:
        _parse(value)
    except ValueError:
        raise BadExample("bad_tool_call", f"arguments that are no JSON: {value[:60]}") from None
    return value


def _spelt_calls(content: str | None, rest: MessageFields) -> list[dict[str, Any]]:
    """Calls that ShareGPT's `function_call` holds as JSON; none if it is not such JSON."""
    try:
        value = _parse(content or "")
        calls = value if isinstance(value, list) else [value]
        return [_tool_call(call, rest, position) for position, call in enumerate(calls)]
    except (ValueError, BadExample):
        return []


def _parse_tool(tool: Any) -> Any:
    """A definition of a tool; some data sets keep each as JSON text."""
    if isinstance(tool, str):
        try:
            return _parse(tool)
        except ValueError:
            return tool
    return _without_nulls(tool)


def _weight(fields: dict[str, Any]) -> float | None:
    """How much the message counts in training, taken out of `fields`; true is 1, false 0."""
    name = next((n for n, kind in _WEIGHTS.items() if isinstance(fields.get(n), kind)), None)
    if name is None:
        return None
    weight = float(fields.pop(name))
    if not math.isfinite(weight) or weight < 0:
        raise BadExample("bad_weight", str(weight))
    return weight


def _without_nulls(value: Any) -> Any:
    """Objects without their null fields, at every depth: `datasets` gives all objects all keys."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _parse(text: str) -> Any:
    """JSON; ValueError for anything else, NaN and too deep a nesting included."""

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    return parse_json(text, parse_constant=refuse)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        raise BadExample("bad_tool_call", "no JSON") from None
