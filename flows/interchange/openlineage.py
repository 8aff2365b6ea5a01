"""OpenLineage events (spec 2-0-2) of runs, from what manifests and run records say.

A job is a step of a recipe in a store, its run one start of it; the recipe's own run is the parent.
A dataset is an output of an artifact, named by where it lies, as other tools name the files there:
namespace `s3://BUCKET`, `gs://BUCKET` or `file`, name the path; its version is the digest. Run ids
follow from the run record, so that an export repeats the ids of what was sent while it ran.

An event names no path of a machine but the store's own, and no text of an error goes out with a
credential, with a query of a URL, or with another path than a file's name. Configs stay here: they
may name places. Facets are those of the spec; Ingot has none of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from artifacts_schema.errors import CorruptArtifact, IngotError, UsageError
from artifacts_schema.kinds import KINDS, Table
from artifacts_schema.manifest import WITHOUT_PROGRAM, InputRef, Manifest
from artifacts_schema.store import Store, layout
from artifacts_schema.store.runs import Run, RunStep, load_runs, recorded_recipes
from stages.engine.protocol import stage_named

EVENT_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
FACETS = {
    "columnLineage": ("ColumnLineageDatasetFacet", "1-2-0"),
    "documentation": ("DocumentationDatasetFacet", "1-1-0"),
    "errorMessage": ("ErrorMessageRunFacet", "1-0-1"),
    "inputStatistics": ("InputStatisticsInputDatasetFacet", "1-0-0"),
    "jobDocumentation": ("DocumentationJobFacet", "1-1-0"),
    "jobType": ("JobTypeJobFacet", "2-0-4"),
    "outputStatistics": ("OutputStatisticsOutputDatasetFacet", "1-0-2"),
    "parent": ("ParentRunFacet", "1-2-0"),
    "processing_engine": ("ProcessingEngineRunFacet", "1-1-1"),
    "schema": ("SchemaDatasetFacet", "1-2-0"),
    "tags": ("TagsDatasetFacet", "1-0-0"),
    "version": ("DatasetVersionDatasetFacet", "1-0-1"),
}
"""Name → definition and version in the spec."""

IDS = ("doc_id", "conversation_id", "preference_id")
"""Columns that pass from an input to every table about its rows as they are."""
DECIDED = ("duplicate_class", "linked_classes")
"""Columns of documents that `filter` sets; they come from no column of the same name."""
MESSAGE_CHARACTERS = 2_000

_LOGIN = re.compile(r"([a-z][a-z0-9+.-]*://)[^\s/@]+@", re.IGNORECASE)
_QUERY = re.compile(r"([a-z][a-z0-9+.-]*://[^\s?#]+)[?#][^\s]*", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w:/.~-])~?(?:/[^\s/:'\"(),;]+)+/([^\s/:'\"(),;]*)")


def producer() -> str:
    """The URI of this program and its version."""
    return f"urn:ingot:{version('ingot')}"


def scrub(text: str, store: str) -> str:
    """A text without logins and queries of URLs, and without folders but those of the store."""
    text = _QUERY.sub(r"\1", _LOGIN.sub(r"\1", text))
    own = os.path.abspath(store) if "://" not in store else store

    def shorten(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith(f"{own}/") else f"…/{match[1]}"

    return _PATH.sub(shorten, text)[:MESSAGE_CHARACTERS]


def format_time(when: datetime) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(utc: str) -> datetime:
    """The time that a record or manifest holds."""
    return datetime.strptime(utc, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def facet(name: str, /, **values: Any) -> dict[str, Any]:
    """A facet of the spec."""
    definition, number = FACETS[name]
    url = f"https://openlineage.io/spec/facets/{number}/{definition}.json#/$defs/{definition}"
    return {"_producer": producer(), "_schemaURL": url, **values}


def job_namespace(store: Store) -> str:
    """The namespace of a store's jobs: its URL."""
    return store.url if "://" in store.url else f"file://{os.path.abspath(store.url)}"


def dataset_name(store: Store, path: str) -> dict[str, str]:
    """Namespace and name of a folder of the store, as OpenLineage names files."""
    if "://" not in store.url:
        return {"namespace": "file", "name": f"{os.path.abspath(store.url)}/{path}"}
    parts = urlsplit(store.url)
    name = f"{parts.path}/{path}".strip("/")
    return {"namespace": f"{parts.scheme}://{parts.netloc}", "name": name}


