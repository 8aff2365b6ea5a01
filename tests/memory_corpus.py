"""A corpus for deduplication that lies in memory, and a map without a store: for tests of pairs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.store.backend import LocalBackend
from stages.dedup.index import Placed
from stages.dedup.pairs import CANDIDATE, PairFiles, write_pairs
from stages.dedup.two_hop import (
    VerifiedPairs,
    earlier_tasks,
    find_two_hop_pairs,
    split_by_generation,
    translate_pairs,
)
from stages.dedup.verification import pair_tasks, verify_pairs
from stages.engine.outputs import ShardOutput, ShardResult

PRIME = 2**61 - 1


@dataclass(frozen=True)
class Document:
    """An id of 32 hex digits, shingles, and what stands for the text."""

    id: str
    shingles: frozenset[int]
    words: str
    text: str


def document(name: str, shingles: Sequence[int] | set[int], words: str | None = None) -> Document:
    """A document whose id follows from its name alone."""
    return Document(
        hashlib.md5(name.encode()).hexdigest(),
        frozenset(spread(value) for value in shingles),
        words or name,
        name,
    )


def spread(value: int) -> int:
    """A 64-bit hash of a small number."""
    return int.from_bytes(hashlib.blake2b(str(value).encode(), digest_size=8).digest(), "little")


class MemoryCorpus:
    """What `index.Corpus` and `exact.Classes` tell, of generations of documents."""

    def __init__(
        self, generations: Sequence[Sequence[Document]], first_generation: int = 0, most: int = 4096
    ) -> None:
        self.all = [document for of in generations for document in of]
        self.starts = np.cumsum([0, *map(len, generations)]).astype(np.int64)
        self.documents = len(self.all)
        self.first_generation = first_generation
        self.first_new = int(self.starts[first_generation])
        self.most = most
        self.earlier_pairs: list[Earlier] = []
        self._sorted = [
            np.array(sorted(document.shingles), dtype=np.uint64) for document in self.all
        ]
        self.read = 0
        """Most shingles that were read at once."""

    def generations(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(self.starts, numbers, side="right") - 1

    def ids(self, numbers: NDArray[np.int64]) -> pa.StringArray:
        return pa.array([self.all[number].id for number in numbers.tolist()], pa.string())

    def rank_ids(self, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
        return np.array([int(self.all[n].id[:16], 16) for n in numbers.tolist()], dtype=np.uint64)

    def sizes(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array([len(self._sorted[n]) for n in numbers.tolist()], dtype=np.int64)

    def placed(self, ordered: NDArray[np.int64]) -> Placed:
        assert (np.diff(ordered) > 0).all()
        return Placed(self.sizes(ordered), ordered, np.zeros(len(ordered), np.int64))

    def shingles(
        self, numbers: NDArray[np.int64], placed: Placed | None = None
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        assert placed is None or (placed.starts == numbers).all()
        kept = [self._sorted[number][: self.most] for number in numbers.tolist()]
        offsets = np.cumsum([0, *map(len, kept)]).astype(np.int64)
        self.read = max(self.read, int(offsets[-1]))
        return np.concatenate([np.empty(0, np.uint64), *kept]), offsets

    def is_first(self, low: int, high: int) -> NDArray[np.bool_]:
        return self.first(low, high) == np.arange(low, high)

    def first(self, low: int, high: int) -> NDArray[np.int64]:
        return self._firsts("words", low, high)

    def text_first(self, low: int, high: int) -> NDArray[np.int64]:
        return self._firsts("text", low, high)

    def rank(self, number: int) -> tuple[int, str]:
        return int(self.generations(np.array([number]))[0]), self.all[number].id

    def leads(self, number: int) -> bool:
        """Whether a document is the first of its class."""
        return bool(self.is_first(number, number + 1)[0])

    def jaccard(self, one: int, other: int) -> np.float32:
        a, b = self.all[one].shingles, self.all[other].shingles
        return np.float32(len(a & b) / len(a | b))

    def _firsts(self, name: str, low: int, high: int) -> NDArray[np.int64]:
        first: dict[str, int] = {}
        for number in sorted(range(self.documents), key=self.rank):
            first.setdefault(getattr(self.all[number], name), number)
        return np.array([first[getattr(self.all[n], name)] for n in range(low, high)], np.int64)


@dataclass(frozen=True)
class Earlier:
    """Pairs of an earlier run, as `index.EarlierPairs` tells of them."""

    files: list[Any]
    starts: NDArray[np.int64]
    here: NDArray[np.int64]

    def path(self, file: Any) -> Path:
        return file.path()


class MemoryBits:
    """What `document_bits.DocumentBits` tells, of a few documents."""

    def __init__(self, numbers: NDArray[np.int64]) -> None:
        self._numbers = numbers

    def at(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.isin(numbers, self._numbers)


class LocalMap:
    """Calls as a stage's context does, one after the other; values pass through JSON."""

    def __init__(self, folder: Path) -> None:
        self.backend = LocalBackend(str(folder))
        self.maps = 0

    def __call__(
        self, function: Callable[..., Any], items: Sequence[Any], *, name: str = "", **shared: Any
    ) -> list[ShardResult]:
        self.maps += 1
        results = []
        assert len({item.id for item in items}) == len(items)
        for item in items:
            place = f"{self.maps:03d}{name or function.__name__}/{item.id}"
            out = ShardOutput(
                self.backend, place, {"duplicates": "duplicates", "dedup_index": "dedup_index"}
            )
            value = json.loads(json.dumps(function(item, out, **shared) or {}))
            files = {(written.output, written.file.path): written for written in out.written}
            results.append(ShardResult(item.id, value, self.backend, files))
        return results


