"""`python -P -m flows.analysis.watched_child RECORD [STRIKE] -- NAME --store … --spec …`.

It is the stage's own entry with two differences: it writes the checksum of each training step's
batch to RECORD, and ends itself with SIGKILL at the moment that STRIKE names. With several ranks,
each of them is this program again, as `--rank RECORD STRIKE JOB`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

SEPARATOR = "--"
RANK = "--rank"


def record_batches(record: str, strike: str, rank: int = 0) -> None:
    """Record batches in the file `record` from now on, and kill this process as `strike` says.

    `step:7`: within training step 7, after its data was read; `point:NAME:2`: at the second pass of
    that failpoint; empty: never. `step:7@1` is for rank 1 alone; without a number it is rank 0's.
    """
    from artifacts_schema.store import failpoints
    from stages.training import prefetch

    strike, _, victim = strike.partition("@")
    kind, _, rest = strike.partition(":")
    if rank != int(victim or 0):
        kind = ""
    file = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write_batch(step: int, value: Any) -> None:
        line = json.dumps([step, batch_hash(value), row_hashes(value)]) + "\n"
        os.write(file, line.encode())  # One call: several ranks append.
        if kind == "step" and step == int(rest):
            _kill_self()

    prefetch.on_batch = write_batch
    if kind == "point":
        name, _, visits = rest.rpartition(":")
        failpoints.on_failpoint = _kill_at_visit(name, int(visits))


def batch_hash(value: Any) -> str | None:
    """sha256 over all arrays of a batch, in the order of its fields; None for a skipped step."""
    if value is None:
        return None
    digest = hashlib.sha256()
    for part in _array_parts(value):
        digest.update(part)
    return digest.hexdigest()


def row_hashes(value: Any) -> list[str]:
    """sha256 of each row of a batch that has such, over its arrays; the same in any layout.

    Rows that only fill a rank's batch up (`filled`, at the end) are none.
    """
    import numpy as np

    tokens = getattr(getattr(value, "rows", None), "tokens_BL", None)
    if tokens is None:
        return []
    count = len(tokens) - int(getattr(value, "filled", 0))
    arrays = [one for one in _arrays(value) if one.ndim and len(one) == len(tokens)]
    hashes = []
    for row in range(count):
        digest = hashlib.sha256()
        for array in arrays:
            digest.update(np.ascontiguousarray(array[row]).tobytes())
        hashes.append(digest.hexdigest()[:16])
    return hashes


def _arrays(value: Any) -> Iterator[Any]:
    """NumPy arrays of a batch, in the order of its fields."""
    import numpy as np

    if dataclasses.is_dataclass(value):
        for one in dataclasses.fields(value):
            yield from _arrays(getattr(value, one.name))
    elif isinstance(value, np.ndarray):
        yield value


def _array_parts(value: Any) -> Iterator[bytes]:
    import numpy as np
    import torch

    if dataclasses.is_dataclass(value):
        for one in dataclasses.fields(value):
            yield from _array_parts(getattr(value, one.name))
    elif isinstance(value, Mapping):
        yield from (part for pair in value.items() for part in _array_parts(pair))
    elif isinstance(value, list | tuple):
        yield from (part for one in value for part in _array_parts(one))
    elif isinstance(value, np.ndarray | torch.Tensor):
        array = np.ascontiguousarray(value)
        yield f"{array.dtype}{array.shape}".encode()
        yield array.tobytes()
    else:
        yield repr(value).encode()


def _kill_at_visit(name: str, visits: int) -> Callable[[str], None]:
    left = [visits]

    def reach(point: str) -> None:
        left[0] -= point == name
        if left[0] == 0:
            _kill_self()

    return reach


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    """Record batches, and run the stage's own entry, or a rank's."""
    if sys.argv[1] == RANK:
        from stages.engine.rank import main as rank_entry

        record, strike, job = sys.argv[2:]
        record_batches(record, strike, int(os.environ["RANK"]))
        return rank_entry([job])
    from stages.__main__ import main as entry
    from stages.engine import spmd

    end = sys.argv.index(SEPARATOR)
    record, strike = [*sys.argv[1:end], ""][:2]
    record_batches(record, strike)
    spmd.rank_program = ("flows.analysis.watched_child", RANK, record, strike)
    return entry(sys.argv[end + 1 :])


if __name__ == "__main__":
    sys.exit(main())
