"""How alike the documents of candidate pairs are: Jaccard similarity and containment of shingles.

Exact where all shingles of both documents were kept. Of a longer document only the least ones were
(a bottom-k sketch), and shares are taken among the values up to the greatest that both sides still
know all of: the k minimum values estimate (Beyer et al. 2007, "On synopses for distinct-value
estimation under multiset operations").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from stages.dedup.pairs import VERIFIED, PairFiles, Pairs, mirrored, write_pairs
from stages.text.native import compiled

if TYPE_CHECKING:
    from stages.dedup.index import Corpus
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
    found = []
    for generation, start in enumerate(corpus.starts[:-1].tolist()):
        end = int(corpus.starts[generation + 1])
        for low, high in ranges([candidates], start, end, pairs_per_task):
            found.append(PairTask(f"{generation:03d}-{low:012d}", low, high, generation))
    return found


def ranges(files: Sequence[PairFiles], low: int, high: int, most: int) -> list[tuple[int, int]]:
    """[low, high) cut into ranges of at most `most` records each, or of one number; none empty."""
    leaves: list[tuple[int, int, int]] = []
    waiting = [(low, high)]
    while waiting:
        begin, end = waiting.pop()
        bounds = np.unique(np.linspace(begin, end, 65).astype(np.int64))
        if len(bounds) < 2:
            continue
        counts = sum((of.counts_at(bounds) for of in files), np.zeros(len(bounds) - 1, np.int64))
        for first, last, count in zip(
            bounds[:-1].tolist(), bounds[1:].tolist(), counts.tolist(), strict=True
        ):
            if count > most and last - first > 1:
                waiting.append((first, last))
            elif count:
                leaves.append((first, last, count))
    found: list[tuple[int, int]] = []
    held = 0
    for first, last, count in sorted(leaves):
        if found and held + count <= most:
            found[-1] = (found[-1][0], last)
            held += count
        else:
            found.append((first, last))
            held = count
    return found


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
    found = np.zeros(len(pairs), dtype=VERIFIED)
    for column in ("right", "left", "band"):
        found[column] = pairs[column]
    counts = {"candidates": len(pairs), "unequal": 0, "estimated": 0}
    if verify:
        numbers, places = np.unique(np.stack([pairs["right"], pairs["left"]]), return_inverse=True)
        placed = corpus.placed(numbers)
        of_pairs = places.reshape(2, -1)
        sizes = placed[0][of_pairs]
        if measure == "jaccard":
            # |A & B| / |A | B| is at most min / max of the sizes.
            like = at_least(sizes.min(axis=0) / sizes.max(axis=0), floor)
            found, sizes, of_pairs = found[like], sizes[:, like], of_pairs[:, like]
        counts["unequal"] = len(pairs) - len(found)
        _measure_pairs(found, of_pairs, numbers, placed, corpus, bytes_at_once)
        near = at_least(found[measure], floor)
        found, sizes = found[near], sizes[:, near]
        counts["estimated"] = int((sizes > corpus.most).any(axis=0).sum())
    else:
        found["jaccard"] = found["containment"] = np.nan
    counts["pairs"] = write_pairs(out, "pairs", found)
    write_pairs(out, "mirrored", mirrored(found))
    return {**counts, "similarity": histogram(found["jaccard"]).tolist() if verify else []}


def at_least(measured: NDArray[np.floating], threshold: float) -> NDArray[np.bool_]:
    """Whether each reaches `threshold`, compared in float32, in which pairs are stored.

    Compared in float64 a stored 7/10 would lie below 0.7.
    """
    return measured.astype(np.float32) >= np.float32(threshold)


def histogram(similarity: NDArray[np.float32]) -> NDArray[np.int64]:
    """How many lie in each step of 1 / STEPS; the last holds 1.0 as well: int64 [STEPS]."""
    return np.bincount(steps_of(similarity), minlength=STEPS)


def steps_of(similarity: NDArray[np.floating]) -> NDArray[np.int64]:
    """The step of each: [0, STEPS)."""
    # 1e-6: a stored 0.7 counts as 0.7 although its float32 lies below.
    step = np.floor(similarity.astype(np.float64) * STEPS + 1e-6)
    return np.minimum(step, STEPS - 1).astype(np.int64)


def _measure_pairs(
    pairs: Pairs,
    of_pairs: NDArray[np.int64],
    numbers: NDArray[np.int64],
    placed: tuple[NDArray[np.int64], NDArray[np.int64]],
    corpus: Corpus,
    bytes_at_once: int,
) -> None:
    """Fill `jaccard` and `containment`, in portions of so many bytes of shingles or of one pair.

    `of_pairs` [2, pairs] are places of right and left in `numbers`, which ascend.
    """
    sizes, starts = placed
    kept = np.minimum(sizes, corpus.most) * 8
    portion_of = np.full(len(numbers), -1, dtype=np.int64)
    local = np.empty(len(numbers), dtype=np.int64)
    first = 0
    while first < len(pairs):
        end = portion_end(of_pairs, kept, first, bytes_at_once, portion_of)
        read = np.unique(of_pairs[:, first:end])
        local[read] = np.arange(len(read))
        shingles, offsets = corpus.shingles(numbers[read], (sizes[read], starts[read]))
        right, left = local[of_pairs[:, first:end]]
        part = pairs[first:end]
        part["jaccard"], part["containment"] = measured(shingles, offsets, sizes[read], right, left)
        first = end


@compiled
def portion_end(
    of_pairs: NDArray[np.int64],
    bytes_of: NDArray[np.int64],
    first: int,
    bytes_at_once: int,
    portion_of: NDArray[np.int64],
) -> int:
    """Where a portion that begins with pair `first` ends: its documents take `bytes_at_once`.

    At least one pair is in it. `portion_of` is -1 for every document before the first portion.
    """
    held = 0
    for pair in range(first, of_pairs.shape[1]):
        for side in range(2):
            document = of_pairs[side, pair]
            if portion_of[document] != first:
                portion_of[document] = first
                held += bytes_of[document]
        if held > bytes_at_once and pair > first:
            return pair
    return of_pairs.shape[1]


@compiled
def measured(
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
        of_one, of_other = a_end - a, b_end - b
        shared = shared_values(shingles, a, a_end, b, b_end)
        jaccard[pair] = shared / max(of_one + of_other - shared, 1)
        if sizes[one] < sizes[other]:
            smaller = 2 * of_one
        elif sizes[one] > sizes[other]:
            smaller = 2 * of_other
        else:  # Neither order of the two may tell.
            smaller = of_one + of_other
        containment[pair] = 2 * shared / max(smaller, 1)
    return jaccard, containment


@compiled
def shared_values(values: NDArray[np.uint64], a: int, a_end: int, b: int, b_end: int) -> int:
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
        # Without a branch: which side is behind cannot be foreseen.
        one, other = values[a], values[b]
        shared += one == other
        a += one <= other
        b += other <= one
    return shared
