"""`python -P -m flows.analysis.watched_child RECORD [STRIKE] -- NAME --store … --spec …`.

It is the stage's own entry with two differences: it writes the checksum of each training step's
batch to RECORD, and ends itself with SIGKILL at the moment that STRIKE names.
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


def record_batches(record: str, strike: str) -> None:
    """Record batches in the file `record` from now on, and kill this process as `strike` says.

    `step:7`: within training step 7, after its data was read; `point:NAME:2`: at the second pass of
    that failpoint; empty: never.
    """
    from artifacts_schema.store import failpoints
    from stages.training import prefetch

    kind, _, rest = strike.partition(":")
    file = open(record, "a", encoding="utf-8", buffering=1)  # noqa: SIM115

    def write_batch(step: int, value: Any) -> None:
        file.write(json.dumps([step, batch_hash(value)]) + "\n")
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
    """Record batches, and run the stage's own entry."""
    from stages.__main__ import main as entry

    end = sys.argv.index(SEPARATOR)
    record, strike = [*sys.argv[1:end], ""][:2]
    record_batches(record, strike)
    return entry(sys.argv[end + 1 :])


if __name__ == "__main__":
    sys.exit(main())
