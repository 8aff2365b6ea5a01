"""Which copies go: pure functions over documents in the order of their priority.

A document goes only if a document that stays is its copy. So each removal names a partner that was
kept, and where a~b and b~c but not a~c, c is not removed for a.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.filter.policies import DuplicatesPolicy
from stages.text.native import compiled


@dataclass(frozen=True, eq=False)
class Links:
    """What is known of copies among nodes, numbered from 0.

    The documents to decide on are the first nodes, in the order of the inputs; the later ones stand
    for documents that are not at hand. `classes` and `texts` give each node's class of equal
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

    def between(self, start: int, stop: int) -> Copies:
        """Those of the documents `start : stop`."""
        part = slice(start, stop)
        return Copies(self.partner[part], self.similarity[part], self.exact[part])


def decide_copies(
    passes: NDArray[np.bool_],
    links: Links,
    policy: DuplicatesPolicy,
    order: NDArray[np.int64] | None = None,
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
    own = np.arange(nodes)
    equal = {"normalised": links.classes, "raw": links.texts, None: own}[policy.exact]
    mates = equal if policy.threshold is None else links.classes
    # Documents that an earlier run kept come first, all of them.
    place = np.full(nodes, nodes, dtype=np.int64)
    place[order] = np.arange(documents)
    place[links.kept_before] = np.arange(len(links.kept_before)) - nodes
    kept_of = np.full(nodes, -1, dtype=np.int64)
    kept_of[mates[links.kept_before[::-1]]] = links.kept_before[::-1]
    partner = np.full(documents, -1, dtype=np.int64)
    similarity = np.zeros(documents, dtype=np.float32)
    start, node, counted, told = _neighbours(links, policy.threshold)
    _go_through(
        order, passes, mates, start, node, counted, told, place, kept_of, partner, similarity
    )
    found = np.flatnonzero(partner >= 0)
    exact = np.zeros(documents, dtype=bool)
    exact[found] = equal[found] == equal[partner[found]]
    return Copies(partner, similarity, exact)


@compiled
def _go_through(
    order: NDArray[np.int64],
    passes: NDArray[np.bool_],
    mates: NDArray[np.int64],
    start: NDArray[np.int64],
    node: NDArray[np.int64],
    counted: NDArray[np.float32],
    told: NDArray[np.float32],
    place: NDArray[np.int64],
    kept_of: NDArray[np.int64],
    partner: NDArray[np.int64],
    similarity: NDArray[np.float32],
) -> None:
    """Fill `partner` and `similarity`.

    `kept_of` is the first kept document of each class: an exact mate, and what its neighbours meet.
    """
    for document in order:
        own = mates[document]
        if kept_of[own] >= 0:
            partner[document], similarity[document] = kept_of[own], 1.0
            continue
        most = np.float32(-1.0)
        for edge in range(start[own], start[own + 1]):
            kept = kept_of[node[edge]]
            if kept < 0:
                continue
            nearer = counted[edge] > most
            if nearer or (counted[edge] == most and place[kept] < place[partner[document]]):
                most = counted[edge]
                partner[document], similarity[document] = kept, told[edge]
        if partner[document] < 0 and passes[document]:
            kept_of[own] = document


def least_linked(links: Links, rank: NDArray[np.int64], verified: bool) -> NDArray[np.int64]:
    """For each node, that of the least `rank` among those that classes and pairs connect it with.

    `rank` is a permutation of the nodes. With `verified`, pairs that were not do not connect.
    """
    least = np.argsort(rank)
    parent = np.arange(len(rank))
    joined = ~np.isnan(links.similarity) if verified else np.ones(len(links.one), dtype=bool)
    for one, two in (
        (np.arange(len(rank)), links.classes),
        (links.one[joined], links.two[joined]),
    ):
        _join(parent, rank[one], rank[two])
    _flatten(parent)
    return least[parent[rank]]


def named_when_given(
    links: Links, rank: NDArray[np.int64], age: NDArray[np.int64], verified: bool
) -> NDArray[np.int64]:
    """For each node what `least_linked` said of it when it came: among the nodes no younger."""
    least, parent, named = np.argsort(rank), np.arange(len(rank)), np.arange(len(rank))
    joined = ~np.isnan(links.similarity) if verified else np.ones(len(links.one), dtype=bool)
    one = np.concatenate([named, links.one[joined]])
    two = np.concatenate([links.classes, links.two[joined]])
    newer = np.maximum(age[one], age[two])
    for generation in np.flatnonzero(np.bincount(age)):
        pairs, came = newer == generation, np.flatnonzero(age == generation)
        _join(parent, rank[one[pairs]], rank[two[pairs]])
        named[came] = least[_roots(parent, rank[came])]
    return named


@compiled
def _roots(parent: NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The least member of the set that each node lies in."""
    found = np.empty(len(nodes), dtype=np.int64)
    for place in range(len(nodes)):
        node = nodes[place]
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        found[place] = node
    return found


@compiled
def _join(parent: NDArray[np.int64], one: NDArray[np.int64], two: NDArray[np.int64]) -> None:
    """Union of the sets that each pair lies in, under the least member; paths are halved."""
    for pair in range(len(one)):
        a, b = one[pair], two[pair]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a < b:
            parent[b] = a
        else:
            parent[a] = b


@compiled
def _flatten(parent: NDArray[np.int64]) -> None:
    """Every node under the root of its set; parents are less than their children."""
    for node in range(len(parent)):
        parent[node] = parent[parent[node]]


def _neighbours(
    links: Links, threshold: float | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """Pairs at the threshold or above as compressed rows by node.

    Starts, other nodes, similarities as they count, and as they were measured.
    """
    nodes = len(links.classes)
    if threshold is None:
        none = np.empty(0, dtype=np.float32)
        return np.zeros(nodes + 1, np.int64), np.empty(0, np.int64), none, none
    least = np.float32(threshold)
    counted = np.where(np.isnan(links.similarity), least, links.similarity)
    near = np.flatnonzero(counted >= least)
    one, two = links.classes[links.one[near]], links.classes[links.two[near]]
    owner, other = np.concatenate([one, two]), np.concatenate([two, one])
    order = np.argsort(owner, kind="stable")
    start = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=nodes), out=start[1:])
    return (
        start,
        other[order],
        np.tile(counted[near], 2)[order],
        np.tile(links.similarity[near], 2)[order],
    )
