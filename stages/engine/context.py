"""What a stage works with: its inputs, writers, the shard map, and reports of how the run goes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from artifacts_schema import config as settings
from artifacts_schema.errors import NotConserved, Stopped
from artifacts_schema.manifest import Conservation, Interim
from artifacts_schema.store.commit import Attempt
from artifacts_schema.store.lease import local_work
from stages.engine.allotment import available_cores
from stages.engine.events import TELEMETRY_FOLDER, EventWriter
from stages.engine.inputs import Input
from stages.engine.meter import Meter
from stages.engine.outputs import AttemptWriters, Interims, Milestone, ShardResult
from stages.engine.shards import ShardMap
from stages.engine.state import State, accepted_changes
from stages.engine.tasks import Item, MarkOf
from stages.engine.workers import Pool, WorkerCrash, Workers

SAMPLES = 5
SAMPLE_CHARACTERS = 200


class RunReport:
    """What the manifest of a run reports besides its outputs."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.counts: dict[str, int | float] = {}
        self.samples: dict[str, list[str]] = {}
        self.conservation: Conservation | None = None
        self.notes: dict[str, Any] = {}
        self.layout_notes: dict[str, Any] = {}
        self.devices_held = 0
        """GPUs that the stage holds while it runs; the manifest states their cost."""

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
                where=self.stage,
                hint="this is a bug in the stage; nothing was committed",
            )
        self.conservation = Conservation(records_in=records_in, out=out, dropped=lost)

    def telemetry(self, **values: Any) -> None:
        """Record speed, memory and the like in the manifest, unhashed."""
        self.notes.update(values)

    def layout(self, **values: Any) -> None:
        """Record what `numerics` output depends on besides its key: device, threads, dtype, …"""
        self.layout_notes.update(values)


class Cluster(Protocol):
    """Workers of other machines for all maps of a run."""

    def pool(self, most: int, common: bytes) -> Pool:
        """Workers for one map of this common part, at most `most` at once."""

    def telemetry(self) -> dict[str, float]:
        """What the workers used, for the manifest."""


@dataclass(frozen=True)
class RunServices:
    """What the runner sets up for one run and the context passes on to the stage."""

    attempt: Attempt
    code: str
    """Digest of the stage's program."""
    state: State
    interims: Interims
    events: EventWriter
    stop: Callable[[], bool]
    """Whether the stage was asked to stop."""
    cluster: Cluster | None = None
    """Does the shards; None: processes of this machine."""
    processes: Workers = field(default_factory=Workers)
    """Of this machine, for all maps of the run."""
    meter: Meter = field(default_factory=Meter)
    """What the run spends, and what it has from earlier attempts."""


