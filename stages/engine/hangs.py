"""Find the rank that the others wait for, and end a run that hangs.

A collective operation waits for ever for a rank that does not take part. So a thread in each rank
writes a beat every few seconds: how many collective operations each of its groups has started, and
how many bytes its threads have read and written. The parent reads the beats. If nothing has changed
on any rank for the limit, the run hangs: a rank without beats is suspended, or stuck outside of
Python; otherwise the one that has started fewer operations than the others of a group is behind.

The parent then asks for stacks. Ranks write them, and PyTorch's flight recorder, from the thread
of the beats, so the main thread may be stuck.
"""

from __future__ import annotations

import faulthandler
import os
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from artifacts_schema.errors import Stopped
from stages.engine.rank_files import RankFolder

FACTOR = 20.0
"""Median training steps that a run may be silent, if that is longer than the floor."""
REMEMBERED = 100
"""Training steps in the median."""
TICKS = 10
"""Checks within the floor."""


class SilenceTimer:
    """How long a run has been silent, and how long it may be; seconds.

    A tick that took far longer than it should counts as two: the whole process stood still (a
    stopped job, a suspended machine), which is no hang.
    """

    def __init__(self, floor: float) -> None:
        self.floor = floor
        self.silent = 0.0
        self._steps: deque[float] = deque(maxlen=REMEMBERED)

    @property
    def tick(self) -> float:
        """Seconds between two checks."""
        return self.floor / TICKS

    @property
    def limit(self) -> float:
        """Silence that is a hang."""
        return max(self.floor, FACTOR * median(self._steps)) if self._steps else self.floor

    def alive(self, step_seconds: float | None = None) -> None:
        """Record a sign of life, with the seconds of a training step if it was one."""
        self.silent = 0.0
        if step_seconds is not None:
            self._steps.append(step_seconds)

    def passed(self, seconds: float) -> bool:
        """Record the time since the last check; whether the run hangs."""
        self.silent += min(seconds, 2 * self.tick)
        return self.silent > self.limit


@dataclass(frozen=True)
class Beat:
    """How far a rank is."""

    number: int
    host: str
    process: int
    operations: Mapping[str, int] = field(default_factory=dict)
    """Collective operations that it has started, by name of the process group."""
    bytes: int = 0
    """Bytes that its threads have read and written, without those of daemon threads."""
    position: str = ""
    """How far the work is, as it reported last."""
    dumped: bool = False
    """Whether it wrote its stacks, as it was asked to."""

    @property
    def progress(self) -> tuple[Any, ...]:
        """What changes while the rank works."""
        return dict(self.operations), self.bytes

    def has_ended(self) -> bool:
        """Whether its process is known to have ended: it is on this machine and not there."""
        import psutil

        return self.host == socket.gethostname() and not psutil.pid_exists(self.process)

    def describe(self) -> str:
        """Its process, and the state of that where it is on this machine."""
        import psutil

        state = ""
        if self.host == socket.gethostname():
            with suppress(psutil.Error):
                state = f", {psutil.Process(self.process).status()}"
        return f"process {self.process} of {self.host}{state}"


def read_beat(files: RankFolder, rank: int) -> Beat | None:
    """The last beat of a rank; None if there is none."""
    value = files.beat(rank).read()
    return Beat(**value) if value else None


# In a rank ----------------------------------------------------------------------------------------

MOST_SECONDS = 5.0
"""Longest time between two beats."""
LOOK_SECONDS = 0.25
"""How often a rank looks for requests of the parent."""
END_CODE = 128 + 15
"""Exit code of a rank that ends because another failed, as after SIGTERM."""


