"""The shapes in which instruction data comes, and the conversation that each tells."""

from __future__ import annotations

from typing import Any

from stages.engine.reading.examples import BadExample, Origin
from stages.engine.reading.fields import rename_hint
from stages.engine.reading.messages import (
    Message,
    MessageFields,
    check_order,
    message,
    parse_message,
    parse_messages,
    shift_positions,
    take_tools,
    with_message_fields,
    with_system,
)

ANSWERS = ("completion", "response", "output", "answer")


def conversation_of(fields: dict[str, Any], origin: Origin) -> dict[str, Any]:
    """The row of the `conversations` table that a data set's row makes.

    Raises BadExample: unknown_shape, unknown_role, role_order, empty_message, wrong_last_role, …
    """
    tools = take_tools(fields)
    messages, extra = _messages(fields)
    size = len(messages)
    messages = with_system(fields, messages)
    extra = shift_positions(extra, len(messages) - size)
    check_order(messages)
    prompt = fields.get("prompt")
    if isinstance(prompt, str) and prompt.strip() in [one["content"].strip() for one in messages]:
        del fields["prompt"]  # A copy in the metadata would not be redacted.
    return {
        "conversation_id": origin.id,
        "source": origin.source,
        "messages": messages,
        "tools": tools,
        "metadata": with_message_fields(fields, {"messages": extra}),
    }


def _messages(fields: dict[str, Any]) -> tuple[list[Message], dict[str, MessageFields]]:
    """Take the messages out of `fields`, with what the kind has no place for."""
    for name in ("messages", "conversations"):
        if name in fields:
            return parse_messages(fields.pop(name))
    if "query" in fields and "answers" in fields:
        return _calls(fields)
    for name in ("instruction", "prompt", "question"):
        if name in fields:
            return _pair(fields, name)
    many = ("messages",) if any(isinstance(value, list) for value in fields.values()) else ()
    raise BadExample("unknown_shape", rename_hint(fields, many or ("prompt", "completion")))


def _calls(fields: dict[str, Any]) -> tuple[list[Message], dict[str, MessageFields]]:
    """xLAM's rows (Salesforce's function-calling-60k): a query, and the calls that answer it."""
    query = fields.pop("query")
    if not isinstance(query, str):
        raise BadExample("no_text_content", "'query' is no text")
    answer, extra = parse_message({"role": "assistant", "tool_calls": fields.pop("answers")})
    return [message("user", query), answer], {"1": extra} if extra else {}


def _pair(fields: dict[str, Any], asked: str) -> tuple[list[Message], dict[str, MessageFields]]:
    """A request (Alpaca's `input` below it) and its answer; both may be lists of messages (TRL)."""
    answer = next((name for name in ANSWERS if name in fields), None)
    if answer is None:
        found = rename_hint(fields, (asked, "completion"))
        raise BadExample("unknown_shape", f"'{asked}' without {', '.join(ANSWERS)}: {found}")
    if isinstance(fields[asked], list) and isinstance(fields[answer], list):
        return parse_messages([*fields.pop(asked), *fields.pop(answer)])
    texts = [fields.pop(asked), fields.pop("input", "") if asked == "instruction" else ""]
    content = fields.pop(answer)
    if not all(isinstance(text, str) for text in (*texts, content)):
        raise BadExample("no_text_content", f"'{asked}' or '{answer}' is no text")
    request = "\n\n".join(text for text in texts if text.strip())
    return [message("user", request), message("assistant", content)], {}
