"""What an artifact says about itself. A manifest's presence in the store is the commit.

A stored manifest is checked whenever it is read. Its checksum covers every field but `telemetry`
and `attempt`; its key follows from stage, version, identity and inputs; each output's digest
follows from its file list. Somebody who edits a field and writes a new checksum as well is found
only where the key or a digest covers the field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.identity import (
    SCHEMA_VERSION,
    artifact_key,
    canonical_sha256,
    files_digest,
    interim_key,
    short,
)

Reproducible = Literal["bytes", "numerics"]

WITHOUT_PROGRAM = ("snapshot", "forget")
"""Stage names of artifacts that no program made: their identity says what they hold."""

_NOT_CHECKED = ("telemetry", "attempt", "checksum")
_HINT = "run its step again, or `ingot verify --repair`: it is made again and then replaced"


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

    @property
    def name(self) -> tuple[str, str]:
        """Stage and key of the artifact."""
        return self.stage, self.key


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
    """An artifact that a run committed before its end.

    `at` is the run's own count of how far it was (of training: the training step), `label` names
    that for people; `outputs` are digests by name, none while the artifact is only announced.
    """

    at: int
    label: str
    key: str
    outputs: dict[str, str] = Field(default_factory=dict)


class InterimOf(_Record):
    """The run (its key) that committed an interim artifact, and how far it was.

    `history` is what the run had decided by then and what bears on the bytes; it enters the key.
    """

    run: str
    at: int
    label: str
    history: tuple[Any, ...] = ()


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

    @property
    def name(self) -> tuple[str, str]:
        """Stage and key, by which the store knows the artifact."""
        return self.stage, self.key

    @property
    def references(self) -> list[InputRef]:
        """The inputs of all roles, in order."""
        return [reference for role in self.inputs.values() for reference in role]

    @property
    def size(self) -> int:
        """Bytes of all outputs."""
        return sum(output.bytes for output in self.outputs.values())

    def output(self, name: str) -> Output:
        """The output called `name`; CorruptArtifact if the artifact has none."""
        if name not in self.outputs:
            raise CorruptArtifact(
                f"the artifact has no output '{name}'",
                where=f"{self.stage} {short(self.key)}",
                hint="`ingot verify` says whether its manifest was changed",
            )
        return self.outputs[name]

    def to_json(self) -> bytes:
        """The manifest as it is stored, with its checksum."""
        value = json.loads(self.model_dump_json())
        text = json.dumps({**value, "checksum": _checksum(value)}, indent=1, ensure_ascii=False)
        return text.encode()

    @classmethod
    def load(cls, raw: bytes, *, where: str) -> Manifest:
        """Parse and check a stored manifest; CorruptArtifact names what does not hold."""
        manifest = cls._parse(raw, where)
        for what in manifest._contradictions():
            raise CorruptArtifact(what, where=where, hint=f"the manifest was edited; {_HINT}")
        return manifest

    @classmethod
    def _parse(cls, raw: bytes, where: str) -> Manifest:
        """Shape, schema version and checksum."""
        try:
            value = json.loads(raw)
            if not isinstance(value, dict):
                raise ValueError("not a JSON object")
            schema, stated = value.get("schema_version"), value.pop("checksum", None)
            if isinstance(schema, int) and schema != SCHEMA_VERSION:
                raise CorruptArtifact(
                    f"of store schema {schema}, this Ingot reads {SCHEMA_VERSION}",
                    where=where,
                    hint="use the Ingot version that wrote it, or a new store",
                )
            manifest = cls.model_validate(value)
            checksum = _checksum(value)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            what = f"not a manifest: {place}: {first['msg']}"
            raise CorruptArtifact(what, where=where, hint=_HINT) from None
        except (ValueError, TypeError, RecursionError) as error:
            raise CorruptArtifact(f"not a manifest: {error}", where=where, hint=_HINT) from None
        if stated != checksum:
            raise CorruptArtifact(
                "the manifest is not what its checksum says", where=where, hint=_HINT
            )
        return manifest

    def _contradictions(self) -> list[str]:
        """What the fields say against each other."""
        contradictions = []
        for name, output in self.outputs.items():
            files = ((f.path, f.bytes, f.sha256) for f in output.files)
            if files_digest(files) != output.digest:
                contradictions.append(f"the digest of output '{name}' does not match its file list")
        if self.key != self._expected_key():
            contradictions.append(
                "its key does not follow from its stage, version, config and inputs"
            )
        account = self.conservation
        if account and account.records_in != account.out + sum(account.dropped.values()):
            contradictions.append("its conservation does not add up")
        if self.stage not in WITHOUT_PROGRAM and not _holds(self.config, self.identity):
            contradictions.append("its config is not the one that its identity names")
        return contradictions

    def _expected_key(self) -> str:
        digests = {role: [r.digest for r in references] for role, references in self.inputs.items()}
        key = artifact_key(self.stage, self.version, self.identity, digests)
        one = self.interim_of
        if one is None:
            return key
        return interim_key(key, one.at, one.history) if one.run == key else ""


def _checksum(value: Mapping[str, Any]) -> str:
    """sha256 of the canonical JSON of a manifest's fields, without those that may differ."""
    return canonical_sha256(
        {name: item for name, item in value.items() if name not in _NOT_CHECKED}
    )


def _holds(config: Any, identity: Any) -> bool:
    """Whether a config has every value that its identity names; the rest are defaults."""
    if isinstance(config, Mapping) and isinstance(identity, Mapping):
        return all(name in config and _holds(config[name], identity[name]) for name in identity)
    if isinstance(config, list | tuple) and isinstance(identity, list | tuple):
        return len(config) == len(identity) and all(map(_holds, config, identity))
    return bool(config == identity)