def band_candidates(
    corpus: MemoryCorpus, bands: int = 3, rows: int = 2, max_bucket: int = 3
) -> dict[tuple[int, int], int]:
    """MinHash by brute force: (right, left) of new documents and the least band.

    In a bucket each member meets the first `max_bucket` by rank.
    """
    found: dict[tuple[int, int], int] = {}
    members = [n for n in range(corpus.documents) if corpus.leads(n) and corpus.all[n].shingles]
    members.sort(key=corpus.rank)
    for band in range(bands):
        buckets: dict[tuple[int, ...], list[int]] = {}
        for number in members:
            key = tuple(
                min(
                    (value * (2 * (band * rows + row) + 3) * 7919 + band * 31 + row) % PRIME
                    for value in corpus.all[number].shingles
                )
                for row in range(rows)
            )
            buckets.setdefault(key, []).append(number)
        for bucket in buckets.values():
            for place, number in enumerate(bucket):
                for other in bucket[: min(place, max_bucket)]:
                    pair = max(number, other), min(number, other)
                    if pair[0] >= corpus.first_new:
                        found.setdefault(pair, band)
    return found


@dataclass(frozen=True)
class Chunk:
    """Some rows to write as one file."""

    id: str
    rows: list[tuple[int, int, int]]


def write_chunk(item: Chunk, out: ShardOutput) -> dict[str, int]:
    """A map that leaves candidate pairs."""
    return {"written": write_pairs(out, "pairs", np.array(item.rows, dtype=CANDIDATE))}


def candidate_files(run: LocalMap, pairs: dict[tuple[int, int], int], files: int = 3) -> PairFiles:
    """The pairs spread over several files, some of them in two."""
    rows = [(*pair, band) for pair, band in pairs.items()]
    chunks = [
        Chunk(str(i), rows[i::files] + [(*row[:2], row[2] + 1) for row in rows[i :: files + 1]])
        for i in range(files)
    ]
    return PairFiles.from_results(run(write_chunk, chunks), "pairs", CANDIDATE)


def found_pairs(
    run: LocalMap,
    corpus: MemoryCorpus,
    candidates: PairFiles,
    *,
    floor: float = 0.3,
    measure: Any = "jaccard",
    pairs_per_task: int = 5,
    bytes_at_once: int = 4_000,
    closed: bool = True,
    proposed: NDArray[np.int64] | None = None,
) -> list[VerifiedPairs]:
    """Verified and closed pairs of each generation, those of earlier indexes first.

    Of these the pairs of `proposed` documents; by default of those that are among the candidates.
    """
    options = {"floor": floor, "measure": measure}
    tasks = pair_tasks(candidates, corpus, pairs_per_task)  # type: ignore[arg-type]
    results = run(
        verify_pairs,
        tasks,
        corpus=corpus,
        candidates=candidates,
        verify=True,
        bytes_at_once=bytes_at_once,
        **options,
    )
    earlier = earlier_tasks(corpus, pairs_per_task)  # type: ignore[arg-type]
    generations = range(corpus.first_generation, len(corpus.starts) - 1)
    if proposed is None:
        proposed = candidates.between(0, corpus.documents)["left"]
    found = [
        VerifiedPairs.from_results(
            -1, run(translate_pairs, earlier, candidates=MemoryBits(proposed))
        ),
        *split_by_generation(generations, tasks, results),
    ]
    if not closed:
        return found
    return find_two_hop_pairs(
        run,
        corpus,  # type: ignore[arg-type]
        found,
        bytes_at_once=bytes_at_once,
        shingle_bytes=bytes_at_once,
        pairs_per_task=pairs_per_task,
        **options,
    )[0]
