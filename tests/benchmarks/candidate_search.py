"""Candidate search of `dedup` beside the same in DuckDB: CPU seconds and memory, equal pairs.

    python -m tests.benchmarks.candidate_search [--documents 100000] [--shared 0 50000] [--rounds 3]

Documents of random band keys, of which three in ten share each key with an earlier one at a chance
of four in ten; `--shared` of them have one key of the first band in common, as the pages of one
template have. DuckDB reads the keys, with number and rank, from a Parquet file of each range of
keys, under one thread and `--memory` megabytes, ranks the members of each bucket by a window and
joins each with the first 128; both give (right, left, least band), and the pairs are compared. Each
run is a process of its own; memory is its peak above what it had before the search.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tests.benchmarks.extraction import table

BANDS, MOST, RANGES = 14, 128, 8
PAIRS = """
with m as (
  select band, key, number,
         row_number() over (partition by band, key order by rank, number) as place,
         count(*) over (partition by band, key) as members
  from read_parquet('{path}')
  qualify members > 1
)
insert into pairs
select greatest(a.number, b.number), least(a.number, b.number), min(a.band)
from m a join (select * from m where place <= {most}) b
  on a.band = b.band and a.key = b.key and b.place < a.place
group by all
"""


def keys_of(documents: int, shared: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Keys [documents, bands], and the rank of each document."""
    rng = np.random.default_rng(1700)
    keys = rng.integers(0, 1 << 64, (documents, BANDS), dtype=np.uint64)
    begin = documents * 7 // 10
    partners = rng.integers(0, begin, documents - begin)
    equal = rng.random((documents - begin, BANDS)) < 0.4
    keys[begin:] = np.where(equal, keys[partners], keys[begin:])
    keys[:shared, 0] = 77
    return keys, rng.integers(0, 1 << 64, documents, dtype=np.uint64)


def by_ingot(folder: Path, documents: int, shared: int, memory: int) -> tuple[float, int, str]:
    """CPU seconds, peak bytes and a digest of the pairs."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from dedup_corpora import Doc, Maps, classes_of, corpus_of

    from stages.dedup.candidates import bucket_tasks, propose, proposed_pairs

    keys, ranks = keys_of(documents, shared)
    docs = [
        Doc((rank << 64) | number, number, number, tuple(own))
        for number, (rank, own) in enumerate(zip(ranks.tolist(), keys.tolist(), strict=True))
    ]
    corpus = corpus_of(folder, [[docs]], bands=BANDS)
    classes, maps = classes_of(folder, corpus), Maps(folder)
    rows, at_once = memory * 10_000, memory * 5_000  # 50 bytes a row, 50 a pair: half of it each
    shared_ = {"corpus": corpus, "classes": classes, "max_bucket": MOST}
    del docs, keys

    def search() -> Iterator[list[NDArray[np.int64]]]:
        tasks = bucket_tasks(corpus, rows)
        results = maps.map(propose, tasks, **shared_, rows=rows, pairs_at_once=at_once)
        pairs = proposed_pairs(results)
        for low in range(0, documents, 1_000):  # As tasks of verification read them.
            own = pairs.between(low, low + 1_000)
            yield [own[name].astype(np.int64) for name in ("right", "left", "band")]

    deque(search(), 0)  # What is compiled on the first call a worker of a stage finds in a cache.
    shutil.rmtree(folder / "work" / "key" / "shards" / "propose", ignore_errors=True)
    return measured(search)


def by_duckdb(folder: Path, documents: int, shared: int, memory: int) -> tuple[float, int, str]:
    """The same."""
    import duckdb

    keys, ranks = keys_of(documents, shared)
    width = (1 << 64) // RANGES
    paths = []
    for part in range(RANGES):
        number, band = np.nonzero((keys // np.uint64(width)) == part)
        columns = {
            "band": band.astype(np.int16),
            "key": keys[number, band],
            "number": number.astype(np.int32),
            "rank": ranks[number],
        }
        paths.append(folder / f"{part}.parquet")
        pq.write_table(pa.table(columns), paths[-1], compression="none")
    del keys

    def search() -> Iterator[list[NDArray[np.int64]]]:
        settings = {"threads": 1, "memory_limit": f"{memory}MB", "temp_directory": str(folder)}
        with duckdb.connect(config=settings) as connection:
            connection.execute('create table pairs("right" int, "left" int, band int)')
            for path in paths:
                connection.execute(PAIRS.format(path=path, most=MOST))
            connection.execute(
                'select "right", "left", min(band) from pairs group by all order by all'
            )
            for batch in connection.to_arrow_reader(100_000):
                yield [column.to_numpy().astype(np.int64) for column in batch.columns]

    return measured(search)


def measured(search: Callable[[], Iterator[list[NDArray[np.int64]]]]) -> tuple[float, int, str]:
    """CPU seconds of a search, its peak above what was held before, and a digest of the pairs."""
    digests = [hashlib.sha256() for _ in range(3)]
    pairs = 0
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # What is free goes back, or it would be taken unseen.
    Path("/proc/self/clear_refs").write_text("5")
    before, begin = _status("VmRSS"), time.process_time()
    for columns in search():
        pairs += len(columns[0])
        for digest, column in zip(digests, columns, strict=True):
            digest.update(np.ascontiguousarray(column))
    spent, peak = time.process_time() - begin, _status("VmHWM")
    return spent, peak - before, f"{pairs:,} {' '.join(one.hexdigest()[:8] for one in digests)}"


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


SIDES = {"ingot": by_ingot, "duckdb": by_duckdb}


def run_side(side: str, documents: int, shared: int, memory: int) -> tuple[float, int, str]:
    """A side in a process of its own."""
    words = [str(documents), str(shared), str(memory)]
    command = [sys.executable, "-m", "tests.benchmarks.candidate_search", "--side", side, *words]
    one = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=one)
    if done.returncode:
        return float("nan"), 0, done.stderr.strip().splitlines()[-1][:60]
    spent, peak, pairs = json.loads(done.stdout)
    return spent, peak, pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, nargs="+", default=[100_000])
    parser.add_argument("--shared", type=int, nargs="+", default=[0, 50_000])
    parser.add_argument("--memory", type=int, nargs="+", default=[128, 1024], help="megabytes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        side, *numbers = options.side
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(SIDES[side](Path(folder), *map(int, numbers))))
        return
    rows = []
    for documents in options.documents:
        for shared in options.shared:
            for memory in options.memory:
                rounds = [
                    {side: run_side(side, documents, shared, memory) for side in SIDES}
                    for _ in range(options.rounds)
                ]
                row = [f"{documents:,}", f"{shared:,}", f"{memory}"]
                for side in SIDES:
                    row.append(f"{statistics.median(one[side][0] for one in rounds):.2f}")
                    row.append(f"{max(one[side][1] for one in rounds) / 1e6:.0f}")
                said = {one[side][2] for one in rounds for side in SIDES}
                rows.append([*row, "equal" if len(said) == 1 else " / ".join(sorted(said))])
                print(rows[-1], flush=True)
    head = ("documents", "of one key", "MB", *(f"{s}, {u}" for s in SIDES for u in ("CPU s", "MB")))
    print(table((*head, "pairs"), rows))


if __name__ == "__main__":
    main()
