"""The resumable map over shards: same bytes for any number of workers and any kills.

A finished shard is a record under the work folder that names its files; a shard without a record
is done again, into new files: every attempt at a shard writes into a folder of its own, whose name
is drawn where the attempt is made. Only the stage's own process writes records, and only while it
holds the run's lease, so a worker that outlives its parent, or was taken for lost, changes nothing.
A worker that dies ends the map, unless the stage knows why it died and how its item can be done all
the same, or others may be luckier. One that does not answer is ended, and its item done again.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from signal import SIGKILL
from typing import Any, NamedTuple

from artifacts_schema.errors import IngotError, Stopped
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend
from artifacts_schema.store.failpoints import hit_failpoint
from stages.engine.meter import Meter, Spent
from stages.engine.outputs import ShardResult, Written, record_of
from stages.engine.tasks import Item, Made, MapCommon, MarkOf, Task, pack
from stages.engine.workers import Pool, WorkerCrash

SILENT_TRIES = 3
"""Workers that may be ended at one shard because they did nothing."""


class Finished(NamedTuple):
    """What the record of a shard says: parsed once, for a map may have a hundred thousand."""

    value: dict[str, Any]
    written: list[Written]

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Finished:
        """From the JSON object that `record_of` wrote."""
        return cls(record["value"], [Written.from_plain(item) for item in record["files"]])


@dataclass
class ShardMap:
    """One map of one run."""

    backend: Backend
    key: str
    name: str
    kinds: dict[str, str]
    code: str
    workers: int
    stopping: Callable[[], bool]
    progress: Callable[[int, int, Mapping[str, int]], None]
    """Called with the number of finished shards, of all shards, and the rows by output that this
    start has written."""
    check_lease: Callable[[], None]
    pool: Callable[[int, bytes], Pool]
    """Gives a pool of at most so many workers, for a map of this common part."""
    on_death: Callable[[WorkerCrash], Mapping[str, Any] | None] | None = None
    mark_of: MarkOf | None = None
    meter: Meter = field(default_factory=Meter)
    """Learns what earlier attempts spent on the shards that are done."""
    elsewhere: bool = False
    """Whether the workers are on other machines: then this process does no shard, not even one."""
    _done: dict[str, Finished] = field(default_factory=dict, init=False)
    _total: int = field(default=0, init=False)
    _rows: Counter[str] = field(default_factory=Counter, init=False)
    """Rows of tables by output, in shards that were done now."""

    def run(
        self, function: Callable[..., Any], items: Sequence[Item], shared: dict[str, Any]
    ) -> tuple[list[ShardResult], list[Written]]:
        """Results and files in the order of `items`."""
        ids = [item.id for item in items]
        if len(set(ids)) != len(ids):
            raise ValueError(f"map '{self.name}': ids of items are not unique")
        self._done, self._total = self._finished(ids), len(ids)
        waiting = [item for item in items if item.id not in self._done]
        self.progress(len(self._done), self._total, self._rows)
        alone = min(self.workers, len(waiting)) <= 1 and self.on_death is None
        alone = alone and not self.elsewhere
        run = self._run_inline if alone or not waiting else self._run_pool
        folder = layout.work(self.key, "shards", self.name)
        run(MapCommon(function, shared, self.backend, folder, self.kinds), waiting)
        results = [self._result(name) for name in ids]
        written = [item for name in ids for item in self._done[name].written]
        return results, [item for item in written if item.output is not None]

    def _run_inline(self, common: MapCommon, items: Sequence[Item]) -> None:
        for item in items:
            self._check_stop()
            self._record(item.id, common.do(item, {}, self.stopping))

    def _run_pool(self, common: MapCommon, items: Sequence[Item]) -> None:
        packed, parts = pack(replace(common, mark_of=self.mark_of), items)
        by_id = {item.id: part for item, part in zip(items, parts, strict=True)}
        waiting = deque(by_id)
        changes: Mapping[str, Any] = {}
        losses: Counter[str | None] = Counter()
        made: list[tuple[str, Any]] = []
        with ExitStack() as ends:
            workers = self.pool(min(self.workers, len(items)), packed)
            ends.callback(workers.release)
            while waiting or made or workers.busy:
                while waiting and workers.idle:
                    name = waiting.popleft()
                    workers.start_task(name, Task(by_id[name], changes))
                for name, value in made:  # Workers have their next item: recording takes a while.
                    self._record(name, value)
                self._check_stop()
                made, deaths = workers.wait(0.5 if waiting or workers.busy else 0)
                for death in deaths:
                    while made:
                        self._record(*made.pop())
                    losses[death.item] += 1
                    tries = workers.tries if death.silent is None else SILENT_TRIES
                    again = losses[death.item] < tries
                    changes = {**changes, **self._after(death, again)}
                    waiting.extendleft([death.item] if death.item else [])

    def _after(self, death: WorkerCrash, again: bool) -> Mapping[str, Any]:
        """Arguments that change for the crashed worker's item and later ones; IngotError to fail.

        `again` says whether the item may be retried though the cause of the crash is unknown.
        """
        self._check_stop()  # Who ends a group of processes ends the workers as well.
        if self.mark_of is not None and death.item is not None and not death.host:
            death = replace(death, mark=self.mark_of(death.item, death.process))
        changed = self.on_death(death) if self.on_death is not None else None
        if changed is not None:
            return changed
        if again:
            return {}
        if death.worker is not None:
            raise IngotError(
                f"several workers of map '{self.name}' were lost at this shard, or at one before "
                f"it; the last was {death.worker}",
                where=f"shard {death.item}",
                hint="see the workers' own logs; finished shards are kept; run "
                "again, with more memory a worker (--memory-limit) if that was short",
            )
        if death.silent is not None:
            raise IngotError(
                f"{SILENT_TRIES} worker processes of map '{self.name}' in a row {death.how}",
                where=f"shard {death.item}" if death.item else None,
                hint="look for a disk or network file system that does not answer, or raise "
                "execution.silent_seconds; finished shards are kept",
            )
        cause = "out of memory, or killed" if death.exit_code == -SIGKILL else death.how
        raise IngotError(
            f"a worker process of map '{self.name}' died ({cause})",
            where=f"shard {death.item}" if death.item else None,
            hint="finished shards are kept; run again, with fewer workers if memory was short",
        )

    def _record(self, name: str, made: Made) -> None:
        self.check_lease()
        value, written, (cpu, seconds) = made
        gpu = seconds * self.meter.devices() / max(1, min(self.workers, self._total))
        record = record_of(value, written, self.code, (round(cpu, 3), round(gpu, 3)))
        self.backend.replace(self._path(name), record)
        hit_failpoint("shard recorded")
        self._done[name] = Finished.from_record(json.loads(record))
        for item in written:
            if item.output is not None and item.file.rows:
                self._rows[item.output] += item.file.rows
        self.progress(len(self._done), self._total, self._rows)

    def _finished(self, ids: Sequence[str]) -> dict[str, Finished]:
        """The shards that this same program finished and whose files are still whole."""
        folder = layout.work(self.key, "shards", self.name)
        there = {f"{folder}/{n}": e.bytes for n, e in self.backend.listing(folder).items()}
        paths = {self._path(name): name for name in ids}
        begun = layout.work(self.key, "done", self.name)
        recorded = {f"{begun}/{name}" for name in self.backend.files(begun)} & paths.keys()
        finished = {}
        for path, raw in self.backend.read_many(sorted(recorded)).items():
            try:
                record = json.loads(raw)
            except ValueError:
                continue
            if record.get("code") != self.code:
                continue
            one = Finished.from_record(record)
            if all(item.sizes().items() <= there.items() for item in one.written):
                finished[paths[path]] = one
                self.meter.continued += Spent(*record.get("spent", ()))
        return finished

    def _check_stop(self) -> None:
        if self.stopping():
            done, total = len(self._done), self._total
            raise Stopped(
                f"stopped in map '{self.name}' with {done} of {total} shards finished",
                hint="run the same command to continue",
            )

    def _result(self, name: str) -> ShardResult:
        done = self._done[name]
        files = {(item.output, item.file.path): item for item in done.written}
        return ShardResult(name, done.value, self.backend, files)

    def _path(self, name: str) -> str:
        return layout.work(self.key, "done", self.name, f"{name}.json")
