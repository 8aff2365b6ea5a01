"""Candidate pairs from band keys: who shares a bucket with whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Candidates:
    """Pairs left < right, each once, sorted by left, then right; `band` is the first they share."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    band: NDArray[np.int32]
    capped_buckets: int

    def __len__(self) -> int:
        return len(self.left)


def candidate_pairs(
    keys: NDArray[np.uint64], members: NDArray[np.int64], max_bucket: int
) -> Candidates:
    """All pairs among `members` that share a band key: `keys` is [documents, bands].

    `members` are the documents to compare, ascending. In a bucket of more than `max_bucket` of them
    each is paired with the bucket's first `max_bucket` alone, so the number of pairs grows with the
    bucket, not with its square. Pairs follow the order of the documents; nothing depends on how the
    keys were made or gathered.
    """
    documents, bands = keys.shape
    compared = keys[members]
    codes = np.empty(0, dtype=np.int64)
    band_of = np.empty(0, dtype=np.int32)
    capped = 0
    for band in range(bands):
        left, right, capped_here = _pairs_of_band(compared[:, band], max_bucket)
        capped += capped_here
        codes = np.concatenate([codes, members[left] * documents + members[right]])
        band_of = np.concatenate([band_of, np.full(len(left), band, dtype=np.int32)])
        # np.unique names the first occurrence, that is the first band the pair shares.
        codes, first = np.unique(codes, return_index=True)
        band_of = band_of[first]
    left, right = np.divmod(codes, max(documents, 1))
    return Candidates(left, right, band_of, capped)


def _pairs_of_band(
    keys: NDArray[np.uint64], max_bucket: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Pairs (left < right) of one band and the number of buckets above the cap."""
    order = np.argsort(keys, kind="stable").astype(np.int64)
    ordered = keys[order]
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(is_first)
    sizes = np.diff(np.append(starts, len(order)))
    bucket_start = np.repeat(starts, sizes)
    position = np.arange(len(order)) - bucket_start
    earlier = np.minimum(position, max_bucket)
    right = np.repeat(order, earlier)
    within = np.arange(len(right)) - np.repeat(np.cumsum(earlier) - earlier, earlier)
    left = order[np.repeat(bucket_start, earlier) + within]
    return left, right, int((sizes > max_bucket).sum())
