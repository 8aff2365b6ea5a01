"""Pairs that no band proposed, found through a third document, and each of them verified.

MinHash misses a share of the pairs near the threshold. Where x is like y and y like z, x and z are
candidates too: connected components say as much of all their members at once, and are wrong where
a chain leads far away; here every pair is measured, and a chain has one link between.

It goes generation by generation: x of generation g is led to z by partners, and their partners, of
generations up to g alone, so that what is found for a generation does not change with later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact
from stages.dedup.nearest import gathered, nearest
from stages.dedup.pairs import (
    BYTES_AT_WORK,
    CANDIDATE,
    CLOSED,
    VERIFIED,
    PairFiles,
    Pairs,
    mirrored,
    records_of,
    translated,
    write_pairs,
)
from stages.dedup.verify import Measure, PairTask, pair_tasks, ranges, verify_pairs
from stages.text.native import compiled

if TYPE_CHECKING:
    from stages.dedup.index import Corpus, EarlierPairs
    from stages.engine import ShardOutput, ShardResult

Map = Callable[..., "list[ShardResult]"]

LED_BY = 64
"""Nearest partners of a document that lead on, and most candidates that one is led to."""


@dataclass(frozen=True, eq=False)
class Found:
    """Verified pairs whose newer document is of one generation, from both sides."""

    generation: int
    """-1: all generations of earlier indexes."""
    pairs: PairFiles
    mirrored: PairFiles

    @classmethod
    def of(cls, generation: int, results: Sequence[ShardResult]) -> Found:
        """What maps of `verify_pairs` (or `translate_pairs`) left for it."""
        return cls(
            generation,
            PairFiles.of(results, "pairs", VERIFIED),
            PairFiles.of(results, "mirrored", VERIFIED),
        )

    @property
    def sides(self) -> tuple[PairFiles, PairFiles]:
        """All pairs, by their newer and by their older document: each document's are in both."""
        return self.pairs, self.mirrored

    def joined(self, other: Found) -> Found:
        """Both together."""
        return Found(
            self.generation,
            self.pairs.joined(other.pairs),
            self.mirrored.joined(other.mirrored),
        )


def by_generation(
    generations: Iterable[int], tasks: Sequence[PairTask], results: Sequence[ShardResult]
) -> list[Found]:
    """What `verify_pairs` left for each of `generations`, of the tasks of all of them."""
    of: dict[int, list[ShardResult]] = {generation: [] for generation in generations}
    for task, result in zip(tasks, results, strict=True):
        of[task.generation].append(result)
    return [Found.of(generation, found) for generation, found in of.items()]


@dataclass(frozen=True, eq=False)
class EarlierTask:
    """Records [begin, end) of a file of pairs in an earlier index."""

    id: str
    pairs: EarlierPairs
    file: str
    begin: int
    end: int


def earlier_tasks(corpus: Corpus, pairs_per_task: int) -> list[EarlierTask]:
    """All pairs of earlier indexes in tasks of at most `pairs_per_task`."""
    return [
        EarlierTask(
            f"{index:03d}-{number:05d}-{begin:012d}",
            pairs,
            file,
            begin,
            min(begin + pairs_per_task, count),
        )
        for index, pairs in enumerate(corpus.earlier_pairs)
        for number, file in enumerate(pairs.files)
        for count in [len(PairFiles.at([pairs.path(file)], VERIFIED))]
        for begin in range(0, count, pairs_per_task)
    ]


def translate_pairs(task: EarlierTask, out: ShardOutput) -> dict[str, Any]:
    """Leave pairs of an earlier index in this run's numbers: scratch `pairs` and `mirrored`."""
    path = task.pairs.path(task.file)
    read = records_of(path, VERIFIED, task.begin, task.end)
    known = (read["left"] >= 0) & (read["left"] < read["right"])
    if not (known & (read["right"] < task.pairs.starts[-1])).all():
        raise CorruptArtifact(
            "a pair of documents that the index does not know",
            where=str(path),
            hint="make the index again",
        )
    found = translated(read, task.pairs.starts, task.pairs.here)
    write_pairs(out, "mirrored", mirrored(found))
    return {"pairs": write_pairs(out, "pairs", found)}


