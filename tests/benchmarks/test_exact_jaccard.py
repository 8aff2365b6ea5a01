"""Brute force against Python's own sets, and the scores on a case that is counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.benchmarks.dedup_peers import clusters, write_components
from tests.benchmarks.dedup_quality import (
    INDEXED,
    Found,
    Truth,
    found_by_clusters,
    found_by_tables,
    scores,
    truth_of,
)
from tests.benchmarks.exact_jaccard import (
    ShingleSets,
    jaccard,
    near_pairs,
    words,
    write_shingles,
)

TEXTS = ["", "one", "one two three four"] + [
    " ".join(f"w{(start + step) % 97}" for step in range(10 + start % 7))
    for start in range(0, 200, 3)
]


def sets_of(text: str) -> set[tuple[str, ...]]:
    found = words(text)
    if len(found) < 5:
        return {tuple(found)} if found else set()
    return {tuple(found[place : place + 5]) for place in range(len(found) - 4)}


def of(one: set, other: set) -> float:
    return len(one & other) / max(len(one | other), 1)


@pytest.fixture
def sets(tmp_path: Path) -> ShingleSets:
    write_shingles(TEXTS, tmp_path)
    return ShingleSets.read(tmp_path)


def test_words_are_folded_alike_however_they_are_written() -> None:
    plain = ["dont", "na", "cafe", "strasse", "42", "x", "y"]
    assert words("DONT (na); Café—STRASSE 42 x_y") == plain
    assert words("ｄｏｎｔ “na” cafe\u0301 straße ４２, x/y…") == plain
    assert words("don’t") == words("DON'T") == ["don", "t"]


def test_the_order_of_words_counts(tmp_path: Path) -> None:
    write_shingles(["a b c d e", "e d c b a", "A, b; c d e!"], tmp_path)
    sets = ShingleSets.read(tmp_path)
    assert jaccard(sets, np.array([0, 0]), np.array([1, 2])).tolist() == [0, 1]


def test_sizes_and_similarities_are_those_of_python_sets(sets: ShingleSets) -> None:
    expected = [sets_of(text) for text in TEXTS]
    assert sets.sizes().tolist() == [len(one) for one in expected]
    one, other = (part.ravel() for part in np.indices((len(TEXTS), len(TEXTS))))
    brute = [of(expected[a], expected[b]) for a, b in zip(one, other, strict=True)]
    assert jaccard(sets, one, other) == pytest.approx(brute, abs=1e-12)


@pytest.mark.parametrize("at_once", [1, 50, 1 << 20])
def test_near_pairs_are_all_pairs_from_the_floor_on(sets: ShingleSets, at_once: int) -> None:
    sample = np.array([2, 3, 10, 40, 41])
    near = near_pairs(sets, sample, 0.3, at_once)
    expected = [
        (a, b, of(sets_of(TEXTS[a]), sets_of(TEXTS[b])))
        for a in sample.tolist()
        for b in range(len(TEXTS))
        if a != b and of(sets_of(TEXTS[a]), sets_of(TEXTS[b])) >= 0.3
    ]
    assert len(expected) > 10
    assert list(zip(near.one.tolist(), near.other.tolist(), strict=True)) == [
        pair[:2] for pair in expected
    ]
    assert near.similarity == pytest.approx([pair[2] for pair in expected], abs=1e-12)


ALPHABET = [f"a{n}" for n in range(24)]
"""20 five-grams."""
FAMILY = [
    ALPHABET,
    ALPHABET[:22],  # .9 to the first
    ALPHABET[2:],  # .9 to the first, 16/20 = .8 to the second
    ALPHABET[:14],  # .5 to the first
    [f"b{n}" for n in range(30)],
    [name.upper() for name in ALPHABET],  # 1 to the first
]


@pytest.fixture
def truth(tmp_path: Path) -> Truth:
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps({"text": " ".join(one)}) + "\n" for one in FAMILY))
    plain = np.array([True, True, True, True, True, False])
    made = truth_of([path], plain, tmp_path / "truth")
    again = truth_of([], plain, tmp_path / "truth")
    assert (again.near.one == made.near.one).all()
    return made


def test_scores_of_a_case_counted_by_hand(truth: Truth) -> None:
    near = truth.near
    assert (0, 3, 0.5) in zip(near.one, near.other, near.similarity, strict=True)
    # Kept: 0 and 3. 5 is 0 in capitals. Pair 1-2 is not linked itself, 3 is linked in error.
    found = Found(
        cluster=np.array([0, 0, 0, 0, 1, 0]),
        partner=np.array([-1, 0, 0, -1, -1, 0]),
        first=np.array([0, 1, 2, 3, 4, 0]),
        pairs=(np.array([0, 0, 0]), np.array([1, 2, 3])),
        similarity=np.array([0.9, 0.9, 0.8]),
    )
    told = scores(found, truth)
    assert told.documents == 1
    # Pairs at .8, both ways: 0-1 0-2 0-5 1-2 1-5 2-5; 1-2 is missing.
    assert told.pairs == pytest.approx(5 / 6)
    assert told.closest == 1
    assert told.clustered == 1
    assert told.precision == pytest.approx(3 / 4)  # 0-1, 0-2 and the copy 5; not 0-3.
    assert told.error == pytest.approx(0.3)
    assert told.loose == pytest.approx(1 / 5)  # Document 3.
    assert (told.removed, told.unfounded, told.lost) == (3, 0, 0)


def test_a_removal_without_a_kept_partner_is_seen(truth: Truth) -> None:
    found = found_by_clusters([0, 0, 0, 0, 4, 4], [False, True, True, True, True, False])
    assert found.partner.tolist() == [-1, 0, 0, 0, 5, -1]
    told = scores(found, truth)
    # 3 goes for 0 (.5) and 4 for 5 (0).
    assert (told.removed, told.unfounded) == (4, 2)
    assert told.lost == pytest.approx(2 / 4)
    assert told.documents == pytest.approx(3 / 4)  # 0, 1, 2; 5 has a partner but none with it,
    assert told.plain == 1  # and is not plain.
    assert np.isnan(told.precision)
    # 5 is with 3 alone (.5); 3 is kept, and 0, 1, 2 and 5 resemble none of 3 and 4.
    found = found_by_clusters([0, 0, 0, 3, 0, 3], [True, True, True, False, False, True])
    told = scores(found, truth)
    assert told.documents == pytest.approx(3 / 4)
    assert told.lost == 1
    chain = Found(np.zeros(6, np.int64), np.array([-1, 0, 1, -1, -1, -1]))
    assert scores(chain, truth).unfounded == 1  # 1 resembles 2 but is gone itself.


def test_tables_are_read_by_the_numbers_of_the_documents(tmp_path: Path) -> None:
    def write(name: str, rows: list[dict]) -> list[Path]:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name)
        return [tmp_path / name]

    documents = [
        {"doc_id": f"d{n}", "metadata": json.dumps({"id": f"{n:08d}"})} for n in (3, 1, 0, 2)
    ]

    def row(doc_id: str, first: str, *partners: tuple[str, float | None]) -> dict:
        listed = [{"doc_id": one, "similarity": s} for one, s in partners]
        return {"doc_id": doc_id, "exact_class": first, "partners": listed}

    duplicates = [
        row("d3", "d3", ("d1", 0.9), ("d0", 0.7)),
        row("d1", "d1"),
        row("d0", "d0"),
        row("d2", "d1"),
    ]
    decided = (("d3", "d1"), ("d1", None), ("d0", None), ("d2", "d1"))
    ledger = [
        {"doc_id": one, "verdict": "dropped" if partner else "kept", "partner": partner}
        for one, partner in decided
    ]
    found = found_by_tables(
        write("documents", documents), write("duplicates", duplicates), write("ledger", ledger)
    )
    assert found.partner.tolist() == [-1, -1, 1, 1]
    assert found.first is not None
    assert found.first.tolist() == [0, 1, 1, 3]
    assert found.pairs is not None
    assert [part.tolist() for part in found.pairs] == [[3], [1]]
    assert found.cluster[1] == found.cluster[2] == found.cluster[3] != found.cluster[0]
    # 2 says the same as 1, so it is linked to what 1 is linked to.
    assert found.linked(np.array([2, 2, 0]), np.array([3, 1, 3])).tolist() == [True, True, False]

    # The index names documents by their places, here of 0 and 3, and holds what no list does.
    pairs = np.array([(2, 0, 1, 0.85, 1), (1, 0, 3, 0.5, 1)], dtype=INDEXED)
    pairs.tofile(tmp_path / "0.pairs")
    tables = [[tmp_path / name] for name in ("documents", "duplicates", "ledger", "0.pairs")]
    found = found_by_tables(*tables)
    assert found.pairs is not None
    assert [part.tolist() for part in found.pairs] == [[0], [3]]


def test_clusters_of_peers_are_components(tmp_path: Path) -> None:
    write_components([[0, 2], [1], [2, 0, 3], [3, 2], [4]], tmp_path)
    assert clusters(tmp_path, 5) == ([0, 1, 0, 0, 4], [False, False, True, True, False])
    other = tmp_path / "datatrove"
    (other / "buckets").mkdir(parents=True)
    (other / "removed").mkdir()
    pairs = np.array([[0, 4, 0, 2], [0, 5, 0, 3], [0, 2, 0, 1]], dtype="<u4")
    (other / "buckets" / "00000_00.dups").write_bytes(pairs[:2].tobytes())
    (other / "buckets" / "00001_00.dups").write_bytes(pairs[2:].tobytes())
    (other / "removed" / "000000.remove").write_bytes(np.array([2, 4, 5], "<u4").tobytes())
    removed = [False, False, True, False, True, True]
    assert clusters(other, 6) == ([0, 1, 1, 3, 1, 3], removed)
