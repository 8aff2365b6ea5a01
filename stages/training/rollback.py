"""Rollbacks: which training steps a run leaves out since when, durable before anything follows.

A rollback never says which checkpoint the run goes back to. Training steps before the first that is
left out give the same bits again from any of them, so how often checkpoints are saved changes no
byte, and a run that was killed at any moment of a rollback ends as one that was not: either nothing
was decided, and the same training steps lead to the same decision, or it stands in the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from artifacts_schema.errors import StoreError
from artifacts_schema.files import exists
from stages.training.phases import merged


@dataclass(frozen=True)
class Rollback:
    """Training steps `first` to `last` are left out from now on.

    `strikes` are those of them that were in trouble; `events` the rows of the run's table of events
    from `first` on, which the run's log loses when it goes back.
    """

    first: int
    last: int
    strikes: tuple[int, ...]
    events: tuple[Mapping[str, Any], ...] = ()


class Rollbacks:
    """Those that a run has made, kept in a file.

    `check` raises LeaseLost once another run has taken the key over: then none is added.
    """

    def __init__(self, path: Path, check: Callable[[], None] = lambda: None) -> None:
        self.path, self._check = path, check
        self.made = _read(path)

    @property
    def left_out(self) -> tuple[tuple[int, int], ...]:
        """Ranges [first, last] of training steps, in order."""
        return merged([(one.first, one.last) for one in self.made])

    def leaves_out(self, step: int) -> bool:
        """Whether a training step is left out."""
        return any(one.first <= step <= one.last for one in self.made)

    def before(self, step: int, trained: int) -> int:
        """The training step that lies `trained` steps before `step`, left-out ones not counted.

        At least 1.
        """
        while trained > 0 and step > 1:
            step -= 1
            trained -= not self.leaves_out(step)
        return step

    def usable(self, training_step: int, known: int) -> bool:
        """Whether a checkpoint holds no effect of a training step that is left out.

        `known` is the number of rollbacks before it was made.
        """
        return all(training_step < one.first for one in self.made[known:])

    def add(self, one: Rollback) -> None:
        """Make a rollback known for good; it counts once this returns. StoreError if it cannot."""
        self._check()
        self.made = (*self.made, one)
        text = json.dumps([asdict(made) for made in self.made])
        try:
            _replace(self.path, text.encode())
        except OSError as error:
            raise StoreError(
                f"cannot write down a rollback: {error.strerror or error}",
                where=str(self.path),
                hint="free space or fix permissions; the same command goes on",
            ) from None

    @property
    def events(self) -> list[dict[str, Any]]:
        """Rows of the table of events that only rollbacks still hold, oldest first."""
        return [dict(row) for one in self.made for row in one.events]


def _read(path: Path) -> tuple[Rollback, ...]:
    if not exists(path):
        return ()
    made: Sequence[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return tuple(
        Rollback(one["first"], one["last"], tuple(one["strikes"]), tuple(one["events"]))
        for one in made
    )


def _replace(path: Path, content: bytes) -> None:
    """Put a file in place whole, and on disk."""
    temporary = path.with_name(f"{path.name}.partial")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
