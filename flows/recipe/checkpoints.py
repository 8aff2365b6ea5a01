"""What a step commits on its way, in a plan: those that stand, and those that are still to come.

`for_each: {checkpoints: pretrain}` repeats a step over them, and `pretrain@1.6M` names one. Which
there will be follows from the config and inputs of the step that commits them, so a plan knows them
as soon as those inputs stand; until then one line stands for all. A run that is over says itself
what it committed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import CorruptArtifact, UsageError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.damage import find_committed
from artifacts_schema.store.interim import interims
from flows.recipe.graph import EACH, Graph, Instance, Source
from stages.engine.inputs import Input
from stages.engine.interim import Milestone


@dataclass
class Turns:
    """What the instances of a graph read, as far as a plan in the making knows it.

    `made` are the manifests that stand, by node; it grows while the plan is made.
    """

    graph: Graph
    store: Store
    made: dict[str, Manifest]
    _keys: dict[str, str | None] = field(default_factory=dict)
    _milestones: dict[str, list[Milestone]] = field(default_factory=dict)
    _standing: dict[str, dict[str, Manifest]] = field(default_factory=dict)
    _labels: dict[str, list[str]] = field(default_factory=dict)
    """Of an instance that repeats over checkpoints: the turns that it was found to have."""

    def planned(self, instance: str, key: str | None) -> None:
        """Note the key of an instance that was planned."""
        self._keys[instance] = key

    def of(self, instance: Instance) -> list[Instance]:
        """The instances that one of the graph stands for: a turn for each checkpoint.

        Itself, where it does not repeat over checkpoints or these are not known yet.
        """
        if instance.over is None:
            return [_mapped(instance, self._all_turns)]
        labels = self._turns_over(instance.over)
        if labels is None:
            return [instance]
        self._labels[instance.name] = labels
        return [self._turn(instance, label) for label in labels]

    def waits_for(self, instance: Instance) -> tuple[str, ...]:
        """Names of what an instance reads and does not stand yet, each once."""
        sources = [source for given in instance.inputs.values() for source in given]
        missing = [source.name for source in sources if self.given(source) is None]
        return tuple(dict.fromkeys(name for name in missing if name is not None))

    def given(self, source: Source) -> Manifest | None:
        """The artifact that a source means, if it stands. UsageError for one that never will."""
        if source.manifest is not None:
            return source.manifest
        assert source.node is not None
        if source.at == EACH:
            return None
        if source.at is None:
            return self.made.get(source.node)
        known = self._known(source.node)
        if known is None:
            return None
        labels = [one.label for one in known]
        if source.at not in labels:
            what = f"{source.node} commits no checkpoint '{source.at}'"
            raise UsageError(f"{what}{did_you_mean(source.at, labels)}", where=source.name)
        if source.at == labels[-1]:
            return self.made.get(source.node)
        found = self._committed(source.node).get(source.at)
        if found is None and source.node in self.made:
            raise UsageError(
                f"'{source.node}' is over, and its checkpoint {source.at} does not stand",
                where=source.name,
                hint=f"it was collected, or never made; ingot run --force {source.node} makes it",
            )
        return found

    def _turns_over(self, node: str) -> list[str] | None:
        """Labels of the turns over a node's checkpoints; of a run that is over, those that stand.

        None while they are not known.
        """
        known = self._known(node)
        if known is None:
            return None
        *before, last = [one.label for one in known]
        if node in self.made:
            before = [label for label in before if label in self._committed(node)]
        return [*before, last]

    def _known(self, node: str) -> list[Milestone] | None:
        """Where a node commits, its end last; None while its inputs do not stand."""
        if node not in self._milestones:
            instance = self.graph.instances[node]
            if self.waits_for(instance):
                return None
            inputs = {
                role: [self._input(one) for one in given] for role, given in instance.inputs.items()
            }
            where = f"{instance.where}: config"
            config = instance.stage.complete(
                instance.stage.Config.parse(instance.config, where=where)
            )
            self._milestones[node] = list(instance.stage.milestones(config, inputs))
        return self._milestones[node]

    def _input(self, source: Source) -> Input:
        manifest = self.given(source)
        assert manifest is not None
        return Input.of(self.store, manifest, source.output, full_check=False)

    def _committed(self, node: str) -> dict[str, Manifest]:
        """What a node has committed on its way and stands whole, by label.

        CorruptArtifact for a damaged one of a run that is over: no step would make it again.
        """
        if node not in self._standing:
            key, stage = self._keys.get(node), self.graph.instances[node].stage.name
            entries = interims(self.store, stage, key) if key is not None else []
            whole = {}
            for one in entries:
                found = find_committed(self.store, stage, one.key)
                if found.damage is not None and node in self.made:
                    raise CorruptArtifact(
                        f"checkpoint {one.label} is damaged: {found.damage}",
                        where=node,
                        hint=f"ingot run --force {node} makes it again",
                    )
                if found.whole is not None:
                    whole[one.label] = found.whole
            self._standing[node] = whole
        return self._standing[node]

    def _turn(self, instance: Instance, label: str) -> Instance:
        """One turn: `each` is the checkpoint of this label, or what was made of that."""

        def chosen(source: Source) -> list[Source]:
            if source.at == EACH:
                return [replace(source, at=label)]
            repeated = self.graph.instances.get(source.node or "")
            if source.node in self._labels and repeated and repeated.over == instance.over:
                return [replace(source, node=f"{repeated.step}[{label}]")]
            return self._all_turns(source)

        found = _mapped(instance, chosen)
        return replace(found, name=f"{instance.step}[{label}]", label=label, over=None)

    def _all_turns(self, source: Source) -> list[Source]:
        """A source that repeats over checkpoints as all its turns; any other as it is."""
        if source.node is None or source.node not in self._labels:
            return [source]
        step = self.graph.instances[source.node].step
        return [replace(source, node=f"{step}[{label}]") for label in self._labels[source.node]]


def _mapped(instance: Instance, chosen: Callable[[Source], list[Source]]) -> Instance:
    """An instance with each source replaced by what `chosen` gives for it."""
    inputs = {
        role: tuple(found for source in sources for found in chosen(source))
        for role, sources in instance.inputs.items()
    }
    return replace(instance, inputs=inputs)
