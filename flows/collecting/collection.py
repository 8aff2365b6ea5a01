"""A collection: a folder with the settings, the sampled answers and the judgements of one model.

collection.json      model, snapshot, sampling; written once
answers.jsonl        a line a prompt, in the snapshot's order
judgements.jsonl     what people said, only ever appended to
snapshots/<digest>/  what `--finish` wrote
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.files import write_whole
from artifacts_schema.store.storage_errors import translate_errors
from flows.collecting.lines import read_lines

SETTINGS, ANSWERS, JUDGEMENTS = "collection.json", "answers.jsonl", "judgements.jsonl"
VERSION = 1


@dataclass(frozen=True)
class Settings:
    """What the answers of a collection depend on, and how many people see a prompt."""

    model: str
    """Its name when the collection was begun."""
    checkpoint: str
    """STAGE/KEY:OUTPUT of the model."""
    digest: str
    """Of that output."""
    snapshot: str
    """The name of the snapshot of prompts."""
    snapshot_digest: str
    prompts: int | None
    """The first so many prompts; None for all."""
    answers: int
    """Sampled for each prompt."""
    seed: int
    temperature: float
    top_p: float
    max_tokens: int
    twice: float
    """The share of prompts that two people rank."""

    def differences(self, other: Settings) -> list[str]:
        """`NAME: ours, theirs` of each value that differs; names of artifacts may."""
        return [
            f"{field.name} {getattr(self, field.name)!r}, now {getattr(other, field.name)!r}"
            for field in fields(self)
            if field.name not in ("model", "snapshot")
            and getattr(self, field.name) != getattr(other, field.name)
        ]


@dataclass(frozen=True)
class Question:
    """A prompt with the answers to rank: those that are not blank and differ."""

    id: str
    messages: Sequence[Mapping[str, Any]]
    tools: str | None
    texts: tuple[str, ...]
    cut: tuple[bool, ...]
    """Whether an answer ended at the most tokens."""
    samples: tuple[int, ...]
    """The number of each among the sampled answers, of equal ones the first."""


class Collection:
    """What lies in the folder; a snapshot of it, as answers may be added meanwhile."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder, self.settings = folder, settings

    @classmethod
    def open(cls, folder: Path) -> Collection:
        """An existing collection. UsageError where there is none."""
        path = folder / SETTINGS
        try:
            with translate_errors(str(path)):
                raw = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(
                "is no collection", where=str(folder), hint="begin one: ingot collect REF SNAPSHOT"
            ) from None
        try:
            values = json.loads(raw)
            version = values.pop("version")
            settings = Settings(**values)
        except (ValueError, TypeError, AttributeError, KeyError):
            raise InputError("cannot be understood", where=str(path)) from None
        if version != VERSION:
            raise InputError(f"version {version!r} is not known here", where=str(path))
        return cls(folder, settings)

    @classmethod
    def begin(cls, folder: Path, settings: Settings) -> Collection:
        """The collection in `folder`, begun here where there is none.

        UsageError where one was begun with other settings, or the folder holds something else.
        """
        path = folder / SETTINGS
        if path.exists():
            collection = cls.open(folder)
            if changes := collection.settings.differences(settings):
                raise UsageError(
                    f"was begun with other settings: {'; '.join(changes)}",
                    where=str(folder),
                    hint="repeat the first ones, or collect into another folder",
                )
            return collection
        with translate_errors(str(folder)):
            folder.mkdir(parents=True, exist_ok=True)
            if set(os.listdir(folder)) - {f"{SETTINGS}.unfinished"}:  # A kill leaves that.
                raise UsageError("holds other files", where=str(folder), hint="name a new folder")
        text = json.dumps({"version": VERSION, **asdict(settings)}, indent=2, ensure_ascii=False)
        write_whole(path, lambda unfinished: unfinished.write_text(text + "\n", encoding="utf-8"))
        return cls(folder, settings)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        return read_lines(self.folder / ANSWERS)

    @cached_property
    def questions(self) -> dict[str, Question]:
        """By id, in the order of the snapshot: prompts with two answers or more to compare."""
        made = (_question(row) for row in self._rows if row["answers"])
        return {one.id: one for one in made if len(one.texts) > 1}

    @property
    def sampled(self) -> int:
        """Prompts that have their answers, or a reason for having none."""
        return len(self._rows)

    @property
    def excluded(self) -> Counter[str]:
        """Why prompts are not ranked."""
        reasons = Counter[str](row["excluded"] for row in self._rows if row["excluded"])
        same = sum(1 for row in self._rows if row["answers"]) - len(self.questions)
        return reasons + Counter(same_answers=same)


def _question(row: Mapping[str, Any]) -> Question:
    distinct: dict[str, int] = {}
    for number, answer in enumerate(row["answers"]):
        if text := answer["text"].strip():
            distinct.setdefault(text, number)
    chosen = [row["answers"][number] for number in distinct.values()]
    return Question(
        row["prompt"],
        row["messages"],
        row["tools"],
        tuple(one["text"] for one in chosen),
        tuple(one["ending"] == "length" for one in chosen),
        tuple(distinct.values()),
    )
