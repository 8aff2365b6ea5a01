"""Where a ready step runs: in a child process here, or as a job of a pool that the profile names.

Pools are plugins: an entry point of the group `ingot.dispatch` is a subclass of `Pool`, by the name
that a profile gives as `type`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, ClassVar, Protocol

from artifacts_schema.config import Config, did_you_mean
from artifacts_schema.errors import UsageError
from artifacts_schema.store import Store
from flows.recipe.plan import PlannedStep
from flows.recipe.profile import LOCAL, PoolEntry, Profile, Resources
from stages.engine.probe import Machine

GROUP = "ingot.dispatch"


class Job(Protocol):
    """A step that was started somewhere. `stages.engine.spec.Child` is one."""

    in_pool: bool
    """Whether it is a job of a pool, which another process can find and follow."""

    def events(self) -> Sequence[dict[str, Any]]:
        """The events since the last call."""

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""

    def stop(self) -> Any:
        """Ask it to save and end, and wait until it has ended."""

    def last_words(self) -> str:
        """Its whole error, once it failed."""


Dispatch = Callable[[Store, PlannedStep], Job]
"""Start a ready step."""


@dataclass(frozen=True)
class Check:
    """One thing that `ingot doctor` looked at; `ok` is None where it could not be checked."""

    name: str
    ok: bool | None
    text: str
    hint: str = ""
    """What to do about a failure."""


@dataclass(frozen=True)
class ProbeAnswer:
    """What a node of a pool says of itself, and between which two times, in seconds since 1970 by
    this machine's clock, it said so."""

    machine: Machine
    earliest: float
    latest: float
    job: str


class Pool(ABC):
    """A scheduler's machines under one name, with the settings that the profile gives it."""

    Settings: ClassVar[type[Config]]

    def __init__(self, name: str, settings: Config) -> None:
        self.name, self.settings = name, settings

    @abstractmethod
    def start(self, store: Store, step: PlannedStep, resources: Resources) -> Job:
        """Send a ready step to the pool, or find the job that makes its key already."""

    def check(self, resources: Resources, where: str) -> None:  # noqa: B027
        """Raise UsageError for resources that no job of this pool can have; asks no scheduler."""

    def doctor(self, resources: Mapping[str, Resources]) -> Iterator[Check]:
        """Ask the scheduler whether jobs with these resources, by stage, could run; sends none."""
        yield from ()

    @abstractmethod
    def probe(self, store: Store, key: str, resources: Resources, wait: float) -> ProbeAnswer:
        """Run `stages.engine.probe` as a job with these resources; IngotError without an answer.

        A job that has not answered after `wait` seconds is removed.
        """


def start_here(store: Store, step: PlannedStep) -> Job:
    """Dispatch to a child process on this machine."""
    from stages.engine.spec import start_child

    assert step.spec is not None, "a ready step has a spec"
    return start_child(store, step.spec, force=step.force, accept_code=step.accept_code)


class Dispatcher:
    """Sends each step to the pool that its profile names; itself a `Dispatch`.

    Pools of a type that is not installed, and settings that do not fit, are a UsageError.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        used = {one.pool for one in profile.places.values()} - {LOCAL}
        self.pools = {name: open_pool(profile.pools[name]) for name in sorted(used)}
        for stage, resources in profile.places.items():
            if resources.pool in self.pools:
                where = f"profile {profile.name}: resources.{stage}"
                self.pools[resources.pool].check(resources, where)

    def __call__(self, store: Store, step: PlannedStep) -> Job:
        """Start a ready step where it belongs."""
        resources = self.profile.resources(step.stage)
        if resources.pool == LOCAL:
            return start_here(store, step)
        return self.pools[resources.pool].start(store, step, resources)


def open_pool(entry: PoolEntry) -> Pool:
    """The pool that an entry of a profile describes."""
    types = {point.name: point for point in entry_points(group=GROUP)}
    if entry.type not in types:
        raise UsageError(
            f"no type of pool '{entry.type}'{did_you_mean(entry.type, types)}", where=entry.where
        )
    pool: type[Pool] = types[entry.type].load()
    return pool(entry.name, pool.Settings.parse(entry.settings, where=entry.where))
