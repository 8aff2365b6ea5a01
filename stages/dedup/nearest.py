"""Each document's nearest partners: the best by a score, of equal ones the first by rank.

The rank of a document is its generation, then its id; so neither the order of rows nor what a
later generation brings changes who is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stages.dedup.pairs import VERIFIED, Pairs

if TYPE_CHECKING:
    from stages.dedup.index import Corpus

Keep = Callable[[Pairs], Pairs]


def nearest(
    documents: NDArray[np.int64],
    partners: NDArray[np.int64],
    scores: NDArray[np.floating] | NDArray[np.integer],
    most: int,
    corpus: Corpus,
) -> NDArray[np.int64]:
    """Places of the `most` partners of each document that have the greatest scores, ascending.

    Ranks are looked up for documents with more partners than that alone.
    """
    _, inverse, counts = np.unique(documents, return_inverse=True, return_counts=True)
    crowded = np.flatnonzero((counts > most)[inverse])
    if not len(crowded):
        return np.arange(len(documents))
    generation, identity = ranks(partners[crowded], corpus)
    order = np.lexsort(
        (partners[crowded], identity, generation, -scores[crowded], documents[crowded])
    )
    ordered = documents[crowded][order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    position = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    stays = np.ones(len(documents), dtype=bool)
    stays[crowded[order[position >= most]]] = False
    return np.flatnonzero(stays)


def ranks(
    numbers: NDArray[np.int64], corpus: Corpus
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Generation and first 64 bits of the id of each document: compared in this order."""
    different, places = np.unique(numbers, return_inverse=True)
    return corpus.generations(different)[places], corpus.rank_ids(different)[places]


def gathered(pieces: Iterable[Pairs], keep: Keep, at_once: int) -> Pairs:
    """What `keep` leaves of all pieces together; it is asked whenever `at_once` more are held.

    `keep` must leave the same of a whole as of parts that it has cut before.
    """
    held = np.empty(0, dtype=VERIFIED)
    waiting: list[Pairs] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size > at_once:
            held, waiting, size = keep(np.concatenate([held, *waiting])), [], 0
    return keep(np.concatenate([held, *waiting]))
