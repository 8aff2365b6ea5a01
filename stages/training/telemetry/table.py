"""The telemetry table: a row every few training steps, kept across kills, Parquet at the end.

While a run goes on its rows are lines of JSON in `telemetry.jsonl`; they are what happened, so a
step that was trained twice has two rows, of different sessions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts_schema.kinds import Column
from artifacts_schema.kinds.schema import Table

if TYPE_CHECKING:
    import pyarrow as pa

LINES, TABLE = "telemetry.jsonl", "telemetry.parquet"

TELEMETRY = Table(
    (
        Column("session", "int32", "Starts of the run before this one: 0, 1 after the first kill."),
        Column("time", "float64", "When, in seconds since 1970."),
        Column("training_step", "int64", "Last training step of the row."),
        Column("tokens", "int64", "Tokens of the run up to it."),
        Column("seconds", "float64", "Since the row before, on the monotonic clock."),
        Column("step_seconds", "float64", "Of these: training steps themselves."),
        Column(
            "data_seconds", "float64", "Of these: what is left, the wait for batches above all."
        ),
        Column("held_out_seconds", "float64", "Of these: held-out measurement."),
        Column("checkpoint_seconds", "float64", "Of these: training stood still for checkpoints."),
        Column("tokens_per_second", "float64?", "Tokens over seconds without held-out ones."),
        Column("mfu", "float64?", "Model FLOPs utilisation, a share of 1; none without a peak."),
        Column("process_bytes", "int64", "Resident memory of the process."),
        Column("device_bytes", "int64?", "Memory of the GPU that tensors hold."),
        Column("device_peak_bytes", "int64?", "The most of it since the row before."),
        Column("temperature", "float64?", "Of the GPU, degrees Celsius."),
        Column("clock_mhz", "float64?", "Of the GPU's multiprocessors."),
        Column("power_watts", "float64?", "Drawn by the GPU."),
    )
)


class TelemetryFile:
    """Rows of one run in `folder`, over all its sessions; the last is `session`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.lines, self.table = folder / LINES, folder / TABLE
        rows = list(read_lines(self.lines.read_bytes())) if self.lines.exists() else []
        if not rows and self.table.exists():  # The run was killed behind its end.
            rows = read_table(self.table.read_bytes()).to_pylist()
        self.session = 1 + max((row["session"] for row in rows), default=-1)
        whole = self.lines.with_suffix(".partial")  # Without a line that a kill cut short.
        whole.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        os.replace(whole, self.lines)
        self._file = self.lines.open("a", encoding="utf-8")

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row of this session."""
        self._write({"session": self.session, **row})

    def finish(self) -> None:
        """Write all rows as a table, in the place of the lines."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._file.close()
        rows = list(read_lines(self.lines.read_bytes()))
        temporary = self.table.with_suffix(".partial")
        pq.write_table(
            pa.Table.from_pylist(rows, schema=TELEMETRY.arrow()), temporary, compression="zstd"
        )
        os.replace(temporary, self.table)
        self.lines.unlink()

    def close(self) -> None:
        """Write no more; the lines stay for the next session."""
        self._file.close()

    def _write(self, row: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()


def read_lines(content: bytes) -> Iterator[dict[str, Any]]:
    """Whole rows of `telemetry.jsonl`."""
    for line in content.split(b"\n"):
        try:
            row = json.loads(line)
        except ValueError:  # What a kill left of a line.
            continue
        if isinstance(row, dict):
            yield row


def read_table(content: bytes) -> pa.Table:
    """`telemetry.parquet`; CorruptArtifact where it is not the table described here."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(content), use_threads=False)
    TELEMETRY.check(table.schema, where=TABLE)
    return table
