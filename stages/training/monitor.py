"""What a run measures: an append-only log that a checkpoint can be set against, and its tables."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts_schema.kinds import KINDS, Column

if TYPE_CHECKING:
    import pyarrow as pa

SKIPPED = Column("skipped", "bool", "Whether the update was skipped: loss or gradient not finite.")
"""Column of `metrics.parquet` that every kind of training has beside those of the kind."""


@dataclass(frozen=True)
class Position:
    """How far the log went at some moment, and the sha256 of all up to there."""

    bytes: int
    sha256: str


class RunLog:
    """JSON lines, one a measurement, in the order they were made.

    A checkpoint names the log's position at that moment. A resumed run restores it: what a killed
    run measured after its last checkpoint is cut off and measured again, to the same bits.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._hash = hashlib.sha256()
        self._bytes = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")

    def append(self, table: str, row: Mapping[str, Any]) -> None:
        """Add a row; floats keep every bit."""
        line = json.dumps([table, row]).encode("utf-8") + b"\n"
        self._file.write(line)
        self._hash.update(line)
        self._bytes += len(line)

    def position(self) -> Position:
        """Where the log stands, all of it on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return Position(self._bytes, self._hash.hexdigest())

    def holds(self, position: Position) -> bool:
        """Whether the file still begins with what was there at `position`."""
        return self._hashed(position.bytes).hexdigest() == position.sha256

    def restore(self, position: Position | None) -> None:
        """Go back to `position`, to the very start for None."""
        self._bytes = position.bytes if position else 0
        self._file.truncate(self._bytes)
        self._hash = self._hashed(self._bytes)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of `table`, in order."""
        if not self._file.closed:
            self._file.flush()
        with self.path.open("rb") as file:
            parsed = (json.loads(line) for line in file)
            return [row for name, row in parsed if name == table]

    def close(self) -> None:
        """Write no more; `rows` still reads."""
        self._file.close()

    def _hashed(self, size: int) -> Any:
        digest = hashlib.sha256()
        with self.path.open("rb") as file:
            while size > 0 and (block := file.read(min(size, 1 << 20))):
                digest.update(block)
                size -= len(block)
        return digest


@dataclass(frozen=True)
class HeldOut:
    """Loss on held-out data of one source, or of `all`; of one `language` of them, or of all."""

    source: str
    loss: float
    bits_per_byte: float | None
    language: str | None = None

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
    told = json.dumps({name: _plain(value) for name, value in details.items()}, allow_nan=False)
    row = {"training_step": training_step, "tokens": tokens, "kind": kind, "details": told}
    log.append("events", row)


def _plain(value: Any) -> Any:
    """A number that JSON does not know as its name."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def log_held_out(log: RunLog, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
    """Add the held-out losses after `training_step` updates."""
    for one in measured:
        log.append("held_out", {"training_step": training_step, "tokens": tokens, **asdict(one)})


def metrics_table(log: RunLog, extra: Sequence[Column]) -> pa.Table:
    """`metrics.parquet` of a training run: the kind's columns, `skipped`, and `extra`."""
    import pyarrow as pa

    schema = KINDS["training_run"].tables["metrics.parquet"].arrow(extra=[SKIPPED, *extra])
    return pa.Table.from_pylist(log.rows("metrics"), schema=schema)


def held_out_table(log: RunLog) -> pa.Table:
    """`held_out.parquet` of a training run."""
    import pyarrow as pa

    schema = KINDS["training_run"].tables["held_out.parquet"].arrow()
    return pa.Table.from_pylist(log.rows("held_out"), schema=schema)


def events_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """`events.parquet` of a training run, in the order of training steps."""
    import pyarrow as pa

    schema = KINDS["training_run"].tables["events.parquet"].arrow()
    return pa.Table.from_pylist(sorted(rows, key=lambda row: row["training_step"]), schema=schema)
