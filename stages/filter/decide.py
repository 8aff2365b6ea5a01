"""Which copies go, and the order in which documents are decided on: pure functions over arrays.

A document is dropped only if a kept document is its copy. So each removal names a kept partner, and
where a~b and b~c but not a~c, c is not removed because of a.

The arrays may be files that are mapped: where they are large, they are made by `empty` and gone
through in order or a piece at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from artifacts_schema.errors import UsageError
from stages.engine.kernels import kernel
from stages.filter.checks import signal_hint
from stages.filter.config import Criterion, DuplicatesPolicy

Empty = Callable[[int, Any], NDArray[Any]]
"""Makes an array of so many elements of a type, whose values are not set."""
_PAIRS_AT_ONCE = 1 << 20

COLUMNS = {"source": "source", "snapshot": "snapshot", "date": "date"}
"""The column of documents that a criterion looks at."""


def decision_order(keys: Sequence[NDArray[np.float64]], criteria: int) -> NDArray[np.int64]:
    """The places of documents in the order of decision.

    `keys` are those of each shard (see `priority_keys`), in the order of the inputs, which decides
    where all criteria are equal.
    """
    joined = np.concatenate([np.empty((criteria, 0)), *keys], axis=1)
    if not criteria:
        return np.arange(joined.shape[1])
    # lexsort sorts by its last key first, and keeps the order of what is equal.
    return np.lexsort(joined[::-1]).astype(np.int64)


def priority_keys(
    criteria: Sequence[Criterion],
    documents: pa.Table,
    signals: pa.Table | None,
    characters: Callable[[], NDArray[np.int64]],
) -> NDArray[np.float64]:
    """[criterion, document] The lesser is wanted more; infinite where nothing is known.

    `documents` holds the `COLUMNS` of the criteria; `characters` counts those of the texts. A
    UsageError names a signal that was not measured.
    """
    keys = np.empty((len(criteria), len(documents)))
    for row, criterion in enumerate(criteria):
        if criterion.by == "quality":
            assert criterion.signal is not None
            keys[row] = _nan_to_infinity(-_signal_values(criterion.signal, signals))
        elif criterion.by == "length":
            keys[row] = -characters()
        elif criterion.by == "date":
            sign = -1.0 if criterion.first == "latest" else 1.0
            keys[row] = _nan_to_infinity(sign * _seconds(documents["date"]))
        else:
            place = pc.index_in(documents[criterion.by], value_set=pa.array(criterion.order))
            keys[row] = pc.fill_null(place, len(criterion.order)).to_numpy()
    return keys


def _nan_to_infinity(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Infinite in place of NaN."""
    return np.where(np.isnan(values), np.inf, values)


def _signal_values(name: str, signals: pa.Table | None) -> NDArray[np.float64]:
    if signals is None or name not in signals.column_names:
        raise UsageError(
            f"duplicates.priority asks for signal '{name}', which was not measured",
            where="filter",
            hint="connect the signals of the documents" if signals is None else signal_hint(name),
        )
    column = signals[name]
    if pa.types.is_string(column.type):
        raise UsageError(f"duplicates.priority: signal '{name}' is no number", where="filter")
    values: NDArray[np.float64] = column.cast(pa.float64()).to_numpy()
    return values


def _seconds(dates: pa.ChunkedArray) -> NDArray[np.float64]:
    """Seconds since 1970 of ISO 8601 dates, UTC if they have no zone; NaN for other strings."""
    encoded = dates.combine_chunks().dictionary_encode()
    known = np.array([_parse_date(text) for text in encoded.dictionary.to_pylist()] + [np.nan])
    places = pc.fill_null(encoded.indices, len(known) - 1).to_numpy()
    return known[places]


def _parse_date(text: str) -> float:
    """`2024`, `2024-05`, `2024-05-01`, `2024-05-01T10:00:00Z` and their like."""
    padded = {4: f"{text}-01-01", 7: f"{text}-01"}.get(len(text), text)
    try:
        moment = datetime.fromisoformat(padded)
    except ValueError:
        return float("nan")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@dataclass(frozen=True, eq=False)
