"""The duplicates tables as figures need them: clusters of linked documents, and chosen pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from stages.engine.excerpts import LeastIds, Row
from stages.engine.inputs import Input
from stages.engine.page import Artifact
from stages.engine.tally import at_hand, hosts

EXACT = "exact"
SIMILARITIES = 7
"""Steps between the floor and 1 from which pairs are chosen."""

_LINKS_AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False)
class Clusters:
    """Documents that exact classes and verified pairs link, directly or through others."""

    ids: pa.StringArray
    cluster: NDArray[np.int64]
    """Number of each document's cluster, from 0."""
    exact_class: NDArray[np.int64]
    """Number of each document's exact class."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Documents of each cluster."""
        return np.bincount(self.cluster)

    @property
    def classes(self) -> NDArray[np.int64]:
        """Exact classes of each cluster: 1 where all documents are exact copies of each other."""
        pairs = np.unique(np.column_stack([self.cluster, self.exact_class]), axis=0)
        return np.bincount(pairs[:, 0], minlength=len(self.sizes))


def read_duplicates(duplicates: Input, floor: float, most: int) -> tuple[Clusters, list[Row]]:
    """The clusters at the floor of similarity, and at most `most` pairs to look at.

    Documents without any copy are left out. Of the links only so many are held at once; beside
    them, a few numbers and the id of each linked document.
    """
    linked, pairs = [pa.array([], pa.string())], LeastIds(most, by="pair")
    for rows in _linked_rows(duplicates):
        linked += [*rows["doc_id"].chunks, *rows["exact_class"].chunks]
        _offer_pairs(pairs, rows, floor)
    ids = pc.unique(pa.chunked_array(linked))
    exact_class, cluster = np.arange(len(ids)), np.arange(len(ids))
    for copies, near in _links(duplicates):
        one, two = _places(copies, ids)
        exact_class[one] = two
        cluster = _joined(_joined(cluster, one, two), *_places(near, ids))
    return Clusters(ids, cluster, exact_class), _chosen(pairs, most)


def _linked_rows(duplicates: Input) -> Iterator[pa.Table]:
    """Each table's rows that name a copy: another's exact class, or partners."""
    for shard in duplicates.shards():
        table = shard.read(["doc_id", "exact_class", "partners"])
        is_copy = pc.not_equal(table["doc_id"], table["exact_class"])
        yield table.filter(pc.or_(is_copy, pc.greater(pc.list_value_length(table["partners"]), 0)))


def _links(duplicates: Input) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Documents with their exact class's first one, and pairs, so many at once."""
    copies: list[pa.Table] = []
    near: list[pa.Table] = []
    for rows in _linked_rows(duplicates):
        copies.append(pa.table({"one": rows["doc_id"], "two": rows["exact_class"]}))
        near.append(_partners(rows).select(["one", "two"]))
        if sum(map(len, (*copies, *near))) >= _LINKS_AT_ONCE:
            yield pa.concat_tables(copies), pa.concat_tables(near)
            copies, near = [], []
    if copies:
        yield pa.concat_tables(copies), pa.concat_tables(near)


def _partners(rows: pa.Table) -> pa.Table:
    """One row for each partner of each document."""
    partners = pc.list_flatten(rows["partners"])
    return pa.table(
        {
            "one": rows["doc_id"].take(pc.list_parent_indices(rows["partners"])),
            "two": pc.struct_field(partners, "doc_id"),
            "similarity": pc.struct_field(partners, "similarity"),
        }
    )


def _places(links: pa.Table, ids: pa.StringArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    one, two = (pc.index_in(links[side], value_set=ids).to_numpy() for side in ("one", "two"))
    return one, two


def _joined(
    cluster: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Cluster numbers once more links are known."""
    size = len(cluster)
    graph = coo_array(
        (np.ones(len(left), dtype=np.int8), (cluster[left], cluster[right])), shape=(size, size)
    )
    return connected_components(graph, directed=False)[1].astype(np.int64)[cluster]


def told_of(artifact: Artifact, ids: pa.StringArray) -> pa.Table | None:
    """Source, snapshot and web domain of these documents; None if their input was collected.

    Rows in the order of `ids`; null for documents of an input that is not at hand.
    """
    parts = []
    for given in at_hand(artifact, "documents"):
        for shard in given.shards():
            table = shard.read(["doc_id", "source", "snapshot", "url"])
            parts.append(table.filter(pc.is_in(table["doc_id"], value_set=ids)))
    if not parts:
        return None
    found = pa.concat_tables(parts)
    found = found.set_column(3, "domain", hosts(found["url"]))
    return found.take(pc.index_in(ids, value_set=found["doc_id"].combine_chunks()))


def between(clusters: Clusters, labels: pa.ChunkedArray, shown: Sequence[str]) -> NDArray[np.int64]:
    """[shown, shown]: documents with this label that have another of that label in their cluster.

    `labels` has a label for each linked document.
    """
    codes = pc.index_in(labels, value_set=pa.array(shown, pa.string()))
    known = codes.is_valid().to_numpy()
    code = codes.drop_null().to_numpy()
    ones = np.ones(len(code), dtype=np.int64)
    shape = (len(clusters.sizes), len(shown))
    counts = coo_array((ones, (clusters.cluster[known], code)), shape=shape).tocsr()
    counts.sum_duplicates()
    is_there = counts.copy()
    is_there.data = np.ones_like(is_there.data)
    matrix: NDArray[np.int64] = (counts.T @ is_there).toarray()
    alone = counts.copy()
    alone.data = np.where(alone.data == 1, 1, 0)
    return matrix - np.diag(np.asarray(alone.sum(axis=0)).ravel())


def _offer_pairs(least: LeastIds, rows: pa.Table, floor: float) -> None:
    """Consider pairs for each step of similarity, and exact ones."""
    exact = rows.filter(pc.not_equal(rows["doc_id"], rows["exact_class"]))
    none = pa.nulls(len(exact), pa.float32())
    columns = {"one": exact["exact_class"], "two": exact["doc_id"], "similarity": none}
    least.offer(EXACT, _named(pa.table(columns)))
    near = _partners(rows)
    near = _named(near.filter(pc.less(near["one"], near["two"])))
    above = near["similarity"].to_numpy() - floor
    step = np.floor(above / (1 - floor + 1e-6) * SIMILARITIES).astype(np.int64)
    for place in np.unique(step).tolist():
        least.offer(str(place), near.filter(pa.array(step == place)))


def _named(pairs: pa.Table) -> pa.Table:
    return pairs.append_column("pair", pc.binary_join_element_wise(pairs["one"], pairs["two"], " "))


def _chosen(least: LeastIds, most: int) -> list[Row]:
    """Pairs over the whole range of similarity and an exact one, the least similar first.

    Rows of `one`, `two` and `similarity` (None for exact copies).
    """
    steps = [list(least.groups.get(str(place), [])) for place in range(SIMILARITIES)]
    chosen = least.groups.get(EXACT, [])[:1]
    while len(chosen) < most and any(steps):
        for waiting in steps:
            if waiting and len(chosen) < most:
                chosen.append(waiting.pop(0))
    return sorted(chosen, key=lambda pair: (pair["similarity"] or 2.0, pair["pair"]))
