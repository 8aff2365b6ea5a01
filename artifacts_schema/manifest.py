"""What an artifact says about itself. A manifest's presence in the store is the commit."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.identity import SCHEMA_VERSION, files_digest

Reproducible = Literal["bytes", "numerics"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class File(_Record):
    """One payload file: path within its output, size in bytes, sha256, rows of a table."""

    path: str
    bytes: int
    sha256: str
    rows: int | None = None


class Output(_Record):
    """One named output: its kind, digest and files."""

    kind: str
    kind_version: int
    digest: str
    files: tuple[File, ...]

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(file.rows or 0 for file in self.files)


class InputRef(_Record):
    """An output of another artifact, given to a role. Only `digest` bears identity."""

    stage: str
    key: str
    output: str
    kind: str
    digest: str


class Code(_Record):
    """Which program made it: digest of the stage's modules, versions of what matters to it."""

    digest: str
    libraries: dict[str, str]


class Conservation(_Record):
    """`records_in = out + sum(dropped)`, checked before the commit."""

    records_in: int
    out: int
    dropped: dict[str, int] = Field(default_factory=dict)


class Interim(_Record):
    """An artifact that a run committed while it went on.

    `at` is the run's own count of how far it was (of training: the training step), `label` names
    that for people; `outputs` are digests by name, none while the artifact is only announced.
    """

    at: int
    label: str
    key: str
    outputs: dict[str, str] = Field(default_factory=dict)


class InterimOf(_Record):
    """The run (its key) that committed an artifact on its way, and where it was."""

    run: str
    at: int
    label: str


class Manifest(_Record):
    """Everything about one artifact; equal runs differ in `telemetry` and `attempt` alone."""

    schema_version: int = SCHEMA_VERSION
    stage: str
    version: int
    key: str
    reproducible: Reproducible
    config: dict[str, Any]
    identity: dict[str, Any]
    inputs: dict[str, tuple[InputRef, ...]]
    outputs: dict[str, Output]
    attempt: str
    code: Code
    layout: dict[str, Any] = Field(default_factory=dict)
    counts: dict[str, int | float] = Field(default_factory=dict)
    conservation: Conservation | None = None
    samples: dict[str, list[str]] = Field(default_factory=dict)
    telemetry: dict[str, Any] = Field(default_factory=dict)
    interims: tuple[Interim, ...] = ()
    """What the run committed before its end."""
    interim_of: InterimOf | None = None
    """Of what was committed so: by which run."""

    def output(self, name: str) -> Output:
        """The output called `name`; KeyError if the artifact has none."""
        return self.outputs[name]

    @classmethod
    def load(cls, raw: bytes, *, where: str) -> Manifest:
        """Parse and check a stored manifest: shape, schema version, every digest over its files."""
        try:
            manifest = cls.model_validate_json(raw)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise CorruptArtifact(
                f"not a manifest: {place or 'JSON'}: {first['msg']}",
                where=where,
                hint="remove the file and run the step again",
            ) from None
        if manifest.schema_version != SCHEMA_VERSION:
            raise CorruptArtifact(
                f"of store schema {manifest.schema_version}, this Ingot reads {SCHEMA_VERSION}",
                where=where,
                hint="use the Ingot version that wrote it, or a new store",
            )
        for name, output in manifest.outputs.items():
            files = ((f.path, f.bytes, f.sha256) for f in output.files)
            if files_digest(files) != output.digest:
                raise CorruptArtifact(
                    f"the digest of output '{name}' does not match its file list",
                    where=where,
                    hint="the manifest was edited; remove it and run the step again",
                )
        return manifest
