from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from dedup_corpora import Doc, Maps, classes_of, corpus_of
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import InputError
from stages.dedup import exact
from stages.dedup.exact import class_tasks, find_classes, least_rank

FULL = 1 << 64
# Few digests, so that many are equal; some share their upper half, some lie at the very ends.
DIGESTS = [0, 1, FULL - 1, 5 * FULL, 5 * FULL + 3, FULL * FULL - 1, (1 << 100) + 7]


@st.composite
def generations(draw: st.DrawFn) -> list[list[list[Doc]]]:
    """Up to four generations of up to three shards; a text's words follow from the text."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    found: list[list[list[Doc]]] = []
    for _ in range(draw(st.integers(1, 4))):
        shards = draw(st.lists(st.lists(st.integers(0, 20), max_size=9), max_size=3))
        found.append(
            [
                [Doc(rng.getrandbits(128), DIGESTS[t % 7], DIGESTS[t % 7] ^ t << 70) for t in shard]
                for shard in shards
            ]
        )
    return found


def reference(
    made: list[list[list[Doc]]], old: int, what: str
) -> tuple[list[int], list[int], dict[str, int]]:
    """The first of each document's class by comparing all, new documents, and counts."""
    docs = [(g, doc) for g, shards in enumerate(made) for shard in shards for doc in shard]
    names = [getattr(doc, what) for _, doc in docs]
    first = [
        min(
            (n for n in range(len(docs)) if names[n] == name),
            key=lambda n: (docs[n][0], docs[n][1].id >> 64, n),
        )
        for name in names
    ]
    new = [n for n in range(len(docs)) if docs[n][0] >= old]
    classes = {first[n] for n in new if names.count(names[n]) > 1}
    return first, new, {"classes": len(classes), "copies": sum(first[n] != n for n in new)}


@settings(max_examples=60, deadline=None)
@given(generations(), st.integers(0, 3), st.sampled_from([1, 2, 5, 100]), st.sampled_from([1, 4]))
def test_the_first_of_a_class_is_the_one_of_least_rank(
    made: list[list[list[Doc]]], old: int, rows: int, run: int
) -> None:
    old = min(old, len(made))
    words, new, counts = reference(made, old, "words")
    texts, _, text_counts = reference(made, old, "text")
    with TemporaryDirectory() as folder:
        corpus = corpus_of(Path(folder), made, bands=1, old=old, run=run)
        found = classes_of(Path(folder), corpus, rows)
        low, high = corpus.first_new, corpus.documents
        assert found.first(low, high).tolist() == [words[n] for n in new]
        assert found.text_first(low, high).tolist() == [texts[n] for n in new]
        is_first = [n == f for n, f in enumerate(words)]
        assert found.is_first(0, high).tolist() == is_first
        assert found.is_first(high // 3, high).tolist() == is_first[high // 3 :]
    assert found.counts == {
        "exact_classes": counts["classes"],
        "exact_copies": counts["copies"],
        "text_classes": text_counts["classes"],
        "text_copies": text_counts["copies"],
    }


@settings(max_examples=30, deadline=None)
@given(generations(), st.randoms(use_true_random=False))
def test_a_generation_is_told_the_same_alone_first_of_several_and_in_any_order(
    made: list[list[list[Doc]]], rng: random.Random
) -> None:
    def told(made: list[list[list[Doc]]], old: int) -> dict[int, tuple[int, int]]:
        ids = [doc.id for shards in made for shard in shards for doc in shard]
        with TemporaryDirectory() as folder:
            corpus = corpus_of(Path(folder), made, bands=1, old=old)
            found = classes_of(Path(folder), corpus, rows=4)
            low, high = corpus.first_new, corpus.documents
            firsts = zip(found.first(low, high), found.text_first(low, high), strict=True)
            return {ids[low + n]: (ids[one], ids[two]) for n, (one, two) in enumerate(firsts)}

    full = told(made, 0)
    shuffled = [[doc for shard in shards for doc in shard] for shards in made]
    for docs in shuffled:
        rng.shuffle(docs)
    cut = [[docs[: len(docs) // 2], docs[len(docs) // 2 :]] for docs in shuffled]
    assert told(cut, 0) == full
    together: dict[int, tuple[int, int]] = {}
    for generation in range(len(made)):
        together |= told(made[: generation + 1], generation)
    assert together == full


def test_a_hundred_thousand_equal_documents_are_one_class_in_little_memory(tmp_path: Path) -> None:
    ids = np.random.default_rng(0).permutation(100_000).tolist()
    docs = [Doc(number << 64 | number, words=9, text=9) for number in ids]
    corpus = corpus_of(tmp_path, [[docs[:70_000], docs[70_000:]]], bands=1)
    (task,) = [t for t in class_tasks(corpus, 100_000) if t.equal == "words"]
    (found,) = Maps(tmp_path).map(find_classes, [task], corpus=corpus, rows=1_000)
    assert found.value["new_copies"] == 99_999
    assert found.value["classes"] == 1
    # A run of 65,536 documents, then what is left of the first shard, then the second one.
    assert [found.files[None, name].file.bytes for name in found.value["files"]] == [
        16 * (65_536 - (ids.index(0) < 65_536)),
        16 * (4_464 - (65_536 <= ids.index(0) < 70_000)),
        16 * (30_000 - (ids.index(0) >= 70_000)),
    ]
    assert set(np.fromfile(found.scratch_path("copies-0000"), "<i8")[1::2]) == {ids.index(0)}


def test_an_id_that_comes_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    one, two = Doc(0xAB << 100, words=1), Doc(0xAB << 100, words=2)
    others = [Doc(n << 64 | n, words=n) for n in range(3, 9)]
    corpus = corpus_of(tmp_path, [[others[:3], [one]], [[*others[3:], two]]], bands=1, old=1, run=2)
    with pytest.raises(InputError) as caught:
        classes_of(tmp_path, corpus, rows=2)
    assert f"doc_id {0xAB << 100:032x} occurs in documents 0" in caught.value.what
    assert "and in documents 1" in caught.value.what


def test_ids_that_only_begin_alike_are_two_documents(tmp_path: Path) -> None:
    corpus = corpus_of(
        tmp_path, [[[Doc(5 << 64 | 1, words=1), Doc(5 << 64 | 2, words=2)]]], bands=1
    )
    assert classes_of(tmp_path, corpus).first(0, 2).tolist() == [0, 1]


def test_of_equal_ranks_the_first_row_leads_and_an_earlier_generation_before_all() -> None:
    group = np.array([0, 1, 0, 1, 0], np.int64)
    generation = np.array([0, 0, 0, 1, 1], np.int64)
    rank = np.array([7, 9, 7, 1, 2], np.uint64)
    first = np.full(2, -1, np.int64)
    least_rank(group, generation, rank, first)
    assert first.tolist() == [0, 1]


def test_tasks_name_their_ranges_so_that_another_memory_setting_takes_none_of_them(
    tmp_path: Path,
) -> None:
    corpus = corpus_of(tmp_path, [[[Doc(n << 64, words=n) for n in range(10)]]], bands=1)
    few, many = class_tasks(corpus, 10), class_tasks(corpus, 3)
    assert len(few) == len(exact.TABLES)
    assert len(many) == 4 * len(exact.TABLES)
    assert not {task.id for task in few} & {task.id for task in many}
    assert len({task.id for task in many}) == len(many)
