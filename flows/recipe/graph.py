"""A recipe whose parts fit: every step instance with its stage, checked config and inputs.

`build_graph` checks the whole recipe and reports all problems together: unknown stages, roles,
outputs and references, kinds that do not match, missing inputs, values out of range, cycles.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.recipe.levels import Series
from flows.recipe.notation import EXECUTION, Reference, choose_output, parse_reference
from flows.recipe.profile import Profile
from flows.recipe.recipe import Checkpoints, Levels, Problems, Recipe, Step
from stages.engine.protocol import Stage, stage_named

Name = TypeVar("Name", bound=Hashable)


class DependencyCycle(Exception):
    """Names read each other; the message is the cycle, each before what it reads."""


def sort_topologically(reads: Mapping[Name, Sequence[Name]]) -> list[Name]:
    """Every name of `reads` after those that it reads, otherwise in the order of `reads`.

    Raises DependencyCycle. Every name that is read must itself be a key of `reads`.
    """
    sorter = TopologicalSorter(reads)
    try:
        sorter.prepare()
    except CycleError as error:
        # graphlib lists each before its readers; the other way round the list means "reads".
        raise DependencyCycle(" → ".join(map(str, error.args[1]))) from None
    names = list(reads)
    position = {name: index for index, name in enumerate(names)}
    ready = [position[name] for name in sorter.get_ready()]
    heapq.heapify(ready)
    ordered = []
    while ready:
        name = names[heapq.heappop(ready)]
        ordered.append(name)
        sorter.done(name)
        for reader in sorter.get_ready():
            heapq.heappush(ready, position[reader])
    return ordered


EACH = "each"


@dataclass(frozen=True)
class Source:
    """One output given to a role: of a step instance or snapshot here, or of a stored artifact.

    `at` names a checkpoint of the instance (`1.6M`, or `each` for that of the reader's own turn).
    """

    node: str | None
    output: str
    kind: str
    manifest: Manifest | None = None
    at: str | None = None

    @property
    def name(self) -> str | None:
        """The node and its checkpoint: `pretrain@1.6M`; None for a stored artifact."""
        return self.node if self.at in (None, EACH) else f"{self.node}@{self.at}"


@dataclass(frozen=True)
class Instance:
    """A step, or one of its repetitions, ready to be planned.

    `over`: the step whose checkpoints it repeats over; one instance for all until a plan knows
    the checkpoints.
    """

    name: str
    step: str
    label: str | None
    stage: type[Stage]
    config: dict[str, Any]
    execution: dict[str, Any]
    inputs: dict[str, tuple[Source, ...]]
    where: str
    over: str | None = None

    @cached_property
    def parsed_config(self) -> Any:
        """The config, with what the stage completes from this machine."""
        return self.stage.complete(self.stage.Config.parse(self.config, where=self.where))

    @property
    def waits_for(self) -> list[str]:
        """Names of the instances and snapshots that it reads, each once, in order of roles."""
        names = (s.node for sources in self.inputs.values() for s in sources if s.node is not None)
        return list(dict.fromkeys(names))


@dataclass(frozen=True)
class Graph:
    """Instances by name, each after all that it reads."""

    recipe: Recipe
    instances: dict[str, Instance]
    steps: dict[str, list[str]] = field(default_factory=dict)

    def upstream(self, names: set[str]) -> set[str]:
        """`names` and every instance that they read, directly or not."""
        selected = set(names)
        for name in reversed(self.instances):
            if name in selected:
                selected.update(n for n in self.instances[name].waits_for if n in self.instances)
        return selected

    def downstream(self, names: set[str]) -> set[str]:
        """`names` and every instance that reads them, directly or not."""
        selected = set(names)
        for name, instance in self.instances.items():
            if selected.intersection(instance.waits_for):
                selected.add(name)
        return selected

    def select(self, name: str, flag: str) -> set[str]:
        """The instances called `name`: all of a step, or one by its own name."""
        if name in self.instances:
            return {name}
        if name in self.steps:
            return set(self.steps[name])
        if name in self.recipe.steps:
            hint = "levels are merged as soon as a third snapshot reads them"
            raise UsageError(f"'{name}' has nothing to merge yet", where=flag, hint=hint)
        known = [*self.steps, *self.instances]
        raise UsageError(f"no step '{name}'{did_you_mean(name, known)}", where=flag)


def build_graph(recipe: Recipe, store: Store, profile: Profile | None = None) -> Graph:
    """Check the whole recipe against the stages and the store; UsageError lists every problem."""
    problems = Problems(str(recipe.path))
    instances = {
        one.name: one for one in _Builder(recipe, store, profile or Profile(), problems).instances()
    }
    reads = {
        name: [node for node in one.waits_for if node in instances]
        for name, one in instances.items()
    }
    ordered: list[str] = []
    try:
        ordered = sort_topologically(reads)
    except DependencyCycle as cycle:
        hint = "an input of one of them must come from another step"
        what = f"steps read each other in a cycle: {cycle}"
        problems.add(what, where=problems.where, hint=hint)
    problems.raise_any()
    steps: dict[str, list[str]] = {}
    for name in ordered:
        steps.setdefault(instances[name].step, []).append(name)
    return Graph(recipe, {name: instances[name] for name in ordered}, steps)


@dataclass(frozen=True)
class _Item:
    """One turn of a `for_each`: its label and what `each` means in it."""

    label: str
    reference: str = ""
    nodes: tuple[str, ...] = ()
    """The instances that `each` means in a step over levels; it has no reference."""


class _UnknownStage(Exception):
    """A reference to a step whose stage is unknown, which is reported as its own problem."""


class _Builder:
    def __init__(self, recipe: Recipe, store: Store, profile: Profile, problems: Problems) -> None:
        self.recipe, self.store, self.profile, self.problems = recipe, store, profile, problems
        self.stages: dict[str, type[Stage]] = {}
        for name, step in recipe.steps.items():
            stage = self._find_stage(step.stage, recipe.place("steps", name, "stage"))
            if stage is not None:
                self.stages[name] = stage
        self.items = {name: self._list_items(step) for name, step in recipe.steps.items()}
        self.series: dict[str, Series] = {}
        for name, step in recipe.steps.items():
            if isinstance(step.for_each, Levels):
                self.items[name] = self._list_levels(step, step.for_each.step)

    def instances(self) -> list[Instance]:
        instances = []
        for name, step in self.recipe.steps.items():
            stage = self.stages.get(name)
            if stage is None:
                continue  # Reported as its own problem.
            if step.for_each is not None and not self.items[name]:
                if name in self.series:  # Of too few snapshots; the step is checked all the same.
                    self._check_settings(step, stage)
                    self._find_inputs(step, stage, 0)
                continue
            config, execution = self._check_settings(step, stage)
            for index, item in enumerate(self.items[name] or [None]):  # type: ignore[list-item]
                instances.append(
                    Instance(
                        name if item is None else f"{name}[{item.label}]",
                        name,
                        item.label if item else None,
                        stage,
                        config,
                        execution,
                        self._find_inputs(step, stage, index),
                        self.recipe.place("steps", name),
                        step.for_each.step if isinstance(step.for_each, Checkpoints) else None,
                    )
                )
        read = {node for instance in instances for node in instance.waits_for}
        unread = {series.newest for series in self.series.values()} - read
        return [instance for instance in instances if instance.name not in unread]

    # Stage, config, repetition -------------------------------------------------------------------

    def _find_stage(self, name: str, where: str) -> type[Stage] | None:
        if not name:
            return None  # Reported by the reader of the recipe.
        try:
            return stage_named(name)
        except UsageError as error:
            self.problems.add(error.what, where=where, hint=error.hint)
            return None

    def _check_settings(
        self, step: Step, stage: type[Stage]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        overrides = [one for one in self.recipe.overrides if one.step == step.name]
        fields = [one.path[0] for one in overrides if one.section == EXECUTION]
        typed = {name: step.execution[name] for name in fields if name in step.execution}
        # `--set` overrides the profile, as it overrides the recipe.
        try:
            execution = self.profile.execution(step.stage, step.execution, typed)
        except UsageError as error:
            self.problems.add(error.what, where=error.where or "", hint=error.hint)
            execution = {**step.execution, **typed}
        flags = f", with {', '.join(f'--set {one.text}' for one in overrides)}"
        for section, parse, values, is_typed in (
            ("config", stage.Config.parse, step.config, overrides),
            ("execution", stage.Execution.parse, execution, typed),
        ):
            where = self.recipe.place("steps", step.name, section) + (flags if is_typed else "")
            try:
                parse(values, where=where)
            except UsageError as error:
                self.problems.add(error.what, where=error.where or where, hint=error.hint)
        return step.config, execution

    def _list_items(self, step: Step) -> list[_Item]:
        """The turns of a step's `for_each`; empty without one (over levels: `_list_levels`)."""
        if step.for_each is None or isinstance(step.for_each, Levels):
            return []
        if isinstance(step.for_each, Checkpoints):
            return self._list_checkpoints(step, step.for_each.step)
        patterns = ("*",) if step.for_each == "snapshots" else step.for_each
        names: list[str] = []
        for text in patterns:  # A pattern such as `crawl-*` means the snapshots that match it.
            matches = [name for name in self.recipe.snapshots if fnmatchcase(name, text)]
            names += matches if set(text) & set("*?[") else [text]
        if not names:
            reason = f"no snapshot matches {', '.join(patterns)}" if patterns else "it is empty"
            self._add_problem(f"for_each has nothing to repeat over: {reason}", step, "for_each")
        items = [item for name in names if (item := self._make_item(step, name)) is not None]
        labels = [item.label for item in items]
        for label in sorted({label for label in labels if labels.count(label) > 1}):
            self._add_problem(f"for_each has two items labelled '{label}'", step, "for_each")
        return items

    def _list_checkpoints(self, step: Step, name: str) -> list[_Item]:
        """The one turn that stands for all checkpoints of the step called `name`."""
        if name not in self.recipe.steps:
            what = f"no step '{name}'{did_you_mean(name, self.recipe.steps)}"
            self._add_problem(what, step, "for_each", "checkpoints")
            return []
        if self.recipe.steps[name].for_each is not None:
            self._add_problem(f"'{name}' itself repeats", step, "for_each", "checkpoints")
            return []
        if (stage := self.stages.get(name)) is not None and not stage.commits_on_its_way():
            what = f"'{name}' commits no checkpoints: {stage.name} has no permanent ones"
            self._add_problem(what, step, "for_each", "checkpoints")
            return []
        return [_Item(f"checkpoints of {name}", f"{name}@{EACH}")]

    def _list_levels(self, step: Step, name: str) -> list[_Item]:
        """One turn for each block of instances of the step called `name` that is merged."""
        if name not in self.recipe.steps:
            what = f"no step '{name}'{did_you_mean(name, self.recipe.steps)}"
            self._add_problem(what, step, "for_each", "levels")
            return []
        if not isinstance(self.recipe.steps[name].for_each, str | tuple):
            what = f"'{name}' has no levels: it does not repeat over snapshots or a list"
            self._add_problem(what, step, "for_each", "levels")
            return []
        labels = tuple(item.label for item in self.items[name])
        series = self.series[step.name] = Series(step.name, name, labels)
        return [_Item(series.label(block), nodes=series.parts(block)) for block in series.blocks]

    def _make_item(self, step: Step, text: str) -> _Item | None:
        try:
            reference = parse_reference(text)
        except UsageError as error:
            self._add_problem(error.what, step, "for_each", hint=error.hint)
            return None
        name = reference.name
        known = [*self.recipe.steps, *self.recipe.snapshots]
        if reference.stored or reference.index or name not in known:
            hint = "`for_each: snapshots`, or a list of steps and snapshots"
            what = f"no step or snapshot '{text}'{did_you_mean(name, known)}"
            self._add_problem(what, step, "for_each", hint=hint)
            return None
        if name in self.recipe.steps and self.recipe.steps[name].for_each is not None:
            hint = f"write the same for_each as {name} has; references are then matched one to one"
            self._add_problem(f"'{name}' itself repeats", step, "for_each", hint=hint)
            return None
        return _Item(reference.output or name, text)

    # Inputs --------------------------------------------------------------------------------------

    def _find_inputs(
        self, step: Step, stage: type[Stage], index: int
    ) -> dict[str, tuple[Source, ...]]:
        inputs: dict[str, tuple[Source, ...]] = {}
        for role, texts in step.inputs.items():
            if role not in stage.inputs:
                known = did_you_mean(role, stage.inputs) or f"; {step.stage} takes no inputs"
                self._add_problem(
                    f"{step.stage} has no input '{role}'{known}", step, "inputs", role
                )
                continue
            sources: list[Source] = []
            whole = bool(self.items[step.name]) or step.for_each is None
            for text in texts:
                try:
                    sources += self._find_sources(step, index, text, role, stage.inputs[role].kind)
                except _UnknownStage:
                    whole = False
                except UsageError as error:
                    self._add_problem(error.what, step, "inputs", role, hint=error.hint)
                    whole = False
            inputs[role] = tuple(sources)
            if whole:
                self._check_number(step, stage, role, inputs[role])
        for role in stage.inputs:
            if role not in step.inputs:
                self._check_number(step, stage, role, ())
        return inputs

    def _check_number(
        self, step: Step, stage: type[Stage], role: str, sources: tuple[Source, ...]
    ) -> None:
        limits = stage.inputs[role]
        if len(sources) < limits.least:
            number = f" {limits.least} times" if limits.least > 1 else ""
            got = f", got {len(sources)}" if sources else ""
            what = f"{stage.name} needs input '{role}' ({limits.kind}){number}{got}"
            self._add_problem(what, step, "inputs", *([role] if role in step.inputs else []))
        elif limits.most is not None and len(sources) > limits.most:
            names = ", ".join(source.node or "@" for source in sources)
            hint = "give both steps the same for_each, or name one instance, as in step[label]"
            what = f"'{role}' takes one, got {len(sources)}: {names}"
            self._add_problem(what, step, "inputs", role, hint=hint)

    def _find_sources(
        self, step: Step, index: int, text: str, role: str, kind: str
    ) -> list[Source]:
        reference = self._parse_reference(text)
        items = self.items[step.name]
        if reference.name == "each" and not reference.stored:
            if step.name in self.series:
                parts = items[index].nodes if items else ()
                series = self.series[step.name]
                return self._find_level_sources(series, parts, reference, role, kind)
            if not items:
                raise UsageError("'each' is valid only in a step with for_each")
            each = parse_reference(items[index].reference)
            reference = replace(each, text=text, output=reference.output or each.output)
        if reference.name in self.recipe.snapshots and not reference.stored:
            nodes, outputs = [reference.name], {"snapshot": "snapshot"}
        elif reference.name in self.series and not reference.stored:
            nodes = self._find_levels(step, index, reference)
            series = self.series[reference.name]
            return self._find_level_sources(series, nodes, reference, role, kind)
        elif reference.name in self.recipe.steps and not reference.stored:
            nodes = self._find_nodes(step, index, reference)
            if reference.name not in self.stages:
                raise _UnknownStage
            outputs = dict(self.stages[reference.name].outputs)
        elif reference.is_key:
            manifest, _ = self.store.resolve(reference.name)
            outputs = {name: output.kind for name, output in manifest.outputs.items()}
            output = choose_output(kind, role, outputs, reference, manifest.stage)
            return [Source(None, output, kind, manifest)]
        else:
            known = [*self.recipe.steps, *self.recipe.snapshots]
            raise UsageError(f"no step or snapshot '{text}'{did_you_mean(reference.name, known)}")
        stage = self.stages.get(reference.name)
        if reference.at is not None and (stage is None or not stage.commits_on_its_way()):
            raise UsageError(
                f"'{text}': {reference.name} commits no checkpoints",
                hint=f"write {reference.name} for its final artifact",
            )
        output = choose_output(kind, role, outputs, reference, reference.name)
        return [Source(node, output, kind, at=reference.at) for node in nodes]

    def _find_level_sources(
        self, series: Series, nodes: Sequence[str], reference: Reference, role: str, kind: str
    ) -> list[Source]:
        """Merged blocks and single instances: the outputs of either stage that suit a reference."""
        if reference.at is not None:
            raise UsageError(f"'{reference.text}': {series.step} commits no checkpoints")
        outputs = {}
        for name in (series.step, series.base):
            if name not in self.stages:
                raise _UnknownStage
            known = dict(self.stages[name].outputs)
            outputs[name] = choose_output(kind, role, known, reference, name)
        return [Source(node, outputs[node.partition("[")[0]], kind) for node in nodes]

    def _parse_reference(self, text: str) -> Reference:
        """A parsed reference; a name that is no step and no snapshot may be a name in the store."""
        reference = parse_reference(text)
        known = {*self.recipe.steps, *self.recipe.snapshots, EACH}
        if reference.is_key or reference.name in known or reference.index is not None:
            return reference
        name = reference.name if reference.at is None else f"{reference.name}@{reference.at}"
        if self.store.ref(name) is None:
            return reference
        return replace(reference, name=name, at=None, stored=True)

    def _find_nodes(self, step: Step, index: int, reference: Reference) -> list[str]:
        """The instances of a step that a reference in turn `index` of `step` names."""
        name, which = reference.name, reference.index
        labels = [item.label for item in self.items[name]]
        all_nodes = [f"{name}[{label}]" for label in labels] or [name]
        items = self.items[step.name]
        if which is None:
            return [all_nodes[index]] if items and items == self.items[name] else all_nodes
        if not labels:
            raise UsageError(f"'{name}' does not repeat, so '{reference.text}' names nothing")
        if which in ("each", "previous", "earlier"):
            if isinstance(step.for_each, Checkpoints) and which != EACH:
                raise UsageError(f"'[{which}]' is not valid over checkpoints")
            if not items:
                raise UsageError(f"'[{which}]' is valid only in a step with for_each")
            label = items[index].label
            if label not in labels:
                raise UsageError(f"'{name}' has no instance '{label}'; it has {', '.join(labels)}")
            at = labels.index(label)
            first = {"each": at, "previous": max(at - 1, 0), "earlier": 0}[which]
            return all_nodes[first : at + (which == EACH)]
        if which not in labels:
            raise UsageError(f"'{name}' has no instance '{which}'{did_you_mean(which, labels)}")
        return [f"{name}[{which}]"]

    def _find_levels(self, step: Step, index: int, reference: Reference) -> list[str]:
        """The merged blocks and single instances that a reference to a step over levels names."""
        series, which = self.series[reference.name], reference.index
        if which is None:
            return series.read(len(series.labels))
        if which in [item.label for item in self.items[series.step]]:
            return [f"{series.step}[{which}]"]
        if which != "earlier":
            hint = f"{series.step}[earlier], {series.step} for all, or one block by its label"
            raise UsageError(f"'{reference.text}' names no level", hint=hint)
        label = self.items[step.name][index].label if self.items[step.name] else None
        if label not in series.labels:
            what = f"'[earlier]' is valid only in a step that repeats as {series.base} does"
            raise UsageError(what)
        return series.read(series.labels.index(label))

    def _add_problem(self, what: str, step: Step, *where: str, hint: str | None = None) -> None:
        self.problems.add(what, where=self.recipe.place("steps", step.name, *where), hint=hint)
