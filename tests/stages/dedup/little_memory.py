"""Index, classes and candidates of made documents in one process; prints its peak memory.

`little_memory.py FOLDER DOCUMENTS ROWS` → peak bytes, documents, bucket tasks, distinct pairs.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from dedup_corpora import FILES, Maps, indexed_shard, output, result
from numpy.typing import NDArray

from stages.decontaminate.shingles import mix
from stages.dedup.candidates import bucket_tasks, propose, proposed_pairs
from stages.dedup.exact import find_exact_classes
from stages.dedup.index import Corpus, number_documents
from stages.dedup.index_files import (
    Generation,
    IndexShard,
    IndexWriter,
    Signed,
    run_documents,
)

BANDS, SHARD, BATCH = 14, 50_000, 2_000


def signed(low: int, high: int) -> Signed:
    """Documents of which every third shares all keys with the one before it, but no digest."""
    number = np.arange(low, high, dtype=np.uint64)
    keyed = np.where(number % 3 == 2, number - 1, number)
    return Signed(
        ids=drawn(number, 2, 0),
        words=drawn(number, 2, 2),
        texts=drawn(number, 2, 4),
        keys=drawn(keyed, BANDS, 6),
        compared=np.ones(len(number), dtype=bool),
        sizes=np.full(len(number), 3, np.int64),
        kept=np.full(len(number), 3, np.int64),
        shingles=drawn(number, 3, 40).ravel(),
    )


def drawn(number: NDArray[np.uint64], width: int, seed: int) -> NDArray[np.uint64]:
    """`width` random-looking values of each number."""
    places = np.arange(seed, seed + width, dtype=np.uint64)
    return mix(number[:, None] * np.uint64(64) + places + np.uint64(1))


def shard(folder: Path, low: int, high: int) -> IndexShard:
    out = output(folder, str(low))
    with ExitStack() as stack:
        files = {part: stack.enter_context(out.open_scratch(part)) for part in FILES}
        writer = IndexWriter(files, BANDS, run_documents(BANDS))
        for begin in range(low, high, BATCH):
            writer.add(signed(begin, min(begin + BATCH, high)))
        writer.flush()
    return indexed_shard(result(out, {}), writer, str(low), run_documents(BANDS))


def peak_bytes() -> int:
    """Peak resident size of this program; `getrusage` would count what its parent had."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def main(folder: Path, documents: int, rows: int) -> None:
    shards = [shard(folder, low, min(low + SHARD, documents)) for low in range(0, documents, SHARD)]
    sources = number_documents([Generation("0" * 64, "0", (), tuple(shards))])
    corpus = Corpus(sources, 0, BANDS, 1_000)
    maps = Maps(folder)
    classes = find_exact_classes(maps, corpus, rows)  # type: ignore[arg-type]
    tasks = bucket_tasks(corpus, rows)
    shared = {"max_bucket": 32, "rows": rows, "pairs_at_once": rows}
    results = maps.map(propose, tasks, corpus=corpus, classes=classes, **shared)
    peak = peak_bytes()
    pairs = len(proposed_pairs(results).between(0, documents))
    print(peak, corpus.documents, len(tasks), pairs)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
