"""Chat messages in the shapes that data sets use, brought to one: a role and a text each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stages.engine.reading.examples import BadExample

Message = dict[str, str]

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
    "function": "tool",
    "observation": "tool",
    "function_call": "assistant",
}
"""Name of a speaker → role. LLaMA-Factory's `function_call` is what the assistant says."""


def messages_of(value: Any) -> list[Message]:
    """Messages given as {"role", "content"} or as ShareGPT's {"from", "value"}; texts unchanged.

    A content may be a list of parts as chat APIs give it; its texts are joined. Raises BadExample
    with not_messages, unknown_role or no_text_content.
    """
    if not isinstance(value, list) or not value:
        raise BadExample("not_messages", f"{type(value).__name__} instead of a list of messages")
    return [message_of(item) for item in value]


def message_of(value: Any) -> Message:
    """One message; see `messages_of`."""
    if not isinstance(value, dict):
        raise BadExample("not_messages", f"{type(value).__name__} instead of a message")
    told = value.get("role", value.get("from"))
    role = _ROLES.get(told.strip().lower()) if isinstance(told, str) else None
    if role is None:
        raise BadExample("unknown_role", str(told))
    return {"role": role, "content": _text(value.get("content", value.get("value")))}


def check_order(messages: Sequence[Message], last: str) -> None:
    """Raise BadExample unless the messages are a talk: contents there, turns in order, `last` last.

    A system message only opens; then the user begins; nobody speaks twice in a row, except tools,
    which answer the assistant.
    """
    for message in messages:
        if not message["content"].strip():
            raise BadExample("empty_message", message["role"])
    roles = [message["role"] for message in messages]
    if roles[-1:] != [last]:
        raise BadExample("wrong_last_role", f"{'-'.join(roles)}, the last should be {last}")
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


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [p.get("text") if isinstance(p, dict) else p for p in content]
        if parts and all(isinstance(part, str) for part in parts):
            return "\n".join(str(part) for part in parts)
    raise BadExample("no_text_content", f"{type(content).__name__} instead of a text")
