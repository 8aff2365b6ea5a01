"""What a report is about: the steps of a run, or an artifact and its ancestors, with their figures.

The figures of a step come from its stage's page; a page that cannot be made says why.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from typing import Any, Literal

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import CorruptArtifact, IngotError, InputError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Ref, Store, layout
from artifacts_schema.store.lease import Record, process_is_gone
from artifacts_schema.store.runs import Run, RunStep, find_run, recorded_recipes
from artifacts_schema.store.store import ancestors
from flows.report.display import format_duration, one_line
from stages.engine.page import (
    Artifact,
    Figure,
    TextFigure,
    make_page,
    make_summary,
    make_table,
)
from stages.engine.protocol import stage_named, stage_names

Name = tuple[str, str]
"""(stage, key)."""
State = Literal[
    "given", "made", "reused", "waiting", "running", "failed", "stopped", "collected", "corrupt"
]
"""`given`: an artifact from outside of the run, such as a snapshot. `collected`: removed by gc."""


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
    def name(self) -> tuple[str, str | None]:
        """Stage and key of its artifact."""
        return self.stage, self.key

    @property
    def anchor(self) -> str:
        """Its anchor in the page, different for every instance."""
        return "step-" + re.sub(r"[^A-Za-z0-9-]", lambda c: f"_{ord(c[0]):x}_", self.instance)


@dataclass(frozen=True)
class Subject:
    """Everything that one side of a report is made from. Steps are in order, sources first."""

    name: str
    title: str
    store: Store
    steps: tuple[Step, ...]
    run: Run | None = None
    remarks: tuple[str, ...] = field(default=())

    @property
    def own(self) -> list[Step]:
        """Its steps, without artifacts from outside."""
        return [step for step in self.steps if step.state != "given"]

    @property
    def made(self) -> list[Step]:
        """Its own steps whose artifact exists."""
        return [step for step in self.own if step.manifest is not None]

    @property
    def state(self) -> str:
        """The state of the run, in a word."""
        if self.run is not None:
            return "interrupted" if self.was_killed else self.run.state
        return "done" if len(self.made) == len(self.own) else "incomplete"

    @property
    def was_killed(self) -> bool:
        """Whether the record says "running", but its process on this machine is gone."""
        run = self.run
        if run is None or run.state != "running":
            return False
        return process_is_gone(Record("", run.machine, run.process, run.process_started))

    def find_instance(self, reference: InputRef) -> str | None:
        """The step that made an input; None if it is of none."""
        return next((step.instance for step in self.steps if step.name == reference.name), None)


def find_subject(store: Store, text: str) -> Subject:
    """The subject of `text`: a recipe (its newest run), `recipe@id`, a ref, or a key.

    A recipe without a recorded run is assembled from the names `recipe/…`. UsageError with the
    nearest name if nothing has this name.
    """
    run = find_run(store, text)
    if run is not None:
        return _from_run(store, run)
    if store.ref(text.partition(":")[0].removeprefix("@")) is None:
        named = store.refs(f"{text}/")
        if named:
            return _from_refs(store, text, named)
        if not _is_hex(text.removeprefix("@").partition(":")[0]):
            known = {*store.refs(), *recorded_recipes(store)}
            known |= {name.partition("/")[0] for name in known}
            raise UsageError(
                f"no recipe, name or key '{text}'{did_you_mean(text, known)}", where=store.url
            )
    manifest, _ = store.resolve(text)
    return _from_artifact(store, text, manifest)


def _is_hex(text: str) -> bool:
    return len(text) >= 6 and set(text) <= set("0123456789abcdef")


def _from_run(store: Store, run: Run) -> Subject:
    steps = [_from_record(store, step) for step in run.steps]
    inputs = _input_steps(store, steps, {key: name for name, key in run.snapshots.items()})
    return Subject(run.name, run.recipe, store, _linked([*inputs, *steps]), run)


def _from_record(store: Store, step: RunStep) -> Step:
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


def _from_refs(store: Store, recipe: str, named: Mapping[str, Ref]) -> Subject:
    steps = [
        _stored_step(store, name.removeprefix(f"{recipe}/"), (ref.stage, ref.key), "made")
        for name, ref in named.items()
    ]
    steps = [*_input_steps(store, steps, {}), *_sources_first(steps)]
    remark = f"No record of a run is here: this is what the names {recipe}/… point at now."
    return Subject(recipe, recipe, store, _linked(steps), None, (remark,))


def _input_steps(store: Store, steps: Sequence[Step], names: Mapping[str, str]) -> list[Step]:
    """The artifacts that the steps read and none of them made; `names` by key."""
    own = {step.name for step in steps}
    manifests = [step.manifest for step in steps if step.manifest is not None]
    read = dict.fromkeys(r.name for manifest in manifests for r in manifest.references)
    outside = [name for name in read if name not in own]
    if not outside:
        return []
    instances, inputs = {step.instance for step in steps}, []
    for name, default in _instances(store, outside, near="").items():
        instance = names.get(name[1], default)
        instance = instance if instance not in instances else f"{instance} {short(name[1])}"
        inputs.append(_stored_step(store, instance, name, "given"))
    return inputs


def _stored_step(store: Store, instance: str, name: Name, state: State) -> Step:
    """A step with the artifact called `name`, in `state` if that can be read."""
    manifest, problem = _manifest(store, name)
    if manifest is None:
        state = "corrupt" if problem else "collected"
    return Step(instance, *name, state, manifest, error=problem)


def _from_artifact(store: Store, text: str, manifest: Manifest) -> Subject:
    """An artifact after all its ancestors, collected ones included."""
    names = [manifest.name, *(edge.parent for edge in ancestors(store, manifest))]
    instances = _instances(store, list(dict.fromkeys(names)), near=text.partition("/")[0])
    steps = [_stored_step(store, instances[name], name, "made") for name in instances]
    return Subject(text, text, store, _linked(_sources_first(steps)))


def _instances(store: Store, names: Sequence[Name], near: str) -> dict[Name, str]:
    """Titles of artifacts: a name under the recipe `near`, else any name, else stage and key."""
    ref_names: dict[Name, str] = {}
    refs = store.refs().items()
    for text, ref in sorted(refs, key=lambda item: not item[0].startswith(f"{near}/")):
        ref_names.setdefault((ref.stage, ref.key), text.partition("/")[2] or text)
    titles: dict[Name, str] = {}
    for name in names:
        text = ref_names.get(name) or f"{name[0]} {short(name[1])}"
        titles[name] = text if text not in titles.values() else f"{text} {short(name[1])}"
    return titles


def _manifest(store: Store, name: Name) -> tuple[Manifest | None, str | None]:
    try:
        return store.manifest(*name), None
    except IngotError as error:
        return None, str(error)


def _linked(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Steps with the instances that their manifests say they were made of."""
    steps = list(steps)
    by_name = {step.name: step.instance for step in steps}
    known = {step.instance for step in steps}

    def parents(step: Step) -> Iterable[str]:
        if step.manifest is None:
            return (name for name in step.parents if name in known)
        return (by_name[r.name] for r in step.manifest.references if r.name in by_name)

    return tuple(replace(step, parents=tuple(dict.fromkeys(parents(step)))) for step in steps)


