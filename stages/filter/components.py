"""Linked documents in groups that nothing links: connected components, as many as fit into memory.

One task reads all links as pairs of numbers. It holds a byte a document and about 50 bytes for each
linked one, no text, and up to 1 GiB for the links that it reads at once. What it leaves is ordered
by group, so that a group's task reads its own links, names and documents, and the groups are
decided side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.errors import UsageError
from stages.filter.assess import FINDINGS, PRIORITY
from stages.filter.config import DuplicatesPolicy
from stages.filter.decide import connect
from stages.filter.earlier import MEMBERS
from stages.filter.links import EARLIER_PAIR, LINKS, NAMES, PAIR
from stages.filter.matching import MatchedNames
from stages.filter.ordered import OrderedWriter, ordered_writer

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult

NODE_BYTES, LINK_BYTES = 320, 120
"""Bytes that a linked document and a link take while their group is decided in memory."""
_LINKS_AT_ONCE = 1 << 22
DOCUMENTS = "documents"
"""Scratch table of the linked documents to decide on: `node`, `passes`, and their priority keys."""
_GROUP = ("group", pa.int32())


@dataclass(frozen=True)
class LinkedShards:
    """What the shards and earlier runs left, and the documents of their names. Picklable."""

    shards: tuple[ShardResult, ...]
    """Those of `assess_shard`."""
    starts: tuple[int, ...]
    """The first document of each, and the number of all."""
    earlier: ShardResult | None
    matched: MatchedNames

    def sources(self) -> tuple[ShardResult, ...]:
        """All that left links."""
        return self.shards if self.earlier is None else (*self.shards, self.earlier)


@dataclass(frozen=True)
class AllLinks:
    """The item of the map, which has one."""

    id: str = "links"


def group_links(
    item: AllLinks,
    out: ShardOutput,
    *,
    linked: LinkedShards,
    policy: DuplicatesPolicy,
    memory: int,
) -> dict[str, Any]:
    """Leave `LINKS`, `NAMES`, `DOCUMENTS` and `MEMBERS` by group; returns each group's size.

    UsageError if a pair that would decide was not verified, unless such are accepted.
    """
    there = np.zeros(linked.matched.nodes, dtype=bool)
    for batch in _batches(linked):
        there[batch.nodes] = True
    nodes = np.flatnonzero(there)
    del there
    least, weight, unverified = _components(linked, nodes)
    _check_verified(unverified, policy)
    groups, sizes = _grouped(least, weight, memory)
    _write_groups(linked, out, nodes, groups, len(policy.priority))
    return {"bytes": sizes}


@dataclass
class _Batch:
    """Links of a few shards, by the numbers of their documents."""

    first: int
    """The first shard, …"""
    last: int
    """… the one after the last."""
    tables: list[pa.Table] = field(default_factory=list)
    named: list[NDArray[np.int64]] = field(default_factory=list)
    """For each shard the documents of its names."""

    @property
    def nodes(self) -> NDArray[np.int64]:
        """The documents of all names."""
        return np.concatenate(self.named)

    def column(self, name: str) -> NDArray[Any]:
        """A column of the links; `one` and `two` are documents."""
        parts = [table[name].to_numpy() for table in self.tables]
        if name in ("one", "two"):
            parts = [nodes[places] for nodes, places in zip(self.named, parts, strict=True)]
        return np.concatenate(parts)


def _batches(linked: LinkedShards, links: int = _LINKS_AT_ONCE) -> Iterator[_Batch]:
    """The links of all shards in order, so many together where one shard has no more."""
    linked.matched.rewind()
    batch, held = _Batch(0, 0), 0
    for place, result in enumerate(linked.sources()):
        numbers = result.read_scratch(NAMES, ["number"])["number"].to_numpy()
        batch.tables.append(result.read_scratch(LINKS))
        batch.named.append(linked.matched.read(numbers))
        batch.last = place + 1
        held += max(len(batch.tables[-1]), len(numbers))
        if held >= links:
            yield batch
            batch, held = _Batch(place + 1, place + 1), 0
    if batch.tables:
        yield batch


def _components(
    linked: LinkedShards, nodes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
    """For each node the least that it is linked with, and its links; pairs not verified.

    Each batch costs a pass over all nodes: so there are few.
    """
    least, degree = np.arange(len(nodes)), np.zeros(len(nodes), dtype=np.int32)
    unverified = 0
    for batch in _batches(linked, max(_LINKS_AT_ONCE, len(nodes) // 8)):
        one = np.searchsorted(nodes, batch.column("one"))
        two = np.searchsorted(nodes, batch.column("two"))
        degree += np.bincount(one, minlength=len(nodes)).astype(np.int32)
        least = connect(least, one, two)
        are_pairs = np.isin(batch.column("kind"), (PAIR, EARLIER_PAIR))
        unverified += int(np.isnan(batch.column("similarity")[are_pairs]).sum())
    return least, degree, unverified


def _check_verified(unverified: int, policy: DuplicatesPolicy) -> None:
    """UsageError if a pair that would decide was not verified, unless such are accepted."""
    if policy.threshold is None or policy.unverified == "accept" or not unverified:
        return
    raise UsageError(
        f"{unverified:,} listed pairs were not verified, so nothing says how similar they are",
        where="filter",
        hint="set dedup.verify to true, or duplicates.unverified to accept",
    )


def _grouped(
    least: NDArray[np.int64], degree: NDArray[np.int32], memory: int
) -> tuple[NDArray[np.int32], list[int]]:
    """The group of each node, and the bytes that it takes to decide each group.

    A component of more than half of `memory` is a group of its own; groups of others fit.
    """
    weight = np.bincount(least, NODE_BYTES + float(LINK_BYTES) * degree, minlength=len(least))
    roots = np.flatnonzero(weight)
    bytes_ = weight[roots]
    del weight
    small = bytes_ <= memory / 2
    group = np.empty(len(roots), dtype=np.int32)
    chunks = (np.cumsum(bytes_[small]) // (memory / 2)).astype(np.int64)
    _, group[small] = np.unique(chunks, return_inverse=True)
    fitting = int(group[small].max()) + 1 if small.any() else 0
    group[~small] = fitting + np.arange(int((~small).sum()))
    sizes = np.bincount(group, bytes_)
    of_root = np.zeros(len(least), dtype=np.int32)
    of_root[roots] = group
    return of_root[least], [int(size) for size in sizes]


def _write_groups(
    linked: LinkedShards,
    out: ShardOutput,
    nodes: NDArray[np.int64],
    groups: NDArray[np.int32],
    criteria: int,
) -> None:
    """Write what each group's task reads."""
    links = [("one", pa.int64()), ("two", pa.int64()), ("kind", pa.int8())]
    links.append(("similarity", pa.float32()))
    keys = [(str(place), pa.float64()) for place in range(criteria)]
    schemas = {
        LINKS: pa.schema([_GROUP, *links]),
        NAMES: pa.schema([_GROUP, ("node", pa.int64()), ("doc_id", pa.string())]),
        DOCUMENTS: pa.schema([_GROUP, ("node", pa.int64()), ("passes", pa.bool_()), *keys]),
        MEMBERS: pa.schema(
            [_GROUP, ("node", pa.int64()), ("age", pa.int64()), ("kept", pa.int64())]
        ),
    }
    named = np.zeros(len(nodes), dtype=bool)
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(ordered_writer(out, name, schema))
            for name, schema in schemas.items()
        }
        for batch in _batches(linked):
            columns = {name: batch.column(name) for name, _ in links}
            own = groups[np.searchsorted(nodes, columns["one"])]
            _write_by_group(writers[LINKS], own, pa.table(columns))
            new = _new_names(linked, batch, nodes, named)
            own = groups[np.searchsorted(nodes, new["node"].to_numpy())]
            _write_by_group(writers[NAMES], own, new)
            for place in range(batch.first, min(batch.last, len(linked.shards))):
                documents = _linked_documents(linked, place, nodes, criteria)
                own = groups[np.searchsorted(nodes, documents["node"].to_numpy())]
                _write_by_group(writers[DOCUMENTS], own, documents)
            if linked.earlier is not None and batch.last > len(linked.shards):
                members = linked.earlier.read_scratch(MEMBERS)
                node = batch.named[-1][members["one"].to_numpy()]
                members = members.set_column(0, "node", pa.array(node))
                _write_by_group(writers[MEMBERS], groups[np.searchsorted(nodes, node)], members)


