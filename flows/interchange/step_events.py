"""What the events of one step add up to, read a piece at a time."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

REMEMBERED_STEPS = 16_384
"""Training steps whose tokens are known, to count those that are trained again: more than lie
between two checkpoints."""
MOST_NAMES = 50
"""Of sources, alert kinds and drop reasons as label values; the rest is counted as `other`."""
OTHER = "other"


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
    rows: Counter[str] = field(default_factory=Counter)
    """That its shards have written so far, over all its starts, by output."""
    alerts: Counter[str] = field(default_factory=Counter)
    training: TrainingSums = field(default_factory=TrainingSums)
    _is_first: bool = True
    _counted: dict[tuple[str, str], float] = field(default_factory=dict)
    """Rows of this start by part and output."""

    def add(self, event: dict[str, Any]) -> None:
        """Add one event; one whose numbers are not numbers is left out."""
        if isinstance(time := event.get("time"), int | float):
            self.last_time = float(time)
        match event.get("type"):
            case "started":
                self.starts += 1
                self.progress, self._is_first = None, True
                self._counted.clear()
            case "progress" if are_numbers(event, "done", "total"):
                self.progress = event
                self._count_rows(str(event.get("label")), event.get("rows"))
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

    def _count_rows(self, part: str, rows: Any) -> None:
        """Add what a part of the step has written since its last event."""
        if not isinstance(rows, dict) or not are_numbers(rows, *rows):
            return
        for output, count in rows.items():
            more = count - self._counted.get((part, output), 0)
            count_bounded(self.rows, output, max(0, more))
            self._counted[part, output] = count


def are_numbers(event: dict[str, Any], *names: str) -> bool:
    """Whether an event has numbers under these names."""
    return all(
        isinstance(event.get(name), int | float) and not isinstance(event[name], bool)
        for name in names
    )


def count_bounded(counts: Counter[str], name: str, amount: int = 1) -> None:
    """Add to the count of a name, or of `other` once there are too many names."""
    counts[name if name in counts or len(counts) < MOST_NAMES else OTHER] += amount