@dataclass(frozen=True)
class JobRun:
    """One run of a job; `parent` is the recipe's run where a step has one."""

    namespace: str
    name: str
    id: str
    description: str
    parent: JobRun | None = None

    def event(
        self,
        type: str,
        when: datetime,
        *,
        inputs: Sequence[dict[str, Any]] = (),
        outputs: Sequence[dict[str, Any]] = (),
        error: str | None = None,
    ) -> dict[str, Any]:
        """The event that the run is at START, COMPLETE, FAIL or ABORT."""
        engine = facet("processing_engine", version=version("ingot"), name="Ingot")
        facets = {"processing_engine": engine}
        if self.parent is not None:
            above = {"namespace": self.parent.namespace, "name": self.parent.name}
            facets["parent"] = facet("parent", run={"runId": self.parent.id}, job=above)
        if error is not None:
            facets["errorMessage"] = facet(
                "errorMessage", message=error, programmingLanguage="PYTHON"
            )
        kind = "STAGE" if self.parent is not None else "RECIPE"
        job_type = facet("jobType", processingType="BATCH", integration="INGOT", jobType=kind)
        job: dict[str, Any] = {"jobType": job_type}
        if self.description:
            job["documentation"] = facet("jobDocumentation", description=self.description)
        return {
            "eventType": type,
            "eventTime": format_time(when),
            "producer": producer(),
            "schemaURL": EVENT_SCHEMA,
            "run": {"runId": self.id, "facets": facets},
            "job": {"namespace": self.namespace, "name": self.name, "facets": job},
            "inputs": list(inputs),
            "outputs": list(outputs),
        }


def recipe_run(store: Store, recipe: str, run: str, description: str = "") -> JobRun:
    """The run `run` of a recipe."""
    namespace = job_namespace(store)
    id = str(uuid5(NAMESPACE_URL, f"{namespace}/{recipe}@{run}"))
    return JobRun(namespace, recipe, id, description)


def step_run(parent: JobRun, instance: str, stage: str, start: int = 1) -> JobRun:
    """The run of a step in a recipe's run; `start` counts how often that run started it."""
    again = f"/{start}" if start > 1 else ""
    id = str(uuid5(NAMESPACE_URL, f"{parent.id}/{instance}{again}"))
    name = f"{parent.name}.{instance}"
    return JobRun(parent.namespace, name, id, describe_stage(stage), parent)


def describe_stage(name: str) -> str:
    """The first line of a stage's docstring; nothing for one that is not installed."""
    try:
        return (stage_named(name).__doc__ or "").strip().partition("\n")[0]
    except UsageError:
        return ""


@dataclass
class Datasets:
    """Outputs of a store's artifacts as datasets."""

    store: Store
    _manifests: dict[tuple[str, str], Manifest | None] = field(default_factory=dict)

    def inputs(self, references: Mapping[str, Sequence[InputRef]]) -> list[dict[str, Any]]:
        """What a step reads, each once, with what was in it."""
        datasets = {}
        for reference in (one for role in references.values() for one in role):
            manifest = self._manifest(reference)
            if manifest is None or reference.output not in manifest.outputs:
                path = layout.payload(*reference.name)  # Collected: its attempt is not known.
                dataset = {**dataset_name(self.store, path), "facets": {}}
            else:
                dataset = self._dataset(manifest, reference.output)
                counts = _statistics(manifest, reference.output)
                dataset["inputFacets"] = {"inputStatistics": facet("inputStatistics", **counts)}
            datasets[dataset["name"]] = dataset
        return list(datasets.values())

    def outputs(self, manifest: Manifest) -> list[dict[str, Any]]:
        """What a step has made, with what is in it and where its columns come from."""
        datasets = []
        for name, output in manifest.outputs.items():
            dataset = self._dataset(manifest, name)
            counts = _statistics(manifest, name)
            dataset["outputFacets"] = {"outputStatistics": facet("outputStatistics", **counts)}
            if fields := self._column_lineage(output.kind, manifest.references):
                dataset["facets"]["columnLineage"] = facet("columnLineage", fields=fields)
            datasets.append(dataset)
        return datasets

    def _manifest(self, reference: InputRef) -> Manifest | None:
        if reference.name not in self._manifests:
            try:
                self._manifests[reference.name] = self.store.manifest(*reference.name)
            except CorruptArtifact:
                return None
        return self._manifests[reference.name]

    def _dataset(self, manifest: Manifest, output: str) -> dict[str, Any]:
        content = manifest.outputs[output]
        tags = {"kind": content.kind, "stage": manifest.stage, "key": manifest.key}
        facets = {
            "version": facet("version", datasetVersion=content.digest),
            "tags": facet(
                "tags",
                tags=[
                    {"key": key, "value": value, "source": "INGOT"} for key, value in tags.items()
                ],
            ),
        }
        if (kind := KINDS.get(content.kind)) is not None:
            facets["documentation"] = facet("documentation", description=kind.description)
            if kind.tables:
                facets["schema"] = facet("schema", fields=_schema(kind.tables))
        path = self.store.payload(manifest, output)
        return {**dataset_name(self.store, path), "facets": facets}

    def _column_lineage(
        self, kind: str, references: Iterable[InputRef]
    ) -> dict[str, dict[str, Any]]:
        """Columns of tables of `kind` by name, from the columns of the inputs."""
        columns = _columns(kind)
        fields: dict[str, list[dict[str, Any]]] = {}
        for reference in dict.fromkeys(references):
            manifest = self._manifest(reference)
            if manifest is None:
                continue
            place = dataset_name(self.store, self.store.payload(manifest, reference.output))
            for column in columns & _columns(reference.kind):
                is_id = column in IDS
                if is_id or (reference.kind == kind and column not in DECIDED):
                    subtype = "IDENTITY" if is_id else "TRANSFORMATION"
                    change = {"type": "DIRECT", "subtype": subtype}
                    fields.setdefault(column, []).append(
                        {**place, "field": column, "transformations": [change]}
                    )
        return {column: {"inputFields": fields[column]} for column in sorted(fields)}


