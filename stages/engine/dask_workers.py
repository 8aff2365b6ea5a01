"""The workers of a running Dask cluster as the shard map's workers: one call at a time each.

Every call goes to one worker that has been asked about its program, its versions and what it sees
(`dask_terms`). So what is lost with a worker is known here and done again by another. No call
waits behind another: a worker that takes long would keep what others could do, and the next call
reaches a worker within about a hundredth of a second.

Each worker does one shard at a time, in one thread: parsers and models in native code are not all
safe with several, and memory is reckoned by process.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from artifacts_schema.errors import IngotError
from stages.engine.cost import ELSEWHERE
from stages.engine.dask_cluster import START, Cluster, Outcome, Seen
from stages.engine.dask_terms import Answer, Terms, introduced, served
from stages.engine.workers import Death, answer

FIRST_SECONDS = 10.0
"""How long the first worker, and the first answers of those that are there, are waited for."""
ABSENT_SECONDS = 60.0
"""How long a map goes on without any worker that could do a shard."""
LOOK_SECONDS = 1.0
"""How often the list of workers is read."""
STUCK_LOOKS = 5
"""After so many looks a paused worker that works on nothing has not begun what it was given."""
_TOLD = 5
"""Workers that an error names."""


@dataclass(eq=False)
class _Worker:
    seen: Seen
    host: str = ""
    elsewhere: bool = False
    """Whether it was at other work when it was first seen: its answer may take long."""
    question: int | None = None
    """Number of the call that asks what it is."""
    call: int | None = None
    """Number of the call that does `item`."""
    item: str | None = None
    known: bool = False
    """Whether it may be given shards: it was asked, and its answer was right."""
    refused: str | None = None
    """Why it is given nothing."""
    stuck: int = 0

    @property
    def ready(self) -> bool:
        return self.known and self.item is None and self.seen.running

    @property
    def name(self) -> str:
        return f"{self.seen.address} ({self.host})" if self.host else self.seen.address


@dataclass
class DaskEngine:
    """Workers for every map of one run of a stage, and what they used."""

    scheduler: str
    terms: Terms
    log: logging.Logger
    _pools: list[DaskWorkers] = field(default_factory=list)

    def pool(self, most: int) -> DaskWorkers:
        """Workers for one map, at most so many at once; who is known is not asked again."""
        before = self._pools[-1] if self._pools else None
        self._pools.append(DaskWorkers(self.scheduler, self.terms, most, self.log, before))
        return self._pools[-1]

    def notes(self) -> dict[str, float]:
        """For the manifest's telemetry: it counts no process of another machine itself."""
        seconds = sum(pool.cpu_seconds for pool in self._pools)
        used = set[str]().union(*(pool.used for pool in self._pools))
        return {"dask_workers": len(used), ELSEWHERE: round(seconds, 3)}


