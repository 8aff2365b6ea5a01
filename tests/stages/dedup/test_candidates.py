from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from dedup_corpora import Doc, Maps, classes_of, corpus_of
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.dedup.candidates import bucket_tasks, propose, proposed_pairs
from stages.dedup.index import Corpus
from stages.dedup.pairs import CANDIDATE

BANDS = 3
KEYS = [0, 1, 2, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
Generations = list[list[list[Doc]]]
Pairs = dict[tuple[int, int], int]


@st.composite
def generations(draw: st.DrawFn) -> Generations:
    """Up to four generations of up to three shards, with few different keys and texts."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    few = draw(st.integers(1, len(KEYS)))
    keys = [tuple(rng.choices(KEYS[:few], k=BANDS)) for _ in range(12)]
    shards = st.lists(st.lists(st.integers(0, 13), max_size=9), max_size=3)
    return [
        [
            [Doc(rng.getrandbits(128), w, w, keys[w] if w < 12 else None) for w in shard]
            for shard in draw(shards)
        ]
        for _ in range(draw(st.integers(1, 4)))
    ]


def reference(made: Generations, old: int, max_bucket: int) -> tuple[Pairs, int]:
    """(right, left) → least band, by the definition; and the capped buckets with a new document."""
    docs = [(g, doc) for g, shards in enumerate(made) for shard in shards for doc in shard]
    ranked = sorted(range(len(docs)), key=lambda n: (docs[n][0], docs[n][1].id >> 64, n))
    firsts, said = [], set()
    for number in ranked:
        if docs[number][1].words not in said:
            said.add(docs[number][1].words)
            firsts.append(number)
    pairs: Pairs = {}
    capped = 0
    for band in range(BANDS):
        buckets: dict[int, list[int]] = {}
        for number in firsts:
            keys = docs[number][1].keys
            if keys is not None:
                buckets.setdefault(keys[band], []).append(number)
        for members in buckets.values():
            is_new = [docs[number][0] >= old for number in members]
            capped += len(members) > max_bucket and any(is_new)
            for position, number in enumerate(members):
                for other in members[: min(position, max_bucket)] if is_new[position] else ():
                    pairs.setdefault((max(number, other), min(number, other)), band)
    return pairs, capped


def candidates(
    folder: Path, corpus: Corpus, max_bucket: int, rows: int = 1 << 20, at_once: int = 1 << 20
) -> tuple[Pairs, int]:
    classes = classes_of(folder, corpus)
    results = Maps(folder).map(
        propose,
        bucket_tasks(corpus, rows),
        corpus=corpus,
        classes=classes,
        max_bucket=max_bucket,
        rows=rows,
        pairs_at_once=at_once,
    )
    for one in results:
        held = [np.fromfile(one.scratch_path(name), CANDIDATE) for name in one.value["files"]]
        assert sum(map(len, held)) == one.value["pairs"]
        for found in held:
            order = list(zip(found["right"].tolist(), found["left"].tolist(), strict=True))
            assert order == sorted(set(order))
    found = proposed_pairs(results).between(0, corpus.documents)
    pairs = zip(found["right"].tolist(), found["left"].tolist(), strict=True)
    return dict(zip(pairs, found["band"].tolist(), strict=True)), sum(
        one.value["capped"] for one in results
    )


@settings(max_examples=80, deadline=None)
@given(
    generations(),
    st.integers(0, 3),
    st.sampled_from([1, 2, 3, 100]),
    st.sampled_from([1, 2, 5, 100]),
    st.sampled_from([1, 3, 1000]),
    st.sampled_from([1, 4, 100]),
)
def test_pairs_are_those_of_the_definition_whatever_fits_at_once(
    made: Generations, old: int, max_bucket: int, rows: int, at_once: int, run: int
) -> None:
    old = min(old, len(made))
    with TemporaryDirectory() as folder:
        corpus = corpus_of(Path(folder), made, bands=BANDS, old=old, run=run)
        found = candidates(Path(folder), corpus, max_bucket, rows, at_once)
    assert found == reference(made, old, max_bucket)


@pytest.mark.full
@settings(max_examples=30, deadline=None)
@given(generations(), st.sampled_from([1, 2, 100]), st.randoms(use_true_random=False))
def test_what_a_generation_meets_depends_on_it_and_earlier_ones_alone(
    made: Generations, max_bucket: int, rng: random.Random
) -> None:
    def told(made: Generations, old: int) -> set[frozenset[int]]:
        ids = [doc.id for shards in made for shard in shards for doc in shard]
        with TemporaryDirectory() as folder:
            corpus = corpus_of(Path(folder), made, bands=BANDS, old=old)
            pairs, _ = candidates(Path(folder), corpus, max_bucket)
        return {frozenset((ids[right], ids[left])) for right, left in pairs}

    full = told(made, 0)
    shuffled = [[doc for shard in shards for doc in shard] for shards in made]
    for docs in shuffled:
        rng.shuffle(docs)
    assert told([[docs] for docs in shuffled], 0) == full
    steps = [told(made[: last + 1], last) for last in range(len(made))]
    assert set().union(*steps) == full
    assert sum(map(len, steps)) == len(full)


@pytest.mark.parametrize("rows", [1 << 20, 1_000])
def test_a_bucket_of_all_documents_costs_as_many_pairs_as_it_has_documents(
    tmp_path: Path, rows: int
) -> None:
    rng = random.Random(3)
    docs = [Doc(rng.getrandbits(128), words=n, keys=(77,)) for n in range(20_000)]
    corpus = corpus_of(tmp_path, [[docs[:9_000], docs[9_000:]]], bands=1, run=4_096)
    pairs, capped = candidates(tmp_path, corpus, 3, rows, at_once=500)
    least = sorted(range(20_000), key=lambda n: docs[n].id)[:3]
    # The second and third by rank meet one and two earlier ones, all others the first three.
    assert len(pairs) == 1 + 2 + 3 * 19_997
    assert capped == 1
    assert {left for pair in pairs for left in pair if left in least} == set(least)
    assert all(right in least or left in least for right, left in pairs)


def test_old_documents_are_met_by_new_ones_and_not_by_each_other(tmp_path: Path) -> None:
    old = [Doc(n << 64, words=n, keys=(5, n)) for n in range(1, 4)]
    new = [Doc(9 << 64, words=9, keys=(5, 2)), Doc(8 << 64, words=8, keys=(6, 6))]
    corpus = corpus_of(tmp_path, [[old], [new]], bands=2, old=1)
    assert candidates(tmp_path, corpus, 10)[0] == {(3, 0): 0, (3, 1): 0, (3, 2): 0}


def test_an_old_copy_of_another_old_document_is_not_met(tmp_path: Path) -> None:
    made = [[[Doc(1, words=1, keys=(5,))]], [[Doc(2, words=1, keys=(5,))]]]
    new = [[Doc(3, words=3, keys=(5,))]]
    corpus = corpus_of(tmp_path, [*made, new], bands=1, old=2)
    assert candidates(tmp_path, corpus, 10)[0] == {(2, 0): 0}
    # Without the first index, its copy stands for the class.
    corpus = corpus_of(tmp_path / "retired", [made[1], new], bands=1, old=1)
    assert candidates(tmp_path / "retired", corpus, 10)[0] == {(1, 0): 0}


def test_documents_without_shingles_are_never_met_and_no_documents_give_no_tasks(
    tmp_path: Path,
) -> None:
    docs = [Doc(n, words=n) for n in range(5)]
    corpus = corpus_of(tmp_path, [[docs]], bands=BANDS)
    assert bucket_tasks(corpus, 10) == []
    assert bucket_tasks(corpus_of(tmp_path / "none", [], bands=BANDS), 10) == []


@pytest.mark.parametrize("rows", [1, 5, 12, 1_000])
def test_more_old_documents_than_fit_are_met_all_the_same(tmp_path: Path, rows: int) -> None:
    # Ten keys; five old documents and a new one have each.
    old = [Doc(n << 64, words=n, keys=((n % 10) << 60,)) for n in range(50)]
    new = [Doc(n << 64, words=n, keys=((n % 10) << 60,)) for n in range(50, 60)]
    corpus = corpus_of(tmp_path, [[old[:20], old[20:]], [new]], bands=1, old=1, run=4)
    expected = {(n, m): 0 for n in range(50, 60) for m in range(50) if m % 10 == n % 10}
    assert candidates(tmp_path, corpus, 100, rows, at_once=3) == (expected, 0)
