"""What a stage writes, the same calls in a shard's worker and in the stage's own process."""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts_schema.kinds import kind_named
from artifacts_schema.manifest import File
from artifacts_schema.store.backend import Backend, HashingWriter
from artifacts_schema.store.cache import download
from artifacts_schema.store.commit import Attempt
from artifacts_schema.store.points import reached
from artifacts_schema.store.work import local_work
from stages.engine.tables import TableWriter

if TYPE_CHECKING:
    import pyarrow as pa


class Writers(ABC):
    """Writers of tables, JSON and bytes on top of one `open`."""

    @abstractmethod
    def open(self, output: str, path: str) -> AbstractContextManager[HashingWriter]:
        """Write a file of `output`; it counts when the block ends well."""

    @abstractmethod
    def kind_of(self, output: str) -> str:
        """The kind that `output` is declared as."""

    @abstractmethod
    def note_rows(self, output: str, path: str, rows: int) -> None:
        """Note how many rows a table that was written holds."""

    @contextmanager
    def table_writer(self, output: str, path: str, schema: pa.Schema) -> Iterator[TableWriter]:
        """Write a table batch by batch."""
        kind = self.kind_of(output)
        with (
            self.open(output, path) as file,
            TableWriter(file, schema, kind=kind, path=path) as writer,
        ):
            yield writer
        self.note_rows(output, path, writer.rows)

    def write_table(self, output: str, path: str, table: pa.Table) -> None:
        """Write a whole table."""
        with self.table_writer(output, path, table.schema) as writer:
            writer.write(table)

    def write_bytes(self, output: str, path: str, data: bytes) -> None:
        """Write a whole file."""
        with self.open(output, path) as file:
            file.write(data)

    def write_json(self, output: str, path: str, value: Any) -> None:
        """Write a JSON file with sorted keys, indented, for people as well."""
        text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
        self.write_bytes(output, path, text.encode() + b"\n")


class AttemptWriters(Writers):
    """Writes straight into the attempt: what the stage's own process makes at its end."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt

    def open(self, output: str, path: str) -> AbstractContextManager[HashingWriter]:
        """Write a file of `output`."""
        return self.attempt.create(output, path)

    def kind_of(self, output: str) -> str:
        """The kind that `output` is declared as."""
        if output not in self.attempt.kinds:
            raise ValueError(f"{self.attempt.stage} declares no output '{output}'")
        return self.attempt.kinds[output]

    def note_rows(self, output: str, path: str, rows: int) -> None:
        """Note how many rows a table holds."""
        self.attempt.set_rows(output, path, rows)


@dataclass
class Written:
    """A file that a shard wrote under the work folder: `output` is None for scratch."""

    output: str | None
    file: File
    place: str

    def plain(self) -> dict[str, Any]:
        """For the shard's record."""
        return {"output": self.output, "file": self.file.model_dump(), "place": self.place}

    @classmethod
    def from_plain(cls, value: dict[str, Any]) -> Written:
        """From the shard's record."""
        return cls(value["output"], File(**value["file"]), value["place"])


def _never() -> bool:
    return False


@dataclass
class ShardOutput(Writers):
    """The output of one shard: files under the work folder until the whole stage commits."""

    backend: Backend
    folder: str
    kinds: dict[str, str]
    stop: Callable[[], bool] = _never
    written: list[Written] = field(default_factory=list)
    _token: str = field(default_factory=lambda: secrets.token_hex(4))

    @property
    def stopping(self) -> bool:
        """Whether the stage was asked to stop (known only in the stage's own process)."""
        return self.stop()

    @contextmanager
    def open(self, output: str, path: str) -> Iterator[HashingWriter]:
        """Write a file of `output`."""
        if not kind_named(self.kind_of(output)).allows(path):
            raise ValueError(f"kind '{self.kind_of(output)}' has no file like '{path}'")
        with self._create(output, path) as writer:
            yield writer

    def kind_of(self, output: str) -> str:
        """The kind that `output` is declared as."""
        if output not in self.kinds:
            raise ValueError(f"no output '{output}' is declared")
        return self.kinds[output]

    def note_rows(self, output: str | None, path: str, rows: int) -> None:
        """Note how many rows a table holds."""
        for written in self.written:
            if (written.output, written.file.path) == (output, path):
                written.file = written.file.model_copy(update={"rows": rows})

    @contextmanager
    def open_scratch(self, name: str) -> Iterator[HashingWriter]:
        """Write a file for a later map of the same stage; gone after the commit."""
        with self._create(None, name) as writer:
            yield writer

    def write_scratch(self, name: str, table: pa.Table) -> None:
        """Write a table for a later map of the same stage; any schema."""
        with (
            self.open_scratch(name) as file,
            TableWriter(file, table.schema, kind=None, path=name) as writer,
        ):
            writer.write(table)

    @contextmanager
    def _create(self, output: str | None, path: str) -> Iterator[HashingWriter]:
        place = f"{self.folder}/{self._token}/{output or 'scratch'}/{path}"
        with self.backend.create(place) as writer:
            yield writer
        file = File(path=path, bytes=writer.bytes, sha256=writer.sha256)
        self.written.append(Written(output, file, place))
        reached("shard written")


@dataclass(frozen=True)
class LeftFile:
    """A file of a finished shard, there until the stage commits. Picklable: each process that asks
    for the path gets one of its own machine."""

    backend: Backend
    written: Written

    def path(self) -> Path:
        """Where it lies on this machine; of a remote store a copy, made on the first call."""
        place = self.written.place
        if self.backend.local:
            return self.backend.local_path(place)
        _, key, *parts = place.split("/")
        copy = local_work(self.backend, key, *parts)
        if not copy.exists():
            download(self.backend, place, self.written.file, copy)
        return copy


@dataclass(frozen=True)
class ShardResult:
    """What one shard gave: the function's value and the files it left. Picklable."""

    id: str
    value: dict[str, Any]
    backend: Backend
    files: dict[tuple[str | None, str], Written]
    """By output (None: scratch) and path."""

    def left(self, output: str | None, path: str) -> LeftFile:
        """A file that the shard wrote to `output`; None means scratch.

        A map's outputs are linked into the attempt, so what the shard wrote stays where it is, and
        a later map of the same stage may read it.
        """
        return LeftFile(self.backend, self.files[output, path])

    def path(self, output: str | None, path: str) -> Path:
        """The same file on this machine."""
        return self.left(output, path).path()

    def scratch_path(self, name: str) -> Path:
        """A scratch file on this machine, there until the stage commits."""
        return self.path(None, name)

    def read_scratch(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """A scratch table, or some columns of it."""
        import pyarrow.parquet as pq

        with open(self.scratch_path(name), "rb") as file:
            return pq.read_table(file, columns=columns, use_threads=False)


def record_of(value: dict[str, Any], written: list[Written], code: str) -> bytes:
    """The record that marks a shard as finished."""
    return json.dumps(
        {"value": value, "code": code, "files": [item.plain() for item in written]}
    ).encode()


__all__ = [
    "AttemptWriters",
    "LeftFile",
    "ShardOutput",
    "ShardResult",
    "Writers",
    "Written",
    "record_of",
]
