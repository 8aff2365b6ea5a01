"""What a stage writes: tables and files, in a shard's worker, in its own process, or as an interim
artifact while it runs.

Tables are Parquet with zstd, the same bytes for the same rows. An interim artifact is a checkpoint
that is to be kept long before the end. Its key follows from the run's key and how far the run was,
so a run that reaches the point a second time (after a kill) finds it made. It is announced in the
run's index before a byte of it is written; see `artifacts_schema.store.commit`.
"""

from __future__ import annotations

import json
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from artifacts_schema.blocks import block_bytes
from artifacts_schema.errors import Stopped
from artifacts_schema.file_table import File
from artifacts_schema.identity import interim_key
from artifacts_schema.kinds import kind_named
from artifacts_schema.manifest import Interim, InterimOf, Manifest
from artifacts_schema.store import Store, layout
from artifacts_schema.store.backend import Backend, HashingWriter
from artifacts_schema.store.cache import download
from artifacts_schema.store.commit import (
    Attempt,
    announce_interim,
    commit,
    committed_interims,
    withdraw_interims,
    written_file,
)
from artifacts_schema.store.failpoints import hit_failpoint
from artifacts_schema.store.lease import local_work

if TYPE_CHECKING:
    import pyarrow as pa

_STRINGS = ("string", "binary", "large_string", "large_binary")
ROW_GROUP = 8_192
ROW_GROUP_BYTES = 64 << 20
"""Most rows of a row group, and most bytes of its strings if one row has no more: they bound what a
reader holds in memory, and one with 2 GiB of strings cannot be read at all."""


class TableWriter:
    """Writes batches of one table into an open file; checks the schema against the kind."""

    def __init__(
        self, file: IO[bytes] | Any, schema: pa.Schema, *, kind: str | None, path: str
    ) -> None:
        import pyarrow.parquet as pq

        if kind is not None:
            table = kind_named(kind).table_for(path)
            if table is None:
                raise ValueError(f"kind '{kind}' has no table at '{path}'")
            table.check(schema, where=path)
        self.schema, self.rows = schema, 0
        self._writer = pq.ParquetWriter(file, schema, compression="zstd", version="2.6")

    def write(self, table: pa.Table) -> None:
        """Append rows, from a row group of their own on."""
        cast = table.cast(self.schema)
        for begin, end in _row_groups(cast):
            self._writer.write_table(cast.slice(begin, end - begin), row_group_size=ROW_GROUP)
        self.rows += table.num_rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the footer; after an error nothing more is written, now or by the collector."""
        try:
            if kind is None:
                self._writer.close()
        finally:
            self._writer.is_open = False


def _row_groups(table: pa.Table) -> Iterator[tuple[int, int]]:
    """First and last row of parts to write: all at once, unless a row group had too many bytes."""
    import numpy as np
    import pyarrow.compute as pc

    rows = len(table)
    starts = range(0, rows, ROW_GROUP)
    if all(table.slice(start, ROW_GROUP).nbytes <= ROW_GROUP_BYTES for start in starts):
        yield 0, rows
        return
    sizes = np.zeros(rows, dtype=np.int64)
    for column in table.columns:
        if str(column.type) in _STRINGS:
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy()
    sums = np.concatenate([[0], np.cumsum(sizes)])
    begin = 0
    while begin < rows:
        fit = int(np.searchsorted(sums, sums[begin] + ROW_GROUP_BYTES, side="right")) - 1
        end = min(max(fit, begin + 1), begin + ROW_GROUP, rows)
        yield begin, end
        begin = end


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

    def sizes(self) -> dict[str, int]:
        """Bytes of what lies in the store of it, by place: the file, and its table of blocks."""
        sizes, blocks = {self.place: self.file.bytes}, self.file.blocks
        if blocks is not None:
            table = layout.block_table(self.place, str(self.output), self.file.path)
            sizes[table] = blocks.table_bytes(self.file.bytes)
        return sizes

    def plain(self) -> dict[str, Any]:
        """For the shard's record."""
        return {"output": self.output, "file": self.file.model_dump(), "place": self.place}

    @classmethod
    def from_plain(cls, value: dict[str, Any]) -> Written:
        """From the shard's record."""
        return cls(value["output"], File(**value["file"]), value["place"])


