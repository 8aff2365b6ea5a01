"""The shapes of instruction, preference and evaluation data, and the row that each makes."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from stages.engine.reading.row import rename_hint
from stages.engine.reading.rows import metadata_json
from stages.examples.conversion import BadExample, Origin
from stages.examples.messages import (
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


def conversation_row(fields: dict[str, Any], origin: Origin) -> dict[str, Any]:
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


def _pair(
    fields: dict[str, Any], request_field: str
) -> tuple[list[Message], dict[str, MessageFields]]:
    """A request (Alpaca's `input` below it) and its answer; both may be lists of messages (TRL)."""
    answer = next((name for name in ANSWERS if name in fields), None)
    if answer is None:
        hint = rename_hint(fields, (request_field, "completion"))
        raise BadExample("unknown_shape", f"'{request_field}' without {', '.join(ANSWERS)}: {hint}")
    if isinstance(fields[request_field], list) and isinstance(fields[answer], list):
        return parse_messages([*fields.pop(request_field), *fields.pop(answer)])
    texts = [
        fields.pop(request_field),
        fields.pop("input", "") if request_field == "instruction" else "",
    ]
    content = fields.pop(answer)
    if not all(isinstance(text, str) for text in (*texts, content)):
        raise BadExample("no_text_content", f"'{request_field}' or '{answer}' is no text")
    request = "\n\n".join(text for text in texts if text.strip())
    return [message("user", request), message("assistant", content)], {}


_PROMPTS = ("prompt", "messages", "conversations", "instruction", "question")
Parsed = tuple[list[Message], dict[str, MessageFields]]


def preference_row(fields: dict[str, Any], origin: Origin) -> dict[str, Any]:
    """The row of the `preferences` table that a data set's row makes.

    Two answers, or one with a `label` (TRL's unpaired rows), whose other side is then empty.
    Raises BadExample: missing_field, prompts_differ, empty_answer, same_answer, role_order, …
    """
    tools = take_tools(fields)
    compared = "chosen" in fields or "rejected" in fields
    labelled = not compared and "completion" in fields and "label" in fields
    read = _labelled_answer if labelled else _compared_answers
    (start, prompt_extra), answers = read(fields)
    check_order(start, last=("user", "tool"))
    prompt = with_system(fields, start)
    prompt_extra = shift_positions(prompt_extra, len(prompt) - len(start))
    texts = [one for one, _ in answers.values()]
    _drop_repeated(fields, (start, prompt), texts)
    for answer in texts:
        if not any(one["content"].strip() or one["tool_calls"] for one in answer):
            raise BadExample("empty_answer")
        check_order([*prompt, *answer])
    if not labelled and _strip_contents(texts[0]) == _strip_contents(texts[1]):
        raise BadExample("same_answer", texts[0][-1]["content"][:100])
    extra = {"prompt": prompt_extra, **{side: one for side, (_, one) in answers.items()}}
    return {
        "preference_id": origin.id,
        "source": origin.source,
        "prompt": prompt,
        **{side: answers[side][0] if side in answers else [] for side in ("chosen", "rejected")},
        "tools": tools,
        "metadata": with_message_fields(fields, extra),
    }


def _compared_answers(fields: dict[str, Any]) -> tuple[Parsed, dict[str, Parsed]]:
    """Take a prompt and two answers to it out of `fields`."""
    if "chosen" not in fields or "rejected" not in fields:
        raise BadExample("missing_field", rename_hint(fields, ("chosen", "rejected")))
    chosen, chosen_extra = _answer(fields.pop("chosen"))
    rejected, rejected_extra = _answer(fields.pop("rejected"))
    prompt_extra: dict[str, MessageFields] = {}
    if chosen[0]["role"] == rejected[0]["role"] == "assistant":
        start, prompt_extra = _prompt(fields)
    else:
        start, chosen, rejected = _split(chosen, rejected)
    if any(one["role"] in ("user", "system") for one in (*chosen, *rejected)):
        raise BadExample("prompts_differ", "chosen and rejected differ before their last answer")
    answers = {"chosen": (chosen, chosen_extra), "rejected": (rejected, rejected_extra)}
    return (start, prompt_extra), answers


def _labelled_answer(fields: dict[str, Any]) -> tuple[Parsed, dict[str, Parsed]]:
    """Take a prompt, an answer to it and its label out of `fields`."""
    label = fields.pop("label")
    if not isinstance(label, int) or label not in (0, 1):
        raise BadExample("bad_label", f"{label!r} is neither true nor false"[:100])
    side = "chosen" if label else "rejected"
    return _prompt(fields), {side: _answer(fields.pop("completion"))}


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
    repetitions = [[*prompt, *answer] for prompt in prompts for answer in ([], *answers)]
    for name in ("prompt", "messages", "conversations"):
        if isinstance(fields.get(name), list):
            try:
                messages, extra = parse_messages(fields[name])
            except BadExample:
                continue
            if messages in repetitions and not extra:
                del fields[name]


def _strip_contents(answer: list[Message]) -> list[Message]:
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


_QUESTIONS = ("prompt", "question", "context", "ctx", "goal", "problem", "input", "query")
_GOLD = ("answer", "gold", "label", "answerKey", "target")
_ANSWERS = ("continuation", "canonical_solution", "solution", "answer", "target", "output")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def benchmark_row(fields: dict[str, Any], origin: Origin) -> dict[str, Any]:
    """The row of the `benchmarks` table that a data set's row makes.

    Raises BadExample: unknown_shape, bad_choices, no_answer, answer_out_of_range, empty_prompt, …
    """
    benchmark = _name(fields, ("benchmark",)) or origin.source
    item_id = _name(fields, ("item_id", "id", "task_id")) or origin.id
    form = fields.pop("form", None)
    if form not in (None, "multiple_choice", "text", "question"):
        raise BadExample("unknown_form", str(form))
    if form == "question":
        return {
            "benchmark": benchmark,
            "item_id": item_id,
            "form": form,
            **_open_question(fields),
            "requests": [],
            "metadata": metadata_json(fields),
        }
    if "context_options" in fields:
        prompt, choices = _split_options(fields)
    else:
        choices = _choices(fields)
        prompt = _question(fields, choices)
    if form == "text" and choices:
        raise BadExample("bad_choices", "a text has none")
    if form == "multiple_choice" and not choices:
        raise BadExample("bad_choices", "none")
    answer = _gold(fields, choices) if choices else None
    if not choices and not prompt.strip():
        raise BadExample("empty_prompt")
    return {
        "benchmark": benchmark,
        "item_id": item_id,
        "form": "multiple_choice" if choices else "text",
        "prompt": prompt,
        "choices": choices,
        "answer": answer,
        "requests": [],
        "metadata": metadata_json(fields),
    }


def _open_question(fields: dict[str, Any]) -> dict[str, Any]:
    """Take a question out of `fields`, and the one name that answers to it should hold."""
    prompt, choices = fields.pop("prompt", None), fields.pop("choices", None)
    if not isinstance(prompt, str) or not prompt.strip():
        raise BadExample("empty_prompt")
    named = isinstance(choices, list) and len(choices) == 1 and isinstance(choices[0], str)
    if not named or not choices[0].strip() or fields.pop("answer", 0) != 0:
        raise BadExample("bad_choices", "a question has one choice: what its answers should name")
    return {"prompt": prompt, "choices": choices, "answer": 0}


def _name(fields: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """Take the first name that is there out of `fields`."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            del fields[name]
            return str(value)
    return None


def _choices(fields: dict[str, Any]) -> list[str]:
    """Take the choices out of `fields`; none for items without any."""
    name = next((n for n in ("choices", "endings", "options") if fields.get(n)), None)
    if name is None:
        fields.pop("choices", None)
        return []
    value = fields.pop(name)
    if isinstance(value, dict) and isinstance(value.get("text"), list):  # ARC on the Hub
        fields["choice_labels"] = value.get("label")
        value = value["text"]
    if not isinstance(value, list) or not all(isinstance(choice, str) for choice in value):
        raise BadExample("bad_choices", f"'{name}' is no list of texts")
    if len(value) < 2 or not all(choice.strip() for choice in value):
        raise BadExample("bad_choices", f"{len(value)} choices, some may be empty")
    _check_distinct(value)
    return value


def _question(fields: dict[str, Any], choices: list[str]) -> str:
    """Take the prompt out of `fields`; of an item without choices, the answer goes with it."""
    name = next((n for n in _QUESTIONS if isinstance(fields.get(n), str)), None)
    if name is None:
        raise BadExample("unknown_shape", rename_hint(fields, ("question", "choices")))
    prompt: str = fields.pop(name)
    if choices:
        return prompt
    answer = next((n for n in _ANSWERS if isinstance(fields.get(n), str) and n != name), None)
    if answer is None:
        return prompt
    return prompt + _joint(prompt, answer) + str(fields.pop(answer))


def _joint(prompt: str, answer: str) -> str:
    """What joins a prompt and its answer into one text."""
    if prompt[-1:].isspace():
        return ""
    return " " if answer == "continuation" else "\n"


def _split_options(fields: dict[str, Any]) -> tuple[str, list[str]]:
    """WinoGrande: the options fill a gap, one continuation follows.

    What the options share becomes the prompt, so that ranking the rest of each sentence is
    ranking the sentences.
    """
    options, continuation = fields.pop("context_options"), fields.pop("continuation", None)
    texts = isinstance(options, list) and all(isinstance(option, str) for option in options)
    if not texts or len(options) < 2 or not isinstance(continuation, str):
        raise BadExample("bad_choices", "context_options and continuation do not fit")
    shared = os.path.commonprefix(options)  # noqa: RUF071 - characters are meant, not paths.
    prompt = shared[: shared.rfind(" ") + 1]
    sentences = [option + _joint(option, "continuation") + continuation for option in options]
    _check_distinct(sentences)
    return prompt, [sentence[len(prompt) :] for sentence in sentences]


def _check_distinct(choices: list[str]) -> None:
    """Published sets hold items with a choice twice; they stay, as in every published score."""
    if len(set(choices)) == 1:
        raise BadExample("bad_choices", "all are the same")


def _gold(fields: dict[str, Any], choices: list[str]) -> int:
    """Take the index of the right choice out of `fields`."""
    labels = fields.pop("choice_labels", None)
    name = next((n for n in _GOLD if n in fields), None)
    if name is None:
        raise BadExample("no_answer", "none of " + ", ".join(_GOLD))
    value = fields.pop(name)
    index = _index(value, choices, labels if isinstance(labels, list) else [])
    if index is None or not 0 <= index < len(choices):
        raise BadExample("answer_out_of_range", f"{value!r} of {len(choices)} choices")
    return index


def _index(value: Any, choices: list[str], labels: list[Any]) -> int | None:
    """The index that a gold value means: a number, a label, a letter, or a choice itself."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    for names in (labels, choices, [choice.strip() for choice in choices]):
        if text in names:
            return names.index(text)
    if text.isascii() and text.isdigit():
        return int(text)
    return _LETTERS.index(text.upper()) if len(text) == 1 and text.upper() in _LETTERS else None
