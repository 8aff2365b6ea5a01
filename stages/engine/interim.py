"""Artifacts that a stage commits while it runs: a checkpoint that is to be kept, long before the
end.

Each has a key of its own, from the run's key and how far the run was, so coming by a second time
(after a kill) finds it made. It is announced in the run's index before a byte of it is written;
see `artifacts_schema.store.interim`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.identity import interim_key
from artifacts_schema.manifest import Interim, InterimOf, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.commit import Attempt, commit
from artifacts_schema.store.interim import announce, noted, withdraw
from artifacts_schema.store.points import reached
from stages.engine.manifests import manifest_of
from stages.engine.outputs import AttemptWriters

if TYPE_CHECKING:
    from stages.engine.protocol import Stage
    from stages.engine.spec import StageSpec


@dataclass(frozen=True)
class Milestone:
    """How far a run is when it commits: by its own count, and as people read it (`1.6M`)."""

    at: int
    label: str


@dataclass(frozen=True)
class Interims:
    """What one run of a stage commits on its way; `check` raises once the run has lost its key."""

    store: Store
    spec: StageSpec
    stage: type[Stage]
    check: Callable[[], None]

    @property
    def committed(self) -> tuple[Interim, ...]:
        """In order; what earlier processes of this run committed is among it."""
        return tuple(noted(self.store.backend, self.spec.key))

    def withdraw(self, after: int) -> None:
        """Take off the list what lies behind `after`; the artifacts stay until collected."""
        self.check()
        withdraw(self.store.backend, self.spec.key, after=after)

    @contextmanager
    def writing(
        self,
        at: Milestone,
        outputs: Sequence[str],
        *,
        history: Sequence[Any],
        layout: Mapping[str, Any],
        counts: Mapping[str, int | float],
    ) -> Iterator[AttemptWriters]:
        """Writers for these outputs of the stage; the artifact stands when the block ends well.

        ValueError for an output that the stage does not declare.
        """
        unknown = [name for name in outputs if name not in self.stage.outputs]
        if unknown:
            raise ValueError(f"{self.spec.stage} declares no output '{unknown[0]}'")
        backend, run = self.store.backend, self.spec.key
        entry = Interim(at=at.at, label=at.label, key=interim_key(run, at.at, history))
        self.check()
        announce(backend, run, entry)
        kinds = {name: self.stage.outputs[name] for name in outputs}
        attempt = Attempt(backend, self.spec.stage, entry.key, kinds)
        started = time.monotonic()
        try:
            yield AttemptWriters(attempt)
            self.check()
            manifest = self._manifest(
                attempt, entry, history, layout, counts, time.monotonic() - started
            )
            standing = commit(self.store, manifest)
        except BaseException:
            attempt.discard()
            raise
        if standing.attempt != attempt.name:
            attempt.discard()
        self.check()
        digests = {name: output.digest for name, output in standing.outputs.items()}
        announce(backend, run, entry.model_copy(update={"outputs": digests}))
        reached("interim listed")

    def _manifest(
        self,
        attempt: Attempt,
        entry: Interim,
        history: Sequence[Any],
        layout: Mapping[str, Any],
        counts: Mapping[str, int | float],
        seconds: float,
    ) -> Manifest:
        return manifest_of(
            self.spec,
            self.stage,
            attempt,
            key=entry.key,
            layout=dict(layout),
            counts=dict(sorted(counts.items())),
            telemetry={
                "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "seconds": round(seconds, 3),
            },
            interim_of=InterimOf(
                run=self.spec.key, at=entry.at, label=entry.label, history=tuple(history)
            ),
        )
