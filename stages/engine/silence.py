"""How long a worker process has done nothing: stopped, or stuck in the kernel.

A busy worker uses its processors; one that waits for an outside server, or for its turn there, says
so. One that does neither is silent. A thread of every worker looks for its parent twice a second,
which takes less than 0.01 % of a core: below `LEAST_SHARE` a process only waits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

WARN_SECONDS = 60.0
LOOK_SECONDS = 1.0
"""How often a worker is looked at."""
LEAST_SECONDS, LEAST_SHARE = 0.02, 0.0005
"""CPU time, in seconds and as a share of the time since, that shows work. The kernel counts in
hundredths of a second."""


def cpu_seconds(process: int) -> float | None:
    """CPU time of all threads of a process; None where that is not known."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Silence:
    """Of one worker, while it does one call; begins when the call does.

    Time counts only in looks: one that comes far too late says that the process that looks stood
    still itself.
    """

    process: int
    cpu: Callable[[int], float | None] = cpu_seconds
    seconds: float = 0.0
    """How long it has been silent."""
    warned: bool = False

    def __post_init__(self) -> None:
        self._used = self.cpu(self.process)

    def reset(self) -> None:
        """The worker gave a sign of life."""
        self.seconds, self.warned, self._used = 0.0, False, self.cpu(self.process)

    def look(self, passed: float) -> None:
        """So many seconds have passed since the last look."""
        self.seconds += min(passed, 2 * LOOK_SECONDS)
        used = self.cpu(self.process)
        if used is None or self._used is None:
            self.reset()  # Nobody can tell: not silent.
        elif used - self._used >= max(LEAST_SECONDS, LEAST_SHARE * self.seconds):
            self.reset()

    def is_to_warn(self) -> bool:
        """Whether it has been silent for so long that people should know; True once."""
        due = self.seconds >= WARN_SECONDS and not self.warned
        self.warned |= due
        return due
