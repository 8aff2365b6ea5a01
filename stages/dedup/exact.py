"""Documents that say the same: equal normalised text, by a 128-bit hash."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray


def text_digest(text: str, normalised: str) -> bytes:
    """16 bytes that two documents share when their normalised texts are equal.

    Normalising empties a text without words ("***", "!!!"); such texts are compared as they are,
    under a prefix that no normalised text has.
    """
    content = normalised or "\0" + text
    return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def exact_classes(digests: NDArray[np.uint64]) -> NDArray[np.int64]:
    """For each document, the index of the first with the same digest: int64 [documents].

    `digests` is [documents, 2]: the two halves of each 128-bit digest.
    """
    order = np.lexsort((digests[:, 1], digests[:, 0]))
    ordered = digests[order]
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    first = np.empty(len(order), dtype=np.int64)
    # lexsort is stable, so the first of each run is the document that came first.
    first[order] = order[is_first][np.cumsum(is_first) - 1]
    return first


def comparable(first: NDArray[np.int64], shingles: NDArray[np.int64]) -> NDArray[np.int64]:
    """The documents that near-duplicate search compares, ascending: the first of each exact class,
    where it has any shingle (`shingles` counts them by document)."""
    return np.flatnonzero((first == np.arange(len(first))) & (shingles > 0)).astype(np.int64)
