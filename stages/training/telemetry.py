"""Telemetry of a training run: where its time goes, as rows of a table kept across kills.

Telemetry is for people: never hashed, never read by what is trained. A run without any of it has
the same bytes. While a run goes on its rows are lines of JSON in `telemetry.jsonl`; they are what
happened, so a step that was trained twice has two rows, of different sessions. At the end they
become a Parquet table.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from artifacts_schema.kinds import Column
from artifacts_schema.kinds.schema import Table
from stages.training.callbacks import Callback, StepDone
from stages.training.hardware import Reading, mfu
from stages.training.monitor import HeldOut


def due(done: StepDone, every: int) -> bool:
    """Whether a step is reported: the first, every `every`-th, and skipped ones."""
    return done.training_step == 1 or done.training_step % every == 0 or done.skipped


@dataclass(frozen=True)
class Interval:
    """Some training steps: tokens read (padding not counted), and seconds on the monotonic clock.

    `data_seconds` are those of `seconds` that nothing else accounts for: above all the wait for
    batches.
    """

    tokens: float = 0
    seconds: float = 0.0
    step_seconds: float = 0.0
    held_out_seconds: float = 0.0
    checkpoint_seconds: float = 0.0

    @property
    def data_seconds(self) -> float:
        """Seconds that nothing else accounts for."""
        accounted = self.step_seconds + self.held_out_seconds + self.checkpoint_seconds
        return max(0.0, self.seconds - accounted)

    @property
    def tokens_per_second(self) -> float | None:
        """Speed of training: checkpoints and the wait for data count, held-out losses do not."""
        seconds = self.seconds - self.held_out_seconds
        return self.tokens / seconds if seconds > 0 and self.tokens else None


class Stopwatch:
    """Adds up intervals from the calls of the loop, which come in their order in time.

    The loop reports a step when it is over, held-out losses when they are measured, a checkpoint
    when training goes on. So the time between a step and the losses after it belongs to the losses.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.start()

    def start(self) -> None:
        """Count from now."""
        self._begin = self._last_call = self._clock()
        self._sums: defaultdict[str, float] = defaultdict(float)

    def step(self, done: StepDone) -> None:
        """A step is over."""
        self._last_call = self._clock()
        self._sums["tokens"] += done.step_tokens
        self._sums["step_seconds"] += done.seconds

    def measured(self) -> None:
        """Held-out losses are measured: the time since the last call was theirs."""
        now = self._clock()
        self._sums["held_out_seconds"] += now - self._last_call
        self._last_call = now

    def saved(self, seconds: float) -> None:
        """Training stood still for `seconds`."""
        self._last_call = self._clock()
        self._sums["checkpoint_seconds"] += seconds

    def take(self) -> Interval:
        """The counts since the last call; counting starts again."""
        now = self._clock()
        interval = Interval(seconds=now - self._begin, **self._sums)
        self._begin, self._sums = now, defaultdict(float)
        return interval

    @property
    def is_empty(self) -> bool:
        """Whether no step was counted since the last `take`."""
        return not self._sums["step_seconds"]


_SECONDS = (
    *("seconds", "step_seconds", "data_seconds"),
    *("held_out_seconds", "checkpoint_seconds"),
)
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
        if not rows and self.table.exists():  # The run was killed after its end.
            rows = read_table(self.table.read_bytes()).to_pylist()
        self.session = 1 + max((row["session"] for row in rows), default=-1)
        whole = self.lines.with_suffix(".partial")  # Without a line that a kill cut short.
        whole.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        os.replace(whole, self.lines)
        self._file = self.lines.open("a", encoding="utf-8")

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row of this session."""
        self._file.write(json.dumps({"session": self.session, **row}) + "\n")
        self._file.flush()

    def finish(self) -> None:
        """Write all rows as a table, in the place of the lines."""
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
    table = pq.read_table(pa.BufferReader(content), use_threads=False)
    TELEMETRY.check(table.schema, where=TABLE)
    return table


class Telemetry(Callback):
    """Writes a row every `every` training steps, and hands it to each of `readers`.

    `flops_per_token` are the operations that MFU counts for a token, by phase (the last for all
    later ones); `peak` those that the device could do in a second, None if it is not known.
    """

    def __init__(
        self,
        file: TelemetryFile,
        *,
        every: int,
        sensors: Callable[[], Reading],
        flops_per_token: Sequence[float],
        peak: float | None,
        readers: Sequence[Callable[[Mapping[str, Any]], None]] = (),
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.file, self.every, self.sensors, self.peak = file, every, sensors, peak
        self.flops_per_token, self.readers = tuple(flops_per_token), tuple(readers)
        self._watch, self._wall_clock = Stopwatch(clock), wall_clock
        self._last: StepDone | None = None

    def started(self, training_step: int, total: int) -> None:
        """Time counts from here."""
        self._watch.start()

    def step_done(self, done: StepDone) -> None:
        """Count a step, and write a row where one is due."""
        self._watch.step(done)
        self._last = done
        if due(done, self.every):
            self._row(done)

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        """Held-out measurement is no training."""
        self._watch.measured()

    def saved(self, training_step: int, seconds: float) -> None:
        """A checkpoint made training wait."""
        self._watch.saved(seconds)

    def ended(self, error: BaseException | None) -> None:
        """Write what was counted since the last row; at the end of the run, the table."""
        if self._last is not None and not self._watch.is_empty:
            self._row(self._last)
        if error is None:
            self.file.finish()
        else:
            self.file.close()

    def _row(self, done: StepDone) -> None:
        interval = self._watch.take()
        speed = interval.tokens_per_second
        flops = self.flops_per_token[min(done.phase, len(self.flops_per_token) - 1)]
        row = {
            "time": self._wall_clock(),
            "training_step": done.training_step,
            "tokens": done.tokens,
            **{name: getattr(interval, name) for name in _SECONDS},
            "tokens_per_second": speed,
            "mfu": None if speed is None else mfu(speed, flops, self.peak),
            **asdict(self.sensors()),
        }
        self.file.append(row)
        for read in self.readers:
            read(row)
