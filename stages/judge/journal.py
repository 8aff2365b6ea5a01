"""Answers of a judge as they come, on disk before anything follows from them.

One JSON line for each answer, synced; a line that a kill has cut is dropped. So a run that is
killed loses no answer but those under way, and never asks for one that it has.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from artifacts_schema.store.backend import fsync_folder
from artifacts_schema.store.failpoints import hit_failpoint

Status = Literal["answered", "refused", "malformed"]


@dataclass(frozen=True)
class Answer:
    """What the judge said to a request; `text` is empty where it refused or sent no answer."""

    request: str
    """sha256 of what was asked of which model."""
    text: str
    status: Status
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Journal:
    """The answers of a run, by request; `path` is created with its first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers: dict[str, Answer] = {}
        whole = 0
        raw = path.read_bytes() if path.exists() else b""
        for line in raw.splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            answer = Answer(**json.loads(line))
            self.answers[answer.request] = answer
            whole += len(line)
        if whole < len(raw):
            with path.open("r+b") as file:
                file.truncate(whole)

    def take(self, known: Mapping[str, Answer]) -> None:
        """Use answers of an earlier run, without writing them again."""
        for request, answer in known.items():
            self.answers.setdefault(request, answer)

    def add(self, answer: Answer) -> None:
        """Keep an answer; it is on disk when this returns."""
        is_new = not self.path.exists()
        with self.path.open("ab") as file:
            file.write(json.dumps(asdict(answer), ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            fsync_folder(self.path.parent)
        self.answers[answer.request] = answer
        hit_failpoint("answer kept")

    def rows(self, requests: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Answers to these requests, in the order of their digests."""
        return [asdict(self.answers[one]) for one in sorted(requests) if one in self.answers]
