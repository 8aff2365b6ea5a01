"""Which copies go: pure functions over documents in priority order.

A document goes only if a document that stays is its copy. So each removal names a partner that was
kept, and where a~b and b~c but not a~c, c is not removed for a.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


@dataclass(frozen=True, eq=False)
class Links:
    """What is known of copies among nodes, numbered from 0.

    `classes` gives each node's exact class as the node that stands for it. `one`, `two` and
    `similarity` are verified pairs between such nodes, each in one direction or both, in any
    order. The documents to decide on are the first nodes, in priority order; the later ones stand
    for documents that are not at hand.
    """

    classes: NDArray[np.int64]
    one: NDArray[np.int64]
    two: NDArray[np.int64]
    similarity: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Copies:
    """For each document the kept one that it is a copy of (-1: none), and how similar they are."""

    partner: NDArray[np.int64]
    similarity: NDArray[np.float32]
    exact: NDArray[np.bool_]

    def between(self, start: int, stop: int) -> Copies:
        """Those of the documents `start : stop`."""
        part = slice(start, stop)
        return Copies(self.partner[part], self.similarity[part], self.exact[part])


def decide_copies(
    passes: NDArray[np.bool_], links: Links, threshold: float | None, exact: bool
) -> Copies:
    """Go through the documents in order; each that `passes` is kept unless it copies a kept one.

    `passes` says which documents nothing else removes (one that fails otherwise gets a partner too,
    if there is one, but is never kept). A partner is an exact mate if `exact` asks for them, else
    the most similar kept document at `threshold` or above, of equals the first. Similarities are
    compared in float32, in which they are stored.
    """
    documents = len(passes)
    start, node, similar = _neighbours(links, threshold)
    classes = links.classes[:documents].tolist()
    # Of each class the first document that was kept: an exact mate, and what its neighbours meet.
    kept_of: dict[int, int] = {}
    partner = np.full(documents, -1, dtype=np.int64)
    similarity = np.zeros(documents, dtype=np.float32)
    is_exact = np.zeros(documents, dtype=bool)
    for document in _linked(links, start, documents):
        own = classes[document]
        if exact and own in kept_of:
            partner[document], similarity[document] = kept_of[own], 1.0
            is_exact[document] = True
            continue
        near = [
            (-similar[place], kept_of[node[place]])
            for place in range(start[own], start[own + 1])
            if node[place] in kept_of
        ]
        if near:
            most, partner[document] = min(near)
            similarity[document] = -most
        elif passes[document]:
            kept_of.setdefault(own, document)
    return Copies(partner, similarity, is_exact)


def components(links: Links) -> NDArray[np.int64]:
    """A number for each node, equal for those that exact classes and verified pairs connect."""
    nodes = len(links.classes)
    one = np.concatenate([np.arange(nodes), links.one])
    two = np.concatenate([links.classes, links.two])
    graph = coo_array((np.ones(len(one), dtype=np.int8), (one, two)), shape=(nodes, nodes))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def least_members(component: NDArray[np.int64], rank: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each node, the member of its component with the least `rank` (a permutation of nodes)."""
    by_rank = np.argsort(rank, kind="stable")
    _, first = np.unique(component[by_rank], return_index=True)
    return by_rank[first][component]


def _neighbours(links: Links, threshold: float | None) -> tuple[list[int], list[int], list[float]]:
    """Pairs at the threshold or above as compressed rows: starts, other nodes, similarities."""
    near = np.zeros(len(links.one), dtype=bool)
    if threshold is not None:
        near = links.similarity >= np.float32(threshold)
    one = np.concatenate([links.one[near], links.two[near]])
    two = np.concatenate([links.two[near], links.one[near]])
    similarity = np.tile(links.similarity[near], 2)
    order = np.argsort(one, kind="stable")
    start = np.searchsorted(one[order], np.arange(len(links.classes) + 1))
    return start.tolist(), two[order].tolist(), similarity[order].tolist()


def _linked(links: Links, start: list[int], documents: int) -> list[int]:
    """The documents that have an exact mate or a neighbour, in order; all others simply stay."""
    classes = links.classes
    mates = np.bincount(classes, minlength=len(classes))[classes] > 1
    near = np.diff(np.array(start)) > 0
    return np.flatnonzero((mates | near)[:documents]).tolist()
