from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_corpus import (
    Document,
    LocalMap,
    MemoryCorpus,
    band_candidates,
    candidate_files,
    document,
    found_pairs,
)

from stages.dedup.recall import (
    PARTNERED,
    choose_sample,
    draw_sample,
    interval,
    recall,
    scan,
    scan_tasks,
)
from stages.dedup.two_hop import VerifiedPairs
from stages.dedup.verification import STEPS, at_least, similarity_steps

FLOOR = 0.3


def documents(seed: int, count: int) -> list[Document]:
    rng = random.Random(seed)
    found = []
    for number in range(count):
        base = rng.randrange(3) * 1_000
        kept = rng.sample(range(base, base + 14), rng.randint(8, 14))
        words = f"{seed}-{rng.randrange(count)}"  # Some are copies of others.
        found.append(document(f"{seed}-{number}", {*kept, rng.randrange(20)}, words))
    if count > 3:
        found[count // 2] = document(f"{seed}-empty", set())
    return found


@pytest.mark.full
@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 30),
    st.integers(2, 9),
    st.integers(1, 40),
    st.sampled_from([100, 10**6]),
)
def test_counts_are_those_of_all_sampled_documents_against_all_others(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    sample: int,
    per_task: int,
    old: int,
    bytes_at_once: int,
) -> None:
    corpus = MemoryCorpus(
        [documents(seed, old), documents(seed + 1, 15), documents(seed + 2, 9)], first_generation=1
    )
    run = LocalMap(tmp_path_factory.mktemp("recall"))
    candidates = band_candidates(corpus, bands=2, rows=3, max_bucket=2)
    found = found_pairs(run, corpus, candidate_files(run, candidates), floor=FLOOR)
    drawn = draw(run, corpus, sample, per_task)
    told = measure(run, corpus, found, drawn, per_task, bytes_at_once)

    members = [n for n in range(corpus.documents) if corpus.leads(n) and corpus.all[n].shingles]
    assert len(drawn) == min(sample, sum(n >= corpus.first_new for n in members))
    assert set(drawn.tolist()) <= {n for n in members if n >= corpus.first_new}
    bands = {row[:2]: row[2] for of in found for row in of.pairs.between(0, 10**6).tolist()}
    steps = np.zeros((STEPS, 3), dtype=int)
    partnered, reached = set(), set()
    seen = set()
    for x in drawn.tolist():
        for z in members:
            pair = max(x, z), min(x, z)
            if x == z or not at_least(np.array([corpus.jaccard(*pair)]), FLOOR)[0]:
                continue
            band = bands.get(pair)
            if corpus.jaccard(*pair) >= np.float32(PARTNERED):
                partnered.add(x)
                reached |= {x} if band is not None else set()
            if pair not in seen:
                step = int(similarity_steps(np.array([corpus.jaccard(*pair)]))[0])
                steps[step] += [1, band is not None and band >= 0, band is not None]
            seen.add(pair)
    rows = {round(row["from"] * STEPS): row for row in told["similarity"]}
    assert set(rows) == set(steps[:, 0].nonzero()[0].tolist())
    for step, row in rows.items():
        assert [row["pairs"], row["by_bands"], row["found"]] == steps[step].tolist()
    assert told["documents"]["with_partner"] == len(partnered)
    assert told["documents"]["found"] == len(reached)
    assert told["sampled"] == len(drawn)


def test_the_sample_is_the_same_for_any_order_of_rows(tmp_path: Path) -> None:
    of = documents(3, 60)
    run = LocalMap(tmp_path)

    def names(order: list[Document]) -> set[str]:
        corpus = MemoryCorpus([order])
        return {corpus.all[number].id for number in draw(run, corpus, 12, 7).tolist()}

    assert names(of) == names(of[::-1])
    assert len(names(of)) == 12


def test_documents_that_are_all_alike_make_the_sample_smaller_not_the_scan_longer(
    tmp_path: Path,
) -> None:
    run = LocalMap(tmp_path)
    crowd = MemoryCorpus([[document(str(i), {*range(50), 100 + i}) for i in range(80)]])
    # A document of the crowd hits 50 shared shingles in each of n: 50 n + 1 places, but its own.
    assert len(draw(run, crowd, 60, 10, lookups=500)) == 11
    apart = MemoryCorpus([[document(str(i), range(50 * i, 50 * i + 50)) for i in range(80)]])
    assert len(draw(run, apart, 60, 10, lookups=500)) == 60


def test_long_documents_are_met_by_their_estimate(tmp_path: Path) -> None:
    shared = range(900)
    of = [document("a", {*shared, *range(1_000, 1_100)}), document("b", shared)]
    of += [document(str(i), range(5_000 * i, 5_000 * i + 300)) for i in range(1, 5)]
    corpus = MemoryCorpus([of], most=64)
    run = LocalMap(tmp_path)
    found = found_pairs(run, corpus, candidate_files(run, {(1, 0): 0}), floor=0.5)
    (pair,) = found[-1].pairs.between(0, 9).tolist()
    told = measure(run, corpus, found, np.arange(6), 4, 10**6, floor=0.5)
    (row,) = told["similarity"]
    assert row["from"] == similarity_steps(np.array([pair[3]]))[0] / STEPS
    assert (row["pairs"], row["by_bands"], row["found"]) == (1, 1, 1)


def test_a_document_and_a_part_of_it_are_met_down_to_the_floor(tmp_path: Path) -> None:
    of = [document("whole", range(20)), document("half", range(10)), document("less", range(9))]
    corpus = MemoryCorpus([of])
    told = measure(LocalMap(tmp_path), corpus, [], np.array([0]), 2, 10**6, floor=0.5)
    assert [(row["from"], row["pairs"], row["found"]) for row in told["similarity"]] == [
        (0.5, 1, 0)
    ]


def test_a_share_has_wilsons_interval_and_no_trials_have_none() -> None:
    # Newcombe 1998, table I, method 3: 81 of 263. All of n: n / (n + z^2), by arithmetic.
    assert interval(81, 263) == pytest.approx([0.2553, 0.3662], abs=5e-5)
    assert interval(0, 0) is None
    assert interval(7, 7) == [pytest.approx(7 / (7 + 1.959964**2), abs=1e-6), 1.0]


def draw(
    run: LocalMap, corpus: Any, sample: int, per_task: int, lookups: int = 10**6
) -> np.ndarray:
    tasks = scan_tasks(corpus.first_new, corpus.documents, per_task)
    results = run(draw_sample, tasks, corpus=corpus, classes=corpus, sample=sample)
    return choose_sample(results, corpus, sample, lookups)


def measure(
    run: LocalMap,
    corpus: Any,
    found: list[VerifiedPairs],
    drawn: np.ndarray,
    per_task: int,
    bytes_at_once: int,
    floor: float = FLOOR,
) -> dict[str, Any]:
    results = run(
        scan,
        scan_tasks(0, corpus.documents, per_task),
        corpus=corpus,
        classes=corpus,
        pairs=found,
        sample=drawn,
        floor=floor,
        bytes_at_once=bytes_at_once,
    )
    return recall([result.value for result in results], len(drawn), floor)


def test_scans_share_the_documents_evenly() -> None:
    """100,000 documents in tasks of at most 65,536: two halves, so two workers end together."""
    tasks = scan_tasks(7, 100_007, 1 << 16)
    assert [(task.low, task.high) for task in tasks] == [(7, 50_007), (50_007, 100_007)]
    assert scan_tasks(7, 7, 10) == []
