"""How much memory and time `filter` takes to decide on many documents, without their texts.

    python -m tests.benchmarks.filter_scale [--documents 100000000] [--linked 0.2] [--memory 1GiB]

Shards of a million documents are made up as they are read: ids of 128 random bits, and a duplicates
table in which a share of the documents has a verified partner in the same shard. The stage's own
functions run one after the other in this process, and leave their files in a folder: links left by
shard, names matched, links grouped, groups decided, and what was decided read by shard. Printed are
for each of them CPU seconds and the peak of memory, and the CPU seconds of making the tables.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa

from artifacts_schema.config import parse_size
from artifacts_schema.file_table import File
from artifacts_schema.kinds import KINDS, sidecar_folder
from stages.engine.inputs import Input
from stages.engine.outputs import ShardOutput, ShardResult
from stages.filter.assess import FINDINGS
from stages.filter.config import DuplicatesPolicy
from stages.filter.copies import DecidedCopies, LocalMaps, shard_starts
from stages.filter.links import add_duplicates, leave_links
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


def leave_all_passing(item: AlignedShard, out: ShardOutput) -> dict[str, int]:
    """What `assess_shard` leaves of documents that all pass."""
    lists = pa.ListArray.from_arrays(
        pa.array(np.zeros(item.documents.rows + 1, np.int32)), pa.array([], pa.int32())
    )
    out.write_scratch(FINDINGS, pa.table({"failing": lists}))
    return {"names": leave_links(item, out, "similarity")}


class MeasuredMaps(LocalMaps):
    """Notes the CPU seconds and the peak of memory of each map."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.measured: list[tuple[str, float, int]] = []

    def __call__(self, function: Any, items: Any, **shared: Any) -> list[ShardResult]:
        """As `LocalMaps`."""
        with self.measure(function.__name__):
            return super().__call__(function, items, **shared)

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Note what the block takes."""
        Path("/proc/self/clear_refs").write_text("5")  # The peak of memory begins again.
        begun = time.process_time()
        yield
        self.measured.append((name, time.process_time() - begun, peak_bytes()))


def peak_bytes() -> int:
    """The peak of memory since it last began."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def decide_all(
    folder: Path, documents: MadeUp, duplicates: MadeUp, memory: int
) -> tuple[MeasuredMaps, int]:
    """Decide on all documents; returns how many are copies."""
    maps, policy = MeasuredMaps(folder), DuplicatesPolicy(threshold=0.8)
    plain = [AlignedShard(shard.id, (), (), None, shard) for shard in documents.shards()]
    shards, earlier = add_duplicates(plain, [duplicates], [], [documents], policy)
    results = maps(leave_all_passing, shards)
    decided = DecidedCopies.decide(maps, shards, results, earlier, policy, ledgers=0, memory=memory)
    copies = 0
    with maps.measure("read by shard"):
        for start, stop in pairwise(shard_starts(shards)):
            known = decided.among(start, stop)
            copies += int((known.copies().partner >= 0).sum())
            assert len(known.column("duplicate_class")[0]) == int(known.partners().is_valid().sum())
    return maps, copies


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=100_000_000)
    parser.add_argument("--linked", type=float, default=0.2)
    parser.add_argument("--memory", default="1GiB")
    options = parser.parse_args()
    documents, duplicates = made_up(options.documents, options.linked)
    begun, clock = peak_bytes(), time.process_time()
    for one in (documents, duplicates):
        for shard in one.shards("*"):
            for _ in shard.row_groups(["doc_id"]):
                pass
    made = time.process_time() - clock
    with TemporaryDirectory() as folder:
        memory = parse_size(options.memory)
        maps, copies = decide_all(Path(folder), documents, duplicates, memory)
        left = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    expected = sum(
        len(range(0, min(GROUP, rows - start) - 1, max(2, round(2 / options.linked))))
        for rows in (shard.rows for shard in documents.shards())
        for start in range(0, rows, GROUP)
    )
    assert copies == expected, (copies, expected)
    print(f"{options.documents:,} documents, {2 * copies:,} of them linked, {copies:,} copies")
    print(f"{'tables made once':18} {made:8.1f} CPU s (part of the next line)")
    for name, seconds, peak in maps.measured:
        each = (peak - begun) / options.documents
        print(
            f"{name:18} {seconds:8.1f} CPU s {peak / 2**30:6.2f} GiB {each:7.1f} bytes a document"
        )
    print(f"{begun / 2**30:.2f} GiB of each are the program; files of {left / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
