"""What a run of a stage cost: CPU- and GPU-seconds of all the processes that worked for it.

Processes of this machine are counted by the operating system once they have ended and were waited
for, with all that they started themselves (pools, torchrun and its ranks). Workers on other
machines count the calls that they answer; what a lost one spent on its last call is not known.
"""

from __future__ import annotations

from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.engine.context import Context

ELSEWHERE = "dask_cpu_seconds"
"""Of a manifest's telemetry: the part of `cpu_seconds` that processes of other parents spent."""

_booked = 0.0
"""CPU seconds of this process, and those it waited for, that earlier stages were booked."""


def process_seconds() -> float:
    """CPU seconds of this process so far, and of the processes that it has waited for."""
    own, ended = (getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def cost_of_run(context: Context, seconds: float) -> dict[str, float]:
    """For the manifest's telemetry, at the end of a run that took so many seconds by the clock.

    `cpu_seconds` are all since the process began, or since the stage before it in this process
    ended. `gpu_seconds` are those that devices were held, busy or not: 0 for work on CPUs.
    """
    global _booked
    own = process_seconds()
    found = own - _booked + float(context.notes.get(ELSEWHERE, 0.0))
    _booked = own
    return {
        "cpu_seconds": round(found, 3),
        "gpu_seconds": round(seconds * context.devices_held, 3),
    }
