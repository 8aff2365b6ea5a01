"""Exact Jaccard similarity by brute force: what pairs a deduplication should have found.

A document is the set of its word 5-grams, by a definition that is nobody's own: NFKD, case folded,
without combining marks, words are runs of letters and digits. Words are numbered, a 5-gram is a
64-bit hash of five numbers; that two of 10^8 collide has a chance of 3 in 10,000. Nothing here is
shared with the stage or a peer.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numba import njit
from numpy.typing import NDArray

NGRAM = 5
_WORD = re.compile(r"[^\W_]+")
_DOCUMENTS_AT_ONCE = 1_000
_PLACES = np.random.default_rng(5).integers(2**64, size=NGRAM, dtype=np.uint64) | np.uint64(1)


def words(text: str) -> list[str]:
    """The words of a text, folded."""
    if not text.isascii():
        folded = unicodedata.normalize("NFKD", text).casefold()
        text = "".join(one for one in folded if not unicodedata.combining(one))
    return _WORD.findall(text.lower())


def texts(paths: Iterable[Path]) -> Iterator[str]:
    """The texts of JSON-lines files."""
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)["text"]


@dataclass(frozen=True, eq=False)
class ShingleSets:
    """Sorted distinct 5-grams of every document; those of d are flat[offsets[d]:offsets[d + 1]]."""

    flat: NDArray[np.uint64]
    offsets: NDArray[np.int64]

    @classmethod
    def read(cls, folder: Path) -> ShingleSets:
        """Those that `write_shingles` left; the 5-grams stay on the disk."""
        offsets = np.load(folder / "offsets.npy")
        return cls(np.memmap(folder / "shingles.u64", dtype=np.uint64, mode="r"), offsets)

    @property
    def documents(self) -> int:
        """How many there are."""
        return len(self.offsets) - 1

    def sizes(self) -> NDArray[np.int64]:
        """Distinct 5-grams of each document."""
        return np.diff(self.offsets)


def write_shingles(found: Iterable[str], folder: Path) -> None:
    """Write the 5-gram sets of texts into a folder; holds a thousand documents at once.

    A text of fewer than five words has one shingle, all of them; without words it has none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    numbers: dict[str, int] = {}
    sizes: list[int] = []
    with (folder / "shingles.u64").open("wb") as out:
        batch: list[list[int]] = []
        for text in found:
            batch.append([numbers.setdefault(word, len(numbers)) for word in words(text)])
            if len(batch) == _DOCUMENTS_AT_ONCE:
                sizes += _write_batch(batch, out)
                batch = []
        sizes += _write_batch(batch, out)
    np.save(folder / "offsets.npy", np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]))


def _write_batch(batch: list[list[int]], out: IO[bytes]) -> list[int]:
    sizes = []
    for numbers in batch:
        shingles = np.unique(hashed(np.array(numbers, dtype=np.uint64)))
        shingles.tofile(out)
        sizes.append(len(shingles))
    return sizes


def hashed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of every five numbers in a row; of all, if there are fewer."""
    width = min(NGRAM, len(numbers))
    if not width:
        return np.empty(0, dtype=np.uint64)
    mixed = _mixed(numbers + np.uint64(1))
    windows = len(numbers) - width + 1
    total = np.zeros(windows, dtype=np.uint64)
    for place in range(width):
        total += mixed[place : place + windows] * _PLACES[place]
    return _mixed(total)


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """splitmix64's finalizer (Steele, Lea and Flood 2014): one to one."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class Near:
    """Pairs (document of the sample, any other) with their similarity; sorted."""

    sample: NDArray[np.int64]
    one: NDArray[np.int64]
    other: NDArray[np.int64]
    similarity: NDArray[np.float64]


def near_pairs(
    sets: ShingleSets, sample: NDArray[np.int64], floor: float, shingles_at_once: int = 1 << 20
) -> Near:
    """All pairs of a document of the `sample` and any other whose similarity reaches `floor`.

    An inverted index of the sample is held (16 bytes a 5-gram); all others stream past it.
    """
    flat = np.concatenate([sets.flat[sets.offsets[d] : sets.offsets[d + 1]] for d in sample])
    sizes = sets.sizes()
    order = np.argsort(flat, kind="stable")
    owner = np.repeat(np.arange(len(sample)), sizes[sample])[order]
    keys, first, count = np.unique(flat[order], return_index=True, return_counts=True)
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    for begin, end in _batches(sets.offsets, shingles_at_once):
        asked = np.asarray(sets.flat[sets.offsets[begin] : sets.offsets[end]])
        row = np.repeat(np.arange(begin, end), sizes[begin:end])
        at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        hit = np.flatnonzero(keys[at] == asked)
        times = count[at[hit]]
        within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        posting = owner[np.repeat(first[at[hit]], times) + within]
        pair, shared = np.unique(
            np.repeat(row[hit], times) * len(sample) + posting, return_counts=True
        )
        other, index = np.divmod(pair, len(sample))
        one = sample[index]
        similarity = shared / (sizes[one] + sizes[other] - shared)
        near = (similarity >= floor) & (one != other)
        found.append((one[near], other[near], similarity[near]))
    one, other, similarity = (np.concatenate(part) for part in zip(*found, strict=True))
    ranked = np.lexsort((other, one))
    return Near(sample, one[ranked], other[ranked], similarity[ranked])


def _batches(offsets: NDArray[np.int64], at_once: int) -> Iterator[tuple[int, int]]:
    begin = 0
    while begin < len(offsets) - 1:
        end = int(np.searchsorted(offsets, offsets[begin] + at_once, side="right")) - 1
        end = max(end, begin + 1)
        yield begin, end
        begin = end


def jaccard(
    sets: ShingleSets, one: NDArray[np.int64], other: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The similarity of each pair; of two documents without words 0. float64 [pairs]."""
    shared = np.zeros(len(one), dtype=np.int64)
    for begin in range(0, len(one), 1 << 16):
        chosen = slice(begin, begin + (1 << 16))
        _shared(sets.flat, sets.offsets, one[chosen], other[chosen], shared[chosen])
    sizes = sets.sizes()
    return shared / np.maximum(sizes[one] + sizes[other] - shared, 1)


@njit  # type: ignore[untyped-decorator]
def _shared(flat, offsets, one, other, out):  # type: ignore[no-untyped-def]
    """Count what two sorted sets have in common, by one pass over both."""
    for pair in range(len(one)):
        i, i_end = offsets[one[pair]], offsets[one[pair] + 1]
        j, j_end = offsets[other[pair]], offsets[other[pair] + 1]
        while i < i_end and j < j_end:
            left, right = flat[i], flat[j]
            out[pair] += left == right
            i += left <= right
            j += right <= left
