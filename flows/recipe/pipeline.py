"""A recipe bound to a store: what the command line, the Prefect flow and tests start from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.recipe.checks import check_steps
from flows.recipe.graph import Graph, build_graph
from flows.recipe.local_files import Progress
from flows.recipe.plan import Plan, Selection, make_plan, selected
from flows.recipe.profile import Profile, load_profile
from flows.recipe.recipe import find_recipe, load_recipe
from flows.recipe.snapshots import take_snapshot


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
    def bind(cls, request: Request) -> Pipeline:
        """Read and validate everything but the files of snapshots, which are not looked at.

        Raises UsageError with every problem of the recipe, StoreError for a store that cannot be
        used.
        """
        path = find_recipe(request.recipe)
        recipe = load_recipe(path, request.overrides)
        profile = load_profile(request.profile, Path(path))
        store = Store.open(request.store)
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
    def open(cls, request: Request, *, progress: Progress | None = None) -> Pipeline:
        """`bind`, and pin what a plan needs: the snapshots that some step reads.

        Raises InputError for a source that is missing. `progress` is told the bytes of sources
        hashed.
        """
        pipeline = cls.bind(request)
        needed = pipeline.needed_snapshots()
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
