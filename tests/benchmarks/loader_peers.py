"""Rows of tokens read by MosaicML streaming, by the Python of an environment that has it.

    PYTHON tests/benchmarks/loader_peers.py ROWS.npy FOLDER BATCH

Writes the rows as MDS shards into FOLDER once, as LLM Foundry's converters do (a sample is a row,
an ndarray of its type), then reads shuffled epochs without worker processes: for every line on
standard input so many batches of [BATCH, length] int64, and a line with tokens and CPU seconds
back. No targets, positions or documents are made. This file imports nothing of the project.
"""

from __future__ import annotations

import importlib.machinery
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np


class StandIn:
    """Takes the place of torchvision, which the library imports for its data sets of images."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """A module of torchvision, or None."""
        if name.partition(".")[0] != "torchvision":
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> types.ModuleType:
        """A module in which every name is a class of that name."""
        module = types.ModuleType(spec.name)
        module.__getattr__ = _a_class  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing."""


def _a_class(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})


def write(rows: Any, folder: Path) -> None:
    """MDS shards of 64 MB, uncompressed."""
    from streaming import MDSWriter

    columns = {"tokens": f"ndarray:{rows.dtype.name}"}
    with MDSWriter(out=str(folder), columns=columns, size_limit=1 << 26) as writer:
        for row in rows:
            writer.write({"tokens": np.ascontiguousarray(row)})


def batches(folder: Path, size: int) -> Iterator[Any]:
    """Batches without end, in the order of the library's default shuffle."""
    from streaming import StreamingDataset

    dataset = StreamingDataset(
        local=str(folder), shuffle=True, shuffle_seed=1, batch_size=size, num_canonical_nodes=1
    )
    while True:
        held = []
        for sample in dataset:
            held.append(sample["tokens"])
            if len(held) == size:
                yield np.stack(held).astype(np.int64)
                held = []


def main() -> None:
    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError):  # One that was built for another torch.
        sys.meta_path.insert(0, StandIn())  # type: ignore[arg-type]
    rows = np.load(sys.argv[1], mmap_mode="r")
    folder, size = Path(sys.argv[2]), int(sys.argv[3])
    if not (folder / "index.json").exists():
        write(rows, folder)
    stream = batches(folder, size)
    next(stream)
    print("ready", flush=True)
    for line in sys.stdin:
        tokens, start = 0, time.process_time()
        for _ in range(int(line)):
            tokens += next(stream).size
        print(tokens, time.process_time() - start, flush=True)


if __name__ == "__main__":
    main()