class Links:
    """What is known of copies among nodes, numbered from 0.

    The documents to decide on are the first nodes, in the order of the inputs; the later ones
    are documents of earlier runs. `classes` and `texts` give each node's class of equal
    normalised and of equal raw texts, as the node that stands for it. `one`, `two` and `similarity`
    are pairs between nodes that stand for classes, each in one direction or both, in any order,
    with the measure that the policy names (NaN: not verified). `kept_before` are later nodes that
    an earlier run kept, in its order.
    """

    classes: NDArray[np.int64]
    texts: NDArray[np.int64]
    one: NDArray[np.int64]
    two: NDArray[np.int64]
    similarity: NDArray[np.float32]
    kept_before: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Copies:
    """For each document the kept node that it is a copy of (-1: none), and how similar they are.

    `similarity` is NaN where the pair was not verified.
    """

    partner: NDArray[np.int64]
    similarity: NDArray[np.float32]
    exact: NDArray[np.bool_]

    def spread(self, rows: NDArray[np.int64], documents: int) -> Copies:
        """The same for so many documents, of which these are the `rows` and no other is a copy."""
        partner = np.full(documents, -1, dtype=np.int64)
        similarity = np.zeros(documents, dtype=np.float32)
        exact = np.zeros(documents, dtype=bool)
        partner[rows], similarity[rows], exact[rows] = self.partner, self.similarity, self.exact
        return Copies(partner, similarity, exact)


def decide_copies(
    passes: NDArray[np.bool_],
    links: Links,
    policy: DuplicatesPolicy,
    order: NDArray[np.int64] | None = None,
    empty: Empty = np.empty,
) -> Copies:
    """Go through the documents in order; each that `passes` is kept unless it copies a kept one.

    `passes` says which documents nothing else removes (one that fails otherwise gets a partner too,
    if there is one, but is never kept); `order` is a permutation of the documents, by default that
    of the inputs. With a threshold, documents of one class are copies of similarity 1; without,
    those are copies that `policy.exact` calls equal. A partner is a kept document of the same
    class, else the most similar kept document at the threshold or above, of equals the first in
    order. Similarities are compared in float32, in which they are stored.
    """
    documents, nodes = len(passes), len(links.classes)
    order = np.arange(documents) if order is None else order
    equal = _equal_nodes(links, policy, empty)
    exact_duplicates = equal if policy.threshold is None else links.classes
    # Documents that an earlier run kept come first, all of them.
    place, first_kept = empty(nodes, np.int64), empty(nodes, np.int64)
    place[:], first_kept[:] = nodes, -1
    place[order] = np.arange(documents)
    place[links.kept_before] = np.arange(len(links.kept_before)) - nodes
    first_kept[exact_duplicates[links.kept_before[::-1]]] = links.kept_before[::-1]
    partner, similarity = empty(documents, np.int64), empty(documents, np.float32)
    partner[:], similarity[:] = -1, 0.0
    start, node, counted, measured = _neighbours(links, policy.threshold, empty)
    _decide_in_order(
        order,
        passes,
        exact_duplicates,
        start,
        node,
        counted,
        measured,
        place,
        first_kept,
        partner,
        similarity,
    )
    exact = empty(documents, np.bool_)
    _compare_partners(equal, partner, exact)
    return Copies(partner, similarity, exact)


def _equal_nodes(links: Links, policy: DuplicatesPolicy, empty: Empty) -> NDArray[np.int64]:
    """For each node what stands for those that the policy calls equal."""
    if policy.exact is not None:
        return links.classes if policy.exact == "normalised" else links.texts
    own = empty(len(links.classes), np.int64)
    own[:] = np.arange(len(own))
    return own


@kernel
def _compare_partners(
    equal: NDArray[np.int64], partner: NDArray[np.int64], exact: NDArray[np.bool_]
) -> None:
    """Fill `exact`: whether each document has a partner that is equal."""
    for document in range(len(partner)):
        other = partner[document]
        exact[document] = other >= 0 and equal[document] == equal[other]


@kernel
def _decide_in_order(
    order: NDArray[np.int64],
    passes: NDArray[np.bool_],
    exact_duplicates: NDArray[np.int64],
    start: NDArray[np.int64],
    node: NDArray[np.int64],
    counted: NDArray[np.float32],
    measured: NDArray[np.float32],
    place: NDArray[np.int64],
    first_kept: NDArray[np.int64],
    partner: NDArray[np.int64],
    similarity: NDArray[np.float32],
) -> None:
    """Fill `partner` and `similarity`.

    `first_kept` is the first kept document of each class, -1 for none.
    """
    for document in order:
        own = exact_duplicates[document]
        if first_kept[own] >= 0:
            partner[document], similarity[document] = first_kept[own], 1.0
            continue
        most = np.float32(-1.0)
        for edge in range(start[own], start[own + 1]):
            kept = first_kept[node[edge]]
            if kept < 0:
                continue
            nearer = counted[edge] > most
            if nearer or (counted[edge] == most and place[kept] < place[partner[document]]):
                most = counted[edge]
                partner[document], similarity[document] = kept, measured[edge]
        if partner[document] < 0 and passes[document]:
            first_kept[own] = document


