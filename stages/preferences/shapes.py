"""The shapes in which preference data comes, and the pair that each tells."""

from __future__ import annotations

from typing import Any

from stages.engine.reading.examples import BadExample, Origin
from stages.engine.reading.messages import Message, check_order, message_of, messages_of
from stages.engine.reading.rows import metadata_json

_PROMPTS = ("prompt", "messages", "conversations", "instruction", "question")


def preference_of(fields: dict[str, Any], origin: Origin) -> dict[str, Any]:
    """The row of the `preferences` table that a data set's row makes.

    Raises BadExample: missing_field, prompts_differ, empty_answer, same_answer, role_order, …
    """
    if "chosen" not in fields or "rejected" not in fields:
        raise BadExample("missing_field", "fields " + ", ".join(sorted(fields)[:10]))
    before_chosen, chosen = _answer(fields.pop("chosen"))
    before_rejected, rejected = _answer(fields.pop("rejected"))
    if before_chosen != before_rejected:
        raise BadExample("prompts_differ", "chosen and rejected differ before their last answer")
    prompt = before_chosen or _prompt(fields)
    check_order(prompt, last="user")
    if not chosen.strip() or not rejected.strip():
        raise BadExample("empty_answer")
    if chosen.strip() == rejected.strip():
        raise BadExample("same_answer", chosen[:100])
    if before_chosen:  # The conversations tell the prompt; a field of it would only repeat it.
        fields.pop("prompt", None)
    return {
        "preference_id": origin.id,
        "source": origin.source,
        "prompt": prompt,
        "chosen": chosen,
        "rejected": rejected,
        "metadata": metadata_json(fields),
    }


def _answer(value: Any) -> tuple[list[Message], str]:
    """(messages before the answer, the answer); no messages where only the answer stands."""
    if isinstance(value, str):
        return [], value
    if isinstance(value, dict):
        return [], message_of(value)["content"]
    messages = messages_of(value)
    if messages[-1]["role"] != "assistant":
        raise BadExample("wrong_last_role", messages[-1]["role"])
    return messages[:-1], messages[-1]["content"]


def _prompt(fields: dict[str, Any]) -> list[Message]:
    """Take the prompt out of `fields`."""
    name = next((name for name in _PROMPTS if name in fields), None)
    if name is None:
        raise BadExample("missing_field", "no prompt: fields " + ", ".join(sorted(fields)[:10]))
    value = fields.pop(name)
    if not isinstance(value, str):
        messages = messages_of(value)
    else:
        more = fields.pop("input", "") if name == "instruction" else ""
        parts = [value, more] if isinstance(more, str) else [value]
        text = "\n\n".join(part for part in parts if part.strip())
        messages = [{"role": "user", "content": text}]
    system = fields.get("system")
    if isinstance(system, str) and system.strip() and messages[0]["role"] != "system":
        del fields["system"]
        messages = [{"role": "system", "content": system}, *messages]
    return messages
