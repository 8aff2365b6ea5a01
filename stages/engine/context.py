"""What a stage is given: inputs, writers, the shard map, and a way to tell how it goes."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts_schema import config as settings
from artifacts_schema.errors import NotConserved, Stopped
from artifacts_schema.manifest import Conservation, Interim
from artifacts_schema.store.backend import Backend
from artifacts_schema.store.commit import Attempt
from artifacts_schema.store.work import local_work
from stages.engine.events import TELEMETRY_FOLDER, EventWriter
from stages.engine.inputs import Input
from stages.engine.interim import Interims, Milestone
from stages.engine.outputs import AttemptWriters, ShardResult
from stages.engine.registry import stage_named
from stages.engine.shards import Item, ShardMap
from stages.engine.state import State, accepted
from stages.engine.workers import Death

if TYPE_CHECKING:
    from stages.engine.dask_workers import DaskEngine

SAMPLES = 5
SAMPLE_CHARACTERS = 200


class Context(AttemptWriters):
    """One run of one stage, seen from inside. Writes straight into the attempt as well."""

    def __init__(
        self,
        *,
        config: settings.Config,
        execution: settings.Execution,
        inputs: Mapping[str, Sequence[Input]],
        attempt: Attempt,
        backend: Backend,
        code: str,
        state: State,
        interims: Interims,
        events: EventWriter,
        log: logging.Logger,
        stop: Callable[[], bool],
    ) -> None:
        super().__init__(attempt)
        self.config: Any = config
        self.execution: Any = execution
        self.log = log
        self.state = state
        self.counts: dict[str, int | float] = {}
        self.samples: dict[str, list[str]] = {}
        self.conservation: Conservation | None = None
        self.notes: dict[str, Any] = {}
        self.layout_notes: dict[str, Any] = {}
        self.devices_held = 0
        """GPUs that the stage holds while it runs; what they cost is told in the manifest."""
        self._inputs, self._backend, self._code = inputs, backend, code
        self._interims = interims
        self._events, self._stop, self._maps = events, stop, set[str]()

    # Inputs --------------------------------------------------------------------------------------

    def one(self, role: str) -> Input:
        """The output given to a role that takes exactly one."""
        (only,) = self._inputs[role]
        return only

    def maybe(self, role: str) -> Input | None:
        """The output given to a role that takes one or none."""
        given = self._inputs.get(role, ())
        return given[0] if given else None

    def many(self, role: str) -> list[Input]:
        """The outputs given to a role, in order."""
        return list(self._inputs.get(role, ()))

    # Work ----------------------------------------------------------------------------------------

    @property
    def work(self) -> Path:
        """A folder of this machine that outlives kills; `state` can publish what lies in it."""
        return self.state.folder

    @property
    def accepted_code(self) -> list[dict[str, str]]:
        """The changes of program (`from`, `to`) that the work went on through, on request."""
        return accepted(self.work)

    @property
    def workers(self) -> int:
        """Worker processes to use."""
        return int(self.execution.workers or len(os.sched_getaffinity(0)))

    def map(
        self,
        function: Callable[..., Any],
        items: Iterable[Item],
        *,
        name: str | None = None,
        workers: int | None = None,
        on_death: Callable[[Death], Mapping[str, Any] | None] | None = None,
        replace: bool = False,
        **shared: Any,
    ) -> list[ShardResult]:
        """Call `function(item, output, **shared)` for each item, in worker processes.

        With engine `dask` these are the workers of a cluster: all of them, unless the execution
        says how many.

        What `function` returns (a JSON-able dict) and writes is kept across kills; results come in
        the order of `items`. Raises Stopped when the stage is asked to stop, and IngotError when a
        worker dies.

        `workers` is the most that are worth their start: light work is done sooner by fewer.
        With `on_death` the calls are made in worker processes even by a single worker, and it is
        asked, in this process, about each worker that died: it returns the shared arguments that
        change for the calls still to start, the dead one's own among them, or None for the error.
        Finished shards are not done again, so it may only change what the dead one's shard gives.
        With `replace`, files take the place of those that an earlier map wrote under their names.
        """
        name = name or function.__name__.strip("_")
        if name in self._maps:
            raise ValueError(f"two maps called '{name}' in one stage")
        if self._dask is not None and on_death is not None:
            raise ValueError(f"map '{name}': what ends a worker of a cluster is not known")
        self._maps.add(name)
        most = self.workers if self._dask is None else self.execution.workers or sys.maxsize
        shards = ShardMap(
            backend=self._backend,
            key=self.attempt.key,
            name=name,
            kinds=self.attempt.kinds,
            code=self._code,
            workers=min(most, workers or most),
            stopping=self._stop,
            progress=lambda done, total: self._events.progress(done, total, "shards", name),
            check_lease=self.state.check,
            on_death=on_death,
            pool=self._dask.pool if self._dask is not None else None,
            on_silent=self._tell_silent,
            silent_limit=self.execution.silent_seconds,
        )
        results, written = shards.run(function, list(items), shared)
        files = ((str(item.output), item.file, item.place) for item in written)
        self.attempt.adopt(files, replace=replace)
        if self._dask is not None:
            self.telemetry(**self._dask.notes())
        return results

    def _tell_silent(self, process: int, shard: str, seconds: float) -> None:
        limit = self.execution.silent_seconds
        then = f"it is ended after {limit:.0f} s" if limit is not None else "it is waited for"
        self.alert(
            "silent_worker",
            f"worker process {process} has done nothing for {seconds:.0f} s at shard {shard}: "
            f"stopped, or waiting for a disk; {then}",
            process=process,
            shard=shard,
        )

    @cached_property
    def _dask(self) -> DaskEngine | None:
        """The cluster that does this run's shards; None for processes of this machine."""
        execution = self.execution
        if not isinstance(execution, settings.MapExecution) or execution.engine != "dask":
            return None
        from stages.engine.dask_terms import Terms
        from stages.engine.dask_workers import DaskEngine

        assert execution.scheduler is not None
        terms = Terms(
            stage=stage_named(self.attempt.stage),
            code=self._code,
            backend=self._backend,
            key=self.attempt.key,
            folder=self.work,
            threads=execution.threads,
        )
        return DaskEngine(execution.scheduler, terms, self.log)

    @property
    def stopping(self) -> bool:
        """Whether the stage was asked to stop."""
        return self._stop()

    def check_stop(self) -> None:
        """Raise Stopped if the stage was asked to stop; what it saved in `work` stays."""
        if self._stop():
            raise Stopped("stopped on request", hint="run the same command to continue")

    # Committed on the way -----------------------------------------------------------------------

    @contextmanager
    def interim(
        self,
        at: Milestone,
        outputs: Sequence[str],
        *,
        history: Sequence[Any] = (),
        **counts: int | float,
    ) -> Iterator[AttemptWriters]:
        """Write some of the stage's outputs as they are now, and commit them as an artifact.

        Its key follows from the run's and from `at`, so a run that was killed and comes by again
        makes nothing new. `history` is what was decided while it ran and bears on the bytes;
        `counts` are the manifest's. Raises LeaseLost if another run has taken the key over,
        StoreError where it cannot be written; then nothing is committed.
        """
        with self._interims.writing(
            at, outputs, history=history, layout=self.layout_notes, counts=counts
        ) as writers:
            yield writers
        self._events.write("interim", at=at.at, label=at.label)

    def withdraw_interims(self, after: int) -> None:
        """The run goes back: what it committed behind `after` is no part of it any more.

        The artifacts stay until they are collected, for who reads them.
        """
        self._interims.withdraw(after)

    @property
    def interims_committed(self) -> tuple[Interim, ...]:
        """What this run, and those it goes on from, committed on the way, in order."""
        return self._interims.committed

    # What is told --------------------------------------------------------------------------------

    def count(self, **numbers: int | float) -> None:
        """Add to the manifest's counters."""
        for name, number in numbers.items():
            self.counts[name] = self.counts.get(name, 0) + number

    def sample(self, reason: str, text: str) -> None:
        """Keep a short example for a reason, up to five."""
        kept = self.samples.setdefault(reason, [])
        if len(kept) < SAMPLES:
            kept.append(text[:SAMPLE_CHARACTERS].encode("utf-8", "replace").decode())

    def conserve(
        self, *, records_in: int, out: int, dropped: Mapping[str, int] | None = None
    ) -> None:
        """State where every record went. NotConserved if `records_in` is not the sum."""
        lost = {reason: count for reason, count in sorted((dropped or {}).items()) if count}
        if records_in != out + sum(lost.values()):
            parts = " + ".join(f"{count:,} {reason}" for reason, count in lost.items())
            raise NotConserved(
                f"{records_in:,} records in, but {out:,} out + {parts or 'none dropped'}",
                where=self.attempt.stage,
                hint="this is a bug in the stage; nothing was committed",
            )
        self.conservation = Conservation(records_in=records_in, out=out, dropped=lost)

    def progress(self, done: float, total: float, unit: str = "") -> None:
        """Tell how far the work is; cheap to call often."""
        self._events.progress(done, total, unit, "")

    def metric(self, **numbers: Any) -> None:
        """Tell numbers worth watching. Not hashed, not needed for any result."""
        self._events.write("metric", **numbers)

    def alert(self, kind: str, text: str, **values: Any) -> None:
        """Tell something that a person should look at, though the work goes on. Not hashed."""
        self.log.warning("%s", text)
        self._events.write("alert", kind=kind, text=text, **values)

    @property
    def telemetry_folder(self) -> Path:
        """A folder of this machine for what people read of the run: kept beside the payload, not
        hashed. It outlives kills."""
        return local_work(self._backend, self.attempt.key, TELEMETRY_FOLDER)

    def telemetry(self, **values: Any) -> None:
        """Record speed, memory and the like in the manifest, unhashed."""
        self.notes.update(values)

    def layout(self, **values: Any) -> None:
        """Record what `numerics` output depends on beside its key: device, threads, dtype, …"""
        self.layout_notes.update(values)
