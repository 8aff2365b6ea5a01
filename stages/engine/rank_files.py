"""The files between a run and its ranks, in the folder `ranks` of the run's work.

The parent writes `job.json`, and renews `alive.json` as long as it lives. A rank writes how far it
is to `beat-N.json`, why it failed to `error-N.json`, and its stacks to `stacks-N.txt` when asked;
rank 0 its result. Each machine writes its exit codes. With several machines, all see this folder.

Errors and beats are slots: files of a fixed size that are written in place, so that a rank can
report that the disk is full.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifacts_schema.errors import IngotError
from artifacts_schema.files import write_whole
from artifacts_schema.store.lease import Lease, Record

SLOT_BYTES = 4096


@dataclass(frozen=True)
class Slot:
    """One JSON value in a file that is never shorter than a block."""

    path: Path

    def reserve(self) -> None:
        """Make the file while there is space. OSError if it cannot be made."""
        self._write(b"")

    def write(self, value: Any) -> None:
        """Replace the value. OSError if it cannot be written."""
        self._write(json.dumps(value).encode())

    def _write(self, content: bytes) -> None:
        file = os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o666)
        try:
            size = max(SLOT_BYTES, os.fstat(file).st_size)
            os.pwrite(file, content.ljust(size), 0)
        finally:
            os.close(file)

    def read(self) -> Any:
        """The value; None if there is none, or if it is just being written."""
        with suppress(OSError, ValueError):
            return json.loads(self.path.read_bytes())
        return None


@dataclass(frozen=True)
class RankJob:
    """What every rank of a run is told."""

    store: str
    spec: dict[str, Any]
    attempt: str
    """Name of the attempt that rank 0 writes into."""
    lease: int
    record: dict[str, Any]
    """Number and record of the lease that the parent holds."""
    place: str
    inherited: dict[str, str]
    """Place of the state, and the sets that it inherits."""
    code: str
    full_check: bool
    world: int
    watchdog: float | None = None
    """Seconds without progress after which the run hangs; None: never."""
    machines: int = 1
    address: str = "127.0.0.1"
    port: int = 0
    """Where the machines meet; port 0: any free one, on one machine only."""
    program: tuple[str, ...] = ("stages.engine.rank",)
    """Module of a rank, and its arguments before the path of the job."""

    @property
    def ranks_per_machine(self) -> int:
        """Ranks on each machine."""
        return self.world // self.machines

    @classmethod
    def read(cls, path: Path) -> RankJob:
        """The job in a file."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def held_lease(self, backend: Any, key: str) -> Lease:
        """The lease of the parent, to be checked."""
        return Lease(backend, key, self.lease, Record(**self.record))


@dataclass(frozen=True)
class RankFolder:
    """The files between a run and its ranks."""

    path: Path

    @classmethod
    def fresh(cls, path: Path) -> RankFolder:
        """An empty folder; that of the last launch is kept as `ranks.before`, with its stacks."""
        before = path.with_name(f"{path.name}.before")
        if path.exists():
            shutil.rmtree(before, ignore_errors=True)
            os.replace(path, before)
        path.mkdir(parents=True)
        return cls(path)

    @property
    def job(self) -> Path:
        """What the ranks are told."""
        return self.path / "job.json"

    @property
    def launch(self) -> int | None:
        """Number of the job's file, which tells a launch from a later one in the same place; None
        if there is none."""
        with suppress(OSError):
            return self.job.stat().st_ino
        return None

    def is_over(self, launch: int | None) -> bool:
        """Whether the parent ended this launch, or another one has begun."""
        return self.over.exists() or self.launch not in (launch, None)

    @property
    def alive(self) -> Slot:
        """A counter that the parent raises while it lives."""
        return Slot(self.path / "alive.json")

    @property
    def stop(self) -> Path:
        """There once the run was asked to stop."""
        return self.path / "stop"

    @property
    def dump(self) -> Path:
        """There once ranks are asked for their stacks."""
        return self.path / "dump"

    @property
    def over(self) -> Path:
        """There once the parent ended the launch: why, and with which exit code."""
        return self.path / "over.json"

    @property
    def result(self) -> Path:
        """What rank 0 wrote and counted."""
        return self.path / "result.json"

    def ends(self, machine: int) -> Path:
        """How the ranks of a machine ended that failed."""
        return self.path / f"ends-{machine}.json"

    def machine(self, machine: int) -> Path:
        """There once a machine other than the first joined: its name."""
        return self.path / f"machine-{machine}.json"

    def printed(self, machine: int) -> Path:
        """What torchrun printed on a machine."""
        return self.path / f"torchrun-{machine}.txt"

    def logs(self, machine: int) -> Path:
        """What the ranks of a machine printed."""
        return self.path / "logs" / f"machine-{machine}"

    def error(self, rank: int) -> Slot:
        """Why a rank failed."""
        return Slot(self.path / f"error-{rank}.json")

    def beat(self, rank: int) -> Slot:
        """How far a rank is."""
        return Slot(self.path / f"beat-{rank}.json")

    def stacks(self, rank: int) -> Path:
        """Where all threads of a rank were."""
        return self.path / f"stacks-{rank}.txt"

    def flight(self, rank: int) -> Path:
        """PyTorch's flight recorder of a rank: its last collective operations, pickled."""
        return self.path / f"flight-{rank}"

    def log(self, rank: int) -> Path:
        """The log of a rank other than 0."""
        return self.path / f"log-{rank}.txt"

    def write_json(self, path: Path, value: Any) -> None:
        """Write a file of this folder as a whole. StoreError if it cannot be written."""
        text = json.dumps(value)
        write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))

    def read_json(self, path: Path) -> Any:
        """A file of this folder; None where there is none."""
        with suppress(OSError, ValueError):
            return json.loads(path.read_text(encoding="utf-8"))
        return None

    def exit_codes(self, machines: int) -> dict[int, int]:
        """Exit codes of failed ranks, of all machines that wrote them."""
        codes: dict[int, int] = {}
        for machine in range(machines):
            ends = self.read_json(self.ends(machine)) or {}
            codes |= {int(rank): code for rank, code in ends.items()}
        return codes


def write_error(files: RankFolder, rank: int, error: BaseException) -> None:
    """Tell the parent why a rank failed."""
    value = {
        "time": time.time(),
        "kind": type(error).__name__,
        "what": error.what if isinstance(error, IngotError) else str(error),
        "where": error.where if isinstance(error, IngotError) else None,
        "hint": error.hint if isinstance(error, IngotError) else None,
    }
    with suppress(OSError):  # The folder is gone: torchrun still tells which rank failed.
        files.error(rank).write(value)


def write_ends(files: RankFolder, machine: int, codes: Mapping[int, int]) -> None:
    """Tell the parent the exit codes of a machine's failed ranks; a negative one is a signal."""
    with suppress(OSError, IngotError):  # A full disk: the errors of ranks have their slots.
        files.write_json(files.ends(machine), {str(rank): code for rank, code in codes.items()})