@dataclass
class ShardOutput(Writers):
    """The output of one shard: files under the work folder until the whole stage commits."""

    backend: Backend
    folder: str
    kinds: dict[str, str]
    stop: Callable[[], bool] = lambda: False
    written: list[Written] = field(default_factory=list)
    _token: str = field(default_factory=lambda: secrets.token_hex(4))

    @property
    def stopping(self) -> bool:
        """Whether the stage was asked to stop (known only in the stage's own process)."""
        return self.stop()

    def check_stop(self) -> None:
        """Raise Stopped if the stage was asked to stop."""
        if self.stopping:
            raise Stopped()

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
        folder = output or "scratch"
        place = f"{self.folder}/{self._token}/{folder}/{path}"
        block = block_bytes(path) if output else 0  # Scratch is read whole, on one machine.
        with self.backend.create(place, block=block) as writer:
            yield writer
        file = written_file(self.backend, place, folder, path, writer)
        self.written.append(Written(output, file, place))
        hit_failpoint("shard written")


@dataclass(frozen=True)
class LeftFile:
    """A file of a finished shard, there until the stage commits. Picklable: each process that asks
    for the path gets one of its own machine."""

    backend: Backend
    written: Written

    def path(self) -> Path:
        """Its path on this machine; for a remote store a copy, made on the first call."""
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


def record_of(
    value: dict[str, Any], written: list[Written], code: str, spent: Sequence[float] = (0.0, 0.0)
) -> bytes:
    """The record that marks a shard as finished; `spent` are its CPU and GPU seconds."""
    files = [item.plain() for item in written]
    return json.dumps({"value": value, "code": code, "files": files, "spent": spent}).encode()


@dataclass(frozen=True)
class Milestone:
    """How far a run is when it commits: by its own count, and as people read it (`1.6M`)."""

    at: int
    label: str


@dataclass(frozen=True)
class Interims:
    """The interim artifacts of one run of a stage."""

    store: Store
    stage: str
    run: str
    """Key of the run."""
    kinds: Mapping[str, str]
    """Of the stage's outputs."""
    build_manifest: Callable[..., Manifest]
    check: Callable[[], None]
    """Raises LeaseLost once another run has the key."""

    @property
    def committed(self) -> tuple[Interim, ...]:
        """In order, with those that earlier processes of this run committed."""
        return tuple(committed_interims(self.store.backend, self.run))

    def withdraw(self, after: int) -> None:
        """Remove those after `after` from the index; the artifacts stay until collected."""
        self.check()
        withdraw_interims(self.store.backend, self.run, after=after)

    @contextmanager
    def writing(
        self,
        at: Milestone,
        outputs: Sequence[str],
        *,
        history: Sequence[Any],
        layout: Mapping[str, Any],
        counts: Mapping[str, int | float],
    ) -> Iterator[AttemptWriters]:
        """Writers for these outputs; the artifact is committed when the block ends without error.

        ValueError for an output that the stage does not declare.
        """
        unknown = [name for name in outputs if name not in self.kinds]
        if unknown:
            raise ValueError(f"{self.stage} declares no output '{unknown[0]}'")
        backend = self.store.backend
        entry = Interim(at=at.at, label=at.label, key=interim_key(self.run, at.at, history))
        self.check()
        announce_interim(backend, self.run, entry)
        kinds = {name: self.kinds[name] for name in outputs}
        attempt = Attempt(backend, self.stage, entry.key, kinds)
        started = time.monotonic()
        try:
            yield AttemptWriters(attempt)
            self.check()
            manifest = self.build_manifest(
                attempt,
                key=entry.key,
                layout=dict(layout),
                counts=dict(sorted(counts.items())),
                telemetry={
                    "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                    "seconds": round(time.monotonic() - started, 3),
                },
                interim_of=InterimOf(
                    run=self.run, at=entry.at, label=entry.label, history=tuple(history)
                ),
            )
            committed = commit(self.store, manifest)
        except BaseException:
            attempt.discard()
            raise
        if committed.attempt != attempt.name:
            attempt.discard()
        self.check()
        digests = {name: output.digest for name, output in committed.outputs.items()}
        announce_interim(backend, self.run, entry.model_copy(update={"outputs": digests}))
        hit_failpoint("interim listed")
