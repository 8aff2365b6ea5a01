"""The shapes in which preference data comes, and the pair that each tells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from stages.engine.reading.examples import BadExample, Origin
from stages.engine.reading.fields import rename_hint
from stages.engine.reading.messages import (
    Message,
    MessageFields,
    check_order,
    message,
    parse_messages,
    shift_positions,
    take_tools,
    with_message_fields,
    with_system,
)

_PROMPTS = ("prompt", "messages", "conversations", "instruction", "question")
Parsed = tuple[list[Message], dict[str, MessageFields]]


def preference_of(fields: dict[str, Any], origin: Origin) -> dict[str, Any]:
    """The row of the `preferences` table that a data set's row makes.

    Raises BadExample: missing_field, prompts_differ, empty_answer, same_answer, role_order, …
    """
    if "chosen" not in fields or "rejected" not in fields:
        raise BadExample("missing_field", rename_hint(fields, ("chosen", "rejected")))
    tools = take_tools(fields)
    chosen, chosen_extra = _answer(fields.pop("chosen"))
    rejected, rejected_extra = _answer(fields.pop("rejected"))
    prompt_extra: dict[str, MessageFields] = {}
    if chosen[0]["role"] == rejected[0]["role"] == "assistant":
        start, prompt_extra = _prompt(fields)
    else:
        start, chosen, rejected = _split(chosen, rejected)
    answers = (chosen, rejected)
    if any(one["role"] in ("user", "system") for answer in answers for one in answer):
        raise BadExample("prompts_differ", "chosen and rejected differ before their last answer")
    check_order(start, last=("user", "tool"))
    prompt = with_system(fields, start)
    prompt_extra = shift_positions(prompt_extra, len(prompt) - len(start))
    _drop_repeated(fields, (start, prompt), answers)
    for answer in answers:
        if not any(one["content"].strip() or one["tool_calls"] for one in answer):
            raise BadExample("empty_answer")
        check_order([*prompt, *answer])
    if _stripped(chosen) == _stripped(rejected):
        raise BadExample("same_answer", chosen[-1]["content"][:100])
    extra = {"prompt": prompt_extra, "chosen": chosen_extra, "rejected": rejected_extra}
    return {
        "preference_id": origin.id,
        "source": origin.source,
        "prompt": prompt,
        "chosen": chosen,
        "rejected": rejected,
        "tools": tools,
        "metadata": with_message_fields(fields, extra),
    }


def _answer(value: Any) -> Parsed:
    """An answer alone, or a whole conversation that ends with it."""
    if isinstance(value, str):
        return [message("assistant", value)], {}
    messages, extra = parse_messages([value] if isinstance(value, dict) else value)
    if messages[-1]["role"] != "assistant":
        raise BadExample("wrong_last_role", messages[-1]["role"])
    return messages, extra


def _split(
    chosen: list[Message], rejected: list[Message]
) -> tuple[list[Message], list[Message], list[Message]]:
    """(prompt, chosen, rejected) of two whole conversations.

    The prompt ends where they part, or before the last message of the shorter one.
    """
    most = min(len(chosen), len(rejected)) - 1
    pairs = zip(chosen, rejected, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    size = min(shared, most)
    return chosen[:size], chosen[size:], rejected[size:]


def _drop_repeated(
    fields: dict[str, Any], prompts: Sequence[list[Message]], answers: Sequence[list[Message]]
) -> None:
    """Take fields out that only repeat the prompt, or it and an answer.

    Nothing redacts a copy in the metadata. `prompts` is the prompt without and with the row's
    system prompt.
    """
    value = fields.get("prompt")
    texts = [one["content"].strip() for prompt in prompts for one in prompt]
    if isinstance(value, str) and value.strip() in texts:
        del fields["prompt"]
    told = [[*prompt, *answer] for prompt in prompts for answer in ([], *answers)]
    for name in ("prompt", "messages", "conversations"):
        if isinstance(fields.get(name), list):
            try:
                messages, extra = parse_messages(fields[name])
            except BadExample:
                continue
            if messages in told and not extra:
                del fields[name]


def _stripped(answer: list[Message]) -> list[Message]:
    return [{**one, "content": one["content"].strip()} for one in answer]


def _prompt(fields: dict[str, Any]) -> Parsed:
    """Take the prompt out of `fields`."""
    name = next((name for name in _PROMPTS if name in fields), None)
    if name is None:
        raise BadExample("missing_field", f"no prompt: {rename_hint(fields, ('prompt',))}")
    value = fields.pop(name)
    if not isinstance(value, str):
        return parse_messages(value)
    more = name == "instruction" and isinstance(fields.get("input"), str)
    parts = [value, fields.pop("input")] if more else [value]
    return [message("user", "\n\n".join(part for part in parts if part.strip()))], {}
