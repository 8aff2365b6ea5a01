"""What the stages themselves say is wrong with a plan, before anything runs.

Each step that would run is checked by its stage (`Stage.check_plan`) against the configs of what it
reads and, where these artifacts exist already, their manifests. All problems are raised together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from flows.recipe.graph import Graph, Instance, Source
from flows.recipe.recipe import Problems
from stages.engine.protocol import Stage
from stages.engine.registry import stage_named
from stages.engine.upstream import Inputs, Upstream


def check_steps(
    graph: Graph, store: Store, names: Collection[str], made: Mapping[str, Manifest] | None = None
) -> dict[str, tuple[str, ...]]:
    """Check the instances called `names`; returns the notes of each that has some.

    `made` are the manifests that exist, by node. UsageError lists every problem.
    """
    problems, notes = Problems(str(graph.recipe.path)), {}
    upstreams = _Upstreams(graph, store, made or {})
    for name, instance in graph.instances.items():
        if name not in names:
            continue
        try:
            told = instance.stage.check_plan(upstreams.config(instance), upstreams.inputs(instance))
        except UsageError as error:
            where = f"{instance.where}: config.{error.where}" if error.where else instance.where
            problems.add(error.what, where=where, hint=error.hint)
        else:
            if told:
                notes[name] = tuple(told)
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
    given = {role: [_stored(store, one) for one in refs] for role, refs in inputs.items()}
    try:
        return stage.check_plan(stage.Config.parse(config, where=where), given) or ()
    except UsageError as error:
        place = f"{where}: {error.where}" if error.where else where
        raise UsageError(error.what, where=place, hint=error.hint) from None


@dataclass
class _Upstreams:
    graph: Graph
    store: Store
    made: Mapping[str, Manifest]
    _configs: dict[str, Any] = field(default_factory=dict)
    _inputs: dict[str, Inputs] = field(default_factory=dict)

    def config(self, instance: Instance) -> Any:
        """The parsed config of an instance."""
        if instance.name not in self._configs:
            config = instance.stage.Config.parse(instance.config, where=instance.where)
            self._configs[instance.name] = instance.stage.complete(config)
        return self._configs[instance.name]

    def inputs(self, instance: Instance) -> Inputs:
        """What an instance reads."""
        if instance.name not in self._inputs:
            self._inputs[instance.name] = {
                role: tuple(self._upstream(source) for source in sources)
                for role, sources in instance.inputs.items()
            }
        return self._inputs[instance.name]

    def _upstream(self, source: Source) -> Upstream:
        if source.manifest is not None:
            return _of_manifest(self.store, source.manifest, source.output, source.kind)
        assert source.node is not None, "a source is a node or a stored artifact"
        # Of a checkpoint on the way the run's own manifest is not the one that is read.
        manifest = self.made.get(source.node) if source.at is None else None
        instance = self.graph.instances.get(source.node)
        if instance is None:
            return Upstream(source.node, source.kind, source.output, manifest=manifest)
        return Upstream(
            source.name or source.node,
            source.kind,
            source.output,
            instance.stage,
            self.config(instance),
            manifest,
            lambda: self.inputs(instance),
        )


def _of_manifest(store: Store, manifest: Manifest, output: str, kind: str) -> Upstream:
    """An artifact that exists; its config is not known where its stage cannot read it any more."""
    stage, config = _producer(manifest)

    def read_inputs() -> Inputs:
        return {
            role: tuple(_stored(store, one) for one in given)
            for role, given in manifest.inputs.items()
        }

    name = f"{manifest.stage} {short(manifest.key)}"
    return Upstream(name, kind, output, stage, config, manifest, read_inputs)


def _producer(manifest: Manifest) -> tuple[type[Stage] | None, Any]:
    """The stage and its parsed config: neither of a snapshot or of a stage that is not installed,
    no config where an older version of the stage wrote another."""
    try:
        stage = stage_named(manifest.stage)
    except UsageError:
        return None, None
    try:
        return stage, stage.Config.parse(manifest.config, where=manifest.stage)
    except UsageError:
        return stage, None


def _stored(store: Store, reference: InputRef) -> Upstream:
    """What a reference names; without a manifest where that is gone or cannot be read."""
    try:
        manifest = store.manifest(reference.stage, reference.key)
    except IngotError:
        manifest = None
    if manifest is None:
        name = f"{reference.stage} {short(reference.key)}"
        return Upstream(name, reference.kind, reference.output)
    return _of_manifest(store, manifest, reference.output, reference.kind)
