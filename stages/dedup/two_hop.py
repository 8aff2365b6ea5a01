"""Two-hop candidates: pairs that no band proposed, found through a third document, then verified.

MinHash misses a share of the pairs near the threshold. If x is similar to y and y to z, x and z are
candidates too. Connected components would link all their members at once, and are wrong where a
chain leads far away; here every pair is measured, and a chain has one document between.

Generations are processed in order: candidates of x in generation g are found through partners, and
their partners, of generations up to g only, so that results for a generation do not change with
later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact
from stages.dedup.pairs import (
    BYTES_AT_WORK,
    CANDIDATE,
    NUMBER,
    TWO_HOP,
    VERIFIED,
    PairFiles,
    Pairs,
    distinct_numbers,
    mirror_pairs,
    read_pairs,
    renumber_pairs,
    write_numbers,
    write_pairs,
)
from stages.dedup.verification import (
    Measure,
    PairTask,
    cut_ranges,
    keep_of_pieces,
    nearest_partners,
    pair_tasks,
    verify_pairs,
)
from stages.engine.kernels import kernel

if TYPE_CHECKING:
    from stages.dedup.document_bits import DocumentBits
    from stages.dedup.index import Corpus, EarlierPairs
    from stages.engine import ShardOutput, ShardResult


Map = Callable[..., "list[ShardResult]"]

MAX_HOPS = 64
"""Nearest partners of a document that are followed, and most two-hop candidates of one."""


@dataclass(frozen=True, eq=False)
class VerifiedPairs:
    """Verified pairs whose newer document is of one generation, from both sides."""

    generation: int
    """-1: all generations of earlier indexes; from each side those that `translate_pairs` left."""
    pairs: PairFiles
    mirrored: PairFiles

    @classmethod
    def from_results(cls, generation: int, results: Sequence[ShardResult]) -> VerifiedPairs:
        """What maps of `verify_pairs` (or `translate_pairs`) left for it."""
        return cls(
            generation,
            PairFiles.from_results(results, "pairs", VERIFIED),
            PairFiles.from_results(results, "mirrored", VERIFIED),
        )

    @property
    def sides(self) -> tuple[PairFiles, PairFiles]:
        """All pairs, by their newer and by their older document: each document's are in both."""
        return self.pairs, self.mirrored

    def joined(self, other: VerifiedPairs) -> VerifiedPairs:
        """Both together."""
        return VerifiedPairs(
            self.generation,
            self.pairs.joined(other.pairs),
            self.mirrored.joined(other.mirrored),
        )


def split_by_generation(
    generations: Iterable[int], tasks: Sequence[PairTask], results: Sequence[ShardResult]
) -> list[VerifiedPairs]:
    """What `verify_pairs` left for each of `generations`, of the tasks of all of them."""
    results_by_generation: dict[int, list[ShardResult]] = {
        generation: [] for generation in generations
    }
    for task, result in zip(tasks, results, strict=True):
        results_by_generation[task.generation].append(result)
    return [
        VerifiedPairs.from_results(generation, own_results)
        for generation, own_results in results_by_generation.items()
    ]


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
        for count in [len(PairFiles.open([pairs.path(file)], VERIFIED))]
        for begin in range(0, count, pairs_per_task)
    ]


def translate_pairs(
    task: EarlierTask, out: ShardOutput, *, candidates: DocumentBits
) -> dict[str, Any]:
    """Leave pairs of an earlier index in this run's numbers: scratch `pairs` and `mirrored`.

    Only partners of `candidates` (earlier documents that a band proposed beside a new one) can lead
    to a new one, so of the pairs those stay that are one's: by their newer document in `pairs`, by
    their older one in `mirrored`. Scratch `partners` lists those that are no candidates (NUMBER).
    """
    path = task.pairs.path(task.file)
    read = read_pairs(path, VERIFIED, task.begin, task.end)
    known = (read["left"] >= 0) & (read["left"] < read["right"])
    if not (known & (read["right"] < task.pairs.starts[-1])).all():
        raise CorruptArtifact(
            "a pair of documents that the index does not know",
            where=str(path),
            hint="make the index again",
        )
    renumbered = renumber_pairs(read, task.pairs.starts, task.pairs.here)
    is_newer = candidates.at(renumbered["right"])
    is_older = candidates.at(renumbered["left"])
    newer, older = renumbered[is_newer], renumbered[is_older]
    write_pairs(out, "mirrored", mirror_pairs(older))
    others = [newer["left"][~is_older[is_newer]], older["right"][~is_newer[is_older]]]
    write_numbers(out, "partners", np.concatenate(others))
    return {"pairs": write_pairs(out, "pairs", newer)}


