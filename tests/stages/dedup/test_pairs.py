from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_corpus import LocalMap

from artifacts_schema.errors import CorruptArtifact
from stages.dedup.pairs import (
    CANDIDATE,
    VERIFIED,
    PairFiles,
    distinct_pairs,
    mirror_pairs,
    renumber_pairs,
    write_pairs,
)

ROWS = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 39), st.integers(-1, 5)), max_size=60)


def candidates(rows: list[tuple[int, int, int]]) -> Any:
    kept = [(max(a, b), min(a, b), band) for a, b, band in rows if a != b]
    return np.array(kept, dtype=CANDIDATE)


def least_bands(rows: Any) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for right, left, band in rows.tolist():
        found[right, left] = min(band, found.get((right, left), band))
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=4), st.lists(st.integers(0, 45), min_size=2, max_size=6))
def test_pairs_between_two_documents_are_those_of_all_files_each_once(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[tuple[int, int, int]]],
    bounds: list[int],
) -> None:
    stored = store(tmp_path_factory.mktemp("pairs"), [candidates(rows) for rows in files])
    every = np.concatenate([candidates(rows) for rows in files])
    bounds = sorted(bounds)
    for low, high in itertools.pairwise(bounds):
        expected = least_bands(every[(every["right"] >= low) & (every["right"] < high)])
        found = stored.between(low, high)
        assert found.tolist() == [(*pair, band) for pair, band in sorted(expected.items())]
        sliced = list(stored.slices(low, high, 3))
        assert all(len(piece) <= 3 for piece in sliced)
        assert least_bands(np.concatenate([candidates([]), *sliced])) == expected
    # Each file counts its own: what is the same in two of them counts twice.
    counts = sum(
        np.histogram([r for r, _ in least_bands(candidates(rows))], [*bounds, 10**6])[0][:-1]
        for rows in files
    )
    assert stored.counts_at(np.array(bounds)).tolist() == list(counts)


def test_search_in_files_longer_than_one_block(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    pairs = np.zeros(20_000, dtype=CANDIDATE)
    pairs["right"] = np.sort(rng.integers(0, 3_000, len(pairs)))
    pairs["left"] = np.arange(len(pairs))
    stored = store(tmp_path, [pairs[:12_000], pairs[5_000:5_001], pairs[12_000:]])
    bounds = np.arange(-5, 3_005)
    whole = np.concatenate([pairs, pairs[5_000:5_001]])["right"]
    # The last bin of a histogram holds its upper edge as well: one more bound, one bin less.
    expected = np.histogram(whole, np.append(bounds, 3_005))[0][:-1]
    assert stored.counts_at(bounds).tolist() == expected.tolist()
    assert len(stored) == 20_001
    for low, high in [(0, 1), (17, 18), (900, 1200), (2999, 3000), (0, 3000), (5, 5)]:
        inside = pairs[(pairs["right"] >= low) & (pairs["right"] < high)]
        assert stored.between(low, high).tolist() == inside.tolist()


def test_records_of_some_documents(tmp_path: Path) -> None:
    pairs = np.zeros(3_000, dtype=CANDIDATE)
    pairs["right"], pairs["left"] = np.arange(3_000) // 3 * 2, np.arange(3_000)
    stored = store(tmp_path, [pairs[1_500:], pairs[:1_500]])
    wanted = np.array([-1, 0, 3, 400, 998, 1_000, 1_996, 1_998, 5_000])
    found = stored.records_for(wanted, None)
    assert found is not None
    assert found.tolist() == pairs[np.isin(pairs["right"], wanted)].tolist()
    assert stored.records_for(wanted, len(found) - 1) is None
    assert stored.records_for(wanted, len(found)) is not None


@given(
    st.lists(st.integers(0, 40), max_size=3_000).map(sorted),
    st.sets(st.integers(-3, 45)).map(sorted),
    st.integers(1, 700),
)
def test_records_of_some_documents_are_all_that_there_are_in_parts_of_any_size(
    rights: list[int], wanted: list[int], most: int
) -> None:
    pairs = np.zeros(len(rights), dtype=CANDIDATE)
    pairs["right"], pairs["left"] = np.array(rights, np.int64) * 7, np.arange(len(rights))
    numbers = np.array(wanted, dtype=np.int64) * 7
    with TemporaryDirectory() as folder:
        stored = store(Path(folder), [pairs])
        pieces = list(stored.pieces(numbers, most))
    assert all(0 < len(piece) <= most for piece in pieces)
    found = [row for piece in pieces for row in piece.tolist()]
    assert found == pairs[np.isin(pairs["right"], numbers)].tolist()


def test_what_is_cut_short_is_refused_by_name(tmp_path: Path) -> None:
    stored = store(tmp_path, [candidates([(5, 1, 0), (6, 1, 0)])])
    (file,) = stored.files
    path = file.path()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptArtifact, match=path.name):
        PairFiles.open([path], CANDIDATE)
    path.write_bytes(path.read_bytes()[: CANDIDATE.itemsize])
    with pytest.raises(CorruptArtifact, match=path.name):
        stored.between(0, 10)


def test_files_are_little_endian_records_without_a_header(tmp_path: Path) -> None:
    (result,) = LocalMap(tmp_path)(write, [Item("one")], pairs=candidates([(258, 1, 3)]))
    assert result.value == {"written": 1}
    assert result.scratch_path("pairs").read_bytes() == (
        b"\x02\x01\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x03\0"
    )
    stored = PairFiles.from_results([result], "pairs", CANDIDATE)
    again = pickle.loads(pickle.dumps(stored))
    assert again.between(0, 999).tolist() == [(258, 1, 3)]


def test_numbers_beyond_what_one_integer_can_hold_are_sorted_all_the_same() -> None:
    rows = [(2**50, 2**49, 1), (2**50, 7, 2), (3, 2, 0), (2**50, 7, 1)]
    assert distinct_pairs(candidates(rows)).tolist() == [
        (3, 2, 0),
        (2**50, 7, 1),
        (2**50, 2**49, 1),
    ]


def test_mirrored_pairs_are_sorted_by_the_other_side() -> None:
    pairs = np.array([(5, 2, 0, 0.5, 0.6), (6, 1, 1, 0.7, 0.8), (7, 2, 2, 0.9, 1)], VERIFIED)
    assert [row[:3] for row in mirror_pairs(pairs).tolist()] == [(1, 6, 1), (2, 5, 0), (2, 7, 2)]
    assert distinct_pairs(mirror_pairs(mirror_pairs(pairs))).tolist() == pairs.tolist()


def test_pairs_of_an_earlier_run_in_the_numbers_of_this_one() -> None:
    # That run: generations A (0..9), B (10..19), C (20..29); this one: C from 0, A from 50, no B.
    starts, later = np.array([0, 10, 20, 30]), np.array([50, -1, 0])
    pairs = candidates([(5, 2, 0), (12, 3, 1), (21, 15, 1), (25, 9, 2), (29, 20, 3)])
    found = renumber_pairs(pairs, starts, later)
    assert found.tolist() == [(9, 0, 3), (55, 52, 0), (59, 5, 2)]


class Item:
    def __init__(self, id: str) -> None:
        self.id = id


def write(item: Item, out: Any, *, pairs: Any) -> dict[str, int]:
    return {"written": write_pairs(out, "pairs", pairs)}


def store(folder: Path, files: list[Any]) -> PairFiles:
    run = LocalMap(folder)
    results = [
        result
        for number, pairs in enumerate(files)
        for result in run(write, [Item(str(number))], pairs=pairs)
    ]
    dtype = files[0].dtype
    return PairFiles.from_results(results, "pairs", dtype)
