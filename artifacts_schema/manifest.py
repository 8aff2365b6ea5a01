"""What an artifact says about itself. A manifest's presence in the store is the commit.

A stored manifest is checked whenever it is read. Its checksum covers every field but `telemetry`
and `attempt`; its key follows from stage, version, identity and inputs; each output's digest
follows from its file list. Somebody who edits a field and writes a new checksum as well is found
only where the key or a digest covers the field.

The files of an artifact of many lie in a table beside the manifest (`file_table`), and are compared
with the digests when the table is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, ValidationError, model_serializer, model_validator

from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.file_table import File, FileTable, Record, TableReference, Totals
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

TABLE_SCHEMA = 3
"""Schema version of a manifest that refers to a file table. No key covers it."""
BLOCKS_SCHEMA = 4
"""Schema version of a manifest of files with tables of blocks, whether or not in a file table."""
_SCHEMAS = (SCHEMA_VERSION, TABLE_SCHEMA, BLOCKS_SCHEMA)

_TOTAL = re.compile(rb'"totals": \{\s*"count": (\d{1,12})')
_NOT_CHECKED = ("telemetry", "attempt", "checksum")
_HINT = "run its step again, or `ingot verify --repair`: it is made again and then replaced"


class Output(Record):
    """One named output: its kind, digest and files.

    It lists its files, or has their totals and finds them in the manifest's file table.
    """

    kind: str
    kind_version: int
    digest: str
    entries: tuple[File, ...] | None = Field(default=None, alias="files")
    totals: Totals | None = None
    _table: tuple[FileTable, str] | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        if (self.entries is None) == (self.totals is None):
            raise ValueError("an output has either a list of files or their totals")
        return self

    @model_serializer
    def _serialize(self) -> dict[str, Any]:
        head = {"kind": self.kind, "kind_version": self.kind_version, "digest": self.digest}
        if self.totals is not None:
            return {**head, "totals": self.totals.model_dump()}
        return {**head, "files": [file.model_dump() for file in self.files]}

    @property
    def files(self) -> tuple[File, ...]:
        """Every file, sorted by path; CorruptArtifact if the file table cannot be read.

        Their number, bytes and rows are known without reading that.
        """
        if self.entries is not None:
            return self.entries
        if self._table is None:
            raise ValueError("the manifest was not opened by a store: it has no file table")
        table, name = self._table
        return table.files(name)

    @property
    def count(self) -> int:
        """Number of files."""
        return len(self.entries) if self.entries is not None else self._sum.count

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return self._sum.bytes

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return self._sum.rows

    @property
    def _sum(self) -> Totals:
        return self.totals or Totals.from_files(self.files)


class InputRef(Record):
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


class Code(Record):
    """Which program made it: digest of the stage's modules, versions of what matters to it."""

    digest: str
    libraries: dict[str, str]


class Conservation(Record):
    """`records_in = out + sum(dropped)`, checked before the commit."""

    records_in: int
    out: int
    dropped: dict[str, int] = Field(default_factory=dict)


class Interim(Record):
    """An artifact that a run committed before its end.

    `at` is the run's own count of how far it was (of training: the training step), `label` names
    that for people; `outputs` are digests by name, none while the artifact is only announced.
    """

    at: int
    label: str
    key: str
    outputs: dict[str, str] = Field(default_factory=dict)


class InterimOf(Record):
    """The run (its key) that committed an interim artifact, and how far it was.

    `history` is what the run had decided by then and what bears on the bytes; it enters the key.
    """

    run: str
    at: int
    label: str
    history: tuple[Any, ...] = ()


class Manifest(Record):
    """Everything about one artifact; equal runs differ in `telemetry` and `attempt` alone."""

    schema_version: int = SCHEMA_VERSION
    """Of this form alone: `TABLE_SCHEMA` with a file table, `BLOCKS_SCHEMA` with tables of blocks,
    which an older Ingot refuses by it."""
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
    file_table: TableReference | None = None
    """The table that has the files of all outputs; None if each output lists its own."""

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

    @property
    def count_files(self) -> int:
        """Number of files of all outputs."""
        return sum(output.count for output in self.outputs.values())

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
        value = json.loads(self.model_dump_json(exclude=self._absent))
        text = json.dumps({**value, "checksum": _checksum(value)}, indent=1, ensure_ascii=False)
        return text.encode()

    def describe(self) -> dict[str, Any]:
        """Plain values for people and programs: every output lists its files, wherever they lie."""
        plain = self.model_dump(mode="json", exclude=self._absent)
        for name, output in self.outputs.items():
            plain["outputs"][name].pop("totals", None)
            plain["outputs"][name]["files"] = [file.model_dump() for file in output.files]
        return plain

    @property
    def _absent(self) -> set[str]:
        """Fields that are not written: those of a file table where there is none."""
        return {"file_table"} if self.file_table is None else set()

    def refer_to(self, reference: TableReference) -> Manifest:
        """This manifest, with its files in the table of that reference; `open_table` opens it."""
        outputs = {
            name: Output(
                kind=output.kind,
                kind_version=output.kind_version,
                digest=output.digest,
                totals=Totals.from_files(output.files),
            )
            for name, output in self.outputs.items()
        }
        schema = max(self.schema_version, TABLE_SCHEMA)
        changes = {"schema_version": schema, "outputs": outputs, "file_table": reference}
        return self.model_copy(update=changes)

    def with_schema(self) -> Manifest:
        """This manifest, which lists its files, with the schema version that they need."""
        return self.model_copy(update={"schema_version": self._listed_schema})

    @property
    def _listed_schema(self) -> int:
        """The schema version that the files of a manifest without a file table need."""
        files = (file for output in self.outputs.values() for file in output.entries or ())
        has_blocks = any(file.blocks is not None for file in files)
        return BLOCKS_SCHEMA if has_blocks else SCHEMA_VERSION

    def open_table(self, read: Callable[[], bytes], *, where: str) -> None:
        """Let the outputs find their files in the table that `read` gives; nothing is read yet."""
        if self.file_table is None:
            return
        totals = {n: (o.digest, o.totals) for n, o in self.outputs.items() if o.totals is not None}
        table = FileTable(self.file_table, totals, read, where)
        for name, output in self.outputs.items():
            output._table = (table, name)

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
            if isinstance(schema, int) and schema not in _SCHEMAS:
                raise CorruptArtifact(
                    f"of schema {schema}, this Ingot reads {SCHEMA_VERSION} to {BLOCKS_SCHEMA}",
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
        tabled = self.file_table is not None
        expected = (TABLE_SCHEMA, BLOCKS_SCHEMA) if tabled else (self._listed_schema,)
        if self.schema_version not in expected:
            contradictions.append("its schema version is not that of its form")
        for name, output in self.outputs.items():
            if tabled != (output.entries is None):
                contradictions.append(f"output '{name}' and the manifest disagree on a file table")
            files = ((f.path, f.bytes, f.sha256) for f in output.entries or ())
            if not tabled and files_digest(files) != output.digest:
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


def count_files(raw: bytes) -> int:
    """About how many payload files a stored manifest names, though it be damaged."""
    return raw.count(b'"sha256"') + sum(map(int, _TOTAL.findall(raw)))


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
