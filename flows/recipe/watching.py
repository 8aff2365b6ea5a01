"""A run seen from outside: its record, the events of what runs now, and the funnel so far.

Everything comes from the store, so a run can be watched from any machine that sees it, by people
who did not start it, under Prefect or without.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from artifacts_schema.manifest import Manifest
from artifacts_schema.run import Run, RunStep
from artifacts_schema.store import Store, layout
from artifacts_schema.store.lease import Record, is_held, process_is_gone
from artifacts_schema.store.runs import find_run

POINTS = 512
"""Losses kept of a curve: when there are more, every second one goes."""
RATE_SECONDS = 30.0
"""Span over which tokens a second are taken."""
EVENTS_FILE = "events.jsonl"


@dataclass
class Live:
    """What a running step has told."""

    progress: dict[str, Any] | None = None
    metric: dict[str, Any] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    first: tuple[float, float] | None = None
    """Time and work done at its first progress event."""
    _every: int = 1
    _seen: int = 0
    _rates: deque[tuple[float, float]] = field(default_factory=deque)

    def take(self, event: dict[str, Any]) -> None:
        """Take in one event."""
        if event["type"] == "started":  # An earlier attempt's events stand in the same file.
            self.progress, self.first = None, None
            self._rates.clear()
        elif event["type"] == "progress" and event.get("total"):
            self.progress = event
            self.first = self.first or (float(event["time"]), float(event["done"]))
        elif event["type"] == "metric":
            self.metric.update(event)
            self._measure(event)

    @property
    def tokens_per_second(self) -> float | None:
        """Over the last half minute; None before there is enough to tell."""
        if len(self._rates) < 2:
            return None
        (since, fewer), (until, more) = self._rates[0], self._rates[-1]
        return (more - fewer) / (until - since) if until > since else None

    @property
    def seconds_left(self) -> float | None:
        """By the rate since this attempt began; None before there is enough to tell."""
        if self.progress is None or self.first is None:
            return None
        since, done_before = self.first
        done, total = float(self.progress["done"]), float(self.progress["total"])
        spent = float(self.progress["time"]) - since
        if done <= done_before or spent <= 0.0:
            return None
        return (total - done) * spent / (done - done_before)

    def _measure(self, event: dict[str, Any]) -> None:
        if isinstance(event.get("loss"), int | float):
            if self._seen % self._every == 0:
                self.losses.append(float(event["loss"]))
            self._seen += 1
            if len(self.losses) > POINTS:
                self.losses, self._every = self.losses[::2], self._every * 2
        if isinstance(event.get("tokens"), int | float):
            now = float(event["time"])
            self._rates.append((now, float(event["tokens"])))
            while now - self._rates[0][0] > RATE_SECONDS:
                self._rates.popleft()


@dataclass(frozen=True)
class StepView:
    """One step at this moment; `live` for one that runs, `manifest` for one that stands."""

    step: RunStep
    live: Live | None
    manifest: Manifest | None


@dataclass(frozen=True)
class View:
    """A run at this moment. `lost` says that its process ended without saying how."""

    run: Run
    steps: tuple[StepView, ...]
    lost: bool

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.run.state != "running" or self.lost


@dataclass
class Watched:
    """Looks at one run again and again; events are read once."""

    store: Store
    run: Run
    _live: dict[str, Live] = field(default_factory=dict)
    _offsets: dict[str, int] = field(default_factory=dict)
    _rests: dict[str, bytes] = field(default_factory=dict)
    _manifests: dict[str, Manifest] = field(default_factory=dict)

    def look(self) -> View:
        """The run now."""
        self.run = find_run(self.store, self.run.name) or self.run
        steps = tuple(self._step(step) for step in self.run.steps)
        record = Record("", self.run.machine, self.run.process, self.run.process_started)
        return View(self.run, steps, self.run.state == "running" and process_is_gone(record))

    def still_working(self, view: View) -> list[str]:
        """Steps whose own process goes on although the run's has ended."""
        return [
            one.step.instance
            for one in view.steps
            if one.step.state == "running"
            and one.step.key is not None
            and is_held(self.store.backend, one.step.key)
        ]

    def _step(self, step: RunStep) -> StepView:
        if step.key is None or step.state == "waiting":
            return StepView(step, None, None)
        if step.state in ("made", "reused"):
            return StepView(step, None, self._manifest(step))
        return StepView(step, self._follow(step.key), None)

    def _manifest(self, step: RunStep) -> Manifest | None:
        assert step.key is not None
        if step.key not in self._manifests:
            found = self.store.manifest(step.stage, step.key)
            if found is None:
                return None
            self._manifests[step.key] = found
        return self._manifests[step.key]

    def _follow(self, key: str) -> Live:
        live = self._live.setdefault(key, Live())
        for line in self._new_lines(key):
            live.take(json.loads(line))
        return live

    def _new_lines(self, key: str) -> list[bytes]:
        """Whole lines that were appended since the last look."""
        start = self._offsets.get(key, 0)
        try:
            new = self.store.backend.read(layout.work(key, EVENTS_FILE), start)
        except FileNotFoundError:
            return []  # Not there yet, or it committed meanwhile and the record will say so.
        self._offsets[key] = start + len(new)
        *lines, self._rests[key] = (self._rests.get(key, b"") + new).split(b"\n")
        return [line for line in lines if line.strip()]
