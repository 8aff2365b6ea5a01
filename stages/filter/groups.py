"""One group of linked documents: its links as arrays, what is decided of them, and a table of it.

A group that fits into memory has its arrays there. One connected component may be too large: then
the arrays lie in files of the machine's work folder, which the system reads and writes as they are
used. Documents are decided in the order of their priority either way, by the same functions. What
such a group still holds is the order, and what classes get their names by.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from artifacts_schema.store.storage_errors import translate_errors
from stages.filter.components import DOCUMENTS
from stages.filter.config import DuplicatesPolicy
from stages.filter.decide import (
    Copies,
    Empty,
    Links,
    decide_copies,
    decision_order,
    least_linked,
    least_linked_by_age,
)
from stages.filter.earlier import MEMBERS
from stages.filter.links import (
    CLASS,
    EARLIER_CLASS,
    EARLIER_NAME,
    EARLIER_PAIR,
    EARLIER_TEXT,
    LINKS,
    NAMES,
    PAIR,
    TEXT,
)
from stages.filter.ordered import ordered_writer, read_range

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult

DECIDED = "decided"
DECIDED_ROWS = pa.schema(
    [
        ("row", pa.int64()),
        ("partner", pa.string()),
        ("similarity", pa.float32()),
        ("exact", pa.bool_()),
        ("duplicate_class", pa.string()),
        ("linked_classes", pa.list_(pa.string())),
    ]
)
"""Of each document that is a copy, or whose class another one names, or has other names: the kept
document that it copies, and the names of its class; null where there is none."""
_ROWS_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class Group:
    """Linked documents that no link leads out of; an item of a map."""

    number: int
    bytes: int
    """What deciding it in memory takes."""

    @property
    def id(self) -> str:
        """Its number."""
        return f"{self.number:05d}"


@dataclass(frozen=True, eq=False)
class LinkGroup:
    """A group's nodes: first the documents to decide on, ascending, then others."""

    links: Links
    rows: NDArray[np.int64]
    """The documents to decide on, as rows of all."""
    names: NDArray[np.bytes_]
    """The doc_id of each node."""
    age: NDArray[np.int64]
    """The place of the ledger that decided on it; that of documents to decide on is the last."""
    passes: NDArray[np.bool_]
    keys: NDArray[np.float64]
    """[criterion, document] See `priority_keys`."""

    def rank(self) -> NDArray[np.int64]:
        """The place of each node in the order of who names a class: the least age, then doc_id."""
        by_name = np.argsort(self.names, kind="stable")
        by_age = by_name[np.argsort(self.age[by_name], kind="stable")]
        rank = np.empty(len(by_age), dtype=np.int64)
        rank[by_age] = np.arange(len(by_age))
        return rank


@dataclass(frozen=True, eq=False)
class DuplicateClasses:
    """For each node the one that names its duplicate class; for such a one, other names of it.

    Earlier runs gave the other names to parts of the class, before a document linked them.
    """

    names: NDArray[np.int64]
    others: dict[int, list[int]]

    @classmethod
    def from_group(cls, group: LinkGroup, verified: bool) -> DuplicateClasses:
        """The classes of a group; with `verified`, only verified pairs connect."""
        rank = group.rank()
        names = least_linked(group.links, rank, verified)
        if len(group.rows) == len(rank) or not group.age.any():
            return cls(names, {})
        earlier_names = least_linked_by_age(group.links, rank, group.age, verified)
        others: dict[int, set[int]] = {}
        for node in np.flatnonzero(earlier_names != names).tolist():
            others.setdefault(int(names[node]), set()).add(int(earlier_names[node]))
        return cls(names, {name: sorted(nodes) for name, nodes in others.items()})


def decide_group(
    item: Group,
    out: ShardOutput,
    *,
    grouped: ShardResult,
    documents: int,
    ledgers: int,
    policy: DuplicatesPolicy,
    memory: int,
) -> None:
    """Leave `DECIDED`, the rows of a group's documents about which there is something to say."""
    with _arrays(grouped, item.bytes > memory) as empty:
        group = read_group(item, grouped, documents, ledgers, empty)
        order = decision_order([group.keys], len(policy.priority)) if policy.priority else None
        copies = decide_copies(group.passes, group.links, policy, order, empty)
        classes = DuplicateClasses.from_group(group, policy.unverified == "refuse")
        with ordered_writer(out, DECIDED, DECIDED_ROWS) as writer:
            for start in range(0, len(group.rows), _ROWS_AT_ONCE):
                stop = min(start + _ROWS_AT_ONCE, len(group.rows))
                writer.write(_decided_rows(group, copies, classes, start, stop))


@contextmanager
def _arrays(grouped: ShardResult, on_disk: bool) -> Iterator[Empty]:
    """Makes arrays in memory, or in files beside those of the group that end with the block."""
    if not on_disk:
        yield np.empty
        return
    folder = grouped.scratch_path(LINKS).parent
    with tempfile.TemporaryDirectory(prefix="group-", dir=folder) as temporary:
        yield _Mapped(Path(temporary)).empty


