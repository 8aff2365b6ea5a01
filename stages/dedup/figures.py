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

from stages.engine.inputs import Input
from stages.engine.tally import LeastIds, Row, hosts

STEPS = 7
"""Steps between the floor and 1 from which pairs are chosen."""

_EXACT, _UNVERIFIED = "exact", "unverified"
_LINKS_AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False)
class Clusters:
    """Documents that exact classes and pairs link, directly or through others."""

    ids: pa.StringArray
    cluster: NDArray[np.int64]
    """Number of each document's cluster, from 0."""
    exact_class: NDArray[np.int64]
    """Number of each document's exact class."""
    is_earlier: NDArray[np.bool_]
    """Whether it is of an earlier index, or of no table that was read: others alone name it."""
    sample: str = ""
    """On how many documents this was measured; empty if on all."""

    @property
    def elsewhere(self) -> str:
        """Where the documents are that have no row."""
        return "tables that were not read, or earlier ones" if self.sample else "earlier snapshots"

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Documents of each cluster."""
        return np.bincount(self.cluster)

    @property
    def classes(self) -> NDArray[np.int64]:
        """Exact classes of each cluster: 1 where all documents are exact copies of each other."""
        pairs = np.unique(np.column_stack([self.cluster, self.exact_class]), axis=0)
        return np.bincount(pairs[:, 0], minlength=len(self.sizes))

    def members(self, cluster: int) -> NDArray[np.int64]:
        """Places of a cluster's documents."""
        return np.flatnonzero(self.cluster == cluster)


def read_duplicates(
    duplicates: Input, floor: float, most: int, measure: str = "similarity", sample: str = ""
) -> tuple[Clusters, list[Row]]:
    """The clusters of all that is linked, and at most `most` pairs to look at.

    The pairs are spread over the range of `measure` from the floor on, and of documents that have a
    row here. Documents without any copy are left out. Links are held a limited number at a time; in
    addition a few numbers and the id of each linked document. `sample` says of how many documents
    `duplicates` holds the rows: clusters show what these link alone.
    """
    ids = _linked_ids(duplicates)
    is_earlier = ~_have_rows(duplicates, ids)
    exact_class, cluster = np.arange(len(ids)), np.arange(len(ids))
    pairs = LeastIds(4 * most, by="pair")  # Most are met twice, and families have many.
    for copies, near in _links(duplicates):
        one, two = _places(copies, ids)
        _offer(pairs, _EXACT, copies.filter(pa.array(~is_earlier[one] & ~is_earlier[two])))
        exact_class[two] = one
        cluster = _join_clusters(cluster, one, two)
        one, two = _places(near, ids)
        here = near.filter(pa.array(~is_earlier[one] & ~is_earlier[two]))
        for group, rows in _by_step(here, floor, measure):
            _offer(pairs, group, rows)
        cluster = _join_clusters(cluster, one, two)
    clusters = Clusters(ids, cluster, exact_class, is_earlier, sample)
    return clusters, _chosen(pairs, most, ids, cluster)


def _linked_ids(duplicates: Input) -> pa.StringArray:
    linked = [pa.array([], pa.string())]
    for rows in _linked_rows(duplicates):
        named = pc.struct_field(pc.list_flatten(rows["partners"]), "doc_id")
        linked.append(pc.unique(_end_to_end(rows["doc_id"], rows["exact_class"], named)))
    return pc.unique(pa.chunked_array(linked))


def _have_rows(duplicates: Input, ids: pa.StringArray) -> NDArray[np.bool_]:
    present = np.zeros(len(ids), dtype=bool)
    for shard in duplicates.shards():
        places = pc.index_in(shard.read(["doc_id"])["doc_id"], value_set=ids).drop_null()
        present[places.to_numpy()] = True
    return present


def _linked_rows(duplicates: Input) -> Iterator[pa.Table]:
    """Each table's rows that name a copy: another's exact class, or partners."""
    for shard in duplicates.shards():
        table = shard.read(["doc_id", "exact_class", "partners"])
        is_copy = pc.not_equal(table["doc_id"], table["exact_class"])
        yield table.filter(pc.or_(is_copy, pc.greater(pc.list_value_length(table["partners"]), 0)))


def _links(duplicates: Input) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Exact classes' first documents with the others, and pairs, so many at once."""
    copies: list[pa.Table] = []
    near: list[pa.Table] = []
    for rows in _linked_rows(duplicates):
        copies.append(_copies(rows))
        near.append(_partners(rows))
        if sum(map(len, (*copies, *near))) >= _LINKS_AT_ONCE:
            yield pa.concat_tables(copies), pa.concat_tables(near)
            copies, near = [], []
    if copies:
        yield pa.concat_tables(copies), pa.concat_tables(near)


def _copies(rows: pa.Table) -> pa.Table:
    """The first of the exact class and the copy, for each document that is not the first."""
    others = rows.filter(pc.not_equal(rows["doc_id"], rows["exact_class"]))
    unknown = pa.nulls(len(others), pa.float32())
    return pa.table(
        {
            "one": others["exact_class"],
            "two": others["doc_id"],
            "similarity": unknown,
            "containment": unknown,
        }
    )


