"""The file table of an artifact: its payload files, a row each, beside the manifest.

A manifest of few files lists them itself, so that people can read it. One of many files refers to a
table that lies with the payload, and keeps of each output how many files it has, their bytes and
their rows: what a list of artifacts or a plan needs. The table is read when somebody asks for a
file.

The table is JSON Lines sorted by output and path: `[output, path, bytes, sha256, rows]` a row, and
the bytes of a block and the sha256 of its table of blocks where a file has one (`blocks`); equal
files give equal bytes with every library. The manifest has its sha256, and its own checksum
covers that. `sizes` in the manifest is a digest of the names and sizes of all files: a listing of
the payload that has the same digest is whole, and no row needs to be read to know it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NoReturn

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
)

from artifacts_schema.blocks import Blocks
from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.identity import files_digest

INLINE_FILES = 100
"""Files of an artifact whose manifest lists them itself."""


class Record(BaseModel):
    """A part of a manifest: it does not change, and has no other fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class File(Record):
    """One payload file: path within its output, size in bytes, sha256, rows of a table.

    `blocks` is not written where there are none, as no Ingot wrote it before there were any.
    """

    path: str
    bytes: int
    sha256: str
    rows: int | None = None
    blocks: Blocks | None = None

    @model_serializer(mode="wrap")
    def _serialize(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        value: dict[str, Any] = plain(self)
        if self.blocks is None:
            del value["blocks"]
        return value


class Totals(Record):
    """Of the files of one output: how many there are, their size in bytes, the rows of tables."""

    count: int = Field(ge=0)
    bytes: int = Field(ge=0)
    rows: int = Field(ge=0)

    @classmethod
    def from_files(cls, files: Sequence[File]) -> Totals:
        """The totals of files at hand."""
        return cls(
            count=len(files),
            bytes=sum(file.bytes for file in files),
            rows=sum(file.rows or 0 for file in files),
        )


class TableReference(Record):
    """What a manifest says of its file table; where that lies is the layout's."""

    bytes: int
    sha256: str
    sizes: str
    """Digest of (output/path, bytes) of all files, see `digest_sizes`."""


Row = tuple[str, str, int, str, int | None]
RowOfBlocks = tuple[str, str, int, str, int | None, Annotated[int, Field(gt=0)], str]
Rows = list[Row | RowOfBlocks]
_ROWS = TypeAdapter(Rows)


def encode_table(files: Mapping[str, Sequence[File]]) -> tuple[bytes, TableReference]:
    """The table of files by output, and what the manifest says of it."""
    lines = [
        json.dumps([output, *_to_row(one)], ensure_ascii=False)
        for output, own in sorted(files.items())
        for one in sorted(own, key=lambda file: file.path)
    ]
    raw = "".join(f"{line}\n" for line in lines).encode()
    sizes = digest_sizes((f"{o}/{f.path}", f.bytes) for o, own in files.items() for f in own)
    return raw, TableReference(bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest(), sizes=sizes)


def _to_row(one: File) -> list[Any]:
    blocks = [one.blocks.bytes, one.blocks.sha256] if one.blocks is not None else []
    return [one.path, one.bytes, one.sha256, one.rows, *blocks]


def digest_sizes(files: Iterable[tuple[str, int]]) -> str:
    """sha256 over the sorted names (output/path) and sizes of payload files."""
    text = json.dumps(sorted(files), ensure_ascii=False, separators=(",", ":"))
    # A listing may hold a stray name that is no UTF-8, which Python reads as surrogates.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass
class FileTable:
    """The table that a manifest refers to, read on the first call. Picklable."""

    reference: TableReference
    outputs: Mapping[str, tuple[str, Totals]]
    """Digest and totals of each output, as the manifest has them."""
    read: Callable[[], bytes] = field(compare=False, repr=False)
    """Gives the stored bytes; FileNotFoundError if there are none."""
    where: str = field(compare=False)
    _files: dict[str, tuple[File, ...]] | None = field(default=None, compare=False, repr=False)

    def files(self, output: str) -> tuple[File, ...]:
        """The files of an output, sorted by path.

        CorruptArtifact if the table is gone, cut or changed, or is not that of these outputs.
        """
        if self._files is None:
            self._files = self._load()
        return self._files[output]

    def _load(self) -> dict[str, tuple[File, ...]]:
        try:
            raw = self.read()
        except FileNotFoundError:
            self._refuse("the file table is gone")
        if len(raw) != self.reference.bytes:
            self._refuse(
                f"the file table changed from {self.reference.bytes:,} to {len(raw):,} bytes"
            )
        if hashlib.sha256(raw).hexdigest() != self.reference.sha256:
            self._refuse("the file table's bytes changed")
        try:
            rows = _ROWS.validate_json(b"[" + b",".join(raw.split(b"\n")[:-1]) + b"]", strict=True)
        except ValidationError:
            self._refuse("it is not a file table")
        lists: dict[str, list[File]] = {output: [] for output in self.outputs}
        for row in rows:
            if row[0] not in lists:
                self._refuse(f"the file table names an output '{row[0]}' that is not declared")
            blocks = Blocks(bytes=row[5], sha256=row[6]) if len(row) == 7 else None
            lists[row[0]].append(
                File(path=row[1], bytes=row[2], sha256=row[3], rows=row[4], blocks=blocks)
            )
        for output, (digest, totals) in self.outputs.items():
            own = lists[output]
            if files_digest((f.path, f.bytes, f.sha256) for f in own) != digest:
                self._refuse(f"the digest of output '{output}' does not match the file table")
            if Totals.from_files(own) != totals:
                self._refuse(f"the totals of output '{output}' are not those of the file table")
        sizes = digest_sizes((f"{o}/{f.path}", f.bytes) for o, own in lists.items() for f in own)
        if sizes != self.reference.sizes:
            self._refuse("the manifest's digest of sizes is not that of the file table")
        return {output: tuple(own) for output, own in lists.items()}

    def _refuse(self, what: str) -> NoReturn:
        raise CorruptArtifact(
            what,
            where=self.where,
            hint="restore it, or make the artifact again: `ingot verify --repair`",
        )
