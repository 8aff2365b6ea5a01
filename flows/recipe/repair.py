"""Making damaged artifacts again from what the store itself knows of them.

A manifest says config and inputs. Where the key follows from them, they are what was run, whatever
else of the manifest is damaged. The damaged artifact stays until its replacement is committed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from artifacts_schema.errors import CorruptArtifact, InputError, UsageError
from artifacts_schema.identity import sha256_of, short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store, layout
from artifacts_schema.store.damage import record_damage
from artifacts_schema.store.verify import Problem
from flows.recipe.execute import Dispatch, run_step, start_here
from flows.recipe.observer import Observer
from flows.recipe.pipeline import Pipeline
from flows.recipe.plan import Plan, PlannedStep
from flows.recipe.snapshots import OUTPUT, STAGE, FoundFile, commit_snapshot, pinned
from stages.engine.checking import check_artifact
from stages.engine.registry import stage_named
from stages.engine.spec import StageSpec

Name = tuple[str, str]

_UNREADABLE = (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError)
"""How reading a damaged manifest fails; one that was collected since it was found is gone."""
_HINT = "run the recipe that made it: the plan says corrupt, and the run makes it again"


def sort_parents_first(store: Store, names: Sequence[Name]) -> list[Name]:
    """Damaged artifacts in the order in which they can be made again."""
    waiting, ordered = set(names), list[Name]()
    parents = {name: _parents(store, name) for name in names}

    def visit(name: Name) -> None:
        waiting.discard(name)
        for parent in parents[name]:
            if parent in waiting:
                visit(parent)
        ordered.append(name)

    for name in names:
        if name in waiting:
            visit(name)
    return ordered


def repair(
    store: Store,
    stage: str,
    key: str,
    *,
    dispatch: Dispatch = start_here,
    observer: Observer | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Manifest:
    """Make a damaged artifact again; returns what was committed in its place.

    Raises InputError if the store does not know how, or if the bytes that it was made of are gone;
    otherwise what the stage raises. The damaged artifact is still there then.
    """
    if stage == STAGE:
        return _snapshot_again(store, key)
    spec = _spec(store, stage, key)
    step = PlannedStep(stage, stage, stage, "run", "corrupt", key, spec)
    manifest = run_step(store, step, dispatch=dispatch, observer=observer, stopping=stopping)
    if problems := check_artifact(store, manifest):
        record_damage(store, manifest, problems)
        raise CorruptArtifact(problems[0].what, where=problems[0].path, hint="check the disk")
    return manifest


def check_reused(pipeline: Pipeline, plan: Plan) -> list[tuple[str, Problem]]:
    """Read all bytes that a plan would reuse, and write down what is damaged.

    Returns the problems with the step of each. Raises CorruptArtifact for an artifact that a recipe
    names by a reference: no step of it would make that again.
    """
    problems = []
    for step in plan.steps:
        if step.action == "reuse" and step.manifest is not None:
            problems += [(step.instance, one) for one in _checked(pipeline.store, step.manifest)]
    for instance in pipeline.graph.instances.values():
        for source in (one for given in instance.inputs.values() for one in given):
            if source.manifest is not None:
                for one in _checked(pipeline.store, source.manifest):
                    raise CorruptArtifact(
                        one.what,
                        where=f"{instance.name}: {one.path}",
                        hint=f"ingot verify --repair {short(source.manifest.key)}",
                    )
    return problems


def _checked(store: Store, manifest: Manifest) -> list[Problem]:
    problems = check_artifact(store, manifest)
    record_damage(store, manifest, problems)
    return problems


def _parents(store: Store, name: Name) -> list[Name]:
    try:
        value = json.loads(store.backend.read(layout.manifest(*name)))
        return [(r["stage"], r["key"]) for given in value["inputs"].values() for r in given]
    except _UNREADABLE:
        return []


def _spec(store: Store, stage: str, key: str) -> StageSpec:
    """What was run under `key`, from the manifest that stands, however damaged."""
    where = layout.manifest(stage, key)
    try:
        value = json.loads(store.backend.read(where))
        inputs = {
            role: [InputRef.model_validate(one) for one in given]
            for role, given in value["inputs"].items()
        }
        configs = [value["identity"], value["config"]]
        interim = value.get("interim_of")
    except _UNREADABLE:
        raise InputError(
            "its manifest is gone or cannot be parsed", where=where, hint=_HINT
        ) from None
    if interim:
        raise InputError(
            f"a training run committed it on its way, and only that run makes it again: {interim}",
            where=where,
            hint="ingot run RECIPE --force STEP",
        )
    for config in configs:
        try:
            spec = StageSpec.make(stage_named(stage), config, inputs, where=where)
        except UsageError:
            continue
        if spec.key == key:
            return spec
    raise InputError(
        "its key does not follow from its manifest and the installed stage",
        where=where,
        hint=f"the manifest was edited, or another version of the stage made it; {_HINT}",
    )


def _snapshot_again(store: Store, key: str) -> Manifest:
    """A snapshot from where its files lie now, if they are still the same."""
    where = layout.manifest(STAGE, key)
    hint = "pin its files again: ingot snapshot add, or run the recipe that names them"
    try:
        value = json.loads(store.backend.read(where))
        identity = value["identity"]
        places = store.locations(value["outputs"][OUTPUT]["digest"])
    except _UNREADABLE:
        raise InputError(
            "its manifest is gone or cannot be parsed", where=where, hint=hint
        ) from None
    files = pinned(store, [FoundFile(name, places[name]) for name in sorted(places)])
    if not files or identity != {"name": identity.get("name"), "files": sha256_of(files)}:
        raise InputError("its files are not where they were, or changed", where=where, hint=hint)
    return commit_snapshot(store, identity["name"], files)
