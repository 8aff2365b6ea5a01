"""`python -P -m flows.proving.child RECORD [STRIKE] -- NAME --store … --spec …`: a stage, watched.

It is the stage's own entry, with two differences: a line for each training step tells the checksum
of the batch that the step was given, and at an agreed moment the process ends as `kill -9` ends it.
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


def watch(record: str, strike: str) -> None:
    """From now on tell batches to the file `record`, and die as `strike` says.

    `step:7` is within training step 7, after its data was read; `point:NAME:2` when the named point
    is passed a second time; an empty one is never.
    """
    from artifacts_schema.store import points
    from stages.training import prefetch

    kind, _, rest = strike.partition(":")
    file = open(record, "a", encoding="utf-8", buffering=1)  # noqa: SIM115

    def batch(step: int, value: Any) -> None:
        file.write(json.dumps([step, batch_hash(value)]) + "\n")
        if kind == "step" and step == int(rest):
            _die()

    prefetch.on_batch = batch
    if kind == "point":
        name, _, visits = rest.rpartition(":")
        points.on_reach = _counting(name, int(visits))


def batch_hash(value: Any) -> str | None:
    """sha256 over all arrays of a batch, in the order of its fields; None for a step left out."""
    if value is None:
        return None
    digest = hashlib.sha256()
    for part in _parts(value):
        digest.update(part)
    return digest.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    import numpy as np
    import torch

    if dataclasses.is_dataclass(value):
        for one in dataclasses.fields(value):
            yield from _parts(getattr(value, one.name))
    elif isinstance(value, Mapping):
        yield from (part for pair in value.items() for part in _parts(pair))
    elif isinstance(value, list | tuple):
        yield from (part for one in value for part in _parts(one))
    elif isinstance(value, np.ndarray | torch.Tensor):
        array = np.ascontiguousarray(value)
        yield f"{array.dtype}{array.shape}".encode()
        yield array.tobytes()
    else:
        yield repr(value).encode()


def _counting(name: str, visits: int) -> Callable[[str], None]:
    left = [visits]

    def reach(point: str) -> None:
        left[0] -= point == name
        if left[0] == 0:
            _die()

    return reach


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    """Watch, then do what the stage's entry does."""
    from stages.__main__ import main as entry

    given = sys.argv[1:]
    own, theirs = given[: given.index(SEPARATOR)], given[given.index(SEPARATOR) + 1 :]
    watch(own[0], own[1] if len(own) > 1 else "")
    return entry(theirs)


if __name__ == "__main__":
    sys.exit(main())
