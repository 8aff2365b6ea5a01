"""What an attempt at an artifact spends, noted with its lease, and what of it was lost.

The holder of a lease writes with each heartbeat what its processes have spent so far. So the run
that commits knows what those before it spent, wherever they ran and however they ended. What it
continues from is no loss: a shard's record says what the shard took, and training notes when the
state of its newest rolling checkpoint was taken. The rest was lost.

An attempt that was killed is counted to its last heartbeat and for one more at its highest rate so
far (one core at least), so the loss is rather too high by seconds than too low. Not counted are
processes of a Dask cluster at shards that they never returned, training steps that the guard took
back, and shards that a silent worker began: these are in the cost of the attempt that went on.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

from artifacts_schema.store.backend import Backend
from artifacts_schema.store.lease import HEARTBEAT_SECONDS, Lease, earlier_records
from stages.engine.state import State

_KEPT = "kept.json"
"""In a work folder of this machine: when the newest checkpoint was taken, and of which holder."""


_booked = 0.0
"""CPU seconds of this process, and those it waited for, that earlier stages were booked."""


def process_seconds() -> float:
    """CPU seconds of this process so far, and of the processes that it has waited for."""
    own, ended = (getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def unbooked_seconds() -> float:
    """CPU seconds that `run_cost` would count now, apart from those of a cluster."""
    return process_seconds() - _booked


def book() -> None:
    """Count what this process spent so far for no later stage."""
    global _booked
    _booked = process_seconds()


@dataclass(frozen=True)
class Spent:
    """CPU and GPU seconds; GPUs count while they are held."""

    cpu: float = 0.0
    gpu: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.cpu + other.cpu, self.gpu + other.gpu)

    def __sub__(self, other: Spent) -> Spent:
        """The difference; not below zero."""
        return Spent(max(0.0, self.cpu - other.cpu), max(0.0, self.gpu - other.gpu))


class Meter:
    """Measures one attempt: all processes below this one, and the devices that it holds."""

    def __init__(
        self,
        code: str = "",
        state: State | None = None,
        *,
        devices: Callable[[], int] = lambda: 0,
        elsewhere: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.code, self.state = code, state
        self.devices = devices
        self.elsewhere = elsewhere
        """CPU seconds of processes on other machines."""
        self.continued = Spent()
        """What earlier attempts spent on the shards that this one has from them."""
        self._start = time.monotonic()
        self._before = _live_seconds(os.getpid())  # Of processes that are not this attempt's.
        self._samples = [(time.time(), Spent())]
        self._kept = Spent()
        self._rate = 1.0

    def note(self, final: bool) -> dict[str, float | str]:
        """For the lease: what was spent so far, and how much of it a checkpoint holds.

        `final` says that nothing is spent after it.
        """
        checkpoint = _read_note(self.state)
        held = max(self.devices(), _number(checkpoint, "devices"))
        before, last = self._samples[-1]
        now = time.time()
        spent = Spent(
            max(last.cpu, self._seconds()),
            max(last.gpu, (time.monotonic() - self._start) * held),
        )
        self._rate = max(self._rate, (spent.cpu - last.cpu) / max(1.0, now - before))
        self._samples.append((now, spent))
        if final:
            book()  # A next attempt in this process does not pay for it again.
        taken = checkpoint.get("taken")
        if isinstance(taken, int | float):  # The last sample before it: rather too little is kept.
            self._kept = max((s for at, s in self._samples if at <= taken), key=lambda s: s.cpu)
            self._samples = [(at, s) for at, s in self._samples if at >= taken or s == self._kept]
        return {
            "cpu": spent.cpu,
            "gpu": spent.gpu,
            "kept_cpu": self._kept.cpu,
            "kept_gpu": self._kept.gpu,
            "rate": self._rate,
            "devices": held,
            "final": float(final),
            "code": self.code,
        }

    def _seconds(self) -> float:
        below = max(0.0, _live_seconds(os.getpid()) - self._before)
        return unbooked_seconds() + below + self.elsewhere()


def note_checkpoint(
    state: State | None, *, taken: float | None = None, devices: int | None = None
) -> None:
    """Note when the state of a checkpoint that is whole now was `taken` (time of this machine), or
    how many devices the processes of this attempt hold. A note that fails makes the loss larger."""
    if state is None:
        return
    note: dict[str, Any] = {**_read_note(state), "holder": state.folder.name}
    note |= {name: v for name, v in (("taken", taken), ("devices", devices)) if v is not None}
    place = state.folder.parents[2] / _KEPT
    partial = place.with_name(f"{_KEPT}.{os.getpid()}.partial")
    with suppress(OSError):
        partial.write_text(json.dumps(note))
        partial.replace(place)


def _read_note(state: State | None) -> dict[str, Any]:
    """What this very holder of the lease noted."""
    if state is None:
        return {}
    try:
        note = json.loads((state.folder.parents[2] / _KEPT).read_text())
    except (OSError, ValueError):
        return {}
    mine = isinstance(note, dict) and note.get("holder") == state.folder.name
    return dict(note) if mine else {}


def account_for(
    backend: Backend, lease: Lease, continued: Spent, codes: Iterable[str]
) -> dict[str, float]:
    """For the manifest's telemetry: what the attempts before this one spent.

    `continued` is what they spent on the shards that this one has from them; their checkpoints
    count as continued from if their program is among `codes`. `lost_…` is the rest.
    """
    codes = set(codes)
    spent, kept, attempts = Spent(), continued, 0
    for record in earlier_records(backend, lease):
        spent += _spent_by(record.spent)
        attempts += 1
        if record.spent.get("code") in codes:
            kept += Spent(_number(record.spent, "kept_cpu"), _number(record.spent, "kept_gpu"))
    lost = spent - kept
    earlier = spent - lost
    return {
        "earlier_attempts": attempts,
        "earlier_cpu_seconds": round(earlier.cpu, 3),
        "earlier_gpu_seconds": round(earlier.gpu, 3),
        "lost_cpu_seconds": round(lost.cpu, 3),
        "lost_gpu_seconds": round(lost.gpu, 3),
    }


def _spent_by(note: Mapping[str, float | str]) -> Spent:
    """What an attempt spent in all, by the last note that it left."""
    spent = Spent(_number(note, "cpu"), _number(note, "gpu"))
    if note.get("final"):
        return spent
    rate = max(1.0, _number(note, "rate"))
    return spent + Spent(HEARTBEAT_SECONDS * rate, HEARTBEAT_SECONDS * _number(note, "devices"))


def _number(note: Mapping[str, float | str], name: str) -> float:
    value = note.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _live_seconds(process: int) -> float:
    """CPU seconds of all processes below `process` that live, and of those that they waited for."""
    waiting, ticks = _children(process), 0
    while waiting:
        child = waiting.pop()
        with suppress(OSError, ValueError, IndexError):  # It must never stop a heartbeat.
            fields = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += sum(map(int, fields[11:15]))
            waiting += _children(child)
    return ticks / os.sysconf("SC_CLK_TCK")


def _children(process: int) -> list[int]:
    """Processes whose parent is a thread of `process`; none where the system does not list them."""
    children: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            with suppress(OSError, ValueError):
                text = Path(f"/proc/{process}/task/{thread}/children").read_text()
                children += map(int, text.split())
    return children