def _write_by_group(writer: OrderedWriter, groups: NDArray[np.int32], rows: pa.Table) -> None:
    """Write rows by group, those of one in their order."""
    order = np.argsort(groups, kind="stable")
    ordered = rows.take(pa.array(order)).add_column(0, "group", pa.array(groups[order]))
    cuts = np.flatnonzero(np.diff(groups[order], prepend=-1, append=-1))
    for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        writer.write(ordered.slice(begin, end - begin))


def _new_names(
    linked: LinkedShards, batch: _Batch, nodes: NDArray[np.int64], named: NDArray[np.bool_]
) -> pa.Table:
    """The names in a batch that no earlier one had: each name is written once."""
    tables = [pa.table({"node": pa.array([], pa.int64()), "doc_id": pa.array([], pa.string())})]
    sources = linked.sources()[batch.first : batch.last]
    for result, own in zip(sources, batch.named, strict=True):
        places = np.searchsorted(nodes, own)
        fresh = np.flatnonzero(~named[places])
        named[places] = True
        doc_ids = result.read_scratch(NAMES, ["doc_id"])["doc_id"].take(pa.array(fresh))
        tables.append(pa.table({"node": own[fresh], "doc_id": doc_ids}))
    return pa.concat_tables(tables).combine_chunks()


def _linked_documents(
    linked: LinkedShards, place: int, nodes: NDArray[np.int64], criteria: int
) -> pa.Table:
    """The linked documents of a shard: whether nothing else removes them, and their keys."""
    start, stop = linked.starts[place : place + 2]
    low, high = np.searchsorted(nodes, (start, stop))
    rows, result = pa.array(nodes[low:high] - start), linked.shards[place]
    failing = result.read_scratch(FINDINGS, ["failing"])["failing"]
    passes = pc.equal(pc.list_value_length(failing), 0).take(rows)
    columns: dict[str, Any] = {"node": nodes[low:high], "passes": passes}
    if criteria:
        keys = result.read_scratch(PRIORITY).take(rows)
        columns |= dict(zip(keys.column_names, keys.columns, strict=True))
    return pa.table(columns)