def _partners(rows: pa.Table) -> pa.Table:
    """Each document with each of its partners, the lesser id first."""
    partners = pc.list_flatten(rows["partners"])
    one = rows["doc_id"].take(pc.list_parent_indices(rows["partners"]))
    two = pc.struct_field(partners, "doc_id")
    return pa.table(
        {
            "one": pc.min_element_wise(one, two),
            "two": pc.max_element_wise(one, two),
            "similarity": pc.struct_field(partners, "similarity"),
            "containment": pc.struct_field(partners, "containment"),
        }
    )


def _end_to_end(*columns: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())


def _places(links: pa.Table, ids: pa.StringArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    one, two = (pc.index_in(links[side], value_set=ids).to_numpy() for side in ("one", "two"))
    return one, two


def _join_clusters(
    cluster: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Cluster numbers once more links are known."""
    size = len(cluster)
    graph = coo_array(
        (np.ones(len(left), dtype=np.int8), (cluster[left], cluster[right])), shape=(size, size)
    )
    return connected_components(graph, directed=False)[1].astype(np.int64)[cluster]


def read_origins(documents: Sequence[Input], ids: pa.StringArray) -> pa.Table | None:
    """Source, snapshot and web domain of documents by id; None if no input is available.

    Rows in the order of `ids`; null for documents of an input that is not available.
    """
    parts = []
    for input_ in documents:
        for shard in input_.shards():
            table = shard.read(["doc_id", "source", "snapshot", "url"])
            parts.append(table.filter(pc.is_in(table["doc_id"], value_set=ids)))
    if not parts:
        return None
    origins = pa.concat_tables(parts)
    origins = origins.set_column(3, "domain", hosts(origins["url"]))
    return origins.take(pc.index_in(ids, value_set=origins["doc_id"].combine_chunks()))


def count_between(
    clusters: Clusters, labels: pa.ChunkedArray, names: Sequence[str]
) -> NDArray[np.int64]:
    """[shown, shown]: documents with this label that have another of that label in their cluster.

    `labels` has a label for each linked document.
    """
    codes = pc.index_in(labels, value_set=pa.array(names, pa.string()))
    known = codes.is_valid().to_numpy()
    code = codes.drop_null().to_numpy()
    ones = np.ones(len(code), dtype=np.int64)
    shape = (len(clusters.sizes), len(names))
    counts = coo_array((ones, (clusters.cluster[known], code)), shape=shape).tocsr()
    counts.sum_duplicates()
    is_there = counts.copy()
    is_there.data = np.ones_like(is_there.data)
    matrix: NDArray[np.int64] = (counts.T @ is_there).toarray()
    alone = counts.copy()
    alone.data = np.where(alone.data == 1, 1, 0)
    return matrix - np.diag(np.asarray(alone.sum(axis=0)).ravel())


def _by_step(near: pa.Table, floor: float, measure: str) -> Iterator[tuple[str, pa.Table]]:
    """The pairs of each step between the floor and 1, and those that were not verified."""
    above = near[measure].to_numpy(zero_copy_only=False) - floor
    known = ~np.isnan(above)
    step = np.full(len(above), STEPS, dtype=np.int64)
    step[known] = np.clip(above[known] / (1 - floor + 1e-6) * STEPS, 0, STEPS - 1)
    for place in np.unique(step).tolist():
        group = str(place) if place < STEPS else _UNVERIFIED
        yield group, near.filter(pa.array(step == place))


def _offer(least: LeastIds, group: str, pairs: pa.Table) -> None:
    """Consider the first pair of each document, so that a family does not take all places."""
    named = pc.binary_join_element_wise(pairs["one"], pairs["two"], " ")
    pairs = pairs.append_column("pair", named)
    first = pairs.group_by("one").aggregate([("pair", "min")])["pair_min"]
    least.offer(group, pairs.filter(pc.is_in(named, value_set=first)))


def _chosen(
    least: LeastIds, most: int, ids: pa.StringArray, cluster: NDArray[np.int64]
) -> list[Row]:
    """Pairs over the whole range of the measure and an exact one, the least similar first.

    Those of one family come after the first of others. Rows of `one`, `two`, `similarity` and
    `containment` (None where not measured), and whether they are `exact` copies.
    """
    names = [_EXACT, *map(str, range(STEPS)), _UNVERIFIED]
    waiting = {name: list(least.groups.get(name, [])) for name in names}
    if any(rows for name, rows in waiting.items() if name != _EXACT):
        waiting[_EXACT] = waiting[_EXACT][:1]  # One is enough where there are others.
    met: set[int] = set()
    chosen: dict[str, Row] = {}
    while len(chosen) < most and any(waiting.values()):
        for name, rows in waiting.items():
            if not rows or len(chosen) == most:
                continue
            families = cluster[pc.index_in(pa.array([row["one"] for row in rows]), ids).to_numpy()]
            place = next((n for n, family in enumerate(families) if int(family) not in met), 0)
            met.add(int(families[place]))
            row = rows.pop(place)
            chosen[row["pair"]] = {**row, "exact": name == _EXACT}
    return sorted(chosen.values(), key=_likeness)


def _likeness(pair: Row) -> tuple[bool, bool, float, str]:
    unknown = pair["similarity"] is None
    return pair["exact"], unknown, 0.0 if unknown else pair["similarity"], pair["pair"]
