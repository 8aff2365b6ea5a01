"""What a store cost to make: CPU and GPU seconds and bytes, by stage, recipe, person or month.

Each manifest counts what its run spent, over all processes, and what it continues from of earlier
attempts; apart from that, what killed and failed attempts lost. Bytes are those that are kept now,
of each artifact once, whoever else uses it. A month is that of the commit (UTC). A recipe is asked
of the run records: that whose run made the artifact first. A person is a label (`ingot run --by`,
else the login name) and proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.runs import load_runs, recorded_recipes

Group = Literal["stage", "recipe", "person", "month"]
GROUPS: tuple[Group, ...] = ("stage", "recipe", "person", "month")
UNKNOWN = "unknown"
"""The group of artifacts that no run record, or no label, says anything of."""


@dataclass
class Cost:
    """Sums over artifacts; seconds by the clock are those of each run, added up."""

    artifacts: int = 0
    cpu_seconds: float = 0.0
    gpu_seconds: float = 0.0
    lost_cpu_seconds: float = 0.0
    lost_gpu_seconds: float = 0.0
    seconds: float = 0.0
    bytes: int = 0

    def add(self, manifest: Manifest) -> None:
        """Add one artifact."""
        self.artifacts += 1
        self.cpu_seconds += _number(manifest, "cpu_seconds", "earlier_cpu_seconds")
        self.gpu_seconds += _number(manifest, "gpu_seconds", "earlier_gpu_seconds")
        self.lost_cpu_seconds += _number(manifest, "lost_cpu_seconds")
        self.lost_gpu_seconds += _number(manifest, "lost_gpu_seconds")
        self.seconds += _number(manifest, "seconds")
        self.bytes += sum(output.bytes for output in manifest.outputs.values())

    def to_json(self) -> dict[str, float]:
        """As plain values; seconds to the millisecond."""
        return {one.name: round(getattr(self, one.name), 3) for one in fields(self)}


def _number(manifest: Manifest, *names: str) -> float:
    values = (manifest.telemetry.get(name) for name in names)
    return sum(float(value) for value in values if isinstance(value, int | float))


def sum_cost(
    store: Store, group: Group, on_damage: Callable[[CorruptArtifact], None]
) -> dict[str, Cost]:
    """The cost of every artifact that is kept, by group, the dearest first; months in their order.

    A manifest or run record that cannot be read is passed to `on_damage` and left out.
    """
    return sum_costs(store, [group], on_damage)[group]


def sum_costs(
    store: Store, groups: Sequence[Group], on_damage: Callable[[CorruptArtifact], None]
) -> dict[Group, dict[str, Cost]]:
    """`sum_cost` by several groups, in one reading of the store."""
    recipes = _recipes(store, on_damage) if "recipe" in groups else {}
    costs: dict[Group, dict[str, Cost]] = {group: {} for group in groups}
    for manifest in store.manifests(on_damage=on_damage):
        for group in groups:
            name = _group_name(manifest, group, recipes)
            costs[group].setdefault(name, Cost()).add(manifest)
    return {
        group: dict(
            sorted(
                sums.items(), key=lambda item: (group != "month" and -item[1].cpu_seconds, item[0])
            )
        )
        for group, sums in costs.items()
    }


def _group_name(manifest: Manifest, group: Group, recipes: Mapping[str, str]) -> str:
    if group == "stage":
        return manifest.stage
    if group == "recipe":
        run = manifest.interim_of
        return recipes.get(run.run if run else manifest.key, UNKNOWN)
    if group == "month":
        return str(manifest.telemetry.get("finished") or "")[: len("2026-11")] or UNKNOWN
    return str(manifest.telemetry.get("by") or UNKNOWN)


def total_cost(costs: Iterable[Cost]) -> Cost:
    """The sum of several."""
    total = Cost()
    for cost in costs:
        for one in fields(Cost):
            setattr(total, one.name, getattr(total, one.name) + getattr(cost, one.name))
    return total


def _recipes(store: Store, on_damage: Callable[[CorruptArtifact], None]) -> dict[str, str]:
    """Key → the recipe whose run made it first."""
    made: dict[str, tuple[str, str]] = {}
    for recipe in recorded_recipes(store):
        try:
            for run in load_runs(store, recipe):
                for step in run.steps:
                    if step.state == "made" and step.key is not None:
                        first = made.get(step.key, (run.id, recipe))
                        made[step.key] = min(first, (run.id, recipe))
        except CorruptArtifact as error:
            on_damage(error)
    return {key: recipe for key, (_, recipe) in made.items()}
