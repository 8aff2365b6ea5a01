"""A recipe bound to a store: what the command line, the Prefect flow and tests start from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store, layout
from flows.recipe.bundled import check_bundled_data
from flows.recipe.checks import check_steps
from flows.recipe.graph import Graph, build_graph
from flows.recipe.local_files import Progress
from flows.recipe.plan import Plan, Selection, make_plan, selected
from flows.recipe.profile import Profile, load_profile
from flows.recipe.recipe import find_recipe, load_recipe
from flows.recipe.snapshots import take_snapshot


@contextmanager
def store_to_read(place: str) -> Iterator[str]:
    """The store at `place`, or an empty one while there is none: a question makes nothing.

    An empty folder may be a volume that is not mounted.
    """
    try:
        Store(place).backend.read(layout.FORMAT)
    except FileNotFoundError:
        with TemporaryDirectory() as folder:
            yield folder
    else:
        yield place


@dataclass(frozen=True)
class Request:
    """What a person asks for, in plain values: the command line's flags, or a form's fields."""

    recipe: str
    store: str
    profile: str | None = None
    overrides: tuple[str, ...] = ()
    start: str | None = None
    through: str | None = None
    force: tuple[str, ...] = ()
    strict_code: bool = False
    accept_code: bool = False

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
        """Read and validate everything but the files of snapshots, which are not looked at.

        Raises UsageError with every problem of the recipe, StoreError for a store that cannot be
        used, or where there is none and `create` is false.
        """
        path = find_recipe(request.recipe)
        recipe = load_recipe(path, request.overrides)
        profile = load_profile(request.profile, Path(path))
        store = Store.open(request.store, create=create)
        graph = build_graph(recipe, store, profile)
        selection = Selection(
            request.start,
            request.through,
            frozenset(request.force),
            request.strict_code,
            request.accept_code,
        )
        return cls(graph, store, profile, selection)

    @classmethod
    def open(
        cls, request: Request, *, progress: Progress | None = None, create: bool = True
    ) -> Pipeline:
        """`bind`, and pin what a plan needs: the snapshots that some step reads.

        Raises InputError for a source that is missing. `progress` is told the bytes of sources
        hashed.
        """
        pipeline = cls.bind(request, create=create)
        needed = pipeline.needed_snapshots()
        check_bundled_data(pipeline.graph.recipe, needed)
        for name, source in pipeline.graph.recipe.snapshots.items():
            if name in needed:
                pipeline.snapshots[name] = take_snapshot(pipeline.store, source, progress)
        return pipeline

    def needed_snapshots(self) -> set[str]:
        """Names of the recipe's snapshots that some step reads."""
        read = {n for instance in self.graph.instances.values() for n in instance.waits_for}
        return read - set(self.graph.instances)

    def plan(self, settled: frozenset[str] = frozenset()) -> Plan:
        """What would run now; `settled` are instances that this run has already made."""
        selection = replace(self.selection, settled=settled)
        return make_plan(self.graph, self.store, self.snapshots, selection)

    def check(self) -> None:
        """Raise what the stages find wrong with the selected steps, whatever exists already."""
        check_steps(self.graph, self.store, selected(self.graph, self.selection)[0])

    def ref(self, node: str) -> str:
        """The movable name of what a step instance or snapshot made last."""
        return f"{self.name}/{node}"
