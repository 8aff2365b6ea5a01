"""Benchmark items, read, checked and capped by a seeded draw, and how they are put to a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifacts_schema.identity import canonical_json

MULTIPLE_CHOICE, TEXT, QUESTION, FREE = "multiple_choice", "text", "question", "free"
"""Forms of an item; `free` is a formulation as well, whose answers are written."""


@dataclass(frozen=True)
class ItemRequest:
    """How an item is put to a model: what is scored is `prompt` and a choice, as they are.

    Without `formulation` and `shots` it is put as its row came. `references` are the right answers
    of the formulation `free`, which has no choices.
    """

    prompt: str
    choices: tuple[str, ...]
    formulation: str | None = None
    shots: int | None = None
    references: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()

    def before(self, choice: int) -> str:
        """What a choice is scored after: the prompt, and the choice's own context if it has one."""
        return self.prompt + self.contexts[choice] if self.contexts else self.prompt


@dataclass(frozen=True)
class Item:
    """A usable item. `choices` is empty and `answer` 0 for the forms `text` and `free`.

    Items of one `cluster`, such as questions on one passage, are not independent. `requests` is
    empty where the item is put to a model as it is.
    """

    benchmark: str
    item_id: str
    form: str
    prompt: str
    choices: tuple[str, ...]
    answer: int
    cluster: str | None = None
    requests: tuple[ItemRequest, ...] = ()
    right: tuple[int, ...] = ()
    """Places of the right choices, `answer` among them, where a task says that several may be."""

    @property
    def all_right(self) -> tuple[int, ...]:
        """Places of the right choices: that of the answer, unless there may be several."""
        return self.right or (self.answer,)

    @property
    def question(self) -> ItemRequest:
        """An item of the form `question`, whose answer should name the right choice."""
        return ItemRequest(self.prompt, (), references=(self.choices[self.answer],))

    def ranked(self, delimiter: str) -> tuple[ItemRequest, ...]:
        """How its choices are put to a model; `delimiter` is for one that is put as it is."""
        if self.requests:
            return tuple(one for one in self.requests if one.formulation != FREE)
        choices = (delimited(self.prompt, choice, delimiter) for choice in self.choices)
        return (ItemRequest(self.prompt, tuple(choices)),) if self.choices else ()


@dataclass(frozen=True)
class BadItem:
    """An item that cannot be scored, and why."""

    benchmark: str
    item_id: str
    reason: str


def read_items(
    rows: Iterable[Mapping[str, Any]],
    cluster_by: str | None = None,
    several: Collection[str] = (),
) -> tuple[list[Item], list[BadItem]]:
    """Rows of `benchmarks` tables as items; unusable ones apart.

    `cluster_by` is the field of an item's metadata that items of one cluster share. Of the
    benchmarks in `several` the metadata holds the places of the right choices.
    """
    items, bad = [], []
    for row in rows:
        reason = _fault(row) or (_right_fault(row) if row["benchmark"] in several else None)
        if reason:
            bad.append(BadItem(row["benchmark"], row["item_id"], reason))
            continue
        items.append(
            Item(
                benchmark=row["benchmark"],
                item_id=row["item_id"],
                form=row["form"],
                prompt=row["prompt"],
                choices=tuple(row["choices"]),
                answer=row["answer"] or 0,
                cluster=_cluster(row, cluster_by),
                right=_right(row) if row["benchmark"] in several else (),
                requests=tuple(
                    ItemRequest(
                        one["prompt"],
                        tuple(one["choices"]),
                        one["formulation"],
                        one["shots"],
                        tuple(one["references"]),
                        tuple(one.get("contexts") or ()),
                    )
                    for one in row.get("requests") or ()
                ),
            )
        )
    return items, bad


def _right(row: Mapping[str, Any]) -> tuple[int, ...]:
    right = json.loads(row["metadata"]).get("right")
    return tuple(right) if isinstance(right, list) else ()


def _right_fault(row: Mapping[str, Any]) -> str | None:
    places = range(len(row["choices"]))
    right = _right(row)
    if row["answer"] in right and all(type(one) is int and one in places for one in right):
        return None
    return "right_choices_unknown"


def _cluster(row: Mapping[str, Any], field: str | None) -> str | None:
    if field is None:
        return None
    value = json.loads(row["metadata"]).get(field)
    return None if value is None else json.dumps(value, sort_keys=True)


def draw(items: Sequence[Item], limit: int, seed: int) -> list[Item]:
    """At most `limit` items in their order: those whose keyed hash is least.

    So a larger limit keeps what a smaller one had, and all checkpoints get the same items.
    """
    if len(items) <= limit:
        return list(items)
    chosen = {item.item_id for item in rank(items, seed)[:limit]}
    return [item for item in items if item.item_id in chosen]


def rank(items: Sequence[Item], seed: int) -> list[Item]:
    """Items in the order of their keyed hashes: a shuffle that other items do not change."""
    return sorted(items, key=lambda item: (_rank(item, seed), item.item_id))


def _rank(item: Item, seed: int) -> bytes:
    named = canonical_json([seed, item.benchmark, item.item_id])
    return hashlib.blake2b(named, digest_size=16).digest()


def _fault(row: Mapping[str, Any]) -> str | None:
    form, choices, answer = row["form"], row["choices"], row["answer"]
    requests = row.get("requests") or ()
    if form == TEXT:
        return None if row["prompt"].strip() else "empty_text"
    if form == FREE:
        return None if any(one["formulation"] == FREE for one in requests) else "no_request"
    if form not in (MULTIPLE_CHOICE, QUESTION):
        return "unknown_form"
    # One choice is enough where it is asked whether it is the likeliest text, as of LAMBADA.
    if form == MULTIPLE_CHOICE and len(choices) < (1 if requests else 2):
        return "fewer_than_two_choices"
    for texts in (choices, *(one["choices"] for one in requests if one["formulation"] != FREE)):
        if not all(choice.strip() for choice in texts):
            return "empty_choice"
        if answer is None or not 0 <= answer < len(texts):
            return "answer_is_no_choice"
    return None


def delimited(prompt: str, choice: str, delimiter: str) -> str:
    """`choice` as it follows `prompt`: after `delimiter`, unless white space parts them already."""
    parted = not prompt or prompt[-1].isspace() or choice[0].isspace()
    return choice if parted else delimiter + choice