class _Mapped:
    """Arrays in files."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._made = folder, 0

    def empty(self, length: int, type_: Any) -> NDArray[Any]:
        """An array that lies in a file of its own. StoreError if the disk is full."""
        size = length * np.dtype(type_).itemsize
        if not size:
            return np.empty(length, type_)
        path = self._folder / f"{self._made:03d}"
        self._made += 1
        with translate_errors(str(path)), open(path, "x+b") as file:
            # Reserved, as a page that cannot be written later would end the process.
            os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, type_, "r+", shape=(length,)).view(np.ndarray)


def read_group(
    item: Group, grouped: ShardResult, documents: int, ledgers: int, empty: Empty = np.empty
) -> LinkGroup:
    """A group's documents and links, of so many documents to decide on in all."""
    tables = _Tables(grouped, item.number)
    numbering = _Numbering.from_numbers(tables.column(NAMES, "node"), documents)
    members = tables.whole(MEMBERS)
    if len(members):
        numbering = numbering.by_appearance(tables)
    own = tables.whole(DOCUMENTS)
    age = empty(len(numbering.ascending), np.int64)
    age[:] = 0
    age[: numbering.own] = ledgers
    node, kept = numbering.find(members["node"].to_numpy()), members["kept"].to_numpy()
    age[node] = members["age"].to_numpy()
    before = node[kept >= 0][np.argsort(kept[kept >= 0], kind="stable")]
    keys = [column.to_numpy() for column in own.columns[3:]]
    return LinkGroup(
        links=_read_links(tables, numbering, before, empty),
        rows=numbering.ascending[: numbering.own],
        names=_read_names(tables, numbering, empty),
        age=age,
        passes=own["passes"].to_numpy(),
        keys=np.stack(keys) if keys else np.empty((0, len(own))),
    )


@dataclass(frozen=True)
class _Tables:
    """What `group_links` left of one group."""

    grouped: ShardResult
    number: int

    def batches(self, name: str, *columns: str) -> Iterator[pa.Table]:
        """The rows of a table, some at a time; all columns if none is named."""
        path = self.grouped.scratch_path(name)
        return read_range(path, self.number, self.number + 1, columns or None)

    def column(self, name: str, column: str) -> NDArray[Any]:
        """A column of a table."""
        parts = [rows[column].to_numpy() for rows in self.batches(name, column)]
        return np.concatenate(parts)

    def whole(self, name: str) -> pa.Table:
        """A whole table."""
        schema = pq.read_schema(self.grouped.scratch_path(name))
        return pa.concat_tables([schema.empty_table(), *self.batches(name)])


_APPEAR = (
    *((CLASS, "two"), (TEXT, "two"), (PAIR, "two"), (EARLIER_PAIR, "one"), (EARLIER_PAIR, "two")),
    *((EARLIER_CLASS, "one"), (EARLIER_CLASS, "two"), (EARLIER_TEXT, "two")),
    *((EARLIER_NAME, "one"), (EARLIER_NAME, "two")),
)
"""The order in which links name documents of earlier runs, which is that of a class's names."""


