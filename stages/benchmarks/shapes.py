"""The shapes in which evaluation data comes, and the item that each tells."""

from __future__ import annotations

import os.path
from typing import Any

from stages.engine.reading.examples import BadExample, Origin
from stages.engine.reading.fields import rename_hint
from stages.engine.reading.rows import metadata_json

_QUESTIONS = ("prompt", "question", "context", "ctx", "goal", "problem", "input", "query")
_GOLD = ("answer", "gold", "label", "answerKey", "target")
_ANSWERS = ("continuation", "canonical_solution", "solution", "answer", "target", "output")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def item_of(fields: dict[str, Any], origin: Origin) -> dict[str, Any]:
    """The row of the `benchmarks` table that a data set's row makes.

    Raises BadExample: unknown_shape, bad_choices, no_answer, answer_out_of_range, empty_prompt, …
    """
    benchmark = _name(fields, ("benchmark",)) or origin.source
    item_id = _name(fields, ("item_id", "id", "task_id")) or origin.id
    form = fields.pop("form", None)
    if form not in (None, "multiple_choice", "text"):
        raise BadExample("unknown_form", str(form))
    if "context_options" in fields:
        prompt, choices = _partial(fields)
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
        "metadata": metadata_json(fields),
    }


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
    _check_told_apart(value)
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
    return prompt + _between(prompt, answer) + str(fields.pop(answer))


def _between(prompt: str, answer: str) -> str:
    """What joins a prompt and its answer into one text."""
    if prompt[-1:].isspace():
        return ""
    return " " if answer == "continuation" else "\n"


def _partial(fields: dict[str, Any]) -> tuple[str, list[str]]:
    """WinoGrande: the options fill a gap, one continuation follows.

    What the options share stands as the prompt, so that ranking the rest of each sentence is
    ranking the sentences.
    """
    options, continuation = fields.pop("context_options"), fields.pop("continuation", None)
    texts = isinstance(options, list) and all(isinstance(option, str) for option in options)
    if not texts or len(options) < 2 or not isinstance(continuation, str):
        raise BadExample("bad_choices", "context_options and continuation do not fit")
    shared = os.path.commonprefix(options)  # noqa: RUF071 - characters are meant, not paths.
    prompt = shared[: shared.rfind(" ") + 1]
    sentences = [option + _between(option, "continuation") + continuation for option in options]
    _check_told_apart(sentences)
    return prompt, [sentence[len(prompt) :] for sentence in sentences]


def _check_told_apart(choices: list[str]) -> None:
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
