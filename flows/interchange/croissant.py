"""Croissant metadata (MLCommons, version 1.0) of an artifact: JSON-LD that describes its files.

Every file is a FileObject with its sha256; the files of a pattern of the kind are a FileSet, beside
the metadata; a FileSet of Parquet is a RecordSet, whose fields and types are those of the first
file's schema. What was done to the data is told by the manifests: sources, records kept and dropped
by each stage, and the licences that pages named. What nobody but its publisher knows is passed in
or left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import pyarrow.parquet as pq

from artifacts_schema.errors import UsageError
from artifacts_schema.file_table import File
from artifacts_schema.identity import short
from artifacts_schema.kinds import KINDS, Kind
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.artifacts import RefsByArtifact, load_ancestry, refs_by_artifact
from stages.engine.inputs import Input
from stages.export.croissant import CONFORMS_TO, CONTEXT, PARQUET, describe_column

DATA_KINDS = (
    *("documents", "conversations", "preferences", "benchmarks", "token_shards", "token_dataset"),
)
"""Kinds of outputs that are described where none is named."""
KEYS = {"documents": "doc_id", "conversations": "conversation_id", "preferences": "preference_id"}
"""Column that identifies a row, by kind."""
ENCODINGS = {".parquet": PARQUET, ".json": "application/json"}
OTHER_ENCODING = "application/octet-stream"
MOST_LICENCES = 20


@dataclass(frozen=True)
class Publication:
    """What the publisher of a data set adds. `url` is where its files will lie."""

    url: str | None = None
    licences: tuple[str, ...] = ()
    creators: tuple[str, ...] = ()
    cite_as: str | None = None

    @property
    def missing(self) -> list[str]:
        """Properties that Croissant asks for and nobody has set; a date is known at that day."""
        values = {
            "license": self.licences,
            "creator": self.creators,
            "url": self.url,
            "citeAs": self.cite_as,
        }
        return [*(name for name, value in values.items() if not value), "datePublished"]


def describe_artifact(
    store: Store, manifest: Manifest, output: str | None, publication: Publication
) -> dict[str, Any]:
    """The Croissant metadata of an output, or of all outputs that hold data.

    Names of files are relative to the folder that holds the outputs' folders, unless there is a
    `url`. UsageError if there is nothing to describe.
    """
    names = [output] if output else _data_outputs(manifest)
    refs = refs_by_artifact(store)
    outputs = [_Output(store, manifest, name, publication.url) for name in names]
    digests = "".join(manifest.outputs[name].digest for name in names)
    title = (refs.get(manifest.name) or [f"{manifest.stage}-{short(manifest.key)}"])[0]
    value: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": re.sub(r"[^A-Za-z0-9._-]+", "-", title).strip("-"),
        "description": describe_history(store, manifest, refs),
        "version": f"1.0.0+{short(digests)}",
        "identifier": [manifest.outputs[name].digest for name in names],
        "isBasedOn": list(_sources(store, manifest)),
        "distribution": [part for one in outputs for part in one.distribution],
        "recordSet": [record for one in outputs for record in one.record_sets()],
    }
    if isinstance(made := manifest.telemetry.get("finished"), str):
        value["dateCreated"] = made[:10]
    if publication.url:
        value["url"] = publication.url
    if publication.licences:
        value["license"] = list(publication.licences)
    if publication.creators:
        value["creator"] = [{"@type": "sc:Organization", "name": n} for n in publication.creators]
    if publication.cite_as:
        value["citeAs"] = publication.cite_as
    return {name: item for name, item in value.items() if item not in ([], None)}


def _data_outputs(manifest: Manifest) -> list[str]:
    names = [
        name
        for name, output in manifest.outputs.items()
        if output.kind in DATA_KINDS and output.count
        and (output.rows or not all(file.path.endswith(".parquet") for file in output.files))
    ]  # fmt: skip
    if not names:
        raise UsageError(
            "it has no output of documents, examples or tokens",
            where=f"{manifest.stage} {short(manifest.key)}",
            hint="name an output as REF:OUTPUT to describe what it has",
        )
    return names


@dataclass
class _Output:
    """One output: its files, and the record sets of its tables."""

    store: Store
    manifest: Manifest
    name: str
    url: str | None
    distribution: list[dict[str, Any]] = field(default_factory=list)
    _tables: list[tuple[str, str, File]] = field(default_factory=list)
    """Of each FileSet of Parquet files: its id, that of its record set, its first file."""

    def __post_init__(self) -> None:
        output = self.manifest.outputs[self.name]
        kind = KINDS.get(output.kind) or Kind(output.kind, "")
        rest = {file.path: file for file in output.files}
        self.distribution += map(self._file_object, output.files)
        for pattern in (*kind.tables, *kind.files):
            files = [file for path, file in rest.items() if fnmatchcase(path, pattern)]
            for file in files:
                del rest[file.path]
            if not files or (len(files) == 1 and pattern == files[0].path):
                continue
            is_table = pattern in kind.tables
            is_only = is_table and len(kind.tables) == 1
            id = self.name if is_only else f"{self.name}-{_slug(pattern)}"
            text = kind.files.get(pattern, kind.description)
            is_exact = sum(fnmatchcase(one.path, pattern) for one in output.files) == len(files)
            includes = [pattern] if is_exact else [file.path for file in files]
            self.distribution.append(self._file_set(f"{id}-files", includes, text))
            if is_table:
                self._tables.append((f"{id}-files", id, files[0]))

    def record_sets(self) -> Iterator[dict[str, Any]]:
        """A RecordSet for each FileSet of Parquet files."""
        output = self.manifest.outputs[self.name]
        kind = KINDS.get(output.kind)
        source = Input.from_manifest(self.store, self.manifest, self.name, full_check=False)
        for file_set, id, file in self._tables:
            with source.open_part(file.path) as opened:
                schema = pq.read_schema(opened)
            table = kind.table_for(file.path) if kind else None
            texts = {one.name: one.description for one in table.columns} if table else {}
            value: dict[str, Any] = {
                "@type": "cr:RecordSet",
                "@id": id,
                "name": id,
                "description": kind.description if kind else "",
                "field": [describe_column(id, file_set, column, texts) for column in schema],
            }
            if output.kind in KEYS:
                value["key"] = {"@id": f"{id}/{KEYS[output.kind]}"}
            yield value

    def _file_object(self, file: File) -> dict[str, Any]:
        path = f"{self.name}/{file.path}"
        return {
            "@type": "cr:FileObject",
            "@id": path,
            "name": path,
            "contentUrl": f"{self.url.rstrip('/')}/{path}" if self.url else path,
            "contentSize": f"{file.bytes} B",
            "encodingFormat": _encoding(file.path),
            "sha256": file.sha256,
        }

    def _file_set(self, id: str, includes: Sequence[str], text: str) -> dict[str, Any]:
        """Files beside the metadata: readers know no FileSet of single files behind URLs."""
        return {
            "@type": "cr:FileSet",
            "@id": id,
            "name": id,
            "description": text,
            "encodingFormat": _encoding(includes[0]),
            "includes": [f"{self.name}/{path}" for path in includes],
        }


def _slug(pattern: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", pattern.removesuffix(".parquet")).strip("-") or "tables"


def _encoding(path: str) -> str:
    return next((kind for end, kind in ENCODINGS.items() if path.endswith(end)), OTHER_ENCODING)


# History -----------------------------------------------------------------------------------------


def describe_history(store: Store, manifest: Manifest, refs: RefsByArtifact) -> str:
    """What was done to the data, a sentence a stage, sources first."""
    ancestry = list(load_ancestry(store, manifest).values())
    lines = [f"Made by Ingot, stage {manifest.stage}."]
    sources = ", ".join(one["name"] for one in _sources(store, manifest))
    if sources:
        lines.append(f"Made from, or compared with, the snapshots {sources}.")
    for one in ancestry:
        if (account := one.conservation) is not None:
            name = (refs.get(one.name) or [f"{one.stage} {short(one.key)}"])[0]
            dropped = ", ".join(f"{why} {count:,}" for why, count in account.dropped.items())
            more = f" (dropped: {dropped})" if dropped else ""
            lines.append(f"{name}: {account.records_in:,} in, {account.out:,} out{more}.")
    licences = _count_licences(store, ancestry)
    if licences:
        total = sum(licences.values())
        known = [(name, count) for name, count in licences.most_common() if name]
        counts = ", ".join(f"{name} {count:,}" for name, count in known[:MOST_LICENCES])
        rest = len(known) - MOST_LICENCES
        counts += f", and {rest} more" if rest > 0 else ""
        lines.append(
            f"Licences that the {total:,} documents read named, before any was dropped: "
            f"{counts or 'none'}; {licences[None]:,} named none."
        )
    return "\n".join(lines)


def _count_licences(store: Store, ancestry: Sequence[Manifest]) -> Counter[str | None]:
    """Documents of all `pages` tables above by the licence that they name."""
    counts: Counter[str | None] = Counter()
    for manifest in ancestry:
        for name, output in manifest.outputs.items():
            if output.kind != "pages" or manifest.interim_of is not None:
                continue
            for shard in Input.from_manifest(store, manifest, name, full_check=False).shards():
                column = shard.read(["licence"])["licence"]
                counts.update({v["values"]: v["counts"] for v in column.value_counts().to_pylist()})
    return counts


def _sources(store: Store, manifest: Manifest) -> Iterator[dict[str, str]]:
    """The snapshots that all was made from, by name and digest: where they lie is nobody's."""
    seen: set[str] = set()
    for one in load_ancestry(store, manifest).values():
        for reference in one.references:
            origin = store.manifest(*reference.name) if reference.kind == "snapshot" else None
            if origin is None or reference.digest in seen:
                continue
            seen.add(reference.digest)
            source = Input.from_manifest(store, origin, reference.output, full_check=False)
            name = source.read_json("snapshot.json")["name"]
            yield {"@type": "sc:CreativeWork", "name": name, "identifier": reference.digest}