@dataclass(frozen=True, eq=False)
class _Numbering:
    """Numbers of documents and names as nodes of a group."""

    ascending: NDArray[np.int64]
    """Documents to decide on come first."""
    own: int
    """How many of those there are."""
    nodes: NDArray[np.int64] | None = None
    """The nodes of the ascending numbers; None if these are in the order of the nodes."""

    @classmethod
    def from_numbers(cls, numbers: NDArray[np.int64], documents: int) -> _Numbering:
        """Nodes in the order of their numbers."""
        numbers.sort()
        return cls(numbers, int(np.searchsorted(numbers, documents)))

    def find(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The nodes of numbers."""
        places = np.searchsorted(self.ascending, numbers)
        return places if self.nodes is None else self.nodes[places]

    def by_appearance(self, tables: _Tables) -> _Numbering:
        """The same, with other nodes than documents in the order in which links name them."""
        others = self.ascending[self.own :]
        first, seen = np.full(len(others), np.iinfo(np.int64).max), 0
        for kind, side in _APPEAR:
            for rows in tables.batches(LINKS, "kind", side):
                numbers = rows[side].to_numpy()[rows["kind"].to_numpy() == kind]
                places = np.searchsorted(self.ascending, numbers) - self.own
                at = seen + np.flatnonzero(places >= 0)
                np.minimum.at(first, places[places >= 0], at)
                seen += len(numbers)
        nodes = np.arange(len(self.ascending))
        nodes[self.own + np.argsort(first, kind="stable")] = nodes[self.own :].copy()
        return _Numbering(self.ascending, self.own, nodes)


def _read_links(
    tables: _Tables, numbering: _Numbering, before: NDArray[np.int64], empty: Empty
) -> Links:
    """The links between nodes; pairs of earlier runs come first."""
    nodes, counts = len(numbering.ascending), np.zeros(EARLIER_NAME + 1, dtype=np.int64)
    for rows in tables.batches(LINKS, "kind"):
        counts += np.bincount(rows["kind"].to_numpy(), minlength=len(counts))
    pairs = int(counts[PAIR] + counts[EARLIER_PAIR])
    classes, texts = empty(nodes, np.int64), empty(nodes, np.int64)
    classes[:] = np.arange(nodes)
    texts[:] = np.arange(nodes)
    one, two, similarity = (empty(pairs, type_) for type_ in (np.int64, np.int64, np.float32))
    stops = {EARLIER_PAIR: 0, PAIR: int(counts[EARLIER_PAIR])}
    heads = {CLASS: classes, EARLIER_CLASS: classes, EARLIER_NAME: classes}
    heads |= {TEXT: texts, EARLIER_TEXT: texts}
    # Links of earlier runs follow those of the documents, so theirs hold where both have one.
    for rows in tables.batches(LINKS):
        kinds = rows["kind"].to_numpy()
        ends = [numbering.find(rows[side].to_numpy()) for side in ("one", "two")]
        for kind in np.unique(kinds).tolist():
            chosen = kinds == kind
            if kind in heads:
                heads[kind][ends[0][chosen]] = ends[1][chosen]
                continue
            start, stops[kind] = stops[kind], stops[kind] + int(chosen.sum())
            place = slice(start, stops[kind])
            one[place], two[place] = ends[0][chosen], ends[1][chosen]
            similarity[place] = rows["similarity"].to_numpy()[chosen]
    return Links(classes, texts, one, two, similarity, before)


def _read_names(tables: _Tables, numbering: _Numbering, empty: Empty) -> NDArray[np.bytes_]:
    """The doc_id of each node."""
    width = 1
    for rows in tables.batches(NAMES, "doc_id"):
        width = max(width, pc.max(pc.binary_length(rows["doc_id"])).as_py())
    names = empty(len(numbering.ascending), f"S{width}")
    for rows in tables.batches(NAMES, "node", "doc_id"):
        doc_ids = rows["doc_id"].combine_chunks()
        names[numbering.find(rows["node"].to_numpy())] = _to_bytes(doc_ids, width)
    return names


def _to_bytes(names: pa.StringArray, width: int) -> NDArray[np.bytes_]:
    """Strings as NumPy's, without a Python object each where all are of one length."""
    if pc.min(pc.binary_length(names)).as_py() == width:
        _, offsets, data = names.buffers()
        first = np.frombuffer(offsets, dtype=np.int32)[names.offset]
        return np.frombuffer(data, f"S{width}", len(names), first)
    return np.array(names.cast(pa.binary()).to_pylist(), f"S{width}")


def _to_strings(names: NDArray[np.bytes_]) -> pa.StringArray:
    """The inverse of `_to_bytes`."""
    width = names.dtype.itemsize
    if (np.char.str_len(names) == width).all():
        offsets = np.arange(0, width * (len(names) + 1), width, dtype=np.int32)
        data = pa.py_buffer(np.ascontiguousarray(names))
        return pa.StringArray.from_buffers(len(names), pa.py_buffer(offsets), data)
    return pa.array([name.decode() for name in names.tolist()], pa.string())


def _decided_rows(
    group: LinkGroup, copies: Copies, classes: DuplicateClasses, start: int, stop: int
) -> pa.Table:
    """`DECIDED_ROWS` of the documents `start : stop` of a group."""
    partner, named = copies.partner[start:stop], classes.names[start:stop]
    others = np.isin(named, list(classes.others))
    renamed = named != np.arange(start, stop)
    chosen = np.flatnonzero((partner >= 0) | renamed | others)
    linked = [
        _to_strings(group.names[classes.others[name]]) if other else None
        for name, other in zip(named[chosen].tolist(), others[chosen].tolist(), strict=True)
    ]
    columns = [
        group.rows[start:stop][chosen],
        _names_where(group.names, partner[chosen], partner[chosen] >= 0),
        copies.similarity[start:stop][chosen],
        copies.exact[start:stop][chosen],
        _names_where(group.names, named[chosen], renamed[chosen]),
        pa.array(linked, DECIDED_ROWS.field("linked_classes").type),
    ]
    return pa.table(columns, schema=DECIDED_ROWS)


def _names_where(
    names: NDArray[np.bytes_], nodes: NDArray[np.int64], known: NDArray[np.bool_]
) -> pa.StringArray:
    """The names of nodes; null where nothing is known."""
    places = np.where(known, np.cumsum(known) - 1, 0)
    return _to_strings(names[nodes[known]]).take(pa.array(places, mask=~known))
