"""Telemetry over ranks: memory and work of each, stragglers, time and bytes in collectives.

Every so many training steps one step is profiled on all ranks, by torch's profiler. All ranks take
about as long for a step, because they wait for each other; so a slow one shows by its own work, not
by its steps. What a rank does in a step is

    work      operations on tensors
    exposed   a collective runs, and no operation does: the rank waits for it
    hidden    a collective runs while operations do

Bytes are what a rank gives to a collective; seconds are from its start to its end, the wait for
other ranks included. Gloo does a reduce-scatter as an all-reduce, and is reported so.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

from stages.parallel.ranks import Ranks
from stages.training.callbacks import Callback, StepDone
from stages.training.hardware import Reading

LINES = "ranks.jsonl"
SLOW, SLOW_PROFILES = 1.5, 2
"""A rank is a straggler whose work takes so many times the median of its stage, in so many
profiles one after another."""
_BACKENDS = ("gloo:", "nccl:")
_SIZES = {"float": 4, "double": 8, "c10::BFloat16": 2, "c10::Half": 2, "long": 8, "long int": 8}

Span = tuple[float, float]


@dataclass(frozen=True)
class StepProfile:
    """What one rank did in one training step; seconds, bytes. `collectives[kind]` has calls, bytes
    that the rank gave, and seconds from the start to the end of each call."""

    rank: int
    seconds: float
    work: float
    exposed: float
    hidden: float
    process_bytes: int
    device_peak_bytes: int | None
    collectives: Mapping[str, Mapping[str, float]]


def merge(spans: Iterable[Span]) -> list[Span]:
    """The same time as spans that do not overlap, in order."""
    results: list[Span] = []
    for start, end in sorted(spans):
        if results and start <= results[-1][1]:
            results[-1] = (results[-1][0], max(end, results[-1][1]))
        else:
            results.append((start, end))
    return results


def length(spans: Iterable[Span]) -> float:
    """Time in merged spans."""
    return sum(end - start for start, end in spans)


def common(one: Sequence[Span], other: Sequence[Span]) -> float:
    """Time that is in both of two lists of merged spans."""
    return length(one) + length(other) - length(merge([*one, *other]))


def profile_of(events: Iterable[Any], rank: int, seconds: float, reading: Reading) -> StepProfile:
    """The profile of a step from the events of `torch.profiler`, whose times are microseconds."""
    work, sent = list[Span](), list[Span]()
    kinds: defaultdict[str, dict[str, float]] = defaultdict(
        lambda: {"calls": 0, "bytes": 0, "seconds": 0.0}
    )
    for event in events:
        span = event.time_range.start / 1e6, event.time_range.end / 1e6
        kind = next((event.name[len(b) :] for b in _BACKENDS if event.name.startswith(b)), None)
        if kind is not None:
            sent.append(span)
            row = kinds[kind]
            row["calls"] += 1
            row["seconds"] += span[1] - span[0]
            row["bytes"] += _bytes(event)
        elif event.name.startswith("aten::"):
            work.append(span)
    work, sent = merge(work), merge(sent)
    hidden = common(work, sent)
    return StepProfile(
        rank=rank,
        seconds=seconds,
        work=length(work),
        exposed=length(sent) - hidden,
        hidden=hidden,
        process_bytes=reading.process_bytes,
        device_peak_bytes=reading.device_peak_bytes,
        collectives={kind: dict(row) for kind, row in sorted(kinds.items())},
    )


def _bytes(event: Any) -> int:
    shapes, dtypes = event.input_shapes or [], getattr(event, "input_dtypes", None) or []
    sizes = (_SIZES.get(dtype, 4) for dtype in dtypes)
    return sum(prod(shape) * size for shape, size in zip(shapes, sizes, strict=False) if shape)


def stragglers(profiles: Sequence[StepProfile], ranks: Ranks) -> list[int]:
    """Ranks whose work takes much longer than that of others with the same layers."""
    size = ranks.world // ranks.layout.pipeline
    results = []
    for first in range(0, ranks.world, size):
        stage = profiles[first : first + size]
        usual = median(one.work for one in stage)
        results += [one.rank for one in stage if len(stage) > 1 and one.work > SLOW * usual]
    return results


class RankTelemetry(Callback):
    """Profiles every `every`-th training step on this rank; rank 0 writes what all ranks saw.

    To be called on all ranks. `alert` is called on rank 0 with a rank that became a straggler.
    """

    def __init__(
        self,
        folder: Path,
        ranks: Ranks,
        *,
        every: int,
        sensors: Callable[[], Reading],
        alert: Callable[[int, str], None],
    ) -> None:
        self.path, self.ranks, self.every, self.sensors = folder / LINES, ranks, every, sensors
        self._alert = alert
        self._profiler: Any = None
        self._start = 0.0
        self._slow: dict[int, int] = {}

    def step_done(self, done: StepDone) -> None:
        """End the profile of this step, or begin that of the next."""
        if self._profiler is not None:
            self._end(done.training_step)
        if (done.training_step + 1) % self.every == 0:
            self._begin()

    def ended(self, error: BaseException | None) -> None:
        """Profile no more."""
        if self._profiler is not None:
            self._profiler.stop()
            self._profiler = None

    def _begin(self) -> None:
        from torch.profiler import ProfilerActivity, profile

        self._profiler = profile(activities=[ProfilerActivity.CPU], record_shapes=True)
        self._profiler.start()
        self._start = time.monotonic()

    def _end(self, training_step: int) -> None:
        seconds = time.monotonic() - self._start
        self._profiler.stop()
        events, self._profiler = self._profiler.events(), None
        own = profile_of(events, self.ranks.rank, seconds, self.sensors())
        profiles = self.ranks.gather(own)
        if not self.ranks.first:
            return
        with self.path.open("a", encoding="utf-8") as file:
            for one in profiles:
                row = {"time": time.time(), "training_step": training_step, **asdict(one)}
                file.write(json.dumps(row) + "\n")
        slow = stragglers(profiles, self.ranks)
        self._slow = {rank: self._slow.get(rank, 0) + 1 for rank in slow}
        usual = median(one.work for one in profiles)
        for rank, times in self._slow.items():
            if times == SLOW_PROFILES:
                self._alert(
                    training_step,
                    f"rank {rank} is slow: {profiles[rank].work:.2f} s of work in a training step, "
                    f"the median is {usual:.2f} s",
                )