class RankBeats:
    """The thread of a rank that writes beats, and stacks when asked.

    It also ends the rank where that cannot do so itself, stuck in an operation: when the parent
    ended the launch, and when torchrun asked to end (`terminated`) because another rank failed. If
    no rank failed, `terminated` is a request to save and stop, which the stage answers.
    """

    def __init__(
        self,
        files: RankFolder,
        rank: int,
        world: int,
        *,
        watchdog: float | None,
        position: Callable[[], str],
        terminated: threading.Event,
    ) -> None:
        self.files, self.rank, self.world = files, rank, world
        self.seconds = min(MOST_SECONDS, (watchdog or 60.0) / (2 * TICKS))
        self._position, self._terminated = position, terminated
        self._number, self._dumped = 0, False
        self._operations: dict[str, int] = {}
        self.joined = False
        """Whether the process group exists: before, torch may be half imported."""
        self._host, self._parent = socket.gethostname(), os.getppid()
        self._launch = files.launch

    def start(self) -> None:
        """Write the first beat, and the others from a daemon thread. OSError: nothing can be
        written."""
        self._write()
        threading.Thread(target=self._loop, name="beats", daemon=True).start()

    def _loop(self) -> None:
        last = time.monotonic()
        while True:
            time.sleep(min(LOOK_SECONDS, self.seconds))
            if self.files.is_over(self._launch) or os.getppid() != self._parent:
                os._exit(END_CODE)
            if self._terminated.is_set() and self._another_failed():
                os._exit(END_CODE)
            if self.files.dump.exists() and not self._dumped:
                write_stacks(self.files, self.rank)
                self._dumped, last = True, 0.0
            if time.monotonic() - last >= self.seconds:
                last = time.monotonic()
                with suppress(OSError):  # Slots need no space; a share may be away for a moment.
                    self._write()

    def _write(self) -> None:
        self._number += 1
        if self.joined:
            with suppress(RuntimeError, ValueError):  # A group is being made or destroyed just now.
                self._operations = started_operations()
        beat = Beat(
            self._number,
            self._host,
            os.getpid(),
            self._operations,
            transferred_bytes(),
            self._position(),
            self._dumped,
        )
        self.files.beat(self.rank).write(asdict(beat))

    def _another_failed(self) -> bool:
        """Whether another rank has reported an error, or ended without a word."""
        for rank in range(self.world):
            if rank == self.rank:
                continue
            error = self.files.error(rank).read()
            if error is not None and error["kind"] != Stopped.__name__:
                return True
            beat = read_beat(self.files, rank)
            if error is None and beat is not None and beat.has_ended():
                return True
        return False


def started_operations() -> dict[str, int]:
    """Collective operations that this process has started, by name of the group."""
    import torch.distributed.distributed_c10d as c10d

    counts = {}
    for group, name in list(c10d._world.pg_names.items()):
        backends: dict[int, Any] = {
            id(one): one for one in map(group._get_backend, group._device_types)
        }
        numbers = (int(one._get_sequence_number_for_group()) for one in backends.values())
        counts[str(name)] = sum(numbers)
    return counts


def transferred_bytes() -> int:
    """Bytes that the threads of this process have read and written, without those of daemons.

    Waiting for other ranks transfers none. Linux only, elsewhere 0.
    """
    total = 0
    for thread in threading.enumerate():
        if thread.daemon or thread.native_id is None:
            continue
        with suppress(OSError, ValueError):  # A thread that has just ended.
            text = Path(f"/proc/self/task/{thread.native_id}/io").read_text()
            fields = dict(line.split(": ") for line in text.splitlines())
            total += int(fields["rchar"]) + int(fields["wchar"])
    return total


def write_stacks(files: RankFolder, rank: int) -> None:
    """Write where all threads of this process are, then the flight recorder if it can be read."""
    with suppress(OSError):  # A full disk: the error names the rank without them.
        with open(files.stacks(rank), "w") as file:
            faulthandler.dump_traceback(file, all_threads=True)
        if dump := _flight_recorder():
            files.flight(rank).write_bytes(dump)


def _flight_recorder() -> bytes:
    """The last collective operations of this process, as PyTorch pickles them.

    Empty where this PyTorch has none.
    """
    if "torch.distributed" not in sys.modules:
        return b""
    from torch._C import _distributed_c10d as c10d

    dump = getattr(c10d, "_dump_fr_trace", None)
    return bytes(dump()) if dump is not None else b""


# In the parent ------------------------------------------------------------------------------------

STACK_SECONDS = 30.0
"""How long stacks are waited for."""
START_SECONDS = 300.0
"""How long ranks may take to write their first beat, if that is longer than the limit."""