def close_pairs(
    run: Map,
    corpus: Corpus,
    found: Sequence[Found],
    *,
    floor: float,
    measure: Measure,
    bytes_at_once: int,
    shingle_bytes: int,
    pairs_per_task: int,
) -> tuple[list[Found], list[ShardResult]]:
    """`found` (earlier ones first) with the pairs that partners lead to, and their verification.

    `run` is the context's map. The generations are closed in order, each with what was found for
    those before it.
    """
    closed: list[Found] = []
    verified: list[ShardResult] = []
    for own in found:
        if own.generation < 0:
            closed.append(own)
            continue
        candidates = _candidates(run, corpus, (*closed, own), bytes_at_once, pairs_per_task)
        results = run(
            verify_pairs,
            pair_tasks(candidates, corpus, pairs_per_task),
            name=f"verify_closed_{own.generation:03d}",
            corpus=corpus,
            candidates=candidates,
            measure=measure,
            floor=floor,
            verify=True,
            bytes_at_once=shingle_bytes,
        )
        verified += results
        closed.append(own.joined(Found.of(own.generation, results)))
    return closed, verified


def _candidates(
    run: Map,
    corpus: Corpus,
    found: Sequence[Found],
    bytes_at_once: int,
    pairs_per_task: int,
) -> PairFiles:
    """What documents of the last generation in `found` are led to by all of it."""
    own = found[-1]
    start, end = corpus.starts[own.generation : own.generation + 2].tolist()
    records = max(bytes_at_once // BYTES_AT_WORK, 1)
    listed = run(
        list_nearest,
        _tasks(own.sides, 0, end, max(records // LED_BY, 1)),
        name=f"nearest_{own.generation:03d}",
        corpus=corpus,
        found=found,
        records=records,
    )
    led = run(
        propose_closed,
        _tasks(own.sides, start, end, pairs_per_task),
        name=f"close_{own.generation:03d}",
        corpus=corpus,
        lists=PairFiles.of(listed, "nearest", VERIFIED),
        records=records,
    )
    return PairFiles.of(led, "pairs", CANDIDATE)


def list_nearest(
    task: PairTask, out: ShardOutput, *, corpus: Corpus, found: Sequence[Found], records: int
) -> dict[str, Any]:
    """Leave the nearest partners of documents [low, high) that have a pair of the last generation.

    They are scratch `nearest`: records of VERIFIED, right the document and left its partner.
    """
    parts = [
        distinct_numbers(piece["right"])
        for side in found[-1].sides
        for piece in side.slices(task.low, task.high, records)
    ]
    touched = distinct_numbers(np.concatenate([np.empty(0, np.int64), *parts]))

    def kept(pairs: Pairs) -> Pairs:
        return pairs[nearest(pairs["right"], pairs["left"], pairs["jaccard"], LED_BY, corpus)]

    pieces = (
        piece
        for pairs in found
        for side in pairs.sides
        for piece in side.pieces_of(touched, records)
    )
    return {"listed": write_pairs(out, "nearest", gathered(pieces, kept, records))}


def propose_closed(
    task: PairTask,
    out: ShardOutput,
    *,
    corpus: Corpus,
    lists: PairFiles,
    records: int,
) -> dict[str, Any]:
    """Leave candidates that documents [low, high) are led to: scratch `pairs` of CANDIDATE.

    Of what one document is led to, those with the greatest product of the two similarities. One
    that has LED_BY partners is led nowhere: in a crowd of copies there would be no end of it. So
    the lists hold all partners of those that are led, and none of these is proposed again.
    """
    found = [np.empty(0, dtype=CANDIDATE)]
    edges = lists.between(task.low, task.high)
    _, places, counts = np.unique(edges["right"], return_inverse=True, return_counts=True)
    edges = edges[counts[places] < LED_BY]
    waiting = [edges] if len(edges) else []
    while waiting:
        part = waiting.pop()
        halves = _halves(part)
        further = lists.of_documents(np.unique(part["left"]), records if halves else None)
        if further is None:
            waiting += halves
            continue
        x, z, product = _led_to(part, further)
        best = nearest(x, z, product, LED_BY, corpus)
        candidates = np.empty(len(best), dtype=CANDIDATE)
        candidates["right"] = np.maximum(x[best], z[best])
        candidates["left"] = np.minimum(x[best], z[best])
        candidates["band"] = CLOSED
        found.append(candidates)
    return {"candidates": write_pairs(out, "pairs", np.concatenate(found))}


def _led_to(
    edges: Pairs, lists: Pairs
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Documents x, what they are led to z, and the greatest product; sorted by (x, z).

    `edges` are x and its partners y, `lists` all y and theirs, both sorted by document.
    """
    starts = np.flatnonzero(np.append(True, edges["right"][1:] != edges["right"][:-1]))
    begins = np.searchsorted(lists["right"], edges["left"], side="left")
    ends = np.searchsorted(lists["right"], edges["left"], side="right")
    # Places among the documents that occur at all: these can be looked up in arrays.
    numbers, places = np.unique(
        np.concatenate([edges["right"][starts], edges["left"], lists["left"]]), return_inverse=True
    )
    documents, partners, further = np.split(places, np.cumsum([len(starts), len(edges)]))
    x, z, product = _through(
        documents,
        np.append(starts, len(edges)),
        partners,
        edges["jaccard"].copy(),
        begins,
        ends,
        further,
        lists["jaccard"].copy(),
        len(numbers),
    )
    order = np.lexsort((z, x))
    return numbers[x[order]], numbers[z[order]], product[order]


@compiled
def _through(
    documents: NDArray[np.int64],
    offsets: NDArray[np.int64],
    partners: NDArray[np.int64],
    near: NDArray[np.float32],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    further: NDArray[np.int64],
    far: NDArray[np.float32],
    places: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Each z once for each x, without x and its listed partners; in no order.

    Documents are places in [0, places). Those of `documents` have the partners
    [offsets[i], offsets[i + 1]), and these, in turn, further[begins:ends].
    """
    total = 0
    for edge in range(len(partners)):
        total += ends[edge] - begins[edge]
    x = np.empty(total, dtype=np.int64)
    z = np.empty(total, dtype=np.int64)
    product = np.empty(total, dtype=np.float64)
    met = np.full(places, -1, dtype=np.int64)
    entry = np.empty(places, dtype=np.int64)
    made = 0
    for own in range(len(documents)):
        met[documents[own]], entry[documents[own]] = own, -1
        for edge in range(offsets[own], offsets[own + 1]):
            met[partners[edge]], entry[partners[edge]] = own, -1
        for edge in range(offsets[own], offsets[own + 1]):
            for at in range(begins[edge], ends[edge]):
                other = further[at]
                value = np.float64(near[edge]) * np.float64(far[at])
                if met[other] != own:
                    met[other], entry[other] = own, made
                    x[made], z[made], product[made] = documents[own], other, value
                    made += 1
                elif entry[other] >= 0 and product[entry[other]] < value:
                    product[entry[other]] = value
    return x[:made], z[:made], product[:made]


def distinct_numbers(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each number once, sorted. (`np.unique` hashes integers, which takes longer.)"""
    ordered = np.sort(numbers)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]


def _tasks(files: Sequence[PairFiles], low: int, high: int, most: int) -> list[PairTask]:
    """Documents [low, high) in ranges of at most `most` records of `files`, or of one document."""
    return [
        PairTask(f"{begin:012d}", begin, end, -1) for begin, end in ranges(files, low, high, most)
    ]


def _halves(pairs: Pairs) -> list[Pairs]:
    """Two parts that share no first document; none if there is but one."""
    documents = pairs["right"]
    cut = int(np.searchsorted(documents, documents[len(documents) // 2], side="left"))
    cut = cut or int(np.searchsorted(documents, documents[0], side="right"))
    return [pairs[cut:], pairs[:cut]] if cut < len(pairs) else []
