"""How much memory and time `filter` takes to decide on many documents, without their texts.

    python -m tests.benchmarks.filter_scale [--documents 100000000] [--linked 0.2]

Shards of a million documents are made up as they are read: ids of 128 random bits, and a duplicates
table in which a share of the documents has a verified partner in the same shard. Decided is as the
stage does it in its own process: ids compared, links read, copies decided, classes named, and all
of it cut into shards, which are held as they are until tasks write them. Told are CPU seconds,
those of making the tables alone, and the peak of memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa

from artifacts_schema.file_table import File
from artifacts_schema.kinds import KINDS, sidecar_folder
from stages.engine.inputs import Input
from stages.filter.config import DuplicatesPolicy, FilterConfig
from stages.filter.document_ids import DocumentIds
from stages.filter.ledger import decided_shards
from stages.filter.links import read_copies
from stages.filter.sidecars import AlignedShard

SHARD, GROUP = 1_000_000, 8_192 * 8
HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
SCHEMA = KINDS["duplicates"].tables["*/*.parquet"].arrow()
DIGEST = "a" * 64


def ids_of(shard: int, start: int, rows: int) -> pa.StringArray:
    """The ids of some rows of a shard: the same whenever they are made."""
    raw = np.random.Philox(key=shard, counter=[start // 2, 0, 0, 0])
    words = raw.random_raw(2 * rows).astype(np.uint64).view(np.uint8).reshape(rows, 16)
    digits = np.empty((rows, 32), dtype=np.uint8)
    digits[:, 0::2], digits[:, 1::2] = HEX[words >> 4], HEX[words & 15]
    offsets = np.arange(0, 32 * (rows + 1), 32, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(digits))


@dataclass(frozen=True)
class MadeUp(Input):
    """An input whose tables are made as they are read."""

    linked: float = 0.0

    def row_groups(self, path: str, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """`doc_id`; of a duplicates table all columns, every so many rows a pair."""
        shard = int(path.rpartition("/")[2].removesuffix(".parquet"))
        rows = next(file.rows or 0 for file in self.files if file.path == path)
        for start in range(0, rows, GROUP):
            size = min(GROUP, rows - start)
            ids = ids_of(shard, start, size)
            if self.kind == "documents":
                yield pa.table({"doc_id": ids})
                continue
            step = max(2, round(2 / self.linked))
            lengths = np.zeros(size, dtype=np.int32)
            lengths[: size - 1 : step] = 1
            owners = np.flatnonzero(lengths)
            item = SCHEMA.field("partners").type.value_type
            columns_ = [
                ids.take(pa.array(owners + 1)),
                pa.array(np.full(len(owners), 0.9, np.float32)),
                pa.array(np.full(len(owners), 0.9, np.float32)),
                pa.array(np.zeros(len(owners), np.int32)),
            ]
            items = pa.StructArray.from_arrays(columns_, fields=list(item))
            offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
            lists = pa.ListArray.from_arrays(offsets, items, type=SCHEMA.field("partners").type)
            yield pa.table([ids, ids, ids, lists], schema=SCHEMA)

    def read_json(self, path: str) -> Any:
        """What `filter` asks of `dedup`'s statistics."""
        return {"parameters": {"floor": 0.5}}


def made_up(documents: int, linked: float) -> tuple[MadeUp, MadeUp]:
    """The documents, and the duplicates about them."""
    shards = [min(SHARD, documents - start) for start in range(0, documents, SHARD)]

    def make(kind: str, folder: str) -> MadeUp:
        files = tuple(
            File(path=f"{folder}{n:05d}.parquet", bytes=1, sha256="", rows=rows)
            for n, rows in enumerate(shards)
        )
        backend: Any = None
        return MadeUp(
            backend, kind, "made_up", DIGEST, kind, kind, DIGEST, files, False, linked=linked
        )

    return make("documents", ""), make("duplicates", f"{sidecar_folder(DIGEST)}/")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=100_000_000)
    parser.add_argument("--linked", type=float, default=0.2)
    options = parser.parse_args()
    documents, duplicates = made_up(options.documents, options.linked)
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock = [time.process_time()]
    for one in (documents, duplicates):
        for shard in one.shards("*"):
            for _ in shard.row_groups(["doc_id"]):
                pass
    clock.append(time.process_time())
    ids = DocumentIds(tuple(documents.shards()))
    ids.check_different()
    clock.append(time.process_time())
    policy = DuplicatesPolicy(threshold=0.8)
    known = read_copies([duplicates], [], [documents], ids, policy)
    clock.append(time.process_time())
    passes = np.ones(options.documents, dtype=bool)
    copies = known.decide(passes, policy)
    shards = [AlignedShard(shard.id, (), (), None, shard) for shard in documents.shards()]
    nothing: Any = None
    items = decided_shards(
        shards, [nothing] * len(shards), known, passes, copies, FilterConfig(duplicates=policy)
    )
    dropped = sum(len(item.copy_rows) for item in items)
    clock.append(time.process_time())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    expected = sum(
        len(range(0, min(GROUP, rows - start) - 1, max(2, round(2 / options.linked))))
        for rows in (shard.rows for shard in documents.shards())
        for start in range(0, rows, GROUP)
    )
    assert dropped == expected == sum(len(item.class_rows) for item in items)
    made, compared, read, decided = np.diff(clock)
    print(
        f"{options.documents:,} documents, {len(known.rows):,} of them linked, {dropped:,} copies"
    )
    print(f"tables made once   {made:8.1f} CPU s (part of each line below)")
    print(f"ids compared       {compared:8.1f} CPU s")
    print(f"links read         {read:8.1f} CPU s")
    print(f"decided            {decided:8.1f} CPU s")
    print(f"peak of memory     {peak * 1024 / 2**30:8.2f} GiB, {begun * 1024 / 2**30:.2f} at first")
    print(f"                   {(peak - begun) * 1024 / options.documents:8.1f} bytes a document")


if __name__ == "__main__":
    main()
