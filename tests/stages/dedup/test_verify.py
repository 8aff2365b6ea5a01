from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_corpus import LocalMap, MemoryCorpus, candidate_files, document, spread

from stages.dedup.pairs import VERIFIED, PairFiles
from stages.dedup.verification import (
    at_least,
    count_shared,
    cut_ranges,
    histogram,
    measure_pairs,
    pair_tasks,
    verify_pairs,
)

SETS = st.lists(st.sets(st.integers(0, 40), min_size=1, max_size=20), min_size=2, max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 300), max_size=200), st.sets(st.integers(0, 300), max_size=6))
def test_shared_values_of_two_sets_of_any_sizes(one: set[int], other: set[int]) -> None:
    values = np.array([*sorted(one), *sorted(other)], dtype=np.uint64)
    for a, b in [
        ((0, len(one)), (len(one), len(values))),
        ((len(one), len(values)), (0, len(one))),
    ]:
        assert count_shared(values, *a, *b) == len(one & other)


def test_shingles_beyond_the_sign_bit_are_compared_as_unsigned() -> None:
    values = np.array([1, 2**63, 2**64 - 1, 2**63 - 1, 2**63, 2**63 + 1], dtype=np.uint64)
    assert count_shared(values, 0, 3, 3, 6) == 1


@settings(max_examples=60, deadline=None)
@given(
    SETS,
    st.sampled_from(["jaccard", "containment"]),
    st.sampled_from([0.1, 0.5, 0.9]),
    st.integers(1, 40),
    st.integers(8, 500),
    st.integers(1, 4),
)
def test_pairs_are_those_of_the_sets_for_any_task_size(
    tmp_path_factory: pytest.TempPathFactory,
    sets: list[set[int]],
    measure: str,
    floor: float,
    pairs_per_task: int,
    bytes_at_once: int,
    files: int,
) -> None:
    corpus = MemoryCorpus([[document(str(i), s) for i, s in enumerate(sets)]])
    run = LocalMap(tmp_path_factory.mktemp("verify"))
    pairs = {
        (right, left): left % 3
        for left, right in combinations(range(len(sets)), 2)
        if (right * right + left) % 3  # So that the first partner of 3 is later than that of 4.
    }
    candidates = candidate_files(run, pairs, files)
    results = verified(
        run, corpus, candidates, floor, measure, pairs_per_task, bytes_at_once=bytes_at_once
    )
    expected = []
    for right, left in sorted(pairs):
        a, b = sets[right], sets[left]
        jaccard = np.float32(len(a & b) / len(a | b))
        containment = np.float32(len(a & b) / min(len(a), len(b)))
        if at_least(np.array([jaccard if measure == "jaccard" else containment]), floor)[0]:
            expected.append((right, left, left % 3, jaccard, containment))
    found = PairFiles.from_results(results, "pairs", VERIFIED)
    assert found.between(0, 99).tolist() == expected
    turned = PairFiles.from_results(results, "mirrored", VERIFIED).between(0, 99)
    assert turned[["left", "right"]].tolist() == sorted(
        [row[:2] for row in expected], key=lambda pair: (pair[1], pair[0])
    )
    counts = [result.value for result in results]
    assert sum(value["candidates"] for value in counts) == len(pairs)
    assert sum(value["pairs"] for value in counts) == len(expected)
    # A document's shingles are at most 20, so two of them are the least that is held.
    assert corpus.read * 8 <= max(bytes_at_once, 2 * 20 * 8)


def test_pairs_too_unequal_in_size_are_not_read(tmp_path: Path) -> None:
    corpus = MemoryCorpus([[document("small", range(4)), document("large", range(9))]])
    run = LocalMap(tmp_path)
    candidates = candidate_files(run, {(1, 0): 0})
    (result,) = verified(run, corpus, candidates, 0.5, "jaccard", 10)
    assert (result.value["unequal"], corpus.read) == (1, 0)
    (result,) = verified(run, corpus, candidates, 0.5, "containment", 10)
    assert (result.value["unequal"], result.value["pairs"]) == (0, 1)
    (pair,) = PairFiles.from_results([result], "pairs", VERIFIED).between(0, 9).tolist()
    assert pair[3:] == (np.float32(4 / 9), 1.0)


def test_without_verification_all_candidates_stay_unmeasured(tmp_path: Path) -> None:
    class Unsized(MemoryCorpus):
        def sizes(self, numbers: Any) -> Any:
            raise AssertionError("an index without shingles has no sizes")

    corpus = Unsized([[document("a", {1}), document("b", {2})]])
    run = LocalMap(tmp_path)
    candidates = candidate_files(run, {(1, 0): 2})
    (result,) = verified(run, corpus, candidates, 0.5, "jaccard", 10, verify=False)
    (pair,) = PairFiles.from_results([result], "pairs", VERIFIED).between(0, 9).tolist()
    assert pair[:3] == (1, 0, 2)
    assert np.isnan(pair[3:]).all()
    assert result.value["similarity"] == []


