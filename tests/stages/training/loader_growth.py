"""By how many bytes the memory of this process grows while it reads batches.

python loader_growth.py FOLDER SEQUENCES_A_BATCH WARM_UP BATCHES

The folder holds shards as `WrittenShards` describes them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from written_shards import WrittenShards

from stages.training.sample_clock import Phase, SampleClock, clock_batch
from stages.training.token_shards import TokenShards


def resident() -> int:
    """Bytes of this process in memory, mapped files included."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    per_batch, warm_up, batches = map(int, sys.argv[2:])
    loader = TokenShards([WrittenShards(Path(sys.argv[1])).listed()])
    phase = Phase(warm_up + batches, per_batch, loader.sequence_length)
    clock = SampleClock(loader.sequences, [phase], seed=1)
    for step in range(1, warm_up):
        clock_batch(loader, clock, step)
    before = resident()
    for step in range(warm_up, warm_up + batches):
        clock_batch(loader, clock, step)
    print(resident() - before)


if __name__ == "__main__":
    main()
