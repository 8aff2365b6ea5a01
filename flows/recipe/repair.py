"""Find damaged artifacts among those that a plan reuses, and make damaged artifacts again.

An artifact is made from the config and inputs in its manifest. If the key follows from them, they
are what was run, even if other parts of the manifest are damaged. The damaged artifact stays until
its replacement is committed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain

from artifacts_schema.errors import CorruptArtifact, InputError, UsageError
from artifacts_schema.identity import canonical_sha256, short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store, layout
from artifacts_schema.store.verify import Problem, record_damage
from flows.recipe.dispatch import Dispatch, start_here
from flows.recipe.execute import run_step
from flows.recipe.graph import DependencyCycle, sort_topologically
from flows.recipe.observers import Observer
from flows.recipe.pipeline import Pipeline
from flows.recipe.plan import Plan, plan_spec
from flows.recipe.snapshots import OUTPUT, STAGE, SnapshotFile, commit_snapshot, pin_files
from stages.engine.protocol import stage_named
from stages.engine.provenance import check_artifact
from stages.engine.sources import KnownFiles
from stages.engine.spec import StageSpec

ArtifactName = tuple[str, str]

_UNREADABLE = (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError)
"""How reading a damaged manifest fails; FileNotFoundError if it was collected meanwhile."""
_HINT = "run the recipe that made it: the plan says corrupt, and the run makes it again"


def sort_parents_first(store: Store, names: Sequence[ArtifactName]) -> list[ArtifactName]:
    """Damaged artifacts in the order in which they can be made again."""
    reads: dict[ArtifactName, list[ArtifactName]] = {name: [] for name in names}
    for name in names:
        with suppress(*_UNREADABLE):
            inputs = json.loads(store.backend.read(layout.manifest(*name)))["inputs"]
            parents = [(r["stage"], r["key"]) for refs in inputs.values() for r in refs]
            reads[name] = [parent for parent in parents if parent in reads]
    try:
        return sort_topologically(reads)
    except DependencyCycle:  # An edited manifest may name anything.
        return list(names)


def repair(
    store: Store,
    stage: str,
    key: str,
    *,
    dispatch: Dispatch = start_here,
    observer: Observer | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Manifest:
    """Make a damaged artifact again; returns the manifest of its replacement.

    Raises InputError if the manifest does not say how or the input bytes are gone, otherwise what
    the stage raises; the damaged artifact stays in these cases.
    """
    if stage == STAGE:
        return _remake_snapshot(store, key)
    step = plan_spec(_rebuild_spec(store, stage, key), "corrupt")
    manifest = run_step(store, step, dispatch=dispatch, observer=observer, stopping=stopping)
    if problems := check_artifact(store, manifest):
        record_damage(store, manifest, problems)
        raise CorruptArtifact(problems[0].what, where=problems[0].path, hint="check the disk")
    return manifest


def check_reused(pipeline: Pipeline, plan: Plan) -> list[tuple[str, Problem]]:
    """Read all bytes that a plan would reuse, and record the damage; (step, problem) of each.

    Raises CorruptArtifact for a damaged artifact that the recipe names by a reference, since no
    step of the recipe would make it again.
    """

    def check(manifest: Manifest) -> list[Problem]:
        problems = check_artifact(pipeline.store, manifest)
        record_damage(pipeline.store, manifest, problems)
        return problems

    problems = [
        (step.instance, problem)
        for step in plan.steps
        if step.action == "reuse" and step.manifest is not None
        for problem in check(step.manifest)
    ]
    for instance in pipeline.graph.instances.values():
        for source in chain.from_iterable(instance.inputs.values()):
            if source.manifest is None:
                continue
            for problem in check(source.manifest):
                raise CorruptArtifact(
                    problem.what,
                    where=f"{instance.name}: {problem.path}",
                    hint=f"ingot verify --repair {short(source.manifest.key)}",
                )
    return problems


def _rebuild_spec(store: Store, stage: str, key: str) -> StageSpec:
    """The spec that was run under `key`, from its manifest, however damaged that is."""
    where = layout.manifest(stage, key)
    try:
        value = json.loads(store.backend.read(where))
        inputs = {
            role: [InputRef.model_validate(ref) for ref in refs]
            for role, refs in value["inputs"].items()
        }
        configs = [value["identity"], value["config"]]
        interim = value.get("interim_of")
    except _UNREADABLE:
        what = "its manifest is gone or cannot be parsed"
        raise InputError(what, where=where, hint=_HINT) from None
    if interim:
        raise InputError(
            f"only the training run that committed it makes it again: {interim}",
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


def _remake_snapshot(store: Store, key: str) -> Manifest:
    """Commit a snapshot again from its recorded locations, if the files are unchanged."""
    where = layout.manifest(STAGE, key)
    hint = "pin its files again: ingot snapshot add, or run the recipe that names them"
    try:
        value = json.loads(store.backend.read(where))
        identity = value["identity"]
        places = store.locations(value["outputs"][OUTPUT]["digest"])
    except _UNREADABLE:
        what = "its manifest is gone or cannot be parsed"
        raise InputError(what, where=where, hint=hint) from None
    found = [SnapshotFile(name, places[name]) for name in sorted(places)]
    files = pin_files(KnownFiles(store), found)
    if not files or identity != {"name": identity.get("name"), "files": canonical_sha256(files)}:
        raise InputError("its files were moved or changed", where=where, hint=hint)
    return commit_snapshot(store, identity["name"], files)
