from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.dedup.candidates import Candidates
from stages.dedup.verify import ShingleStore, at_least, intersections, jaccard, pair_tasks

SETS = st.lists(st.sets(st.integers(0, 40), min_size=1, max_size=20), min_size=2, max_size=8)


@settings(max_examples=60, deadline=None)
@given(SETS)
def test_intersections_count_shared_elements(sets: list[set[int]]) -> None:
    one, *others = [np.array(sorted(s), dtype=np.uint64) for s in sets]
    sizes = np.array([len(other) for other in others])
    found = intersections(one, np.concatenate(others), sizes)
    assert found.tolist() == [len(sets[0] & other) for other in sets[1:]]


@settings(max_examples=40, deadline=None)
@given(SETS, st.integers(1, 7), st.sampled_from([0.1, 0.5, 0.9]))
def test_similarity_is_the_jaccard_of_the_sets_over_several_files(
    tmp_path_factory: pytest.TempPathFactory, sets: list[set[int]], cut: int, floor: float
) -> None:
    folder = tmp_path_factory.mktemp("shingles")
    paths, sizes = write(folder, [sets[:cut], sets[cut:]])
    pairs = np.array(list(combinations(range(len(sets)), 2)))
    candidates = Candidates(pairs[:, 0], pairs[:, 1], np.zeros(len(pairs), np.int32), 0)
    (task,) = pair_tasks(candidates, np.array([len(s) for s in sets]))
    found = jaccard(task, ShingleStore(paths, sizes), floor)
    for (i, j), similarity in zip(pairs, found, strict=True):
        exact = np.float32(len(sets[i] & sets[j]) / len(sets[i] | sets[j]))
        if at_least(np.array([exact]), floor):
            assert similarity == exact
        else:
            assert not at_least(np.array([similarity]), floor)


def test_a_stored_seven_tenths_reaches_the_threshold_of_seven_tenths() -> None:
    stored = np.array([7 / 10, 4 / 5, 69 / 100], dtype=np.float32)
    assert stored[0].astype(np.float64) < 0.7
    assert at_least(stored, 0.7).tolist() == [True, True, False]


def write(folder: Path, files: list[list[set[int]]]) -> tuple[list[Path], list[int]]:
    """The sets as shingle files, and the numbers of shingles in each."""
    paths = [folder / f"{number}" for number in range(len(files))]
    for path, sets in zip(paths, files, strict=True):
        path.write_bytes(b"".join(np.array(sorted(s), dtype="<u8").tobytes() for s in sets))
    return paths, [sum(map(len, sets)) for sets in files]
