"""The shapes in which instruction data comes, and the conversation that each tells."""

from __future__ import annotations

from typing import Any

from stages.engine.reading.examples import BadExample, Origin
from stages.engine.reading.messages import Message, check_order, messages_of
from stages.engine.reading.rows import metadata_json

ANSWERS = ("completion", "response", "output", "answer")


def conversation_of(fields: dict[str, Any], origin: Origin) -> dict[str, Any]:
    """The row of the `conversations` table that a data set's row makes.

    Raises BadExample: unknown_shape, unknown_role, role_order, empty_message, wrong_last_role, …
    """
    messages = _messages(fields)
    check_order(messages, last="assistant")
    return {
        "conversation_id": origin.id,
        "source": origin.source,
        "messages": messages,
        "metadata": metadata_json(fields),
    }


def _messages(fields: dict[str, Any]) -> list[Message]:
    """Take the messages out of `fields`."""
    for name in ("messages", "conversations"):
        if name in fields:
            messages = messages_of(fields.pop(name))
            return _with_system(fields, messages)
    for name in ("instruction", "prompt", "question"):
        if name in fields:
            return _pair(fields, name)
    raise BadExample("unknown_shape", "fields " + ", ".join(sorted(fields)[:10]))


def _pair(fields: dict[str, Any], asked: str) -> list[Message]:
    """A request (Alpaca's `input` below it) and its answer."""
    answer = next((name for name in ANSWERS if name in fields), None)
    if answer is None:
        raise BadExample("unknown_shape", f"'{asked}' without {', '.join(ANSWERS)}")
    texts = [fields.pop(asked), fields.pop("input", "") if asked == "instruction" else ""]
    content = fields.pop(answer)
    if not all(isinstance(text, str) for text in (*texts, content)):
        raise BadExample("no_text_content", f"'{asked}' or '{answer}' is no text")
    request = "\n\n".join(text for text in texts if text.strip())
    messages = [{"role": "user", "content": request}, {"role": "assistant", "content": content}]
    return _with_system(fields, messages)


def _with_system(fields: dict[str, Any], messages: list[Message]) -> list[Message]:
    """The messages behind the system prompt that some data sets keep in a field of its own."""
    system = fields.get("system")
    if isinstance(system, str) and system.strip() and messages[0]["role"] != "system":
        del fields["system"]
        return [{"role": "system", "content": system}, *messages]
    return messages
