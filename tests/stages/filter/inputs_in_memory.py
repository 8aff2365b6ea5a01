"""Inputs whose tables are in memory, and what the stage's maps decide about copies among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from artifacts_schema.file_table import File
from artifacts_schema.kinds import KINDS
from stages.engine.inputs import Input
from stages.engine.outputs import ShardOutput
from stages.filter.assess import FINDINGS, PRIORITY
from stages.filter.config import DuplicatesPolicy
from stages.filter.copies import DecidedCopies, LocalMaps, ShardCopies
from stages.filter.links import add_duplicates, leave_links
from stages.filter.sidecars import AlignedShard, align_tables


@dataclass(frozen=True)
class Held(Input):
    """An input whose tables are in memory, in row groups of three."""

    tables: dict[str, pa.Table] = field(default_factory=dict)

    @classmethod
    def make(cls, kind: str, tables: dict[str, list[dict[str, Any]]], digest: str) -> Held:
        schema = next(iter(KINDS[kind].tables.values())).arrow()
        made = {p: pa.Table.from_pylist(rows, schema=schema) for p, rows in tables.items()}
        files = [File(path=p, bytes=1, sha256="", rows=len(table)) for p, table in made.items()]
        backend: Any = None
        return cls(
            backend, kind, "test", digest, kind, kind, digest, tuple(files), False, tables=made
        )

    def read_json(self, path: str) -> Any:
        return {"parameters": {"floor": 0.5}}

    def row_groups(self, path: str, columns: list[str] | None = None) -> Iterator[pa.Table]:
        table = self.tables[path]
        table = table if columns is None else table.select(columns)
        return (table.slice(start, 3) for start in range(0, len(table), 3))

    def read_table(self, path: str, columns: list[str] | None = None) -> pa.Table:
        return self.tables[path].select(columns)


_EMPTY: dict[str, Any] = {
    **dict.fromkeys(("source", "snapshot", "text", "metadata", "origin_file"), "x"),
    **dict.fromkeys(("origin_offset", "origin_length"), 0),
}


def documents_of(ids: Mapping[str, Sequence[str]], digest: str) -> Held:
    """Documents by shard, of which only the ids are of interest."""
    rows = {path: [{**_EMPTY, "doc_id": name} for name in names] for path, names in ids.items()}
    return Held.make("documents", rows, digest)


def decide_in_memory(
    documents: Sequence[Input],
    duplicates: Sequence[Input],
    ledgers: Sequence[Input],
    passes: Mapping[str, bool],
    policy: DuplicatesPolicy,
    *,
    keys: Mapping[str, float] | None = None,
    memory: int = 1 << 30,
) -> ShardCopies:
    """What is decided about all documents, of which it is known which pass, and their priority."""
    shards = align_tables(documents, [], [], None)
    shards, earlier = add_duplicates(shards, duplicates, ledgers, documents, policy)
    with TemporaryDirectory() as folder:
        maps = LocalMaps(Path(folder))
        results = maps(leave_unassessed, shards, passes=passes, keys=keys, policy=policy)
        decided = DecidedCopies.decide(
            maps, shards, results, earlier, policy, ledgers=len(ledgers), memory=memory
        )
        return decided.among(0, sum(shard.documents.rows for shard in shards))


def leave_unassessed(
    item: AlignedShard,
    out: ShardOutput,
    *,
    passes: Mapping[str, bool],
    keys: Mapping[str, float] | None,
    policy: DuplicatesPolicy,
) -> dict[str, int]:
    """What `assess_shard` leaves of documents of which it is known which pass."""
    ids = item.documents.read(["doc_id"])["doc_id"].to_pylist()
    failing = pa.array([[] if passes[d] else [0] for d in ids], pa.list_(pa.int32()))
    out.write_scratch(FINDINGS, pa.table({"failing": failing}))
    if keys is not None:
        own = pa.array([keys[d] for d in ids], pa.float64())
        out.write_scratch(PRIORITY, pa.table({"0": own}))
    return {"names": leave_links(item, out, policy.measure)}
