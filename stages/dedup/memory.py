"""How much a process may hold at once, from the memory of the whole run and its workers.

What a budget decides is how the work is cut, never an output byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from artifacts_schema.errors import UsageError
from stages.engine.sizes import bytes_of

if TYPE_CHECKING:
    from stages.dedup.config import DedupExecution
    from stages.engine import Context

MIB = 1 << 20
FIXED = 320 * MIB
"""A worker before it holds a document: interpreter, Arrow and NumPy (110 MiB), compiled functions
and what loads them (100), a run of documents with its keys and a batch of text being signed (100);
measured as peak resident size on Linux x86-64, Python 3.11, pyarrow 26, numba 0.68."""
PARENT = 224 * MIB
"""The stage's own process, where workers do the rest."""
LEAST = 32 * MIB
"""Less than this would cut the work into too many pieces."""
SHINGLES = 8 * MIB
"""More shingles at once than a core's caches hold are not compared faster."""
ROW, PAIR = 80, 80
"""Bytes of a document while a range of digests or keys is sorted, and of a candidate pair until it
is written; with the copies that sorting makes."""


@dataclass(frozen=True)
class Budget:
    """What one process holds at once, beside what it always takes."""

    bytes: int
    """All of it."""

    @property
    def rows(self) -> int:
        """Documents whose digests or keys are sorted at once (`rows` of `exact_classes`,
        `bucket_tasks` and `propose`)."""
        return self.bytes // (ROW + PAIR)

    @property
    def pairs(self) -> int:
        """Candidate pairs held beside those documents (`pairs_at_once` of `propose`)."""
        return self.rows

    @property
    def pair_bytes(self) -> int:
        """Verified pairs held while they are gathered by document."""
        return self.bytes // 2

    @property
    def shingle_bytes(self) -> int:
        """Shingles held while pairs are verified; the rest is for the pairs and for working."""
        return min(self.bytes // 2, SHINGLES)


def budget(memory: int, workers: int) -> Budget:
    """What each of `workers` processes may hold, where all together are to take `memory` bytes.

    Raises UsageError if that is too little to work with.
    """
    parent = PARENT if workers > 1 else 0
    each = (memory - parent) // workers - FIXED
    if each < LEAST:
        least = parent + workers * (FIXED + LEAST)
        fewer = " or fewer workers" if workers > 1 else ""
        raise UsageError(
            f"{_told(memory)} of memory do not do for {workers} worker{'s' * (workers > 1)}: "
            f"at least {_told(least)} are needed",
            where="memory",
            hint=f"set memory: {-(-least // MIB)}MiB{fewer}",
        )
    return Budget(each)


def workers_within(memory: int) -> int:
    """How many workers `memory` bytes do for; 1 where they do for none."""
    return max((memory - PARENT) // (FIXED + LEAST), 1)


def _told(size: int) -> str:
    return f"{size / MIB:,.0f} MiB" if size < 10 * 1024 * MIB else f"{size / MIB / 1024:,.1f} GiB"


def within_memory(context: Context) -> Budget:
    """The budget of the run's processes; fewer of them where nobody said how many and memory is
    short. A worker of a cluster takes all that `memory` says."""
    execution: DedupExecution = context.execution
    memory = bytes_of(execution.memory)
    if execution.engine == "dask":
        return budget(memory, 1)
    if execution.workers is None:
        workers = min(context.workers, workers_within(memory))
        context.execution = execution.model_copy(update={"workers": workers})
    return budget(memory, context.workers)
