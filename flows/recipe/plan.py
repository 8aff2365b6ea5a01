"""What a run would do, step by step, and why. The same object drives the run, the UI and the tests.

A step is
- `reuse`: its artifact stands, whole, under the key that follows from its config and inputs;
- `run` or `resume`: it does not; the cause names what changed since the recipe last made it;
- `depends`: it reads a step that runs, and an artifact of its config exists: whether it runs too is
  known once that step has committed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from artifacts_schema.errors import CorruptArtifact, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.damage import damage_records, find_committed
from flows.recipe.causes import Asked, changes_since, some
from flows.recipe.checkpoints import Turns
from flows.recipe.checks import check_steps
from flows.recipe.graph import Graph, Instance
from stages.engine.code import code_digest
from stages.engine.spec import StageSpec

Action = Literal["reuse", "resume", "run", "depends"]
CODE_DIFFERS = "code differs, version equal"


@dataclass(frozen=True)
class Selection:
    """Which part of a recipe to run, and what to make anew although it stands."""

    start: str | None = None
    through: str | None = None
    force: frozenset[str] = frozenset()
    strict_code: bool = False
    accept_code: bool = False
    settled: frozenset[str] = frozenset()
    """Instances that this run has already made: neither forced nor judged by their code again."""


@dataclass(frozen=True)
class PlannedStep:
    """One line of a plan. `key` and `spec` are None while an input is not known yet."""

    instance: str
    step: str
    stage: str
    action: Action
    cause: str
    key: str | None = None
    spec: StageSpec | None = None
    manifest: Manifest | None = None
    waits_for: tuple[str, ...] = ()
    note: str | None = None
    force: bool = False
    """Whether to run although an artifact stands, and compare (forced, other code)."""
    accept_code: bool = False
    """Whether to go on from what another program left of this key."""
    reads: tuple[str, ...] = ()
    """Names of the instances and snapshots that it reads."""

    @property
    def is_ready(self) -> bool:
        """Whether it can be started now."""
        return self.action in ("run", "resume") and self.spec is not None and not self.waits_for

    def to_json(self) -> dict[str, Any]:
        """The line as plain values."""
        return {
            "step": self.instance,
            "stage": self.stage,
            "action": self.action,
            "cause": self.cause,
            "key": self.key,
            "waits_for": list(self.waits_for),
            "note": self.note,
        }


@dataclass(frozen=True)
class Plan:
    """All lines, each after what it reads."""

    recipe: str
    store: str
    steps: tuple[PlannedStep, ...]

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to run."""
        return all(step.action == "reuse" for step in self.steps)

    def step(self, instance: str) -> PlannedStep:
        """The line of an instance; KeyError if it is not part of the plan."""
        return {step.instance: step for step in self.steps}[instance]

    def count(self, *actions: Action) -> int:
        """Number of lines with one of these actions."""
        return sum(step.action in actions for step in self.steps)

    def summary(self) -> str:
        """One line: `2 to run, 5 depend, 9 reused`."""
        runs, waits = self.count("run", "resume"), self.count("depends")
        reused = self.count("reuse")
        if self.is_done:
            return f"nothing to do: all {reused} steps stand"
        parts = [f"{runs} to run", f"{waits} depend" if waits else "", f"{reused} reused"]
        return ", ".join(part for part in parts if part)

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {
            "recipe": self.recipe,
            "store": self.store,
            "summary": self.summary(),
            "steps": [step.to_json() for step in self.steps],
        }


