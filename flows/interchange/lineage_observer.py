"""Sends OpenLineage events of a run while it runs, to a server or a file.

The profile's `openlineage` names where to. Events are made and delivered by a thread of their own,
which the run waits for at its end, at most `FLUSH_SECONDS`: a server that is slow or away costs a
line of the log and its events, which `ingot lineage REF --openlineage FILE` writes again. A key of
the server is never a setting of Ingot: OPENLINEAGE_API_KEY holds it, as for OpenLineage's clients.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from artifacts_schema.errors import IngotError, Stopped
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.interchange.openlineage import (
    Datasets,
    JobRun,
    error_text,
    recipe_run,
    step_run,
)
from flows.recipe.observers import Observer
from flows.recipe.plan import PlannedStep

if TYPE_CHECKING:
    import httpx

ENDPOINT = "/api/v1/lineage"
"""Where OpenLineage's clients post, unless the URL has a path."""
API_KEY = "OPENLINEAGE_API_KEY"  # As for OpenLineage's own clients.
POST_SECONDS = 5.0
FLUSH_SECONDS = 5.0
QUEUE_EVENTS = 1_000
"""Events that may wait; a run has a few for each step."""
TRIES = 3
WAIT_SECONDS = 1.0

log = logging.getLogger(__name__)

Deliver = Callable[[dict[str, Any]], None]


class Undeliverable(Exception):
    """An event that no further try would deliver."""


def open_target(target: str) -> Deliver:
    """What delivers an event to a URL, or appends it to a file as a line of JSON.

    `target` is what `flows.recipe.profile.check_target` accepts. Nothing is opened before the first
    event.
    """
    if "://" not in target:
        return lambda event: _append(Path(target), event)
    url = target if urlsplit(target).path.strip("/") else target.rstrip("/") + ENDPOINT
    client = cache(_client)
    return lambda event: _post(client(), url, event)


def _client() -> httpx.Client:
    import httpx

    key = os.environ.get(API_KEY)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.Client(timeout=POST_SECONDS, headers=headers)


def _append(path: Path, event: dict[str, Any]) -> None:
    line = json.dumps(event, ensure_ascii=False).encode() + b"\n"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        os.write(file, line)  # In one call, so that lines of runs at the same time stay whole.
    finally:
        os.close(file)


def _post(client: httpx.Client, url: str, event: dict[str, Any]) -> None:
    import httpx

    try:
        answer = client.post(url, json=event)
    except httpx.HTTPError as error:
        raise OSError(str(error) or type(error).__name__) from error
    if answer.status_code >= 500 or answer.status_code == 429:
        raise OSError(f"HTTP {answer.status_code}")
    if not answer.is_success:
        raise Undeliverable(f"HTTP {answer.status_code}")


class Sender:
    """Makes and delivers events in a thread of its own, in their order."""

    def __init__(self, deliver: Deliver, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self._deliver, self._wait_seconds = deliver, wait_seconds
        self._events: queue.Queue[Callable[[], dict[str, Any]] | None] = queue.Queue(QUEUE_EVENTS)
        self._is_closing = threading.Event()
        self._lost, self._reason = 0, ""
        self._thread = threading.Thread(target=self._loop, name="openlineage", daemon=True)

    def put(self, make: Callable[[], dict[str, Any]]) -> None:
        """Have an event made and delivered; never waits."""
        if not self._thread.is_alive() and not self._is_closing.is_set():
            self._thread.start()
        try:
            self._events.put_nowait(make)
        except queue.Full:
            self._lost += 1

    def close(self, seconds: float = FLUSH_SECONDS) -> int:
        """Wait at most so long for what was not delivered yet; returns how many events are lost."""
        self._is_closing.set()
        if self._thread.is_alive():
            try:
                self._events.put_nowait(None)
            except queue.Full:
                self._lost += 1
            self._thread.join(seconds)
        waiting = self._events.qsize() if self._thread.is_alive() else 0
        lost = self._lost + waiting
        if lost:
            reason = f" ({self._reason})" if self._reason else ""
            log.warning(
                "%d OpenLineage events were not delivered%s: `ingot lineage REF --openlineage "
                "FILE` writes those of what was made",
                lost,
                reason,
            )
        return lost

    def _loop(self) -> None:
        while (make := self._events.get()) is not None:
            try:
                self._try(make())
            except Exception as error:  # Nothing about lineage may end a run.
                self._lost += 1
                self._reason = f"{type(error).__name__}: {error}"

    def _try(self, event: dict[str, Any]) -> None:
        """Deliver, with a few tries; one while the run waits for its end."""
        for left in reversed(range(TRIES)):
            try:
                self._deliver(event)
                return
            except OSError:
                if not left or self._is_closing.wait(self._wait_seconds):
                    raise


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class OpenLineageObserver(Observer):
    """Sends START of each step that a run starts, and how it ended; the same of the run itself.

    A run that starts no step sends nothing. `run` is the id of its record.
    """

    store: Store
    recipe: str
    run: str
    sender: Sender
    description: str = ""
    clock: Callable[[], datetime] = _now
    _parent: JobRun | None = None
    _open: dict[str, JobRun] = field(default_factory=dict)
    """Steps without an end, by instance."""
    _starts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._datasets = Datasets(self.store)

    def started(self, step: PlannedStep) -> None:
        """A step was sent off; the run itself began, at the first."""
        when, spec = self.clock(), step.spec
        if self._parent is None:
            self._parent = recipe_run(self.store, self.recipe, self.run, self.description)
            self._send(self._parent, "START", when)
        count = self._starts[step.instance] = self._starts.get(step.instance, 0) + 1
        run = self._open[step.instance] = step_run(self._parent, step.instance, step.stage, count)
        inputs = spec.inputs if spec is not None else {}
        self.sender.put(lambda: run.event("START", when, inputs=self._datasets.inputs(inputs)))

    def finished(self, step: PlannedStep, manifest: Manifest, seconds: float) -> None:
        """A step committed."""
        run, when = self._open.pop(step.instance, None), self.clock()
        if run is None:
            return
        self.sender.put(
            lambda: run.event(
                "COMPLETE",
                when,
                inputs=self._datasets.inputs(manifest.inputs),
                outputs=self._datasets.outputs(manifest),
            )
        )

    def failed(self, step: PlannedStep, error: IngotError) -> None:
        """A step failed, or was stopped."""
        if (run := self._open.pop(step.instance, None)) is not None:
            self._end(run, error)

    def ended(self, error: BaseException | None) -> None:
        """The run is over; a step without an end is out of its hands."""
        if self._parent is None:
            return
        for run in self._open.values():
            self._end(run, Stopped())
        if error is None:
            self._send(self._parent, "COMPLETE", self.clock())
        else:
            self._end(self._parent, error)
        self.sender.close()

    def _end(self, run: JobRun, error: BaseException) -> None:
        is_stop = isinstance(error, Stopped) or not isinstance(error, Exception)
        text = error_text(error, self.store)
        self._send(run, "ABORT" if is_stop else "FAIL", self.clock(), error=text)

    def _send(self, run: JobRun, type: str, when: datetime, error: str | None = None) -> None:
        self.sender.put(lambda: run.event(type, when, error=error))


def lineage_observers(
    target: str | None, store: Store, recipe: str, run: str, description: str = ""
) -> tuple[Observer, ...]:
    """The observer of a run that sends to `target`; none without one."""
    if target is None:
        return ()
    return (OpenLineageObserver(store, recipe, run, Sender(open_target(target)), description),)