class HangMonitor:
    """Reads the beats of all ranks; `error` ends a run that hangs."""

    def __init__(
        self,
        files: RankFolder,
        world: int,
        limit: float | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.files, self.world, self.limit = files, world, limit
        self._timer = SilenceTimer(limit or 1.0)
        self._clock, self._started = clock, clock()
        self._last, self._silence = self._started, 0.0
        self._beats: dict[int, Beat] = {}
        self._changed: dict[int, float] = {}
        """When a rank's beat was seen to change last."""

    def hangs(self) -> bool:
        """Whether nothing has changed on any rank for the limit; cheap to call often."""
        now = self._clock()
        passed = now - self._last
        if self.limit is None or passed < self._timer.tick:
            return False
        self._last = now
        before = {rank: beat.progress for rank, beat in self._beats.items()}
        self._read(now)
        if len(self._beats) < self.world:
            self._silence = now - self._started
            return self._silence > max(self.limit, START_SECONDS)
        if {rank: beat.progress for rank, beat in self._beats.items()} != before:
            self._timer.alive()
        hangs = self._timer.passed(passed)
        self._silence = self._timer.silent
        return hangs

    def _read(self, now: float) -> None:
        for rank in range(self.world):
            beat = read_beat(self.files, rank)
            if beat is not None and beat != self._beats.get(rank):
                self._beats[rank], self._changed[rank] = beat, now

    def silent(self) -> list[int]:
        """Ranks that have written no beat for half of the limit, or none at all."""
        return [
            rank
            for rank in range(self.world)
            if rank not in self._changed or self._last - self._changed[rank] > self._timer.limit / 2
        ]

    def error(self) -> Stopped:
        """The error of a run that hangs, after its ranks wrote their stacks."""
        silent = self.silent()
        self.files.dump.touch()
        deadline = time.monotonic() + STACK_SECONDS
        wanted = [rank for rank in range(self.world) if rank not in silent]
        while time.monotonic() < deadline:
            beats = [read_beat(self.files, rank) for rank in wanted]
            if all(beat is not None and beat.dumped for beat in beats):
                break
            time.sleep(LOOK_SECONDS)
        positions = [beat.position for beat in self._beats.values() if beat.position]
        place = f", {positions[0]}" if positions else ""
        return Stopped(
            f"no progress for {self._silence:.0f} s: {self._blame(silent)}{place}",
            where=str(self.files.path),
            hint="stacks-N.txt there has the stacks of each rank; run the same command to continue",
        )

    def _blame(self, silent: Sequence[int]) -> str:
        """Which rank the others wait for."""
        if silent:
            ranks = [
                f"rank {rank} does not respond ({self._beats[rank].describe()})"
                if rank in self._beats
                else f"rank {rank} has not started"
                for rank in silent
            ]
            return ", ".join(ranks)
        operations = {rank: beat.operations for rank, beat in self._beats.items()}
        behind = ranks_behind(operations)
        if not behind:
            return "no rank is behind the others, perhaps the network is down"
        return ", ".join(
            f"rank {rank} is behind ({self._beats[rank].describe()}; {deficit})"
            for rank, deficit in behind.items()
        )

    def stack_of_slowest(self) -> tuple[int, str] | None:
        """A rank that is behind, and its stacks; None if no such rank wrote them."""
        operations = {rank: beat.operations for rank, beat in self._beats.items()}
        for rank in ranks_behind(operations):
            with suppress(OSError):
                return rank, self.files.stacks(rank).read_text(encoding="utf-8", errors="replace")
        return None


def ranks_behind(operations: Mapping[int, Mapping[str, int]]) -> dict[int, str]:
    """The ranks that others wait for, by the operations that each has started in each group.

    A rank of several groups that waits in one is late in the others, too: so only ranks count that
    have started fewer operations than another member of a group, and in no group more than another.
    A rank that reports no group has not joined and is behind. The text says how far.
    """
    most: dict[str, int] = {}
    least: dict[str, int] = {}
    for groups in operations.values():
        for name, count in groups.items():
            most[name] = max(count, most.get(name, count))
            least[name] = min(count, least.get(name, count))
    behind = {}
    for rank, groups in sorted(operations.items()):
        late = [name for name, count in groups.items() if count < most[name]]
        ahead = any(count > least[name] for name, count in groups.items())
        if late and not ahead:
            name = late[0]
            behind[rank] = f"{groups[name]:,} collective operations of {most[name]:,}"
        elif not groups and most:
            behind[rank] = "it has not joined the others"
    return behind