def _columns(kind: str) -> set[str]:
    tables = KINDS[kind].tables.values() if kind in KINDS else ()
    return {column.name for table in tables for column in table.columns}


def _schema(tables: Mapping[str, Table]) -> list[dict[str, Any]]:
    """The columns of the one table of a kind; of several, each as a field that has its columns."""
    fields = {
        pattern: [
            {
                "name": column.name,
                "type": column.type.removesuffix("?"),
                "description": column.description,
            }
            for column in table.columns
        ]
        for pattern, table in tables.items()
    }
    if len(fields) == 1:
        return next(iter(fields.values()))
    return [{"name": name, "type": "table", "fields": columns} for name, columns in fields.items()]


def _statistics(manifest: Manifest, output: str) -> dict[str, int]:
    content = manifest.outputs[output]
    counts = {"size": content.bytes, "fileCount": content.count}
    if content.rows or any(file.rows is not None for file in content.files):
        counts["rowCount"] = content.rows
    return counts


def error_text(error: BaseException, store: Store) -> str:
    """What an error says, without where it says so and what to do: those name paths."""
    text = error.what if isinstance(error, IngotError) else str(error) or type(error).__name__
    return scrub(text, store.url)


# Export ------------------------------------------------------------------------------------------


def export_events(store: Store, manifests: Iterable[Manifest]) -> list[dict[str, Any]]:
    """START and COMPLETE of what made each artifact, and of the recipes' runs, in order of time.

    Artifacts that no program made, such as snapshots, are datasets only. What no run record names
    was made by its stage alone: a job by the name of the stage.
    """
    datasets, records = Datasets(store), _records(store)
    events, runs = [], {}
    for manifest in manifests:
        finished = manifest.telemetry.get("finished")
        if manifest.stage in WITHOUT_PROGRAM or not isinstance(finished, str):
            continue
        run = _job_run(store, manifest, records)
        interim = manifest.interim_of
        if (record := records.get(interim.run if interim else manifest.key)) is not None:
            runs[record[0].name] = record[0]
        end = parse_time(finished)
        seconds = manifest.telemetry.get("seconds")
        begin = end - timedelta(seconds=seconds if isinstance(seconds, int | float) else 0)
        inputs = datasets.inputs(manifest.inputs)
        events.append(run.event("START", begin, inputs=inputs))
        outputs = datasets.outputs(manifest)
        events.append(run.event("COMPLETE", end, inputs=inputs, outputs=outputs))
    for one in runs.values():
        events += _recipe_events(store, one)
    return sorted(events, key=lambda event: (event["eventTime"], event["eventType"] != "START"))


def _recipe_events(store: Store, run: Run) -> Iterator[dict[str, Any]]:
    parent = recipe_run(store, run.recipe, run.id)
    yield parent.event("START", parse_time(run.started))
    types = {"done": "COMPLETE", "failed": "FAIL", "stopped": "ABORT"}
    if run.state in types:
        error = scrub(run.error, store.url) if run.error else None
        yield parent.event(types[run.state], parse_time(run.updated), error=error)


def _job_run(
    store: Store, manifest: Manifest, records: Mapping[str, tuple[Run, RunStep]]
) -> JobRun:
    interim = manifest.interim_of
    record = records.get(interim.run if interim else manifest.key)
    if record is None:
        id = str(uuid5(NAMESPACE_URL, f"{job_namespace(store)}/{manifest.key}/{manifest.attempt}"))
        return JobRun(job_namespace(store), manifest.stage, id, describe_stage(manifest.stage))
    run, step = record
    own = step_run(recipe_run(store, run.recipe, run.id), step.instance, step.stage)
    if interim is None:
        return own
    # What a run committed on its way is a run of its own: it completed before the other did.
    id = str(uuid5(NAMESPACE_URL, f"{own.id}/{interim.at}"))
    return JobRun(own.namespace, f"{own.name}@", id, own.description, own.parent)


def _records(store: Store) -> dict[str, tuple[Run, RunStep]]:
    """Key → the first run that made it, and the step."""
    made: dict[str, tuple[Run, RunStep]] = {}
    for recipe in recorded_recipes(store):
        try:
            for run in load_runs(store, recipe):
                for step in run.steps:
                    if step.state == "made" and step.key is not None:
                        first = made.get(step.key)
                        if first is None or run.id < first[0].id:
                            made[step.key] = run, step
        except CorruptArtifact:
            continue  # Of that recipe's older runs, jobs have the names of their stages.
    return made