class Context(AttemptWriters, RunReport):
    """One run of one stage, as the stage sees it. Its writers write straight into the attempt."""

    def __init__(
        self,
        config: settings.Config,
        execution: settings.Execution,
        inputs: Mapping[str, Sequence[Input]],
        services: RunServices,
    ) -> None:
        AttemptWriters.__init__(self, services.attempt)
        RunReport.__init__(self, services.attempt.stage)
        self.config: Any = config
        self.execution: Any = execution
        self.log = services.state.log
        self.state = services.state
        self._inputs, self._services = inputs, services
        self._events, self._maps = services.events, set[str]()

    # Inputs --------------------------------------------------------------------------------------

    def one(self, role: str) -> Input:
        """The output for a role that takes exactly one."""
        (only,) = self._inputs[role]
        return only

    def maybe(self, role: str) -> Input | None:
        """The output for a role that takes one or none."""
        return next(iter(self._inputs.get(role, ())), None)

    def many(self, role: str) -> list[Input]:
        """The outputs for a role, in order."""
        return list(self._inputs.get(role, ()))

    # Work ----------------------------------------------------------------------------------------

    @property
    def work(self) -> Path:
        """A folder of this machine that outlives kills; `state` can publish its files."""
        return self.state.folder

    @property
    def accepted_code(self) -> list[dict[str, str]]:
        """The changes of program (`from`, `to`) that the work continued through, on request."""
        return accepted_changes(self.work)

    @property
    def workers(self) -> int:
        """Worker processes to use."""
        return int(self.execution.workers or available_cores())

    def map(
        self,
        function: Callable[..., Any],
        items: Iterable[Item],
        *,
        name: str | None = None,
        workers: int | None = None,
        on_death: Callable[[WorkerCrash], Mapping[str, Any] | None] | None = None,
        mark_of: MarkOf | None = None,
        replace: bool = False,
        **shared: Any,
    ) -> list[ShardResult]:
        """Call `function(item, output, **shared)` for each item, in worker processes.

        With engine `dask` these are the workers of a cluster: all of them, unless the execution
        says how many.

        What `function` returns (a JSON-able dict) and writes is kept across kills; results come in
        the order of `items`. Raises Stopped when the stage is asked to stop, and IngotError when a
        worker crashes.

        `workers` is the most that are worth their start: light work is done sooner by fewer. They
        are the same processes for all maps of a run.
        With `on_death` the calls are made in processes of their own, even by a single worker or by
        one of a cluster. It is called in this process for each that crashed, with what `mark_of`
        (picklable) gave on the crash's machine, and returns the shared arguments that change for
        the calls still to start, the crashed one's own among them, or None to fail. Finished
        shards are not done again, so it may only change the result of the crashed worker's shard.
        With `replace`, files replace those that an earlier map wrote under their names.
        """
        name = name or function.__name__.strip("_")
        run, cluster = self._services, self._services.cluster
        if name in self._maps:
            raise ValueError(f"two maps called '{name}' in one stage")
        if (on_death is None) != (mark_of is None):
            raise ValueError(f"map '{name}': `on_death` and `mark_of` come together")
        self._maps.add(name)
        most = self.workers if cluster is None else self.execution.workers or sys.maxsize
        lend = partial(run.processes.lend, on_silent=self._warn_of_silence)
        shards = ShardMap(
            backend=self.attempt.backend,
            key=self.attempt.key,
            name=name,
            kinds=self.attempt.kinds,
            code=run.code,
            workers=min(most, workers or most),
            stopping=run.stop,
            progress=lambda *counts: self._count_shards(name, *counts),
            check_lease=self.state.check,
            pool=lend if cluster is None else cluster.pool,
            on_death=on_death,
            mark_of=mark_of,
            meter=run.meter,
            elsewhere=cluster is not None,
        )
        results, written = shards.run(function, list(items), shared)
        files = ((str(item.output), item.file, item.place) for item in written)
        self.attempt.adopt(files, replace=replace)
        if cluster is not None:
            self.telemetry(**cluster.telemetry())
        return results

    def _count_shards(self, name: str, done: int, total: int, rows: Mapping[str, int]) -> None:
        self._events.progress(done, total, "shards", name, rows)

    def _warn_of_silence(self, process: int, shard: str, seconds: float) -> None:
        limit = self.execution.silent_seconds
        then = f"it is ended after {limit:.0f} s" if limit is not None else "there is no limit"
        self.alert(
            "silent_worker",
            f"worker process {process} has done nothing for {seconds:.0f} s at shard {shard}: "
            f"stopped, or waiting for a disk; {then}",
            process=process,
            shard=shard,
        )

    @property
    def stopping(self) -> bool:
        """Whether the stage was asked to stop."""
        return self._services.stop()

    def check_stop(self) -> None:
        """Raise Stopped if the stage was asked to stop; what it saved in `work` stays."""
        if self.stopping:
            raise Stopped()

    # Interim artifacts ---------------------------------------------------------------------------

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

        Its key follows from the run's and from `at`, so a run that was killed and reaches the same
        point makes nothing new. `history` is what was decided during the run and bears on the
        bytes; `counts` are the manifest's. Raises LeaseLost if another run has taken the key over,
        StoreError if it cannot be written; then nothing is committed.
        """
        with self._services.interims.writing(
            at, outputs, history=history, layout=self.layout_notes, counts=counts
        ) as writers:
            yield writers
        self._events.write("interim", at=at.at, label=at.label)

    def withdraw_interims(self, after: int) -> None:
        """The run rolls back: what it committed after `after` no longer belongs to it.

        The artifacts stay until they are collected, for those who read them.
        """
        self._services.interims.withdraw(after)

    @property
    def interims_committed(self) -> tuple[Interim, ...]:
        """What this run, and those it continues, committed before its end, in order."""
        return self._services.interims.committed

    # Progress ------------------------------------------------------------------------------------

    def progress(self, done: float, total: float, unit: str = "") -> None:
        """Report how far the work is; cheap to call often."""
        self._events.progress(done, total, unit, "")

    def metric(self, **numbers: Any) -> None:
        """Report numbers worth watching. Not hashed, not needed for any result."""
        self._events.write("metric", **numbers)

    def alert(self, kind: str, text: str, **values: Any) -> None:
        """Report something that a person should look at, though the work continues. Not hashed."""
        self.log.warning("%s", text)
        self._events.write("alert", kind=kind, text=text, **values)

    @property
    def telemetry_folder(self) -> Path:
        """A folder of this machine for what people read about the run: kept with the payload, not
        hashed. It outlives kills."""
        return local_work(self.attempt.backend, self.attempt.key, TELEMETRY_FOLDER)
