"""What the benchmark of tokens measures against is sound: the plain layout, the cuts, the texts."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.pack.layout import best_fit as compiled
from stages.pack.layout import concatenate
from tests.benchmarks.tokens_corpus import Texts, with_words_of_its_own
from tests.benchmarks.tokens_layout import best_fit, cut_by_chunks
from tests.peers.corpus import DATA

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS)
def test_the_plain_layout_opens_as_many_bins_as_the_compiled_one(lengths: list[int]) -> None:
    bins, offsets = best_fit(lengths, 40)
    used: dict[int, list[tuple[int, int]]] = {}
    for place, offset, length in zip(bins, offsets, lengths, strict=True):
        used.setdefault(place, []).append((offset, offset + length))
    for spans in used.values():
        ends = [end for _, end in sorted(spans)]
        assert [start for start, _ in sorted(spans)] == [0, *ends[:-1]]
        assert ends[-1] <= 40
    assert len(used) == compiled(np.array(lengths), 40).sequences


@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS, capacity=st.integers(1, 60))
def test_chunks_cut_the_documents_that_concatenate_cuts(lengths: list[int], capacity: int) -> None:
    layout = concatenate(np.array(lengths), capacity)
    pieces = np.bincount(layout.document, minlength=len(lengths))
    fitting = np.array(lengths) <= capacity
    if fitting.any():
        assert cut_by_chunks(np.array(lengths), capacity) == (pieces[fitting] > 1).mean()


def test_one_word_in_fifty_is_a_new_one() -> None:
    words = [f"{a}{b}" for a in ("alpha", "bravo", "delta") for b in "abcdefghijklmnopqrstuvwxyz"]
    text = " ".join(random.Random(1).choices(words, k=1_000))
    changed = with_words_of_its_own(text, random.Random(2)).split(" ")
    assert len(changed) == 1_000
    differ = [new for old, new in zip(text.split(" "), changed, strict=True) if old != new]
    assert 15 <= len(differ) <= 20  # Twenty are joined; some of them with their own other half.


@pytest.mark.skipif(not DATA.exists(), reason="no ../shared/data")
def test_documents_are_those_of_their_number(tmp_path: Path) -> None:
    one, two, other = Texts(tmp_path), Texts(tmp_path), Texts(tmp_path, seed=2)
    first = [one.document(number) for number in range(300)]
    assert two.document(299) == first[299]
    assert other.document(299) != first[299]
    assert len({document["text"] for document in first}) == 300
    assert 1_500 < np.median([len(document["text"]) for document in first]) < 2_600
