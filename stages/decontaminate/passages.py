"""The texts of a benchmark item that documents are searched for.

A prompt, its choices, and both as one text; of items that a model answers in its own words the
reference answers take the place of the choices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stages.decontaminate.config import DecontaminateConfig
    from stages.engine import Input

FREE, TASKS = "free", "tasks.json"
NO_ANSWERS = ("code", "instructions", "refusal")
"""Metrics of tasks whose references are no answers: test programs, settings of checks."""

Text = tuple[str, int]
"""A text, and the fewest words with which it counts."""


def row_texts(
    row: Mapping[str, Any], config: DecontaminateConfig, without_answers: Iterable[str] = ()
) -> list[Text]:
    """The texts of a row of `benchmarks`; references are none in benchmarks `without_answers`."""
    if row["form"] != FREE:
        return item_texts(row["prompt"], row["choices"], row["answer"], config)
    references: list[str] = []
    if row["benchmark"] not in without_answers:
        free = (one for one in row.get("requests") or () if one["formulation"] == FREE)
        references = list(dict.fromkeys(text for one in free for text in one["references"]))
    return free_texts(row["prompt"], references, config)


def read_without_answers(benchmarks: Input) -> set[str]:
    """Names of the tasks of an artifact whose references are no answers."""
    if not benchmarks.has(TASKS):
        return set()
    return {
        task["name"]
        for task in benchmarks.read_json(TASKS)
        if (task["formulations"].get(FREE) or {}).get("metric") in NO_ANSWERS
    }


def item_texts(
    prompt: str, choices: Sequence[str], answer: int | None, config: DecontaminateConfig
) -> list[Text]:
    """The texts of an item that count.

    The prompt's labels are left out: a copy seldom says `Question:` or `Answer:`. A choice alone is
    evidence from a whole n-gram on: shorter ones are phrases of textbooks. A text without choices
    ends with its answer; if that is its second line, the first counts as a prompt.
    """
    prompt = _LABELS.sub("", prompt)
    if not choices:
        lines, short = prompt.strip().splitlines(), config.min_words
        alone = [(lines[0], short)] if len(lines) == 2 and config.passages == "all" else []
        return [*alone, (prompt, config.min_answered_words)]
    return _texts(prompt, choices, [] if answer is None else [choices[answer]], config)


def free_texts(prompt: str, references: Sequence[str], config: DecontaminateConfig) -> list[Text]:
    """The texts of an item without choices: each reference is a right answer.

    Without references the prompt alone, as a prompt: no answer stands behind it.
    """
    references = [one for one in references if one.strip()]
    return _texts(_LABELS.sub("", prompt), references, references, config)


def _texts(
    prompt: str, choices: Sequence[str], right: Sequence[str], config: DecontaminateConfig
) -> list[Text]:
    prompts = [(prompt, config.min_words)]
    if config.passages == "prompt" or not choices:
        return prompts
    if config.passages == "choices":
        return [(f"{prompt} {choice}", config.min_answered_words) for choice in choices]
    # A short text matches only as a whole, so that of prompt and answer misses a lone prompt.
    both = [(f"{prompt} {answer}", config.min_answered_words) for answer in right] or prompts
    if config.passages == "answer":
        return both
    alone = [(choice, config.ngram) for choice in choices] if config.passages == "all" else []
    return [*prompts, *alone, *both]


_LABELS = re.compile(
    r"\A\s*(?:question|problem|passage|context|q)\s*:\s*|\s*\b(?:answer|solution|a)\s*:\s*\Z",
    re.IGNORECASE,
)
