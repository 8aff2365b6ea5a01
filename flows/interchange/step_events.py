"""What the events of one step add up to, read a piece at a time.

A step's events lie in its work folder while it runs, and beside its payload once it has committed.
Between two reads the file may have grown, be gone, be the copy elsewhere, or be another one: on a
new node, or after its work folder was removed, a step starts a file of its own. Events are counted
once each, whichever of these happens.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from artifacts_schema.store.backend import Backend

ANCHOR_BYTES = 64
"""Bytes before the place reached that are read again: another file has others there. The first line
of a file alone holds the time of its start to the millisecond."""
REMEMBERED_STEPS = 16_384
"""Training steps whose tokens are known, to count those that are trained again: more than lie
between two checkpoints."""
MOST_NAMES = 50
"""Of sources, alert kinds and drop reasons as label values; the rest is counted as `other`."""
OTHER = "other"


class EventTail:
    """Reads the lines of a file of JSON objects that were appended since the last call."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._offset, self._anchor = backend, 0, b""
        self.broken_lines = 0
        """Lines that a kill cut short."""

    def read(self, path: str) -> list[dict[str, Any]]:
        """New events of the file at `path`, oldest first; none while there is no file.

        A line without its end is left for the next call. Where the file is not the one of the last
        call, or a copy of it, all its events are new.
        """
        try:
            data = self._backend.read(path, self._offset - len(self._anchor))
            if not data.startswith(self._anchor):
                self._offset, self._anchor = 0, b""
                data = self._backend.read(path)
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) <= len(self._anchor):
            return []
        lines = whole[len(self._anchor) :].split(b"\n")
        self._offset += len(whole) - len(self._anchor)
        self._anchor = whole[-ANCHOR_BYTES:]
        return list(self._parse(lines))

    def _parse(self, lines: list[bytes]) -> Iterator[dict[str, Any]]:
        for line in lines:
            if not line.strip():
                continue
            event = _load(line)
            if event is None:
                # What a kill cut short has no end of line: the next start's first event follows it.
                self.broken_lines += 1
                event = _load(line[max(0, line.rfind(b'{"type"')) :])
            if isinstance(event, dict):
                yield event


def _load(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


@dataclass
class TrainingSums:
    """What a step has trained, over all its starts.

    `steps` and `tokens` count work, so that what was trained twice counts twice. `lost` are the
    training steps that had to be trained again, or were taken back, by cause: `restart` (the work
    since the last checkpoint, after a preemption or crash) or `rollback` (by the stability guard).
    """

    training_step: int = 0
    steps: int = 0
    tokens: float = 0
    lost: Counter[str] = field(default_factory=Counter)
    values: dict[str, float] = field(default_factory=dict)
    """Last loss, grad_norm and learning_rate."""
    held_out: dict[str, float] = field(default_factory=dict)
    """Last held-out loss by source."""
    _position: float = 0
    _history: deque[tuple[int, float]] = field(
        default_factory=lambda: deque(maxlen=REMEMBERED_STEPS)
    )
    """Training steps, and the tokens of the run up to each."""

    def add(self, event: dict[str, Any], *, is_first: bool) -> None:
        """Add a metric event of a training step; `is_first` of those since the last start."""
        step, position = int(event["training_step"]), float(event["tokens"])
        if step <= self.training_step:
            self.lost["restart" if is_first else "rollback"] += self.training_step - step + 1
            while self._history and self._history[-1][0] >= step:
                self._history.pop()
            # Tokens before the first step that is known: none, or too long ago to be remembered.
            before = self._history[-1][1] if self._history else (0.0 if step == 1 else None)
        else:
            before = self._position if self.steps or step == 1 else None
        if before is not None:
            self.tokens += max(0.0, position - before)
        self.steps += 1
        self.training_step, self._position = step, position
        self._history.append((step, position))
        for name in ("loss", "grad_norm", "learning_rate"):
            if isinstance(value := event.get(name), int | float):
                self.values[name] = float(value)


@dataclass
class StepActivity:
    """What the events of one step say so far."""

    starts: int = 0
    last_time: float | None = None
    """Of the last event, in seconds since 1970, by the clock of the machine that wrote it."""
    progress: dict[str, Any] | None = None
    alerts: Counter[str] = field(default_factory=Counter)
    training: TrainingSums = field(default_factory=TrainingSums)
    _is_first: bool = True

    def add(self, event: dict[str, Any]) -> None:
        """Add one event; one whose numbers are not numbers is left out."""
        if isinstance(time := event.get("time"), int | float):
            self.last_time = float(time)
        match event.get("type"):
            case "started":
                self.starts += 1
                self.progress, self._is_first = None, True
            case "progress" if are_numbers(event, "done", "total"):
                self.progress = event
            case "alert":
                count_bounded(self.alerts, str(event.get("kind")))
            case "metric" if are_numbers(event, "training_step", "tokens"):
                self.training.add(event, is_first=self._is_first)
                self._is_first = False
            case "metric":
                for name, value in event.items():
                    place, _, source = name.partition("/")
                    if place == "held_out" and isinstance(value, int | float):
                        losses = self.training.held_out
                        if source in losses or len(losses) < MOST_NAMES:
                            losses[source] = float(value)


def are_numbers(event: dict[str, Any], *names: str) -> bool:
    """Whether an event has numbers under these names."""
    return all(
        isinstance(event.get(name), int | float) and not isinstance(event[name], bool)
        for name in names
    )


def count_bounded(counts: Counter[str], name: str, amount: int = 1) -> None:
    """Add to the count of a name, or of `other` once there are too many names."""
    counts[name if name in counts or len(counts) < MOST_NAMES else OTHER] += amount