def test_a_cut_document_is_estimated_among_the_values_that_both_sides_know() -> None:
    # Beyer et al. 2007: of the k least values of one side and all of the other, those up to the
    # k-th are a sample of the union. Here k = 3, and 30 is the last that both know all of.
    large, small = [10, 20, 30, 40, 50, 60], [10, 25, 30, 70]
    jaccard, containment = measure([large[:3], small], [len(large), len(small)])
    assert jaccard == np.float32(2 / 4)  # 10, 30 of 10, 20, 25, 30
    assert containment == np.float32(2 / 3)  # of the smaller one's 10, 25, 30
    # Both cut: the lesser of the two last values counts.
    jaccard, containment = measure([[10, 20, 30], [10, 25, 40]], [9, 7])
    assert jaccard == np.float32(1 / 4)
    assert containment == np.float32(1 / 2)
    # Equal sizes: both sides count alike, so that their order tells nothing.
    for sets in ([[10, 20, 30], [10, 25, 40]], [[10, 25, 40], [10, 20, 30]]):
        assert measure(sets, [9, 9]) == (np.float32(1 / 4), np.float32(2 * 1 / (3 + 2)))


def test_estimates_are_near_the_truth() -> None:
    # k = 400 values of 20,000: the standard error of a share s is at most sqrt(s (1 - s) / k).
    for similarity in (0.3, 0.6, 0.9):
        union = np.array([spread(i) for i in range(20_000)], dtype=np.uint64)
        shared = round(similarity * len(union))
        one = np.sort(np.concatenate([union[:shared], union[shared::2]]))
        other = np.sort(np.concatenate([union[:shared], union[shared + 1 :: 2]]))
        jaccard, _ = measure([one[:400].tolist(), other[:400].tolist()], [len(one), len(other)])
        error = (similarity * (1 - similarity) / 400) ** 0.5
        assert abs(jaccard - similarity) < 4 * error


def test_a_stored_seven_tenths_reaches_the_threshold_of_seven_tenths() -> None:
    stored = np.array([7 / 10, 4 / 5, 69 / 100], dtype=np.float32)
    assert stored[0].astype(np.float64) < 0.7
    assert at_least(stored, 0.7).tolist() == [True, True, False]
    assert histogram(stored).nonzero()[0].tolist() == [13, 14, 16]
    assert histogram(np.array([1.0, 0.0], np.float32))[[0, 19]].tolist() == [1, 1]


def test_tasks_end_where_a_generation_does(tmp_path: Path) -> None:
    documents = [document(str(i), {i}) for i in range(40)]
    corpus = MemoryCorpus([documents[:10], documents[10:25], documents[25:]], first_generation=1)
    pairs = {(right, left): 0 for right in range(10, 40) for left in range(0, right, 7)}
    tasks = pair_tasks(candidate_files(LocalMap(tmp_path), pairs, 1), corpus, 12)  # type: ignore[arg-type]
    assert [t.generation for t in tasks] == sorted(t.generation for t in tasks)
    for task in tasks:
        start, end = corpus.starts[task.generation : task.generation + 2]
        assert start <= task.low < task.high <= end
    covered = [n for t in tasks for n in range(t.low, t.high)]
    assert len(covered) == len(set(covered))
    assert {right for right, _ in pairs} <= set(covered)


def test_ranges_hold_so_many_records_or_one_document(tmp_path: Path) -> None:
    crowd = {(500, left): 0 for left in range(400)} | {(r, 0): 0 for r in range(1, 1_000)}
    files = [candidate_files(LocalMap(tmp_path), crowd, 1)]
    found = cut_ranges(files, 0, 1_000, 50)
    for low, high in found:
        count = int(files[0].counts_at(np.array([low, high]))[0])
        assert 0 < count <= 50 or (low, high) == (500, 501)
    assert sum(high - low for low, high in found) >= 999
    assert len(found) < 60
    assert cut_ranges(files, 2_000, 3_000, 50) == []


def verified(
    run: LocalMap,
    corpus: MemoryCorpus,
    candidates: PairFiles,
    floor: float,
    measure: Any,
    pairs_per_task: int,
    verify: bool = True,
    bytes_at_once: int = 10_000,
) -> list[Any]:
    return run(
        verify_pairs,
        pair_tasks(candidates, corpus, pairs_per_task),  # type: ignore[arg-type]
        corpus=corpus,
        candidates=candidates,
        measure=measure,
        floor=floor,
        verify=verify,
        bytes_at_once=bytes_at_once,
    )


def measure(kept: list[list[int]], sizes: list[int]) -> tuple[Any, Any]:
    flat = np.array([value for values in kept for value in values], dtype=np.uint64)
    offsets = np.cumsum([0, *map(len, kept)]).astype(np.int64)
    one, other = np.array([0]), np.array([1])
    jaccard, containment = measure_pairs(flat, offsets, np.array(sizes), one, other)
    turned = measure_pairs(flat, offsets, np.array(sizes), other, one)
    assert (jaccard[0], containment[0]) == (turned[0][0], turned[1][0])
    return jaccard[0], containment[0]