def least_linked(links: Links, rank: NDArray[np.int64], verified: bool) -> NDArray[np.int64]:
    """For each node, that of the least `rank` among those that classes and pairs connect it with.

    `rank` is a permutation of the nodes. With `verified`, pairs that were not do not connect.
    """
    least = np.arange(len(rank))
    for one, two in _connections(links, verified):
        least = connect(least, rank[one], rank[two])
    return np.argsort(rank)[least[rank]]


def least_linked_by_age(
    links: Links, rank: NDArray[np.int64], age: NDArray[np.int64], verified: bool
) -> NDArray[np.int64]:
    """For each node the result of `least_linked` when it was added: among nodes no younger."""
    by_rank, least, named = np.argsort(rank), np.arange(len(rank)), np.arange(len(rank))
    for generation in np.flatnonzero(np.bincount(age)):
        for one, two in _connections(links, verified):
            pairs = np.maximum(age[one], age[two]) == generation
            least = connect(least, rank[one[pairs]], rank[two[pairs]])
        added = age == generation
        named[added] = by_rank[least[rank[added]]]
    return named


def _connections(
    links: Links, verified: bool
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Pairs of nodes, many at a time: each with its class, and those whose similarity is known."""
    for start in range(0, len(links.classes), _PAIRS_AT_ONCE):
        classes = np.asarray(links.classes[start : start + _PAIRS_AT_ONCE])
        yield start + np.arange(len(classes)), classes
    for start in range(0, len(links.one), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        joined = ~np.isnan(links.similarity[part]) if verified else slice(None)
        yield links.one[part][joined], links.two[part][joined]


def connect(
    least: NDArray[np.int64], one: NDArray[np.int64], two: NDArray[np.int64]
) -> NDArray[np.int64]:
    """`least`, the least node that each is connected with, after these pairs are connected too."""
    if not len(one):
        return least
    ends, places = np.unique(np.concatenate([least[one], least[two]]), return_inverse=True)
    pairs = np.split(places, 2)
    graph = coo_array((np.ones(len(one), dtype=bool), pairs), shape=(len(ends), len(ends)))
    _, component = connected_components(graph, directed=False)
    _, first = np.unique(component, return_index=True)
    joined = np.arange(len(least))
    joined[ends] = ends[first[component]]
    return joined[least]


def _neighbours(
    links: Links, threshold: float | None, empty: Empty
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """Pairs at the threshold or above as compressed rows by node.

    Starts, other nodes, similarities as they count, and as they were measured.
    """
    start = empty(len(links.classes) + 1, np.int64)
    start[:] = 0
    if threshold is None:
        none = np.empty(0, dtype=np.float32)
        return start, np.empty(0, np.int64), none, none
    least = np.float32(threshold)
    pairs = links.classes, links.one, links.two, links.similarity, least
    _count_near(*pairs, start[1:])
    np.cumsum(start, out=start)
    edges = int(start[-1])
    node, counted = empty(edges, np.int64), empty(edges, np.float32)
    measured, next_place = empty(edges, np.float32), empty(len(links.classes), np.int64)
    next_place[:] = start[:-1]
    _place_near(*pairs, next_place, node, counted, measured)
    return start, node, counted, measured


@kernel
def _count_near(
    classes: NDArray[np.int64],
    one: NDArray[np.int64],
    two: NDArray[np.int64],
    similarity: NDArray[np.float32],
    least: np.float32,
    count: NDArray[np.int64],
) -> None:
    """Count the pairs of each class at the threshold or above, or not verified."""
    for pair in range(len(one)):
        if not similarity[pair] < least:
            count[classes[one[pair]]] += 1
            count[classes[two[pair]]] += 1


@kernel
def _place_near(
    classes: NDArray[np.int64],
    one: NDArray[np.int64],
    two: NDArray[np.int64],
    similarity: NDArray[np.float32],
    least: np.float32,
    next_place: NDArray[np.int64],
    node: NDArray[np.int64],
    counted: NDArray[np.float32],
    measured: NDArray[np.float32],
) -> None:
    """Put each of these pairs at the next place of both its classes; unverified count as `least`.

    A kernel, as NumPy would sort the pairs, and hold them several times to do so.
    """
    for direction in range(2):
        for pair in range(len(one)):
            value = similarity[pair]
            if value < least:
                continue
            owner, other = classes[one[pair]], classes[two[pair]]
            if direction == 1:
                owner, other = other, owner
            place = next_place[owner]
            next_place[owner] += 1
            node[place], measured[place] = other, value
            counted[place] = least if np.isnan(value) else value
