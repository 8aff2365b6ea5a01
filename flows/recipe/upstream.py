"""What a step of a plan reads: existing artifacts, checkpoints to come; and the stages' checks.

`for_each: {checkpoints: pretrain}` repeats a step over the checkpoints of another, and
`pretrain@1.6M` names one. Their list follows from the config and inputs of the step that commits
them, so a plan knows it as soon as those inputs exist; until then one plan line stands for all. The
manifests of a finished run say which checkpoints it committed.

Each step that would run is checked by its stage (`Stage.check_plan`) against the configs of its
inputs and, for those that exist, their manifests. All problems are raised together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import CorruptArtifact, IngotError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.commit import list_interims
from artifacts_schema.store.verify import find_committed
from flows.recipe.graph import EACH, Graph, Instance, Source
from flows.recipe.recipe import Problems
from stages.engine.inputs import Input
from stages.engine.outputs import Milestone
from stages.engine.protocol import Inputs, Stage, Upstream, stage_named

T = TypeVar("T")


def check_steps(
    graph: Graph,
    store: Store,
    names: Collection[str],
    manifests: Mapping[str, Manifest] | None = None,
) -> dict[str, tuple[str, ...]]:
    """Check the instances called `names`; returns the notes of each that has some.

    `manifests` are those that exist, by node. UsageError lists every problem.
    """
    problems, notes = Problems(str(graph.recipe.path)), {}
    upstreams = _UpstreamReader(graph, store, manifests or {})
    for name, instance in graph.instances.items():
        if name not in names:
            continue
        stage, config, inputs = instance.stage, instance.parsed_config, upstreams.inputs(instance)
        try:
            lines = stage.check_plan(config, inputs)
        except UsageError as error:
            where = f"{instance.where}: config.{error.where}" if error.where else instance.where
            problems.add(error.what, where=where, hint=error.hint)
        else:
            if lines:
                notes[name] = tuple(lines)
        try:
            execution = stage.Execution.parse(instance.execution, where=instance.where)
            stage.check_layout(config, execution, inputs)
        except UsageError as error:
            where = f"{instance.where}: {error.where}" if error.where else instance.where
            problems.add(error.what, where=where, hint=error.hint)
    problems.raise_any()
    return notes


def check_stored(
    stage: type[Stage],
    config: Mapping[str, Any],
    inputs: Mapping[str, Sequence[InputRef]],
    store: Store,
    *,
    where: str,
) -> Sequence[str]:
    """Check one stage over artifacts that exist; returns its notes."""
    try:
        parsed = stage.Config.parse(config, where=where)
        return stage.check_plan(parsed, _read_inputs(store, inputs)) or ()
    except UsageError as error:
        place = f"{where}: {error.where}" if error.where else where
        raise UsageError(error.what, where=place, hint=error.hint) from None


@dataclass
class _UpstreamReader:
    graph: Graph
    store: Store
    manifests: Mapping[str, Manifest]
    _inputs: dict[str, Inputs] = field(default_factory=dict)

    def inputs(self, instance: Instance) -> Inputs:
        """What an instance reads."""
        if instance.name not in self._inputs:
            self._inputs[instance.name] = {
                role: tuple(self._make_upstream(source) for source in sources)
                for role, sources in instance.inputs.items()
            }
        return self._inputs[instance.name]

    def _make_upstream(self, source: Source) -> Upstream:
        if source.manifest is not None:
            return _from_manifest(self.store, source.manifest, source.output, source.kind)
        assert source.node is not None, "a source is a node or a stored artifact"
        # For a checkpoint, the final manifest of the run is not the one that is read.
        manifest = self.manifests.get(source.node) if source.at is None else None
        instance = self.graph.instances.get(source.node)
        if instance is None:
            return Upstream(source.node, source.kind, source.output, manifest=manifest)
        return Upstream(
            source.name or source.node,
            source.kind,
            source.output,
            instance.stage,
            instance.parsed_config,
            manifest,
            lambda: self.inputs(instance),
        )


def _from_manifest(store: Store, manifest: Manifest, output: str, kind: str) -> Upstream:
    """An artifact that exists; without its config if the installed stage cannot parse that."""
    stage: type[Stage] | None = None
    config: Any = None
    with suppress(UsageError):
        stage = stage_named(manifest.stage)  # A snapshot has none.
        config = stage.Config.parse(manifest.config, where=manifest.stage)
    name = f"{manifest.stage} {short(manifest.key)}"
    return Upstream(
        name, kind, output, stage, config, manifest, lambda: _read_inputs(store, manifest.inputs)
    )


def _read_inputs(store: Store, inputs: Mapping[str, Sequence[InputRef]]) -> Inputs:
    return {
        role: tuple(_from_reference(store, reference) for reference in references)
        for role, references in inputs.items()
    }


def _from_reference(store: Store, reference: InputRef) -> Upstream:
    """The artifact of a reference; without a manifest if that is missing or cannot be read."""
    try:
        manifest = store.manifest(reference.stage, reference.key)
    except IngotError:
        manifest = None
    if manifest is None:
        name = f"{reference.stage} {short(reference.key)}"
        return Upstream(name, reference.kind, reference.output)
    return _from_manifest(store, manifest, reference.output, reference.kind)


@dataclass
class InputResolver:
    """Finds what the instances of a graph read, as far as it is known while a plan is made.

    `manifests` holds those that exist, by node; the planner adds to it.
    """

    graph: Graph
    store: Store
    manifests: dict[str, Manifest]
    keys: dict[str, str | None] = field(default_factory=dict)
    """Keys of the instances that were planned."""
    _milestones: dict[str, list[Milestone]] = field(default_factory=dict)
    _checkpoints: dict[str, dict[str, Manifest]] = field(default_factory=dict)
    _labels: dict[str, list[str]] = field(default_factory=dict)
    """Labels of the turns of an instance that repeats over checkpoints."""

    def without(self, names: Collection[str]) -> InputResolver:
        """One that must look again for these instances and turns, and knows all others."""

        def kept(known: Mapping[str, T]) -> dict[str, T]:
            return {name: value for name, value in known.items() if name not in names}

        return InputResolver(
            self.graph,
            self.store,
            kept(self.manifests),
            kept(self.keys),
            kept(self._milestones),
            kept(self._checkpoints),
            kept(self._labels),
        )

    def expand(self, instance: Instance) -> list[Instance]:
        """The turns of an instance that repeats over checkpoints.

        The instance itself if it does not repeat over checkpoints, or they are not known yet.
        """
        if instance.over is None:
            return [_map_sources(instance, self._expand_source)]
        labels = self._list_turns(instance.over)
        if labels is None:
            return [instance]
        self._labels[instance.name] = labels
        return [self._make_turn(instance, label) for label in labels]

    def waits_for(self, instance: Instance) -> tuple[str, ...]:
        """Names of the inputs of an instance that do not exist yet, each once."""
        sources = chain.from_iterable(instance.inputs.values())
        missing = [source.name for source in sources if self.find(source) is None]
        return tuple(dict.fromkeys(name for name in missing if name is not None))

    def find(self, source: Source) -> Manifest | None:
        """The artifact of a source, if it exists. UsageError for one that will never exist."""
        if source.manifest is not None:
            return source.manifest
        assert source.node is not None
        if source.at == EACH:
            return None
        if source.at is None:
            return self.manifests.get(source.node)
        milestones = self._list_milestones(source.node)
        if milestones is None:
            return None
        labels = [milestone.label for milestone in milestones]
        if source.at not in labels:
            what = f"{source.node} commits no checkpoint '{source.at}'"
            raise UsageError(f"{what}{did_you_mean(source.at, labels)}", where=source.name)
        if source.at == labels[-1]:
            return self.manifests.get(source.node)
        manifest = self._load_committed(source.node).get(source.at)
        if manifest is None and source.node in self.manifests:
            raise UsageError(
                f"'{source.node}' has ended, and its checkpoint {source.at} does not exist",
                where=source.name,
                hint=f"it was collected, or never made; ingot run --force {source.node} makes it",
            )
        return manifest

    def _list_turns(self, node: str) -> list[str] | None:
        """Labels of a node's checkpoints; of a finished run, those that exist.

        None while they are not known.
        """
        milestones = self._list_milestones(node)
        if milestones is None:
            return None
        *before, last = [milestone.label for milestone in milestones]
        if node in self.manifests:
            before = [label for label in before if label in self._load_committed(node)]
        return [*before, last]

    def _list_milestones(self, node: str) -> list[Milestone] | None:
        """Where a node commits, its end last; None while its inputs do not exist."""
        if node not in self._milestones:
            instance = self.graph.instances[node]
            if self.waits_for(instance):
                return None
            inputs = {
                role: [
                    Input.from_manifest(self.store, manifest, source.output, full_check=False)
                    for source in sources
                    if (manifest := self.find(source)) is not None
                ]
                for role, sources in instance.inputs.items()
            }
            milestones = instance.stage.milestones(instance.parsed_config, inputs)
            self._milestones[node] = list(milestones)
        return self._milestones[node]

    def _load_committed(self, node: str) -> dict[str, Manifest]:
        """The whole checkpoints that a node has committed, by label.

        CorruptArtifact for a damaged one of a finished run: no step would make it again.
        """
        if node not in self._checkpoints:
            key, stage = self.keys.get(node), self.graph.instances[node].stage.name
            entries = list_interims(self.store, stage, key) if key is not None else []
            whole = {}
            for entry in entries:
                artifact = find_committed(self.store, stage, entry.key)
                if artifact.damage is not None and node in self.manifests:
                    raise CorruptArtifact(
                        f"checkpoint {entry.label} is damaged: {artifact.damage}",
                        where=node,
                        hint=f"ingot run --force {node} makes it again",
                    )
                if artifact.whole is not None:
                    whole[entry.label] = artifact.whole
            self._checkpoints[node] = whole
        return self._checkpoints[node]

    def _make_turn(self, instance: Instance, label: str) -> Instance:
        """One turn: `each` is the checkpoint of this label, or the turn of a step that read it."""

        def select(source: Source) -> list[Source]:
            if source.at == EACH:
                return [replace(source, at=label)]
            repeated = self.graph.instances.get(source.node or "")
            if source.node in self._labels and repeated and repeated.over == instance.over:
                return [replace(source, node=f"{repeated.step}[{label}]")]
            return self._expand_source(source)

        turn = _map_sources(instance, select)
        return replace(turn, name=f"{instance.step}[{label}]", label=label, over=None)

    def _expand_source(self, source: Source) -> list[Source]:
        """A source that repeats over checkpoints as all its turns; any other as it is."""
        if source.node is None or source.node not in self._labels:
            return [source]
        step = self.graph.instances[source.node].step
        return [replace(source, node=f"{step}[{label}]") for label in self._labels[source.node]]


def _map_sources(instance: Instance, select: Callable[[Source], list[Source]]) -> Instance:
    """An instance with each source replaced by those that `select` returns for it."""
    inputs = {
        role: tuple(chain.from_iterable(map(select, sources)))
        for role, sources in instance.inputs.items()
    }
    return replace(instance, inputs=inputs)
