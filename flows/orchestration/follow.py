"""A step as a Prefect task: it shows what the step's child process does, and ends as that ends.

The loop in `flows.recipe.execute` owns the child. The task only looks on, so a server that goes
away takes nothing with it but the picture.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from prefect import task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.exceptions import PrefectException
from prefect.logging import get_run_logger
from prefect.states import Cancelled

from artifacts_schema.errors import IngotError, Stopped
from flows.orchestration.pages import artifact_key, line_of
from flows.orchestration.pictures import LossPicture

PROGRESS_SECONDS = 2.0
METRIC_SECONDS = 10.0
AWAY_SECONDS = 60.0
"""Between attempts while the API is away: each lasts as long as the client's own retries."""
AWAY = (httpx.HTTPError, PrefectException, RuntimeError, OSError)
"""What a call to an API that went away raises."""


@dataclass
class Ended:
    """The last message of a step."""

    error: IngotError | None = None
    counts: Mapping[str, Any] = field(default_factory=dict)


class Messages:
    """What a step tells its task; Prefect neither walks into it, nor copies or prints it."""

    def __init__(self) -> None:
        waiting: queue.SimpleQueue[dict[str, Any] | Ended] = queue.SimpleQueue()
        self.put, self.get = waiting.put, waiting.get

    def __repr__(self) -> str:
        return "events"


@task(
    name="step", task_run_name="{instance}", cache_policy=NO_CACHE, persist_result=False, retries=0
)
def follow_step(
    instance: str, stage: str, key: str, cause: str, scope: str, messages: Messages
) -> Any:
    """Show the events of one step until it ends; raise its error if it fails."""
    log = get_run_logger()
    log.info("%s %s: %s", stage, key[:12], cause or "missing")
    progress = Progress(artifact_key(f"progress-{scope}-{instance}"))
    picture = LossPicture(artifact_key(f"loss-{scope}-{instance}"))
    last_metric = 0.0
    while True:
        message = messages.get()
        if isinstance(message, Ended):
            picture.show()
            if isinstance(message.error, Stopped):
                return Cancelled(message=str(message.error))
            if message.error is not None:
                raise message.error
            progress.finish()
            log.info("made %s", line_of(message.counts))
            return {"key": key, **dict(message.counts)}
        if message["type"] == "progress":
            progress.show(message)
        elif message["type"] == "metric":
            picture.take(message)
            if time.monotonic() - last_metric > METRIC_SECONDS:
                last_metric = time.monotonic()
                log.info("%s", line_of({k: message[k] for k in message if k not in _PLUMBING}))


_PLUMBING = ("type", "time")


class Progress:
    """One progress artifact for a step, updated at a bounded rate; silent when the API is away."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._id: Any = None
        self._last = -PROGRESS_SECONDS
        self._is_away = False

    def show(self, event: Mapping[str, Any]) -> None:
        """Show a progress event, unless one was shown a moment ago."""
        now = time.monotonic()
        if now - self._last < PROGRESS_SECONDS or not event.get("total"):
            return
        self._last = now
        share = 100.0 * float(event["done"]) / float(event["total"])
        label = f"{event['label']}: " if event.get("label") else ""
        self._put(share, f"{label}{event['done']:,} of {event['total']:,} {event['unit']}")

    def finish(self) -> None:
        """Show that it is done."""
        if self._id is not None and not self._is_away:
            self._put(100.0, "done")

    def _put(self, share: float, description: str) -> None:
        try:
            if self._id is None:
                self._id = create_progress_artifact(share, key=self.key, description=description)
            else:
                update_progress_artifact(self._id, share, description=description)
            self._is_away = False
        except AWAY as error:
            self._is_away = True
            self._last = time.monotonic() + AWAY_SECONDS - PROGRESS_SECONDS
            logging.getLogger(__name__).debug("progress not shown: %s", error)