def _sources_first(steps: Sequence[Step]) -> list[Step]:
    """Each step after those it was made of; otherwise by depth, then by name."""
    depth = longest_paths({step.instance: step.parents for step in _linked(steps)})

    def order(step: Step) -> tuple[int, str, str]:
        finished = step.manifest.telemetry.get("finished", "") if step.manifest else ""
        return depth[step.instance], str(finished), step.instance

    return sorted(steps, key=order)


def longest_paths(parents: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Edges on the longest way to each node of a graph (node → its parents) from a source."""
    depth: dict[str, int] = {}
    for name in TopologicalSorter(parents).static_order():
        if name in parents:
            depth[name] = 1 + max((depth.get(parent, -1) for parent in parents[name]), default=-1)
    return {name: depth[name] for name in parents}


log = logging.getLogger(__name__)

TITLE, NOTE = 200, 2_000
"""Characters of a figure's title, and of its note or any other line about a step."""
_ABSENT = {
    "waiting": "Not made yet: it waits for its turn.",
    "running": "It ran when the record was written; nothing is committed yet.",
    "failed": "It failed, so nothing was committed.",
    "stopped": "It was stopped; finished parts are kept, and the next run continues from there.",
    "collected": "Its artifact was collected and is not in the store any more.",
    "corrupt": "Its manifest cannot be read.",
}


@dataclass(frozen=True)
class Page:
    """The figures of a step, and a line about missing ones."""

    step: Step
    figures: tuple[Figure, ...] = ()
    problem: str = ""

    @property
    def lead(self) -> str:
        """The first line of the stage's docstring; empty if the stage is not installed here."""
        if self.step.stage not in stage_names():
            return ""
        try:
            text = stage_named(self.step.stage).__doc__ or ""
        except IngotError:
            return ""
        return text.strip().partition("\n")[0]


def load_pages(subject: Subject) -> list[Page]:
    """A page for each step, in order. An error in one page is logged and affects only that page."""
    return [_page(subject, step) for step in subject.steps]


def _page(subject: Subject, step: Step) -> Page:
    if step.manifest is None:
        return Page(step, problem=explain_absence(step))
    if step.stage not in stage_names():
        return Page(step)
    artifact = Artifact(subject.store, step.manifest)
    try:
        stage = stage_named(step.stage)
        figures: Sequence[Figure] = make_page(stage, artifact) or make_summary(stage, artifact)
        return Page(step, tuple(_with_heading(figure) for figure in figures))
    except CorruptArtifact as error:
        return Page(step, problem=_shorten(f"This page could not be made: {error}"))
    except InputError as error:
        what = "Its input was collected, so its page is not shown"
        return Page(step, problem=_shorten(f"{what}: {error}"))
    except Exception as error:
        log.exception("the page of %s could not be made", step.instance)
        what = f"{type(error).__name__}: {error}"
        return Page(step, problem=_shorten(f"This page could not be made: {what}"))


def sample_text(subject: Subject, step: Step) -> TextFigure | None:
    """The first text of a step's summary; None if it has none, or cannot be made."""
    if step.manifest is None or step.stage not in stage_names():
        return None
    try:
        figures = make_summary(stage_named(step.stage), Artifact(subject.store, step.manifest))
    except Exception:
        log.exception("the summary of %s could not be made", step.instance)
        return None
    return next((figure for figure in figures if isinstance(figure, TextFigure)), None)


def _with_heading(figure: Figure) -> Figure:
    """A figure whose title is one line and whose note is no more than a paragraph."""
    return replace(figure, title=one_line(figure.title, TITLE), note=_shorten(figure.note))


def _shorten(text: str) -> str:
    return text if len(text) <= NOTE else f"{text[:NOTE]}…"


def explain_absence(step: Step) -> str:
    """Why a step has no artifact, in a sentence or two."""
    text = _ABSENT.get(step.state, "Nothing is committed.")
    if step.state == "waiting" and step.parents:
        text = f"Not made yet: it waits for {', '.join(step.parents)}."
    return _shorten(f"{text} {step.error}") if step.error else text


def artifact_facts(manifest: Manifest) -> list[tuple[str, str]]:
    """The line below a step's name: key, version, time, size."""
    telemetry = manifest.telemetry
    facts = [("key", manifest.key[:12]), ("version", str(manifest.version))]
    if isinstance(telemetry.get("seconds"), int | float):
        facts.append(("took", format_duration(telemetry["seconds"])))
    if telemetry.get("finished"):
        facts.append(("finished", f"{format_minute(str(telemetry['finished']))} UTC"))
    facts.append(("stored", f"{manifest.size / 1e6:,.2f} MB"))
    return facts


def step_gist(step: Step) -> str:
    """`84 in, 67 out, 12.5 s`: what a made step did, in a few words."""
    if step.manifest is None:
        return ""
    account, seconds = step.manifest.conservation, step.manifest.telemetry.get("seconds")
    parts = [f"{account.records_in:,} in, {account.out:,} out"] if account is not None else []
    if isinstance(seconds, int | float):
        parts.append(format_duration(seconds))
    return ", ".join(parts)


def artifact_tables(subject: Subject, manifest: Manifest) -> list[Figure]:
    """Config, inputs, outputs and counts of an artifact, as figures like any other."""
    config = tuple(_flatten_config("", manifest.identity))
    inputs = tuple(
        (role, subject.find_instance(r) or r.stage, r.output, r.kind, r.digest[:12])
        for role, references in manifest.inputs.items()
        for r in references
    )
    outputs = tuple(
        (name, o.kind, o.count, o.rows or None, o.bytes / 1e6, o.digest[:12])
        for name, o in manifest.outputs.items()
    )
    tables = [
        make_table("Config, where not the default", "field | value", config),
        make_table("Inputs", "role | from | output | kind | digest", inputs),
        make_table("Outputs", "output | kind | files:, | rows:, | MB:,.2f | digest", outputs),
        make_table("Counts", "count | value:,", manifest.counts.items()),
    ]
    return [table for table in tables if table.rows]


def _flatten_config(path: str, value: Any) -> Iterable[tuple[str, str]]:
    """Nested config as `a.b.0.c` and JSON; short lists stay on one line."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flatten_config(f"{path}.{name}" if path else str(name), inner)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for index, inner in enumerate(value):
            yield from _flatten_config(f"{path}.{index}", inner)
    elif path:
        yield path, value if isinstance(value, str) else text


def payload_location(subject: Subject, manifest: Manifest) -> str:
    """Path or URL of the folder that holds an artifact's payload."""
    return subject.store.backend.full(layout.payload(*manifest.name, manifest.attempt))


def format_minute(time: str) -> str:
    """A manifest's time to the minute: `2026-11-21 19:22`."""
    return time.replace("T", " ").removesuffix("Z")[:16]
