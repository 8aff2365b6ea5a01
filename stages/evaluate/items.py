"""Benchmark items: read, checked, and capped by a seeded draw."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifacts_schema.identity import canonical_json

MULTIPLE_CHOICE, TEXT = "multiple_choice", "text"


@dataclass(frozen=True)
class Item:
    """A usable item. `choices` is empty and `answer` 0 for the form `text`."""

    benchmark: str
    item_id: str
    form: str
    prompt: str
    choices: tuple[str, ...]
    answer: int


@dataclass(frozen=True)
class BadItem:
    """An item that cannot be scored, and why."""

    benchmark: str
    item_id: str
    reason: str


def read_items(rows: Iterable[Mapping[str, Any]]) -> tuple[list[Item], list[BadItem]]:
    """Rows of `benchmarks` tables as items; unusable ones apart."""
    items, bad = [], []
    for row in rows:
        reason = _fault(row)
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
            )
        )
    return items, bad


def by_benchmark(items: Iterable[Item]) -> dict[str, list[Item]]:
    """Items by benchmark, names sorted, order kept within each."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(item.benchmark, []).append(item)
    return dict(sorted(groups.items()))


def draw(items: Sequence[Item], limit: int, seed: int) -> list[Item]:
    """At most `limit` items in their order: those whose keyed hash is least.

    So a larger limit keeps what a smaller one had, and one checkpoint is asked what another was.
    """
    if len(items) <= limit:
        return list(items)
    ranked = sorted(items, key=lambda item: (_rank(item, seed), item.item_id))
    chosen = {item.item_id for item in ranked[:limit]}
    return [item for item in items if item.item_id in chosen]


def _rank(item: Item, seed: int) -> bytes:
    named = canonical_json([seed, item.benchmark, item.item_id])
    return hashlib.blake2b(named, digest_size=16).digest()


def _fault(row: Mapping[str, Any]) -> str | None:
    if row["form"] == TEXT:
        return None if row["prompt"].strip() else "empty_text"
    if row["form"] != MULTIPLE_CHOICE:
        return "unknown_form"
    if len(row["choices"]) < 2:
        return "fewer_than_two_choices"
    if not all(choice.strip() for choice in row["choices"]):
        return "empty_choice"
    if row["answer"] is None or not 0 <= row["answer"] < len(row["choices"]):
        return "answer_is_no_choice"
    return None
