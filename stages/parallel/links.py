"""How fast each rank computes, and how fast it talks to others, measured in a second before a run.

Ranks stand in a ring, as a ring all-reduce has them. Each exchanges a message with the next one,
neighbours two by two, so that every rank is measured on two links; and all add up one message.

An all-reduce of S bytes over n ranks sends 2 (n - 1) / n · S through each link, a reduce-scatter or
all-gather of S bytes in all half of that; so divided by their time the figures of all compare with
the rate of a link ("bus bandwidth": NVIDIA's nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import torch
import torch.distributed as dist

from stages.parallel.ranks import Ranks

BYTES = {"cpu": 4 << 20, "cuda": 64 << 20}
"""Of a message: long enough that its length decides, not its start."""
SIDE = {"cpu": 256, "cuda": 4096}
"""Of the square matrices whose product each rank computes."""
ROUNDS = 4
"""The first one connects; the best of the others counts, so that a busy moment does not."""
SLOW = 3.0
"""A link is slow that has less than the median of its kind by this factor; a rank that takes longer
than the median for the same product."""


class Link(NamedTuple):
    """Bytes a second between two ranks in both directions at once; `local` on one machine."""

    one: int
    other: int
    rate: float
    local: bool


@dataclass(frozen=True)
class Links:
    """What was measured of all ranks; the same on each."""

    machines: Sequence[str]
    """Name of each rank's machine."""
    work: Sequence[float]
    """Seconds of each rank for the same product of matrices."""
    ring: Sequence[Link]
    all_reduce: float
    """Bus bandwidth of an all-reduce over all ranks, bytes a second."""

    @property
    def slowest(self) -> Link:
        """The link that a ring waits for."""
        return min(self.ring, key=lambda one: one.rate)

    def slow_links(self) -> list[Link]:
        """Links that are much slower than others of their kind, on one machine or between two."""
        results = []
        for local in (True, False):
            kind = [one for one in self.ring if one.local == local]
            if len(kind) > 2:
                usual = median(one.rate for one in kind)
                results += [one for one in kind if one.rate * SLOW < usual]
        return results

    def slow_ranks(self) -> list[int]:
        """Ranks that compute much more slowly than others."""
        usual = median(self.work)
        return [rank for rank, seconds in enumerate(self.work) if seconds > SLOW * usual]

    def named(self, rank: int) -> str:
        """A rank for people, with its machine where there are several."""
        where = f" ({self.machines[rank]})" if len(set(self.machines)) > 1 else ""
        return f"rank {rank}{where}"


def ring_seconds(kind: str, size: float, ranks: int, rate: float) -> float | None:
    """What a collective takes at least where a ring of `ranks` has `rate` bytes a second.

    `size` is what a rank gives to it, in bytes; None for a kind that is no collective of a ring.
    """
    parts = {
        "all_reduce": 2 * (ranks - 1) / ranks,
        "reduce_scatter": (ranks - 1) / ranks,
        "all_to_all": (ranks - 1) / ranks,
        "all_gather": ranks - 1,
        "broadcast": 1.0,
        "send": 1.0,
    }
    part = next((part for name, part in parts.items() if kind.lstrip("_").startswith(name)), None)
    return None if part is None else part * size / rate


def measure_links(ranks: Ranks, clock: Callable[[], float] = time.perf_counter) -> Links:
    """To be called on all of at least two ranks at once."""
    device = ranks.device
    message = torch.zeros(BYTES[device.type] // 4, device=device)
    work = _best(ranks, clock, lambda: _multiply(device))
    names = ranks.gather(platform.node())
    rates: dict[int, float] = {}
    for pairs in _phases(ranks.world):
        mine = next((pair for pair in pairs if ranks.rank in pair), None)
        seconds = _best(ranks, clock, lambda mine=mine: _exchange(ranks.rank, mine, message))  # type: ignore[misc]
        if mine is not None and ranks.rank == mine[0]:
            rates[mine[0]] = message.nbytes / seconds
    ring = [
        Link(
            first, (first + 1) % ranks.world, rate, names[first] == names[(first + 1) % ranks.world]
        )
        for by_first in ranks.gather(rates)
        for first, rate in by_first.items()
    ]
    seconds = max(ranks.gather(_best(ranks, clock, lambda: dist.all_reduce(message))))
    bus = 2 * (ranks.world - 1) / ranks.world * message.nbytes / seconds
    return Links(names, ranks.gather(work), sorted(ring), bus)


def _phases(world: int) -> list[list[tuple[int, int]]]:
    """The links of a ring, from each rank to the next, in groups in which no rank has two."""
    links = [(rank, (rank + 1) % world) for rank in range(world)]
    if world == 2:
        return [links[:1]]
    even, odd, last = links[0 : world - 1 : 2], links[1 : world - 1 : 2], links[-1]
    return [even, [*odd, last]] if world % 2 == 0 else [even, odd, [last]]


def _best(ranks: Ranks, clock: Callable[[], float], act: Callable[[], object]) -> float:
    """Seconds of the fastest round; all ranks start each together."""
    spent = []
    for _ in range(ROUNDS):
        dist.barrier()
        began = clock()
        act()
        if ranks.device.type == "cuda":
            torch.cuda.synchronize(ranks.device)
        spent.append(clock() - began)
    return min(spent[1:])


def _multiply(device: torch.device) -> torch.Tensor:
    side = SIDE[device.type]
    one = torch.ones(side, side, device=device)
    for _ in range(4):
        one = (one @ one).clamp(max=1.0)
    return one


def _exchange(rank: int, pair: tuple[int, int] | None, message: torch.Tensor) -> None:
    if pair is None:
        return
    other = pair[1] if rank == pair[0] else pair[0]
    received = torch.empty_like(message)
    transfers = [dist.P2POp(dist.isend, message, other), dist.P2POp(dist.irecv, received, other)]
    for transfer in dist.batch_isend_irecv(transfers):
        transfer.wait()
