"""Answers that a model writes to free requests: what is asked, and how the task says to ask it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stages.evaluate.benchmarks import FREE, Item, ItemRequest
from stages.evaluate.questions import Prompt, Writer
from stages.scoring.answers import Answer
from stages.scoring.generation import Written
from stages.scoring.observations import Observation, prompt_digest

LENGTH = "answer_tokens"
"""Metric: tokens of an answer. Whether it is right is decided by `score`."""
ITEMS_OF_PART = 16
"""Items whose answers a run that is killed writes again."""


@dataclass(frozen=True)
class AnswerSettings:
    """How the free requests of a task are asked."""

    max_new_tokens: int
    stop: tuple[str, ...] = ()
    samples: int = 1
    temperature: float = 0.0
    chat: bool = False

    @classmethod
    def from_task(cls, task: Mapping[str, Any] | None, max_new_tokens: int) -> AnswerSettings:
        """From an entry of `tasks.json`; without one, greedy up to `max_new_tokens`."""
        if task is None:
            return cls(max_new_tokens)
        free = task["formulations"].get(FREE) or {}
        return cls(
            free.get("max_new_tokens", max_new_tokens),
            tuple(free.get("stop") or ()),
            free.get("samples", 1),
            free.get("temperature", 0.0),
            task.get("chat", False),
        )


@dataclass(frozen=True)
class AnswerPart:
    """Some of the drawn items of one benchmark, their free requests and the prompts of these.

    `first_number` is that of the first request among the benchmark's: its draws depend on it.
    """

    id: str
    items: tuple[Item, ...]
    prompts: tuple[Prompt, ...]
    settings: AnswerSettings
    first_number: int

    @property
    def requests(self) -> list[tuple[Item, ItemRequest]]:
        """Items and requests, in the order of the prompts."""
        return free_requests(self.items)


def free_requests(items: Sequence[Item]) -> list[tuple[Item, ItemRequest]]:
    """The free requests of items, in their order."""
    return [(item, one) for item in items for one in item.requests if one.formulation == FREE]


def answer_parts(
    name: str,
    items: Sequence[Item],
    settings: AnswerSettings,
    prompt: Callable[[Sequence[str]], list[Prompt]],
) -> list[AnswerPart]:
    """The items of a benchmark in parts, of which `prompt` makes the prompts."""
    parts, number = [], 0
    for start in range(0, len(items), ITEMS_OF_PART):
        chunk = tuple(items[start : start + ITEMS_OF_PART])
        prompts = tuple(prompt([request.prompt for _, request in free_requests(chunk)]))
        place = f"{name}-{start // ITEMS_OF_PART:04d}"
        parts.append(AnswerPart(place, chunk, prompts, settings, number))
        number += len(prompts)
    return parts


def write_answers(part: AnswerPart, writer: Writer) -> list[Answer]:
    """What the model writes to each prompt of a part, all samples of it one after another."""
    settings = part.settings
    writer = replace(
        writer, max_new_tokens=settings.max_new_tokens, temperature=settings.temperature
    )
    written = writer.write(
        part.prompts,
        stop_texts=settings.stop,
        samples=settings.samples,
        first_number=part.first_number,
    )
    requests = [one for one in part.requests for _ in range(settings.samples)]
    return [
        answer(item, request, one, chat=settings.chat)
        for (item, request), one in zip(requests, written, strict=True)
    ]


def answer(item: Item, request: ItemRequest, written: Written, *, chat: bool) -> Answer:
    """What the model wrote to a request of an item."""
    return Answer(
        item.benchmark,
        item.item_id,
        request.formulation,
        request.shots,
        written.sample,
        prompt_digest(request.prompt),
        written.text,
        written.log_probabilities,
        written.ending,
        request.references,
        chat,
    )


def length_observations(answers: Sequence[Answer]) -> list[Observation]:
    """Mean tokens of the samples of each request."""
    groups: dict[tuple[str, str, str | None, int | None], list[int]] = {}
    for one in answers:
        groups.setdefault(one.request, []).append(len(one.token_log_probabilities))
    return [
        Observation(
            benchmark, item_id, LENGTH, sum(counts) / len(counts),
            formulation=formulation, shots=shots,
        )
        for (benchmark, item_id, formulation, shots), counts in groups.items()
    ]  # fmt: skip
