"""Run records, `runs/<recipe>/<id>.json`: the steps of a run, the state of each, and how it ended.

A run record is for people: `ingot report`, `ingot watch` and the comparison of two runs read it. No
key depends on it; losing one loses only the report. While a run is in progress, garbage collection
keeps the artifacts that its record names.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import CorruptArtifact, UsageError
from artifacts_schema.store import layout
from artifacts_schema.store.store import Store

StepState = Literal["waiting", "reused", "running", "made", "failed", "stopped"]
RunState = Literal["running", "done", "failed", "stopped"]


class RunStep(BaseModel):
    """One step instance of a run. `key` is None until its inputs are known."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instance: str
    stage: str
    key: str | None
    state: StepState
    action: str = ""
    """What the plan said of it: run, resume, depends, reuse."""
    cause: str = ""
    waits_for: tuple[str, ...] = ()
    expected_seconds: float | None = None
    """What it probably takes, by earlier runs."""
    began: float | None = None
    """When this run sent it off, in seconds since 1970; None for what it did not start."""
    queue_seconds: float | None = None
    """From then to its program's first event, by the clock of the run; None while it waits."""
    seconds: float | None = None
    error: str | None = None


class Run(BaseModel):
    """One run of a recipe in a store; times are UTC, for people only."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    recipe: str
    state: RunState
    started: str
    updated: str
    steps: tuple[RunStep, ...]
    snapshots: dict[str, str] = Field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    profile: str | None = None
    jobs: int = 1
    """Steps that run at the same time."""
    by: str = ""
    """Who asked for it; says so, and proves nothing."""
    machine: str = ""
    process: int = 0
    process_started: str = ""
    error: str | None = None

    @property
    def name(self) -> str:
        """`recipe@id`: what commands take for this run."""
        return f"{self.recipe}@{self.id}"

    @classmethod
    def load(cls, raw: bytes, *, where: str) -> Run:
        """Parse a stored record; CorruptArtifact if it is none."""
        try:
            return cls.model_validate_json(raw)
        except ValidationError as error:
            first = error.errors()[0]
            raise CorruptArtifact(
                f"not a run record: {'.'.join(map(str, first['loc']))}: {first['msg']}",
                where=where,
                hint="remove the file: only the picture of that run is lost",
            ) from None


_ID = re.compile(r"\d{8}T\d{9}-[0-9a-f]{4}")


def new_run_id() -> str:
    """An id that sorts by time, to the millisecond: `20261121T175223042-3fa9`."""
    now = time.time_ns() // 1_000_000
    second = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now // 1000))
    return f"{second}{now % 1000:03d}-{secrets.token_hex(2)}"


def write_run(store: Store, run: Run) -> None:
    """Write the record over its earlier state."""
    store.backend.replace(layout.run(run.recipe, run.id), run.model_dump_json(indent=1).encode())


def recorded_recipes(store: Store) -> list[str]:
    """Names of recipes that ran in this store."""
    return store.backend.folders("runs")


def run_ids(store: Store, recipe: str) -> list[str]:
    """Ids of a recipe's runs, oldest first."""
    names = (name.removesuffix(".json") for name in store.backend.files(f"runs/{recipe}"))
    return sorted(name for name in names if _ID.fullmatch(name))


def load_runs(store: Store, recipe: str) -> Iterator[Run]:
    """A recipe's runs, newest first."""
    for name in reversed(run_ids(store, recipe)):
        path = layout.run(recipe, name)
        yield Run.load(store.backend.read(path), where=path)


def find_run(store: Store, text: str) -> Run | None:
    """The run that `RECIPE` (its newest) or `RECIPE@ID` means; None if `text` names no recipe here.

    Raises UsageError for an id that the recipe has no run of; a beginning of an id is enough.
    """
    recipe, at, wanted = text.partition("@")
    if recipe not in recorded_recipes(store):
        return None
    ids = run_ids(store, recipe)
    matching = [name for name in ids if name.startswith(wanted)]
    if not matching or (at and len(matching) > 1 and wanted not in matching):
        raise UsageError(
            f"no run '{text}'{did_you_mean(wanted, ids)}" if not matching else
            f"'{text}' may be any of {', '.join(matching[:5])}",
            where=store.url,
        )  # fmt: skip
    path = layout.run(recipe, wanted if wanted in matching else matching[-1])
    return Run.load(store.backend.read(path), where=path)
