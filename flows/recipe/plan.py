"""What a run would do, step by step, and why. The run, the UI and the tests use the same plan.

The action of a step is
- `reuse`: its artifact exists, whole, under the key that follows from its config and inputs;
- `run` or `resume`: it does not; the cause names what changed since the recipe last made it;
- `depends`: it reads a step that runs, and an artifact of its config exists: whether it runs too is
  known once that step has committed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from artifacts_schema.errors import CorruptArtifact, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.listed import list_artifacts
from artifacts_schema.store.verify import damage_records, find_committed
from flows.recipe.graph import Graph, Instance
from flows.recipe.upstream import InputResolver, check_steps
from stages.engine.provenance import code_digest
from stages.engine.spec import StageSpec

MISSING = "missing"
_MAX_CHARACTERS = 48
_ABSENT = object()


def config_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """`a.b: 3 → 4` for every field that differs between two plain configs, nested ones by path."""
    return [
        f"{path}: {_format_value(old)} → {_format_value(new)}"
        for path, old, new in _list_differences("", before, after)
    ]


def drop_new_defaults(config: Any, identity: Any, other: Any) -> Any:
    """A config without the fields that `other` does not have and that equal their default.

    Such a field was added by a later program and changes no key.
    """
    if not isinstance(config, Mapping) or not isinstance(other, Mapping):
        return config
    set_fields = identity if isinstance(identity, Mapping) else {}
    return {
        name: drop_new_defaults(value, set_fields.get(name), other.get(name, {}))
        for name, value in config.items()
        if name in other or name in set_fields
    }


def input_changes(
    before: Mapping[str, Sequence[InputRef]],
    after: Mapping[str, Sequence[InputRef]],
    names: Mapping[str, str],
) -> list[str]:
    """One phrase for each role whose content differs; `names`: digest → the step that made it.

    Of inputs that are not read any more only those are named that `names` has.
    """
    changes = []
    for role in sorted({*before, *after}):
        old = [reference.digest for reference in before.get(role, ())]
        new = [reference.digest for reference in after.get(role, ())]
        if old == new:
            continue
        if not old or not new:
            changes.append(f"input {role} {'added' if new else 'removed'}")
        elif sorted(old) == sorted(new):
            changes.append(f"order of input {role} changed")
        else:
            changes.append(f"input {role} changed ({_format_change(old, new, names)})")
    return changes


def _format_change(old: Sequence[str], new: Sequence[str], names: Mapping[str, str]) -> str:
    """The steps whose digests are new, and those that are not read any more, as far as known."""
    read_now = [names.get(digest, digest[:12]) for digest in new]
    changed = (names.get(digest, digest[:12]) for digest in new if digest not in old)
    read_before = (names[digest] for digest in old if digest in names)
    added = join_names(list(dict.fromkeys(changed)))
    removed = join_names([name for name in dict.fromkeys(read_before) if name not in read_now])
    if removed:
        return f"{added} instead of {removed}" if added else f"without {removed}"
    return added or f"{len(old) - len(new)} fewer"


def describe_changes(
    previous: Manifest | None, spec: StageSpec, names: Mapping[str, str] | None
) -> str:
    """Why no artifact exists under the key of a step: the changes since `previous`.

    `names`: digest → the step that made it; None if the inputs are not known yet: then only version
    and config are compared.
    """
    if previous is None:
        return MISSING
    parts = []
    if previous.version != spec.version:
        parts.append(f"version {previous.version} → {spec.version}")
    config = drop_new_defaults(spec.config, spec.identity, previous.config)
    parts += [f"config {change}" for change in config_changes(previous.config, config)]
    if names is not None:
        parts += input_changes(previous.inputs, spec.inputs, names)
    return "; ".join(parts) or MISSING


def join_names(names: Sequence[str], most: int = 3) -> str:
    """The first few names, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _list_differences(path: str, before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        stem = f"{path}." if path else ""
        pairs = [
            (f"{stem}{key}", before.get(key, _ABSENT), after.get(key, _ABSENT))
            for key in dict.fromkeys([*before, *after])
        ]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(f"{path}.{i}", before[i], after[i]) for i in range(len(before))]
    else:
        return [] if before == after else [(path, before, after)]
    return [difference for pair in pairs for difference in _list_differences(*pair)]


