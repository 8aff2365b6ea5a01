"""What a run measures: an append-only log with positions for checkpoints, and its tables."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from artifacts_schema.files import list_names, make_read_only, write_whole
from artifacts_schema.kinds import KINDS, Column
from artifacts_schema.store.backend import fsync_folder
from artifacts_schema.store.storage_errors import translate_errors

SKIPPED = Column("skipped", "bool", "Whether the update was skipped: loss or gradient not finite.")
"""Column of `metrics.parquet` that every kind of training adds."""


PART_BYTES = 1 << 20
"""After so many bytes a part of the log is closed, and never written again."""
ROWS_AT_ONCE = 10_000
"""Rows of a table that are held as Python objects at a time."""


@dataclass(frozen=True)
class Position:
    """How far the log went at some moment, in bytes over all parts, and the sha256 of all of it."""

    bytes: int
    sha256: str


class RunLog:
    """JSON lines, one a measurement, in the order they were made.

    They are in the parts `000000.jsonl`, `000001.jsonl`, … of `folder`. Closed parts are read-only:
    they can be linked, and are published once. Where parts end follows from what is written alone.
    A checkpoint names the log's position at that moment. A resumed run restores it: what a killed
    run measured after its last checkpoint is cut off and measured again, to the same bits. `check`
    is called before each row; it raises LeaseLost once another run has taken the key over.
    """

    def __init__(self, folder: Path, check: Callable[[], None] = lambda: None) -> None:
        self.folder, self._check = folder, check
        self._hash = hashlib.sha256()
        self._bytes = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO | None = None

    def append(self, table: str, row: Mapping[str, Any]) -> None:
        """Add a row; floats keep every bit."""
        self._check()
        line = json.dumps([table, row]).encode("utf-8") + b"\n"
        with translate_errors(str(self.folder)):
            file = self._file or self._open()
            file.write(line)
            self._hash.update(line)
            self._bytes += len(line)
            if file.tell() >= PART_BYTES:
                self._close_part()

    def position(self) -> Position:
        """The current end of the log, all of it on disk."""
        with translate_errors(str(self.folder)):
            if self._file is not None:
                self._file.flush()
                os.fsync(self._file.fileno())
            fsync_folder(self.folder)
        return Position(self._bytes, self._hash.hexdigest())

    def parts(self) -> list[Path]:
        """The files, in order; only the last may still grow."""
        names = (name for name in list_names(self.folder) if name[:1].isdigit())
        return [self.folder / name for name in names if name.endswith(".jsonl")]

    def parts_until(self, position: Position | None) -> list[Path]:
        """The parts that end at or before `position`."""
        left = position.bytes if position else 0
        return [part for part, size in self._until(left) if part.stat().st_size == size]

    def parts_of(self, position: Position) -> list[Path]:
        """The parts up to the one that holds `position`; only that one may hold more."""
        return [part for part, _ in self._until(position.bytes)]

    def holds(self, position: Position) -> bool:
        """Whether the log still begins with what was there at `position`."""
        digest = hashlib.sha256()
        for path, size in self._until(position.bytes):
            _hash_into(digest, path, size)
        return digest.hexdigest() == position.sha256

    def restore(self, position: Position | None) -> None:
        """Go back to `position`, to the very start for None."""
        self.close()
        self._bytes = position.bytes if position else 0
        self._hash = hashlib.sha256()
        kept = set()
        for path, size in self._until(self._bytes):
            _hash_into(self._hash, path, size)
            if path.stat().st_size > size:
                _cut(path, size)
            kept.add(path)
        for path in self.parts():
            if path not in kept:
                path.unlink()

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of `table`, in order."""
        return list(self.each(table))

    def each(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of `table`, one after another; nothing else is parsed."""
        if self._file is not None:
            self._file.flush()
        start = json.dumps([table])[:-1].encode() + b","
        for path in self.parts():
            with path.open("rb") as file:
                for line in file:
                    if line.startswith(start):
                        yield json.loads(line)[1]

    def close(self) -> None:
        """Write no more for now; `rows` still reads."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO:
        parts = self.parts()
        path = self.folder / f"{len(parts):06d}.jsonl"
        if parts and parts[-1].stat().st_size < PART_BYTES:
            path = parts[-1]
        self._file = path.open("ab")
        return self._file

    def _close_part(self) -> None:
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())
        self.close()
        path = self.parts()[-1]
        if path.stat().st_uid != os.geteuid():  # Begun by a user whose run this one goes on with.
            _cut(path, path.stat().st_size)
        make_read_only(path)

    def _until(self, size: int) -> Iterator[tuple[Path, int]]:
        """The parts that hold the first `size` bytes, and how many of them each holds."""
        for path in self.parts():
            if size <= 0:
                return
            held = min(size, path.stat().st_size)
            yield path, held
            size -= held