def find_two_hop_pairs(
    run: Map,
    corpus: Corpus,
    pairs: Sequence[VerifiedPairs],
    *,
    floor: float,
    measure: Measure,
    bytes_at_once: int,
    shingle_bytes: int,
    pairs_per_task: int,
) -> tuple[list[VerifiedPairs], list[ShardResult]]:
    """`pairs` (earlier ones first) with the two-hop pairs, and the results of their verification.

    `run` is the context's map. The generations are closed in order, each with what was found for
    those before it.
    """
    closed: list[VerifiedPairs] = []
    verified: list[ShardResult] = []
    for own in pairs:
        if own.generation < 0:
            closed.append(own)
            continue
        candidates = _propose_generation(run, corpus, (*closed, own), bytes_at_once, pairs_per_task)
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
        closed.append(own.joined(VerifiedPairs.from_results(own.generation, results)))
    return closed, verified


def _propose_generation(
    run: Map,
    corpus: Corpus,
    pairs: Sequence[VerifiedPairs],
    bytes_at_once: int,
    pairs_per_task: int,
) -> PairFiles:
    """Two-hop candidates of the documents of the last generation in `pairs`."""
    own = pairs[-1]
    start, end = corpus.starts[own.generation : own.generation + 2].tolist()
    records = max(bytes_at_once // BYTES_AT_WORK, 1)
    tasks = _tasks(own.sides, start, end, pairs_per_task)
    followed = PairFiles.from_results(
        run(
            find_followed,
            tasks,
            name=f"followed_{own.generation:03d}",
            verified=own,
            records=records,
        ),
        "followed",
        NUMBER,
    )
    lists = run(
        list_nearest,
        _tasks([followed], 0, end, max(records // MAX_HOPS, 1)),
        name=f"nearest_{own.generation:03d}",
        corpus=corpus,
        followed=followed,
        verified=pairs,
        records=records,
    )
    led = run(
        propose_two_hop,
        tasks,
        name=f"close_{own.generation:03d}",
        corpus=corpus,
        lists=PairFiles.from_results(lists, "nearest", VERIFIED),
        records=records,
    )
    return PairFiles.from_results(led, "pairs", CANDIDATE)


def find_followed(
    task: PairTask, out: ShardOutput, *, verified: VerifiedPairs, records: int
) -> None:
    """Leave the documents whose partners closure follows, of pairs of documents [low, high).

    These are the documents with fewer than MAX_HOPS partners, and those partners: scratch
    `followed` of NUMBER. In large families nearly all pairs are between documents with more.
    """

    def pieces() -> Iterator[Pairs]:
        for side in verified.sides:
            yield from side.slices(task.low, task.high, records)

    documents, counts = count_partners((piece["right"] for piece in pieces()), records)
    few = documents[counts < MAX_HOPS]
    numbers = [few] + [piece["left"][np.isin(piece["right"], few)] for piece in pieces()]
    write_numbers(out, "followed", np.concatenate(numbers))


def count_partners(
    documents: Iterable[NDArray[np.int64]], at_once: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each of `documents` once, ascending, and how often it occurs; `at_once` more are held."""
    distinct, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    waiting: list[NDArray[np.int64]] = []

    def join() -> None:
        nonlocal distinct, counts
        more, times = np.unique(
            np.concatenate([np.empty(0, np.int64), *waiting]), return_counts=True
        )
        waiting.clear()
        distinct, places = np.unique(np.concatenate([distinct, more]), return_inverse=True)
        sums = np.zeros(len(distinct), np.int64)
        np.add.at(sums, places, np.concatenate([counts, times]))
        counts = sums

    for some in documents:
        waiting.append(some)
        if sum(map(len, waiting)) > at_once:
            join()
    join()
    return distinct, counts


def list_nearest(
    task: PairTask,
    out: ShardOutput,
    *,
    corpus: Corpus,
    followed: PairFiles,
    verified: Sequence[VerifiedPairs],
    records: int,
) -> dict[str, Any]:
    """Leave the nearest partners of the documents [low, high) that are `followed`.

    They are scratch `nearest`: records of VERIFIED, right the document and left its partner.
    """
    numbers = [piece["right"] for piece in followed.slices(task.low, task.high, records)]
    touched = distinct_numbers(np.concatenate([np.empty(0, np.int64), *numbers]))

    def kept(pairs: Pairs) -> Pairs:
        return pairs[
            nearest_partners(pairs["right"], pairs["left"], pairs["jaccard"], MAX_HOPS, corpus)
        ]

    pieces = (
        piece
        for pairs in verified
        for side in pairs.sides
        for piece in side.pieces(touched, records)
    )
    return {"listed": write_pairs(out, "nearest", keep_of_pieces(pieces, kept, records))}


def propose_two_hop(
    task: PairTask,
    out: ShardOutput,
    *,
    corpus: Corpus,
    lists: PairFiles,
    records: int,
) -> dict[str, Any]:
    """Leave two-hop candidates of the documents [low, high): scratch `pairs` of CANDIDATE.

    Of each document those with the greatest product of the two similarities. A document with
    MAX_HOPS partners gets no candidates: in a large family there would be too many. So `lists` (of
    `list_nearest`) hold all partners of the others, and none of these is proposed again.
    """
    proposed = [np.empty(0, dtype=CANDIDATE)]
    edges = lists.between(task.low, task.high)
    _, places, counts = np.unique(edges["right"], return_inverse=True, return_counts=True)
    edges = edges[counts[places] < MAX_HOPS]
    waiting = [edges] if len(edges) else []
    while waiting:
        part = waiting.pop()
        halves = _halves(part)
        further = lists.records_for(np.unique(part["left"]), records if halves else None)
        if further is None:
            waiting += halves
            continue
        x, z, product = _two_hop_candidates(part, further)
        best = nearest_partners(x, z, product, MAX_HOPS, corpus)
        candidates = np.empty(len(best), dtype=CANDIDATE)
        candidates["right"] = np.maximum(x[best], z[best])
        candidates["left"] = np.minimum(x[best], z[best])
        candidates["band"] = TWO_HOP
        proposed.append(candidates)
    return {"candidates": write_pairs(out, "pairs", np.concatenate(proposed))}


def _two_hop_candidates(
    edges: Pairs, lists: Pairs
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Documents x, their two-hop candidates z, and the greatest product; sorted by (x, z).

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
    x, z, product = _join_partners(
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


@kernel
def _join_partners(
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


def _tasks(files: Sequence[PairFiles], low: int, high: int, most: int) -> list[PairTask]:
    """Documents [low, high) in ranges of at most `most` records of `files`, or of one document."""
    return [
        PairTask(f"{begin:012d}", begin, end, -1)
        for begin, end in cut_ranges(files, low, high, most)
    ]


def _halves(pairs: Pairs) -> list[Pairs]:
    """Two parts that share no first document; none if there is but one."""
    documents = pairs["right"]
    cut = int(np.searchsorted(documents, documents[len(documents) // 2], side="left"))
    cut = cut or int(np.searchsorted(documents, documents[0], side="right"))
    return [pairs[cut:], pairs[:cut]] if cut < len(pairs) else []
