"""The resumable map over shards: same bytes for any number of workers and any kills.

A finished shard is a record under the work folder that names its files; a shard without a record
is done again, into new files. Only the stage's own process writes records, so a worker that
outlives its parent changes nothing.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Protocol

from artifacts_schema.errors import IngotError, Stopped
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend
from artifacts_schema.store.points import reached
from stages.engine.outputs import ShardOutput, ShardResult, Written, record_of


class Item(Protocol):
    """What can be mapped over: anything picklable with an id that is unique in its map."""

    @property
    def id(self) -> str:
        """Unique within the map; becomes a file name."""


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
    progress: Callable[[int, int], None]

    def run(
        self, function: Callable[..., Any], items: Sequence[Item], shared: dict[str, Any]
    ) -> tuple[list[ShardResult], list[Written]]:
        """Results and files in the order of `items`."""
        ids = [item.id for item in items]
        if len(set(ids)) != len(ids):
            raise ValueError(f"map '{self.name}': ids of items are not unique")
        done = self._finished(ids)
        waiting = [item for item in items if item.id not in done]
        self.progress(len(done), len(ids))
        run = self._run_inline if min(self.workers, len(waiting)) <= 1 else self._run_pool
        run(function, waiting, shared, done, len(ids))
        results = [self._result(name, done[name]) for name in ids]
        written = [Written.from_plain(item) for name in ids for item in done[name]["files"]]
        return results, [item for item in written if item.output is not None]

    def _run_inline(
        self,
        function: Callable[..., Any],
        items: Sequence[Item],
        shared: dict[str, Any],
        done: dict[str, Any],
        total: int,
    ) -> None:
        for item in items:
            self._check_stop(done, total)
            output = self._output(item.id)
            output.stop = self.stopping
            self._record(item.id, _call(function, item, output, shared), done, total)

    def _run_pool(
        self,
        function: Callable[..., Any],
        items: Sequence[Item],
        shared: dict[str, Any],
        done: dict[str, Any],
        total: int,
    ) -> None:
        pool = ProcessPoolExecutor(
            min(self.workers, len(items)),
            mp_context=get_context("spawn"),
            initializer=_die_with_parent,
            initargs=(os.getpid(),),
        )
        futures: dict[Future[Any], str] = {}
        try:
            for item in items:
                call = pool.submit(_call, function, item, self._output(item.id), shared)
                futures[call] = item.id
            pending = set(futures)
            while pending:
                self._check_stop(done, total)
                ready, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in ready:
                    self._record(futures[future], future.result(), done, total)
        except BrokenProcessPool:
            raise IngotError(
                f"a worker process of map '{self.name}' died (out of memory, or killed)",
                hint="finished shards are kept; run again, with fewer workers if memory was short",
            ) from None
        finally:
            _end(pool)

    def _record(
        self,
        name: str,
        made: tuple[dict[str, Any], list[Written]],
        done: dict[str, Any],
        total: int,
    ) -> None:
        record = record_of(*made, self.code)
        self.backend.replace(self._path(name), record)
        reached("shard recorded")
        done[name] = json.loads(record)
        self.progress(len(done), total)

    def _finished(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Records of shards that this same program finished and whose files are still whole."""
        folder = layout.work(self.key, "shards", self.name)
        there = {f"{folder}/{n}": e.bytes for n, e in self.backend.listing(folder).items()}
        paths = {self._path(name): name for name in ids}
        begun = layout.work(self.key, "done", self.name)
        recorded = {f"{begun}/{name}" for name in self.backend.files(begun)} & paths.keys()
        found = {}
        for path, raw in self.backend.read_many(sorted(recorded)).items():
            try:
                record = json.loads(raw)
            except ValueError:
                continue
            if record.get("code") != self.code:
                continue
            files = [Written.from_plain(item) for item in record["files"]]
            if all(there.get(item.place) == item.file.bytes for item in files):
                found[paths[path]] = record
        return found

    def _check_stop(self, done: dict[str, Any], total: int) -> None:
        if self.stopping():
            raise Stopped(
                f"stopped in map '{self.name}' with {len(done)} of {total} shards finished",
                hint="run the same command to continue",
            )

    def _result(self, name: str, record: dict[str, Any]) -> ShardResult:
        written = [Written.from_plain(item) for item in record["files"]]
        scratch = {item.file.path: item for item in written if item.output is None}
        return ShardResult(name, record["value"], self.backend, scratch)

    def _output(self, name: str) -> ShardOutput:
        folder = layout.work(self.key, "shards", self.name, name)
        return ShardOutput(self.backend, folder, self.kinds)

    def _path(self, name: str) -> str:
        return layout.work(self.key, "done", self.name, f"{name}.json")


def _call(
    function: Callable[..., Any], item: Item, output: ShardOutput, shared: dict[str, Any]
) -> tuple[dict[str, Any], list[Written]]:
    value = function(item, output, **shared)
    return dict(value or {}), output.written


def _end(pool: ProcessPoolExecutor) -> None:
    """End the workers now: what they were doing is done again by the next run."""
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()


def _die_with_parent(parent: int) -> None:
    """A worker whose parent was killed ends within a second."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="parent-watch").start()
