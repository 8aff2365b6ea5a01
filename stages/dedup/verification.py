"""How similar the documents of candidate pairs are, and each document's nearest partners.

Jaccard similarity and containment of shingles are exact where all shingles of both documents were
kept. Of a longer document only the least ones were (a bottom-k sketch), and shares are taken among
the values up to the greatest that both sides still know all of: the k minimum values estimate
(Beyer et al. 2007, "On synopses for distinct-value estimation under multiset operations").

The nearest partners are the best by a score, of equal ones the first by rank: generation, then id.
So neither the order of rows nor what a later generation brings changes who is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from stages.dedup.pairs import VERIFIED, PairFiles, Pairs, mirror_pairs, write_pairs
from stages.engine.kernels import kernel

if TYPE_CHECKING:
    from stages.dedup.index import Corpus, Placed
    from stages.engine import ShardOutput


Measure = Literal["jaccard", "containment"]

STEPS = 20
"""Similarities are counted in this many steps of equal width."""
_GALLOP = 32
"""From this ratio of sizes on, the smaller set is looked up in the larger one."""


@dataclass(frozen=True)
class PairTask:
    """The pairs whose right document is in [low, high), all of one generation."""

    id: str
    low: int
    high: int
    generation: int


def pair_tasks(candidates: PairFiles, corpus: Corpus, pairs_per_task: int) -> list[PairTask]:
    """All candidates in tasks of at most `pairs_per_task` records, or of one right document."""
    tasks = []
    for generation, start in enumerate(corpus.starts[:-1].tolist()):
        end = int(corpus.starts[generation + 1])
        for low, high in cut_ranges([candidates], start, end, pairs_per_task):
            tasks.append(PairTask(f"{generation:03d}-{low:012d}", low, high, generation))
    return tasks


def cut_ranges(files: Sequence[PairFiles], low: int, high: int, most: int) -> list[tuple[int, int]]:
    """[low, high) cut into ranges of at most `most` records each, or of one number; none empty."""
    leaves: list[tuple[int, int, int]] = []
    waiting = [(low, high)]
    while waiting:
        begin, end = waiting.pop()
        bounds = np.unique(np.linspace(begin, end, 65).astype(np.int64))
        if len(bounds) < 2:
            continue
        counts = sum(
            (pair_files.counts_at(bounds) for pair_files in files),
            np.zeros(len(bounds) - 1, np.int64),
        )
        for first, last, count in zip(
            bounds[:-1].tolist(), bounds[1:].tolist(), counts.tolist(), strict=True
        ):
            if count > most and last - first > 1:
                waiting.append((first, last))
            elif count:
                leaves.append((first, last, count))
    merged: list[tuple[int, int]] = []
    held = 0
    for first, last, count in sorted(leaves):
        if merged and held + count <= most:
            merged[-1] = (merged[-1][0], last)
            held += count
        else:
            merged.append((first, last))
            held = count
    return merged


def verify_pairs(
    task: PairTask,
    out: ShardOutput,
    *,
    corpus: Corpus,
    candidates: PairFiles,
    measure: Measure,
    floor: float,
    verify: bool,
    bytes_at_once: int,
) -> dict[str, Any]:
    """Leave the pairs whose `measure` reaches `floor` as scratch `pairs`, and `mirrored` ones.

    At most `bytes_at_once` of shingles are in memory, or those of two documents. Without `verify`
    all candidates stay, their measures NaN. Returns counts.
    """
    pairs = candidates.between(task.low, task.high)
    verified = np.zeros(len(pairs), dtype=VERIFIED)
    for column in ("right", "left", "band"):
        verified[column] = pairs[column]
    counts = {"candidates": len(pairs), "unequal": 0, "estimated": 0}
    if verify:
        numbers, places = np.unique(np.stack([pairs["right"], pairs["left"]]), return_inverse=True)
        placed = corpus.placed(numbers)
        pair_places = places.reshape(2, -1)
        sizes = placed.sizes[pair_places]
        if measure == "jaccard":
            # |A & B| / |A | B| is at most min / max of the sizes.
            like = at_least(sizes.min(axis=0) / sizes.max(axis=0), floor)
            verified, sizes, pair_places = verified[like], sizes[:, like], pair_places[:, like]
        counts["unequal"] = len(pairs) - len(verified)
        _fill_measures(verified, pair_places, numbers, placed, corpus, bytes_at_once)
        near = at_least(verified[measure], floor)
        verified, sizes = verified[near], sizes[:, near]
        counts["estimated"] = int((sizes > corpus.most).any(axis=0).sum())
    else:
        verified["jaccard"] = verified["containment"] = np.nan
    counts["pairs"] = write_pairs(out, "pairs", verified)
    write_pairs(out, "mirrored", mirror_pairs(verified))
    return {**counts, "similarity": histogram(verified["jaccard"]).tolist() if verify else []}


def at_least(measured: NDArray[np.floating], threshold: float) -> NDArray[np.bool_]:
    """Whether each reaches `threshold`, compared in float32, in which pairs are stored.

    Compared in float64, a stored 7/10 would be less than 0.7.
    """
    return measured.astype(np.float32) >= np.float32(threshold)


def histogram(similarity: NDArray[np.float32]) -> NDArray[np.int64]:
    """How many are in each step of 1 / STEPS; the last holds 1.0 as well: int64 [STEPS]."""
    return np.bincount(similarity_steps(similarity), minlength=STEPS)


def similarity_steps(similarity: NDArray[np.floating]) -> NDArray[np.int64]:
    """The step of each: [0, STEPS)."""
    # 1e-6: a stored 0.7 counts as 0.7 although its float32 is less.
    step = np.floor(similarity.astype(np.float64) * STEPS + 1e-6)
    return np.minimum(step, STEPS - 1).astype(np.int64)


def _fill_measures(
    pairs: Pairs,
    pair_places: NDArray[np.int64],
    numbers: NDArray[np.int64],
    placed: Placed,
    corpus: Corpus,
    bytes_at_once: int,
) -> None:
    """Fill `jaccard` and `containment`, in portions of `bytes_at_once` of shingles or of one pair.

    `pair_places` [2, pairs] are places of right and left in `numbers`, which ascend; `pairs` are
    sorted. Members of a family mostly have the same first partner: taken by that, few documents are
    read for several portions.
    """
    if not len(pairs):
        return
    right, left = pair_places
    begins = np.flatnonzero(np.append(True, right[1:] != right[:-1]))
    order = np.argsort(
        np.repeat(left[begins], np.diff(np.append(begins, len(right)))), kind="stable"
    )
    pair_places = np.ascontiguousarray(pair_places[:, order])
    kept = np.minimum(placed.sizes, corpus.most) * 8
    portions = np.full(len(numbers), -1, dtype=np.int64)
    local = np.empty(len(numbers), dtype=np.int64)
    first = 0
    while first < len(pairs):
        end = portion_end(pair_places, kept, first, bytes_at_once, portions)
        read = np.unique(pair_places[:, first:end])
        local[read] = np.arange(len(read))
        own = placed.some(read)
        shingles, offsets = corpus.shingles(numbers[read], own)
        right, left = local[pair_places[:, first:end]]
        part = order[first:end]
        pairs["jaccard"][part], pairs["containment"][part] = measure_pairs(
            shingles, offsets, own.sizes, right, left
        )
        first = end


@kernel
def portion_end(
    pair_places: NDArray[np.int64],
    document_bytes: NDArray[np.int64],
    first: int,
    bytes_at_once: int,
    portions: NDArray[np.int64],
) -> int:
    """Where a portion that begins with pair `first` ends: its documents take `bytes_at_once`.

    At least one pair is in it. `portions` is -1 for every document before the first portion.
    """
    held = 0
    for pair in range(first, pair_places.shape[1]):
        for side in range(2):
            document = pair_places[side, pair]
            if portions[document] != first:
                portions[document] = first
                held += document_bytes[document]
        if held > bytes_at_once and pair > first:
            return pair
    return pair_places.shape[1]


@kernel
def measure_pairs(
    shingles: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    sizes: NDArray[np.int64],
    right: NDArray[np.int64],
    left: NDArray[np.int64],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Jaccard similarity and containment of pairs of sets: float32 [pairs] each.

    `shingles` holds the sets end to end, each sorted; `right` and `left` are places in `offsets`;
    `sizes` counts each set before it was cut to its least values.
    """
    jaccard = np.empty(len(right), dtype=np.float32)
    containment = np.empty(len(right), dtype=np.float32)
    for pair in range(len(right)):
        one, other = right[pair], left[pair]
        a, a_end = offsets[one], offsets[one + 1]
        b, b_end = offsets[other], offsets[other + 1]
        one_cut, other_cut = a_end - a < sizes[one], b_end - b < sizes[other]
        if one_cut or other_cut:
            if one_cut and other_cut:
                last = min(shingles[a_end - 1], shingles[b_end - 1])
            elif one_cut:
                last = shingles[a_end - 1]
            else:
                last = shingles[b_end - 1]
            a_end = a + np.searchsorted(shingles[a:a_end], last, side="right")
            b_end = b + np.searchsorted(shingles[b:b_end], last, side="right")
        one_size, other_size = a_end - a, b_end - b
        shared = count_shared(shingles, a, a_end, b, b_end)
        jaccard[pair] = shared / max(one_size + other_size - shared, 1)
        if sizes[one] < sizes[other]:
            smaller = 2 * one_size
        elif sizes[one] > sizes[other]:
            smaller = 2 * other_size
        else:  # The result must not depend on the order of the two.
            smaller = one_size + other_size
        containment[pair] = 2 * shared / max(smaller, 1)
    return jaccard, containment


@kernel
def count_shared(values: NDArray[np.uint64], a: int, a_end: int, b: int, b_end: int) -> int:
    """How many values two sorted sets [a, a_end) and [b, b_end) of `values` share."""
    if a_end - a > b_end - b:
        a, a_end, b, b_end = b, b_end, a, a_end
    shared = 0
    if (a_end - a) * _GALLOP < b_end - b:
        for place in range(a, a_end):
            b += np.searchsorted(values[b:b_end], values[place])
            if b == b_end:
                break
            shared += values[b] == values[place]
        return shared
    while a < a_end and b < b_end:
        # Without a branch: the processor cannot predict which side is less.
        one, other = values[a], values[b]
        shared += one == other
        a += one <= other
        b += other <= one
    return shared


KeepPairs = Callable[[Pairs], Pairs]


def nearest_partners(
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


def keep_of_pieces(pieces: Iterable[Pairs], keep: KeepPairs, at_once: int) -> Pairs:
    """What `keep` leaves of all pieces; it is called whenever `at_once` more are held.

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
