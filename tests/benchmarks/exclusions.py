"""Exclusion lists, sorted once, beside pyarrow's `is_in` over the whole list for each shard.

    python -m tests.benchmarks.exclusions [--names 10000 1000000] [--shards 100] [--documents 1000]

A shard's ids are looked for in a list of so many names, of which it has one in a hundred. Told are
CPU seconds of all shards, sorting included, and their quotient.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stages.filter.exclusions import Exclusions, _sorted_names, write_sorted
from tests.benchmarks.extraction import table
from tests.benchmarks.filter_scale import ids_of


class Listed:
    """A list as an input of a stage holds it: one table."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read_table(self, path: str, columns: list[str] | None = None) -> pa.Table:
        """The table, or some columns of it."""
        return pq.read_table(self.path, columns=columns, use_threads=False)


class Left:
    """A scratch file as a map leaves it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def path(self) -> Path:
        """Where it is."""
        return self._path


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a call, and what it gave."""
    begin = time.process_time()
    result = run()
    return time.process_time() - begin, result


def measured(folder: Path, names: int, shards: list[pa.ChunkedArray]) -> list[str]:
    """A row of the table; both must name the same ids."""
    listed = Listed(folder / "list.parquet")
    own = [shard.chunk(0)[::100] for shard in shards]
    among = pa.concat_arrays([*own, ids_of(10**6, 0, names)])[:names]
    order = np.random.default_rng(0).permutation(len(among))
    reason = pa.array(["asked"] * len(among))
    pq.write_table(pa.table({"doc_id": among.take(pa.array(order)), "reason": reason}), listed.path)

    def by_sorting() -> list[int]:
        with (folder / "sorted.parquet").open("wb") as file:
            write_sorted(_sorted_names([(listed, "")]), file)  # type: ignore[list-item]
        lists = Exclusions(files=(Left(folder / "sorted.parquet"),))  # type: ignore[arg-type]
        return [int(lists.include(shard).sum()) for shard in shards]

    def by_is_in() -> list[int]:
        counts = []
        for shard in shards:
            every = listed.read_table("")["doc_id"].combine_chunks()
            counts.append(pc.sum(pc.is_in(shard, value_set=every)).as_py())
        return counts

    ours, found = seconds(by_sorting)
    theirs, expected = seconds(by_is_in)
    assert found == expected
    return [f"{names:,}", f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--names", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--shards", type=int, default=100)
    parser.add_argument("--documents", type=int, default=1_000)
    options = parser.parse_args()
    shards = [
        pa.chunked_array([ids_of(number, 0, options.documents)]) for number in range(options.shards)
    ]
    with tempfile.TemporaryDirectory() as folder:
        rows = [measured(Path(folder), names, shards) for names in options.names]
    print(table(("names", "sorted once", "is_in for each shard", "quotient"), rows))


if __name__ == "__main__":
    main()