def make_plan(
    graph: Graph,
    store: Store,
    snapshots: Mapping[str, Manifest],
    selection: Selection | None = None,
) -> Plan:
    """Plan `graph` against `store`; reads only. `snapshots` are those of the recipe, committed.

    Raises UsageError for a selection that names no step, or that starts behind something missing,
    and for all that the stages find wrong with their steps (`Stage.check_plan`); StoreError if the
    store's payload is not mounted or cannot be read.
    """
    store.check_mounted()
    chosen = selection or Selection()
    wanted, needed = selected(graph, chosen)
    forced = {name for text in sorted(chosen.force) for name in graph.select(text, "--force")}
    if outside := forced - wanted:
        raise UsageError(f"{some(sorted(outside))} is not part of this run", where="--force")
    made = dict(snapshots)
    planner = _Planner(
        graph, store, made, forced - chosen.settled, chosen, Turns(graph, store, made)
    )
    unmade: dict[str, list[str]] = {}
    """Lines that would run, by the instance of the graph that they are a turn of."""
    for name, instance in graph.instances.items():
        if name not in wanted | needed:
            continue
        for turn in planner.turns.of(instance):
            step = planner.plan(turn)
            if step.action != "reuse":
                unmade.setdefault(name, []).append(turn.name)
            if name not in wanted and step.action != "reuse":
                raise UsageError(
                    f"'{chosen.start}' needs {turn.name}, which does not stand: {step.cause}",
                    where="--from",
                    hint=f"start from {instance.step}, or leave --from out",
                )
    # Once a run has made something, a step that turns out wrong fails by itself: others go on.
    checked = {} if chosen.settled else check_steps(graph, store, unmade, made)
    for name, notes in checked.items():
        for line in unmade[name]:
            planner.lines[line] = _noted(planner.lines[line], notes)
    return Plan(graph.recipe.name, store.url, tuple(planner.lines.values()))


def _noted(step: PlannedStep, notes: tuple[str, ...]) -> PlannedStep:
    return replace(step, note="; ".join(filter(None, [step.note, *notes])))


def selected(graph: Graph, chosen: Selection) -> tuple[set[str], set[str]]:
    """Instances to bring up to date, and those before them that must stand already."""
    selected = set(graph.instances)
    if chosen.through is not None:
        selected &= graph.upstream(graph.select(chosen.through, "--through"))
    if chosen.start is None:
        return selected, set()
    selected &= graph.downstream(graph.select(chosen.start, "--from"))
    if not selected:
        raise UsageError(f"'{chosen.start}' is not before '{chosen.through}'", where="--from")
    return selected, graph.upstream(selected) - selected