class NoLog(RunLog):
    """The log of a rank that writes none: rank 0 measures the same."""

    def __init__(self) -> None:
        self._file = None

    def append(self, table: str, row: Mapping[str, Any]) -> None:
        """No-op."""

    def restore(self, position: Position | None) -> None:
        """No-op."""

    def each(self, table: str) -> Iterator[dict[str, Any]]:
        """No rows."""
        return iter(())


def _hash_into(digest: Any, path: Path, size: int) -> None:
    with path.open("rb") as file:
        while size > 0 and (block := file.read(min(size, 1 << 20))):
            digest.update(block)
            size -= len(block)


def _cut(path: Path, size: int) -> None:
    """Keep the first `size` bytes, in a new file: a closed part may be linked elsewhere, and only
    its owner may make a file read-only."""
    with path.open("rb") as file:
        content = file.read(size)
    write_whole(path, lambda target: target.write_bytes(content))


@dataclass(frozen=True)
class HeldOut:
    """Loss on held-out data of one source, or of `all`; of one `language` of them, or of all."""

    source: str
    loss: float
    bits_per_byte: float | None
    language: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    """The values of `Task.held_out_columns`."""

    @property
    def name(self) -> str:
        """The source or the language, for people."""
        return self.source if self.language is None else self.language or "(none)"

    def column(self, quantity: str) -> str:
        """A quantity of it under the name that `metrics.parquet` has for one of training."""
        if self.language is None:
            return f"{quantity}/{self.source}"
        return f"language_{quantity}/{self.language}"


def log_event(
    log: RunLog, kind: str, training_step: int, tokens: int, details: Mapping[str, Any]
) -> None:
    """Add an event: something that a person should know of, and that bears on the model."""
    details_text = json.dumps(
        {name: _plain(value) for name, value in details.items()}, allow_nan=False
    )
    row = {"training_step": training_step, "tokens": tokens, "kind": kind, "details": details_text}
    log.append("events", row)


def _plain(value: Any) -> Any:
    """A number that JSON does not know as its name."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def log_held_out(log: RunLog, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
    """Add the held-out losses after `training_step` updates."""
    for one in measured:
        row = asdict(one)
        row |= row.pop("counts")
        log.append("held_out", {"training_step": training_step, "tokens": tokens, **row})


def metrics_table(log: RunLog, extra: Sequence[Column]) -> pa.Table:
    """`metrics.parquet` of a training run: the kind's columns, `skipped`, and `extra`."""
    schema = KINDS["training_run"].tables["metrics.parquet"].arrow(extra=[SKIPPED, *extra])
    return _table(log.each("metrics"), schema)


def held_out_table(log: RunLog, extra: Sequence[Column]) -> pa.Table:
    """`held_out.parquet` of a training run: the kind's columns, and `extra`."""
    schema = KINDS["training_run"].tables["held_out.parquet"].arrow(extra=extra)
    return _table(log.each("held_out"), schema)


def _table(rows: Iterator[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows as a table in one piece; not all of them are Python objects at the same time."""
    parts = [schema.empty_table()]
    while some := list(islice(rows, ROWS_AT_ONCE)):
        parts.append(pa.Table.from_pylist(some, schema=schema))
    return pa.concat_tables(parts).combine_chunks()


def events_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """`events.parquet` of a training run, in the order of training steps."""
    schema = KINDS["training_run"].tables["events.parquet"].arrow()
    return pa.Table.from_pylist(sorted(rows, key=lambda row: row["training_step"]), schema=schema)