class DaskWorkers:
    """At most `most` of a cluster's workers at once; those that come later are taken as well.

    All that are there at the start must meet the terms, or IngotError says what they lack, before
    any work; one that comes later and does not is left alone, with a warning. IngotError as well
    when the scheduler cannot be reached or goes away, and when no worker is there.
    """

    tries = 3
    """A worker may be lost with its machine; a shard that three are lost with is to blame."""

    def __init__(
        self,
        scheduler: str,
        terms: Terms,
        most: int,
        log: logging.Logger,
        before: DaskWorkers | None = None,
    ) -> None:
        self.used: set[str] = set()
        """Addresses of the workers that did a shard."""
        self.cpu_seconds = 0.0
        """What shards, and the first question, took of the workers' processors."""
        self._terms, self._most, self._log = terms, most, log
        self._workers: dict[str, _Worker] = {}
        self._open = self._waits = False
        self._begun = self._seen_one = time.monotonic()
        self._cluster = Cluster(scheduler)
        try:
            self._places = terms.places()
            proven = before is not None and before._places == self._places
            self._hosts: dict[str, str] = before._hosts if before is not None and proven else {}
            """Of the workers whose answer was right, by address."""
            for place in self._places:
                place.show()
        except BaseException:
            self._cluster.close()
            raise

    @property
    def busy(self) -> bool:
        """Whether a call is being worked on."""
        return self._working > 0

    @property
    def idle(self) -> bool:
        """Whether a worker waits for a call."""
        ready = any(worker.ready for worker in self._workers.values())
        return ready and self._open and self._working < self._most

    @property
    def _working(self) -> int:
        return sum(worker.item is not None for worker in self._workers.values())

    def start(self, item: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Let an idle worker call `function`; `item` names the call, both must be picklable."""
        worker = next(worker for worker in self._workers.values() if worker.ready)
        call = pickle.dumps((function, arguments))
        worker.call = self._cluster.call(worker.seen.address, served, self._terms.token, call)
        worker.item, worker.stuck = item, 0

    def wait(self, seconds: float) -> tuple[list[tuple[str, Any]], list[Death]]:
        """Wait for something to happen: values by item, and workers that were lost.

        Raises what a function raised, with the worker's traceback as a note.
        """
        values: list[tuple[str, Any]] = []
        deaths: list[Death] = []
        for outcome in self._cluster.outcomes(seconds):
            for worker in self._workers.values():
                if worker.question == outcome.number:
                    self._judge(worker, outcome)
                elif worker.call == outcome.number and worker.item is not None:
                    if outcome.error is not None:
                        raise outcome.error
                    item, found = worker.item, outcome.value
                    if found is None:  # It is another process, or not to be reached: asked again.
                        deaths.append(self._lost(worker))
                        self._hosts.pop(worker.seen.address, None)
                        worker.known = False
                        continue
                    worker.item = worker.call = None
                    self.used.add(worker.seen.address)
                    self.cpu_seconds += found[1]
                    values.append((item, answer(found[0])))
        if (seen := self._cluster.workers(LOOK_SECONDS)) is not None:
            deaths += self._look(seen)
        self._check()
        return values, deaths

    def mark_alive(self, processes: Iterable[int]) -> None:
        """Nothing to do: the scheduler knows who is there."""

    def end(self) -> None:
        """Leave the cluster. A shard that a worker is at goes on there, for nothing."""
        self._workers.clear()
        self._cluster.close()
        with suppress(IngotError, OSError):  # It goes with the work folder, at the latest.
            for place in self._places:
                place.clear()

    # Who is there --------------------------------------------------------------------------------

    def _look(self, seen: dict[str, Seen]) -> list[Death]:
        """Give up the workers that are gone, ask those that are new."""
        deaths = []
        for address in self._workers.keys() - seen.keys():
            worker = self._workers.pop(address)
            self._hosts.pop(address, None)
            if worker.question is not None:
                self._cluster.drop(worker.question)
            if worker.item is not None:
                deaths.append(self._lost(worker))
        for address, now in seen.items():
            worker = self._workers.setdefault(address, _Worker(now, elsewhere=now.executing))
            worker.seen = now
            if worker.item is not None:
                worker.stuck = 0 if now.running or now.executing else worker.stuck + 1
                if worker.stuck >= STUCK_LOOKS:
                    deaths.append(self._lost(worker))
            elif not (worker.known or worker.refused) and worker.question is None:
                self._ask(worker)
        return deaths

    def _lost(self, worker: _Worker) -> Death:
        assert worker.item is not None
        item, worker.item = worker.item, None
        if worker.call is not None:
            self._cluster.drop(worker.call)
        worker.call = None
        self._log.warning("Dask worker %s was lost with shard %s", worker.name, item)
        return Death(item, 0, 0, worker=worker.name)

    def _ask(self, worker: _Worker) -> None:
        if worker.seen.address in self._hosts and not worker.elsewhere:
            worker.host, worker.known = self._hosts[worker.seen.address], True
            return
        if worker.seen.threads != 1:
            self._refuse(worker, f"it has {worker.seen.threads} threads, not one")
            return
        question = self._terms.question(self._places)
        worker.question = self._cluster.call(worker.seen.address, introduced, question)

    def _judge(self, worker: _Worker, outcome: Outcome) -> None:
        """Take the answer to the question what a worker is."""
        worker.question = None
        if outcome.error is not None:
            said = f"{type(outcome.error).__name__}: {outcome.error}"
            self._refuse(worker, f"it cannot import Ingot: {said}")
        elif not outcome.lost:
            given: Answer = outcome.value
            worker.host = given.host
            self.cpu_seconds += given.cpu_seconds
            if differences := self._terms.differences(given, self._places):
                self._refuse(worker, "; ".join(differences))
            else:
                self._hosts[worker.seen.address] = given.host
                worker.known = True

    def _refuse(self, worker: _Worker, why: str) -> None:
        worker.refused = why
        if self._open:
            self._log.warning("Dask worker %s is given nothing: %s", worker.name, why)

    # Whether there is anyone ---------------------------------------------------------------------

    def _check(self) -> None:
        """Begin once all that are there have answered; IngotError where nobody can do a shard."""
        now, workers = time.monotonic(), self._workers.values()
        if any(not w.refused and (w.seen.running or w.item is not None) for w in workers):
            self._seen_one = now
        if self._open:
            if now - self._seen_one > ABSENT_SECONDS:
                raise self._nobody(f"for {ABSENT_SECONDS:.0f} s")
            return
        late = now - self._begun > FIRST_SECONDS
        asked = any(w.question is not None and not w.elsewhere for w in workers)
        if not late and (asked or not workers):
            return
        if not workers:
            raise self._nobody("yet")
        if any(worker.refused for worker in workers):
            raise self._refused()
        self._open = any(worker.known for worker in workers)
        if late and not self._open and not self._waits:
            self._waits = True
            self._log.warning("all Dask workers are busy with other work; waiting for one")

    def _nobody(self, how_long: str) -> IngotError:
        address = self._cluster.address
        told = [f"{w.name}: {w.refused or 'paused, short of memory'}" for w in self._listed()]
        return IngotError(
            f"the Dask cluster has had no worker that can do a shard {how_long}"
            + (f" ({'; '.join(told)})" if told else ""),
            where=address,
            hint=f"start workers by `{START.format(address)}`, with --memory-limit where they are "
            "paused; finished shards are kept",
        )

    def _refused(self) -> IngotError:
        address = self._cluster.address
        refused = [worker for worker in self._workers.values() if worker.refused]
        told = [f"{worker.name}: {worker.refused}" for worker in refused[:_TOLD]]
        more = f"; and {len(refused) - _TOLD} more" if len(refused) > _TOLD else ""
        return IngotError(
            f"{len(refused)} of {len(self._workers)} Dask workers cannot do the shards of this "
            f"stage: {'; '.join(told)}{more}",
            where=address,
            hint="end them, and start them anew from the environment of this process: "
            f"`{START.format(address)}`",
        )

    def _listed(self) -> list[_Worker]:
        return list(self._workers.values())[:_TOLD]