@dataclass
class _Planner:
    graph: Graph
    store: Store
    made: dict[str, Manifest]
    """Manifests that stand, by node: snapshots first, then each reused step."""
    forced: Collection[str]
    chosen: Selection
    turns: Turns
    lines: dict[str, PlannedStep] = field(default_factory=dict)
    standing: dict[str, list[Manifest]] = field(default_factory=dict)
    """All artifacts of a stage, read once when first asked for."""

    @cached_property
    def damage_records(self) -> set[str]:
        """Listed once for a plan: nearly always there are none."""
        return damage_records(self.store)

    def plan(self, instance: Instance) -> PlannedStep:
        """Decide one instance; all it reads has been decided."""
        waits_for = self.turns.waits_for(instance)
        line = self._waiting(instance, waits_for) if waits_for else self._ready(instance)
        line = replace(line, reads=tuple(instance.waits_for), accept_code=self.chosen.accept_code)
        self.lines[instance.name] = line
        self.turns.planned(line.instance, line.key)
        if line.action == "reuse" and line.manifest is not None:
            self.made[instance.name] = line.manifest
        return line

    def _ready(self, instance: Instance) -> PlannedStep:
        inputs, names = self._inputs(instance)
        spec = StageSpec.make(
            instance.stage, instance.config, inputs, instance.execution, where=instance.where
        )
        outputs, records = instance.stage.outputs, self.damage_records
        found = find_committed(self.store, spec.stage, spec.key, outputs=outputs, records=records)
        if found.damage is not None:
            return self._line(instance, "run", f"corrupt: {found.damage}", spec)
        if found.manifest is not None:
            return self._standing_line(instance, spec, found.manifest)
        asked = Asked(spec.version, spec.config, spec.identity)
        cause = changes_since(self._previous(instance), asked, spec.inputs, names)
        begun = self._begun(spec.key)
        action: Action = "resume" if begun else "run"
        return self._line(instance, action, "; ".join(filter(None, [begun, cause])), spec)

    def _standing_line(
        self, instance: Instance, spec: StageSpec, manifest: Manifest
    ) -> PlannedStep:
        """A whole artifact stands: reuse it, unless told otherwise."""
        if instance.name in self.forced:
            return self._line(instance, "run", "forced", spec, manifest=manifest, force=True)
        if manifest.code.digest == code_digest(instance.stage):
            return self._line(instance, "reuse", "", spec, manifest=manifest)
        if self.chosen.strict_code and instance.name not in self.chosen.settled:
            cause = f"{CODE_DIFFERS} (--strict-code)"
            return self._line(instance, "run", cause, spec, manifest=manifest, force=True)
        return self._line(instance, "reuse", "", spec, manifest=manifest, note=CODE_DIFFERS)

    def _waiting(self, instance: Instance, waits_for: tuple[str, ...]) -> PlannedStep:
        """An input is not made yet: does the step run for sure, or perhaps not?"""
        after = f"after {some(waits_for)}"
        if instance.name in self.forced:
            return self._line(instance, "run", f"forced, {after}", waits_for=waits_for)
        asked = _asked(instance)
        previous = self._previous(instance)
        if not self._made_before(instance, asked, previous):
            cause = changes_since(previous, asked, None, {})
            return self._line(instance, "run", f"{cause}, {after}", waits_for=waits_for)
        whose = "its output is" if len(waits_for) == 1 else "their outputs are"
        cause = f"{after}; reused if {whose} unchanged"
        return self._line(instance, "depends", cause, waits_for=waits_for)

    def _line(
        self,
        instance: Instance,
        action: Action,
        cause: str,
        spec: StageSpec | None = None,
        **more: Any,
    ) -> PlannedStep:
        key = spec.key if spec is not None else None
        return PlannedStep(
            instance.name, instance.step, instance.stage.name, action, cause, key, spec, **more
        )

    def _inputs(self, instance: Instance) -> tuple[dict[str, list[InputRef]], dict[str, str]]:
        """References of all inputs by role, and the node each digest comes from."""
        inputs: dict[str, list[InputRef]] = {}
        names: dict[str, str] = {}
        for role, sources in instance.inputs.items():
            for source in sources:
                manifest = self.turns.given(source)
                assert manifest is not None, "an instance without an input is not ready"
                reference = self.store.reference(manifest, source.output)
                inputs.setdefault(role, []).append(reference)
                names[reference.digest] = source.name or f"{manifest.stage} {short(manifest.key)}"
        return inputs, names

    def _previous(self, instance: Instance) -> Manifest | None:
        """What this step made last under this recipe's name."""
        ref = self.store.ref(f"{self.graph.recipe.name}/{instance.name}")
        if ref is None or ref.stage != instance.stage.name:
            return None
        try:
            return self.store.manifest(ref.stage, ref.key)
        except CorruptArtifact:
            return None

    def _made_before(self, instance: Instance, asked: Asked, previous: Manifest | None) -> bool:
        """Whether some artifact has this stage, version and config, so that it might be reused."""
        if previous is not None and asked.is_of(previous):
            return True
        stage = instance.stage.name
        if stage not in self.standing:
            damaged: list[CorruptArtifact] = []
            self.standing[stage] = list(self.store.manifests(stage, on_damage=damaged.append))
            if damaged:
                return True
        return any(
            asked.is_of(manifest) and manifest.interim_of is None
            for manifest in self.standing[stage]
        )

    def _begun(self, key: str) -> str | None:
        """What an earlier run under this key left behind."""
        state = self.store.work_state(key)
        if state.running:
            return "running now, this run joins it"
        if state.finished_shards:
            return f"{state.finished_shards} shard{'s' * (state.finished_shards > 1)} done"
        return "work begun" if state.exists else None


def _asked(instance: Instance) -> Asked:
    config = instance.stage.complete(
        instance.stage.Config.parse(instance.config, where=f"{instance.where}.config")
    )
    return Asked(instance.stage.version, config.plain(), config.identity())