def _format_value(value: Any) -> str:
    if value is _ABSENT:
        return "unset"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"


Action = Literal["reuse", "resume", "run", "depends"]
CODE_DIFFERS = "code differs, version equal"


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which part of a recipe to run, and which steps to run even if their artifact exists."""

    start: str | None = None
    through: str | None = None
    force: tuple[str, ...] = ()
    strict_code: bool = False
    accept_code: bool = False
    by: str = ""
    """Who asks; a label of what the run costs."""


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
    """Whether to run although the artifact exists, and compare (forced, other code)."""
    accept_code: bool = False
    """Whether to continue from the work of another program under this key."""
    reads: tuple[str, ...] = ()
    """Names of the instances and snapshots that it reads."""
    expected_seconds: float | None = None
    """What it probably takes, see `time_left.py`; None if nothing is known."""

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


def plan_spec(spec: StageSpec, cause: str) -> PlannedStep:
    """The line of a stage that runs by itself."""
    return PlannedStep(spec.stage, spec.stage, spec.stage, "run", cause, spec.key, spec)


@dataclass(frozen=True)
class Plan:
    """All lines, each after what it reads."""

    recipe: str
    store: str
    steps: tuple[PlannedStep, ...]
    jobs: int = 1
    """Steps that run at the same time, once it is run."""
    memory: PlanMemory | None = field(default=None, repr=False, compare=False)
    """What the next plan of the same run need not find out again."""

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
            return f"nothing to do: all {reused} steps are made"
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


@dataclass
class PlanMemory:
    """The lines of a plan by the instance of the graph that they are of, and how they were found.

    What a plan of a run in progress keeps is true of as long as nothing else touches the store;
    the last plan of a run is made without it.
    """

    lines: dict[str, dict[str, PlannedStep]] = field(default_factory=dict)
    """By instance of the graph: its lines by name."""
    resolver: InputResolver | None = None
    artifacts: dict[str, list[Manifest]] = field(default_factory=dict)

    def without(self, names: Collection[str]) -> PlanMemory:
        """What is left of it when these instances, and what reads them, are planned anew."""
        assert self.resolver is not None
        lines = {name: lines for name, lines in self.lines.items() if name not in names}
        dropped = {line for name in names for line in self.lines.get(name, ())} | set(names)
        return PlanMemory(lines, self.resolver.without(dropped), self.artifacts)


def make_plan(
    graph: Graph,
    store: Store,
    snapshots: Mapping[str, Manifest],
    selection: Selection | None = None,
    settled: frozenset[str] = frozenset(),
    before: PlanMemory | None = None,
    changed: Collection[str] = (),
) -> Plan:
    """Plan `graph` against `store`; reads only. `snapshots` are those of the recipe, committed.

    `settled` are instances that this run has made: they are not forced again, and their code is not
    compared again. With the memory of an earlier plan of the same run, only the instances `changed`
    since then and those that read them are planned. Raises UsageError for a selection that names no
    step or starts after a missing artifact, and for all problems that the stages report
    (`Stage.check_plan`); StoreError if the store's payload is not mounted or cannot be read.
    """
    store.check_mounted()
    selection = selection or Selection()
    selected, needed = select_instances(graph, selection)
    if before is None:
        stages = Counter(graph.instances[name].stage.name for name in selected | needed)
        store = list_artifacts(store, graph.recipe.name, stages)
        memory = PlanMemory(resolver=InputResolver(graph, store, dict(snapshots)))
    else:
        memory = before.without(graph.downstream(set(changed)))
    resolver = memory.resolver
    assert resolver is not None
    resolver.store = store
    forced = {name for text in sorted(selection.force) for name in graph.select(text, "--force")}
    if outside := forced - selected:
        raise UsageError(f"{join_names(sorted(outside))} is not part of this run", where="--force")
    planner = _Planner(graph, store, forced - settled, settled, selection, resolver, memory)
    unmade: dict[str, list[str]] = {}  # Names of the lines that would run, by instance.
    for name, instance in graph.instances.items():
        if name not in selected | needed or name in memory.lines:
            continue
        memory.lines[name] = {}
        for turn in resolver.expand(instance):
            step = planner.plan(turn)
            memory.lines[name][turn.name] = step
            if step.action != "reuse":
                unmade.setdefault(name, []).append(turn.name)
            if name not in selected and step.action != "reuse":
                raise UsageError(
                    f"'{selection.start}' needs {turn.name}, which does not exist: {step.cause}",
                    where="--from",
                    hint=f"start from {instance.step}, or omit --from",
                )
    # Once a run has made something, a step with a problem fails by itself and others continue.
    checked = {} if settled or before else check_steps(graph, store, unmade, resolver.manifests)
    for name, notes in checked.items():
        for line in unmade[name]:
            step = memory.lines[name][line]
            note = "; ".join(filter(None, [step.note, *notes]))
            memory.lines[name][line] = replace(step, note=note)
    lines = (memory.lines[name].values() for name in graph.instances if name in memory.lines)
    steps = tuple(_label(step, selection.by) for own in lines for step in own)
    return Plan(graph.recipe.name, store.url, steps, memory=memory)


def _label(step: PlannedStep, by: str) -> PlannedStep:
    return replace(step, spec=replace(step.spec, by=by)) if by and step.spec else step


def select_instances(graph: Graph, selection: Selection) -> tuple[set[str], set[str]]:
    """Instances to bring up to date, and those before them that must exist already."""
    selected = set(graph.instances)
    if selection.through is not None:
        selected &= graph.upstream(graph.select(selection.through, "--through"))
    if selection.start is None:
        return selected, set()
    selected &= graph.downstream(graph.select(selection.start, "--from"))
    if not selected:
        raise UsageError(f"'{selection.start}' is not before '{selection.through}'", where="--from")
    return selected, graph.upstream(selected) - selected


@dataclass
class _Planner:
    graph: Graph
    store: Store
    forced: Collection[str]
    settled: Collection[str]
    selection: Selection
    resolver: InputResolver
    memory: PlanMemory

    @cached_property
    def damage_records(self) -> set[str]:
        """Listed once for a plan; nearly always empty."""
        return damage_records(self.store)

    @cached_property
    def names(self) -> dict[tuple[str, str], str]:
        """Stage and key of everything under this recipe's name → the instance, retired ones too."""
        prefix = f"{self.graph.recipe.name}/"
        refs = self.store.refs(prefix, on_damage=lambda _: None)
        return {(ref.stage, ref.key): name.removeprefix(prefix) for name, ref in refs.items()}

    def plan(self, instance: Instance) -> PlannedStep:
        """Plan one instance; all that it reads is planned already."""
        waits_for = self.resolver.waits_for(instance)
        line = self._plan_waiting(instance, waits_for) if waits_for else self._plan_ready(instance)
        accept_code = self.selection.accept_code
        line = replace(line, reads=tuple(instance.waits_for), accept_code=accept_code)
        self.resolver.keys[line.instance] = line.key
        if line.action == "reuse" and line.manifest is not None:
            self.resolver.manifests[instance.name] = line.manifest
        return line

    def _plan_ready(self, instance: Instance) -> PlannedStep:
        inputs, names = self._find_inputs(instance)
        spec = StageSpec.make(
            instance.stage, instance.config, inputs, instance.execution, where=instance.where
        )
        outputs, records = instance.stage.outputs, self.damage_records
        artifact = find_committed(
            self.store, spec.stage, spec.key, outputs=outputs, records=records
        )
        if artifact.damage is not None:
            return self._make_line(instance, "run", f"corrupt: {artifact.damage}", spec)
        if artifact.manifest is not None:
            return self._plan_existing(instance, spec, artifact.manifest)
        previous = self._load_previous(instance)
        cause = describe_changes(previous, spec, {**self._name_inputs(previous), **names})
        begun = self._describe_work(spec.key)
        action: Action = "resume" if begun else "run"
        return self._make_line(instance, action, "; ".join(filter(None, [begun, cause])), spec)

    def _plan_existing(
        self, instance: Instance, spec: StageSpec, manifest: Manifest
    ) -> PlannedStep:
        """A whole artifact exists: reuse it, unless the selection says otherwise."""
        if instance.name in self.forced:
            return self._make_line(instance, "run", "forced", spec, manifest=manifest, force=True)
        if manifest.code.digest == code_digest(instance.stage):
            return self._make_line(instance, "reuse", "", spec, manifest=manifest)
        if self.selection.strict_code and instance.name not in self.settled:
            cause = f"{CODE_DIFFERS} (--strict-code)"
            return self._make_line(instance, "run", cause, spec, manifest=manifest, force=True)
        return self._make_line(instance, "reuse", "", spec, manifest=manifest, note=CODE_DIFFERS)

    def _plan_waiting(self, instance: Instance, waits_for: tuple[str, ...]) -> PlannedStep:
        """An input is not made yet: the step runs, or depends on whether that input changes."""
        after = f"after {join_names(waits_for)}"
        if instance.name in self.forced:
            return self._make_line(instance, "run", f"forced, {after}", waits_for=waits_for)
        stage, config = instance.stage, instance.parsed_config
        spec = StageSpec(stage.name, stage.version, config.plain(), config.identity(), {})
        previous = self._load_previous(instance)
        if not self._was_made(spec, previous):
            cause = describe_changes(previous, spec, None)
            return self._make_line(instance, "run", f"{cause}, {after}", waits_for=waits_for)
        whose = "its output is" if len(waits_for) == 1 else "their outputs are"
        cause = f"{after}; reused if {whose} unchanged"
        return self._make_line(instance, "depends", cause, waits_for=waits_for)

    def _make_line(
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

    def _find_inputs(self, instance: Instance) -> tuple[dict[str, list[InputRef]], dict[str, str]]:
        """References of all inputs by role, and the node each digest comes from."""
        inputs: dict[str, list[InputRef]] = {}
        names: dict[str, str] = {}
        for role, sources in instance.inputs.items():
            for source in sources:
                manifest = self.resolver.find(source)
                assert manifest is not None, "an instance without an input is not ready"
                reference = self.store.reference(manifest, source.output)
                inputs.setdefault(role, []).append(reference)
                names[reference.digest] = source.name or f"{manifest.stage} {short(manifest.key)}"
        return inputs, names

    def _name_inputs(self, previous: Manifest | None) -> dict[str, str]:
        """The recipe's own names of what an artifact was made from, by digest."""
        if previous is None:
            return {}
        read = [reference for references in previous.inputs.values() for reference in references]
        return {
            reference.digest: self.names[reference.stage, reference.key]
            for reference in read
            if (reference.stage, reference.key) in self.names
        }

    def _load_previous(self, instance: Instance) -> Manifest | None:
        """The last artifact of this step under this recipe's name."""
        ref = self.store.ref(f"{self.graph.recipe.name}/{instance.name}")
        if ref is None or ref.stage != instance.stage.name:
            return None
        try:
            return self.store.manifest(ref.stage, ref.key)
        except CorruptArtifact:
            return None

    def _was_made(self, spec: StageSpec, previous: Manifest | None) -> bool:
        """Whether some artifact has this stage, version and config, so that it might be reused."""

        def matches(manifest: Manifest) -> bool:
            return manifest.version == spec.version and manifest.identity == spec.identity

        if previous is not None and matches(previous):
            return True
        artifacts = self.memory.artifacts  # Of a stage, read once when first needed.
        if spec.stage not in artifacts:
            damaged: list[CorruptArtifact] = []
            manifests = self.store.manifests(spec.stage, on_damage=damaged.append)
            artifacts[spec.stage] = list(manifests)
            if damaged:
                return True
        return any(one.interim_of is None and matches(one) for one in artifacts[spec.stage])

    def _describe_work(self, key: str) -> str | None:
        """The work of an earlier run under this key, in words."""
        state = self.store.work_state(key)
        if state.running:
            return "running now, this run joins it"
        if state.finished_shards:
            return f"{state.finished_shards} shard{'s' * (state.finished_shards > 1)} done"
        return "work begun" if state.exists else None
