"""What a report is about: the steps of a run, or an artifact and everything it was made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.run import Run, RunStep
from artifacts_schema.store import Ref, Store
from artifacts_schema.store.lease import Record, process_is_gone
from artifacts_schema.store.lineage import ancestors
from artifacts_schema.store.runs import find_run, recipes_run

Name = tuple[str, str]
"""(stage, key)."""
State = Literal[
    "given", "made", "reused", "waiting", "running", "failed", "stopped", "collected", "corrupt"
]
"""`given`: an artifact from outside of the run, such as a snapshot. `collected`: it was removed."""


@dataclass(frozen=True)
class Step:
    """One step: its artifact, or why there is none. `parents` are instances of this subject."""

    instance: str
    stage: str
    key: str | None
    state: State
    manifest: Manifest | None = None
    parents: tuple[str, ...] = ()
    cause: str = ""
    error: str | None = None

    @property
    def anchor(self) -> str:
        """Its place in the page: another one for every instance."""
        plain = (c.isascii() and (c.isalnum() or c == "-") for c in self.instance)
        shown = zip(self.instance, plain, strict=True)
        return "step-" + "".join(c if kept else f"_{ord(c):x}_" for c, kept in shown)


@dataclass(frozen=True)
class Subject:
    """Everything that one side of a report is made from. Steps stand sources first."""

    name: str
    title: str
    store: Store
    steps: tuple[Step, ...]
    run: Run | None = None
    remarks: tuple[str, ...] = field(default=())

    @property
    def own(self) -> list[Step]:
        """Its steps, without what was given from outside."""
        return [step for step in self.steps if step.state != "given"]

    @property
    def made(self) -> list[Step]:
        """Its own steps whose artifact is there."""
        return [step for step in self.own if step.manifest is not None]

    @property
    def state(self) -> str:
        """How the run stands, in a word or two."""
        if self.run is not None:
            return "interrupted" if self.was_killed else self.run.state
        return "done" if len(self.made) == len(self.own) else "incomplete"

    @property
    def was_killed(self) -> bool:
        """Whether the record says "running" while its process, of this machine, is gone."""
        run = self.run
        if run is None or run.state != "running":
            return False
        return process_is_gone(Record("", run.machine, run.process, run.process_started))

    def step(self, instance: str) -> Step | None:
        """The step of that instance."""
        return next((step for step in self.steps if step.instance == instance), None)


def find_subject(store: Store, text: str) -> Subject:
    """What `text` means: a recipe (its newest run), `recipe@id`, a ref, or a key.

    A recipe whose runs left no record is put together from the names `recipe/…`. UsageError with
    the nearest name if `text` means nothing here.
    """
    run = find_run(store, text)
    if run is not None:
        return _of_run(store, run)
    if store.ref(text.partition(":")[0].removeprefix("@")) is None:
        named = store.refs(f"{text}/")
        if named:
            return _of_refs(store, text, named)
        if not _is_hex(text.removeprefix("@").partition(":")[0]):
            known = {*store.refs(), *recipes_run(store)}
            known |= {name.partition("/")[0] for name in known}
            raise UsageError(
                f"no recipe, name or key '{text}'{did_you_mean(text, known)}", where=store.url
            )
    manifest, _ = store.resolve(text)
    return _of_artifact(store, text, manifest)


def _is_hex(text: str) -> bool:
    return len(text) >= 6 and set(text) <= set("0123456789abcdef")


def _of_run(store: Store, run: Run) -> Subject:
    steps = [_recorded(store, step) for step in run.steps]
    given = _given(store, steps, {key: name for name, key in run.snapshots.items()})
    return Subject(run.name, run.recipe, store, _linked([*given, *steps]), run)


def _recorded(store: Store, step: RunStep) -> Step:
    known = Step(
        step.instance, step.stage, step.key, step.state,
        parents=step.waits_for, cause=step.cause, error=step.error,
    )  # fmt: skip
    if step.key is None:
        return known
    manifest, problem = _manifest(store, (step.stage, step.key))
    if problem:
        return replace(known, state="corrupt", error=problem)
    if manifest is None and step.state in ("made", "reused"):
        return replace(known, state="collected")
    return replace(known, manifest=manifest)


def _of_refs(store: Store, recipe: str, named: Mapping[str, Ref]) -> Subject:
    steps = []
    for name, ref in named.items():
        manifest, problem = _manifest(store, (ref.stage, ref.key))
        state: State = "made" if manifest else "corrupt" if problem else "collected"
        instance = name.removeprefix(f"{recipe}/")
        steps.append(Step(instance, ref.stage, ref.key, state, manifest, error=problem))
    steps = [*_given(store, steps, {}), *_sources_first(steps)]
    remark = f"No record of a run is here: this is what the names {recipe}/… point at now."
    return Subject(recipe, recipe, store, _linked(steps), None, (remark,))


def _given(store: Store, steps: Sequence[Step], names: Mapping[str, str]) -> list[Step]:
    """What the steps read that none of them made; `names` by key."""
    own = {(step.stage, step.key) for step in steps}
    read = [
        (reference.stage, reference.key)
        for step in steps
        if step.manifest is not None
        for references in step.manifest.inputs.values()
        for reference in references
    ]
    outside = [name for name in dict.fromkeys(read) if name not in own]
    if not outside:
        return []
    taken, given = {step.instance for step in steps}, []
    for name, called in _instances(store, outside, near="").items():
        instance = names.get(name[1], called)
        instance = instance if instance not in taken else f"{instance} {short(name[1])}"
        manifest, problem = _manifest(store, name)
        state: State = "given" if manifest else "corrupt" if problem else "collected"
        given.append(Step(instance, *name, state, manifest, error=problem))
    return given


def _of_artifact(store: Store, text: str, manifest: Manifest) -> Subject:
    """An artifact after all its ancestors; those that were collected are named."""
    names = [(manifest.stage, manifest.key)]
    names += [edge.parent for edge in ancestors(store, manifest)]
    called = _instances(store, list(dict.fromkeys(names)), near=text.partition("/")[0])
    steps = []
    for name, instance in called.items():
        found, problem = _manifest(store, name)
        state: State = "made" if found else "corrupt" if problem else "collected"
        steps.append(Step(instance, *name, state, found, error=problem))
    return Subject(text, text, store, _linked(_sources_first(steps)))


def _instances(store: Store, names: Sequence[Name], near: str) -> dict[Name, str]:
    """What to call artifacts: by a name under the recipe `near`, else any, else stage and key."""
    called: dict[Name, str] = {}
    refs = store.refs().items()
    for text, ref in sorted(refs, key=lambda item: not item[0].startswith(f"{near}/")):
        called.setdefault((ref.stage, ref.key), text.partition("/")[2] or text)
    found: dict[Name, str] = {}
    for name in names:
        text = called.get(name) or f"{name[0]} {short(name[1])}"
        found[name] = text if text not in found.values() else f"{text} {short(name[1])}"
    return found


def _manifest(store: Store, name: Name) -> tuple[Manifest | None, str | None]:
    try:
        return store.manifest(*name), None
    except IngotError as error:
        return None, str(error)


def _parents(step: Step, by_name: Mapping[Name, str]) -> tuple[str, ...]:
    given = step.manifest.inputs.values() if step.manifest else ()
    found = [by_name.get((r.stage, r.key)) for references in given for r in references]
    return tuple(dict.fromkeys(name for name in found if name))


def _linked(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Steps with the instances that their manifests say they were made of."""
    listed = list(steps)
    by_name = {(s.stage, s.key): s.instance for s in listed if s.key is not None}
    known = {s.instance for s in listed}
    return tuple(
        replace(
            step,
            parents=_parents(step, by_name)
            if step.manifest is not None
            else tuple(name for name in step.parents if name in known),
        )
        for step in listed
    )


def _sources_first(steps: Sequence[Step]) -> list[Step]:
    """Each step after those it was made of; otherwise by depth, then by name."""
    linked = {step.instance: step for step in _linked(steps)}
    depth: dict[str, int] = {}
    while len(depth) < len(linked):
        for name, step in linked.items():
            if name not in depth and all(parent in depth for parent in step.parents):
                depth[name] = 1 + max((depth[parent] for parent in step.parents), default=-1)
    finished = {s.instance: _finished(s) for s in steps}
    return sorted(steps, key=lambda s: (depth[s.instance], finished[s.instance], s.instance))


def _finished(step: Step) -> str:
    return str(step.manifest.telemetry.get("finished", "")) if step.manifest else ""
