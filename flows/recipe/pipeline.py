"""A recipe bound to a store, and the recipes that come with Ingot.

The command line, the Prefect flow and the tests start from `Pipeline`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from artifacts_schema.errors import InputError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.recipe.graph import Graph, build_graph
from flows.recipe.plan import Plan, Selection, make_plan, select_instances
from flows.recipe.profile import Profile, load_profile
from flows.recipe.recipe import BUNDLED, Recipe, find_recipe, load_recipe
from flows.recipe.series import expand_series
from flows.recipe.snapshot_entry import ProgressCallback, anchor_folder
from flows.recipe.snapshots import KnownSnapshots, take_snapshot
from flows.recipe.upstream import check_steps


def bundled_recipes() -> list[dict[str, Any]]:
    """Every recipe that comes with Ingot, by name, as plain values.

    `missing`: snapshot → the folder of its data, where that does not exist.
    """
    recipes = [load_recipe(path) for path in sorted(BUNDLED.glob("*.yaml"))]
    return [
        {
            "name": recipe.path.stem,
            "description": recipe.description,
            "path": str(recipe.path),
            "snapshots": list(recipe.snapshots),
            "missing": find_missing_data(recipe, recipe.snapshots),
        }
        for recipe in recipes
    ]


def find_missing_data(recipe: Recipe, needed: Collection[str]) -> dict[str, str]:
    """Snapshot → the folder that a bundled recipe names for it, for folders that do not exist.

    The folders lie next to a checkout of Ingot, so an installed Ingot has none of them.
    """
    return {
        name: os.path.normpath(anchor_folder(source))
        for name, source in recipe.snapshots.items()
        if name in needed
        and source.base == BUNDLED
        and source.root is not None
        and "://" not in source.root
        and not anchor_folder(source).is_dir()
    }


def check_bundled_data(recipe: Recipe, needed: Collection[str]) -> None:
    """Raise InputError that names all missing data and how to set its location."""
    missing = find_missing_data(recipe, needed)
    if not missing:
        return
    sources = ", ".join(f"{name} ({recipe.snapshots[name].location})" for name in missing)
    first = next(iter(missing))
    raise InputError(
        f"the recipe reads data that does not come with Ingot: {sources}",
        where=str(recipe.path),
        hint=f"set the folder of each: --set snapshots.{first}.root=FOLDER, with "
        f"--set 'snapshots.{first}.files=[PATTERN]' if the names differ",
    )


@contextmanager
def store_to_read(place: str) -> Iterator[str]:
    """The store at `place`, or a temporary empty one, so that a query creates nothing.

    An empty folder may be a volume that is not mounted.
    """
    try:
        Store(place).read_mark()
    except FileNotFoundError:
        with TemporaryDirectory() as folder:
            yield folder
    else:
        yield place


@dataclass(frozen=True)
class Request(Selection):
    """The parameters of a run as plain values: the command line's flags, or a form's fields."""

    recipe: str
    store: str
    profile: str | None = None
    overrides: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain values, for a form or a spec file."""
        return {**self.__dict__, "overrides": list(self.overrides), "force": list(self.force)}


@dataclass(frozen=True)
class Pipeline:
    """A validated recipe, its profile, its committed snapshots, and the store they meet in."""

    graph: Graph
    store: Store
    profile: Profile
    selection: Selection
    snapshots: dict[str, Manifest] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The recipe's name; refs of its steps begin with it."""
        return self.graph.recipe.name

    @classmethod
    def bind(cls, request: Request, *, create: bool = True) -> Pipeline:
        """Read and validate everything except the files of snapshots, which are not read.

        Raises UsageError with every problem of the recipe; StoreError if the store cannot be used,
        or there is none and `create` is false.
        """
        path = find_recipe(request.recipe)
        recipe = load_recipe(path, request.overrides)
        profile = load_profile(request.profile, Path(path))
        store = Store.open(request.store, create=create)
        recipe = expand_series(recipe, store)
        return cls(build_graph(recipe, store, profile), store, profile, request)

    @classmethod
    def open(
        cls, request: Request, *, progress: ProgressCallback | None = None, create: bool = True
    ) -> Pipeline:
        """`bind`, and pin what a plan needs: the snapshots that some step reads.

        Raises InputError for a missing source. `progress` receives the bytes hashed so far.
        """
        pipeline = cls.bind(request, create=create)
        instances = pipeline.graph.instances
        needed = {name for one in instances.values() for name in one.waits_for} - set(instances)
        check_bundled_data(pipeline.graph.recipe, needed)
        sources = pipeline.graph.recipe.snapshots
        known = KnownSnapshots.read(pipeline.store)
        for name in sources:
            if name in needed:
                pipeline.snapshots[name] = take_snapshot(
                    pipeline.store, sources[name], progress, known
                )
        return pipeline

    def plan(
        self,
        settled: frozenset[str] = frozenset(),
        before: Plan | None = None,
        changed: Collection[str] = (),
    ) -> Plan:
        """The plan as of now; `settled` are instances that this run has already made.

        After the plan `before` of this run, only what is `changed` since then, and what reads that,
        is looked at.
        """
        memory = None if before is None else before.memory
        return make_plan(
            self.graph, self.store, self.snapshots, self.selection, settled, memory, changed
        )

    def check(self) -> None:
        """Raise the problems that the stages find in the selected steps, made or not."""
        check_steps(self.graph, self.store, select_instances(self.graph, self.selection)[0])

    def ref(self, node: str) -> str:
        """The movable name of the last artifact of a step instance or snapshot."""
        return f"{self.name}/{node}"
