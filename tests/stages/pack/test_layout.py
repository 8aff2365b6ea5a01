"""Layouts: every token once, nothing overlaps, best fit cuts nothing that fits and fills."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.pack.layout import (
    STRATEGIES,
    add,
    best_fit,
    best_fit_crop,
    concatenate,
    empty_set,
    nearest,
    remove,
)

LENGTHS = st.lists(st.integers(0, 100), max_size=60)
WHOLE = ["best_fit", "concatenate"]


def ints(values):
    return np.array(values, dtype=np.int64)


def occupied(layout, length):
    """(sequence, column) → (document, token) for every token placed."""
    cells = {}
    for sequence, start, size, document, first in zip(
        layout.sequence, layout.start, layout.length, layout.document, layout.document_start,
        strict=True,
    ):  # fmt: skip
        for offset in range(size):
            cell = (int(sequence), int(start) + offset)
            assert cell not in cells, "two tokens in one place"
            assert cell[1] < length
            cells[cell] = (int(document), int(first) + offset)
    return cells


@pytest.mark.parametrize("strategy", WHOLE)
@settings(max_examples=80, deadline=None)
@given(lengths=LENGTHS, length=st.integers(1, 40))
def test_every_token_of_every_document_has_exactly_one_place(strategy, lengths, length):
    layout = STRATEGIES[strategy](ints(lengths), length)
    cells = occupied(layout, length)
    expected = [(d, t) for d, size in enumerate(lengths) for t in range(size)]
    assert sorted(cells.values()) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=80, deadline=None)
@given(lengths=LENGTHS, length=st.integers(1, 40))
def test_sequences_are_filled_from_the_left_and_their_pieces_come_in_order(
    strategy, lengths, length
):
    layout = STRATEGIES[strategy](ints(lengths), length)
    assert layout.used().sum() == layout.length.sum()
    moved = layout.ordered(ints(range(layout.sequences))[::-1].copy())
    assert (np.diff(moved.sequence) >= 0).all()
    free = [0] * layout.sequences
    for sequence, start, size in zip(moved.sequence, moved.start, moved.length, strict=True):
        assert start == free[sequence], "a piece stands where the one before ends"
        free[sequence] += size
    assert all(0 < used <= length for used in free)


def decreasing(lengths, capacity):
    """Spaces left by best-fit decreasing, by looking at every open bin for every item."""
    spaces = []
    for length in sorted(lengths, reverse=True):
        fitting = [n for n, space in enumerate(spaces) if space >= length]
        if fitting:
            spaces[min(fitting, key=spaces.__getitem__)] -= length
        else:
            spaces.append(capacity - length)
    return sorted(spaces)


@settings(max_examples=150, deadline=None)
@given(lengths=st.lists(st.integers(0, 200), max_size=80), length=st.integers(1, 200))
def test_best_fit_leaves_the_spaces_of_a_plain_one(lengths, length):
    layout = best_fit(ints(lengths), length)
    full = sum(size // length for size in lengths)
    rest = [size % length for size in lengths if size % length]
    assert sorted(length - layout.used()) == sorted([0] * full + decreasing(rest, length))
    pieces = np.bincount(layout.document, minlength=len(lengths))
    assert pieces.tolist() == [-(-size // length) for size in lengths], "nothing that fits is cut"


def test_best_fit_takes_the_fullest_sequence_with_room():
    """By hand: 6 | 5 open two sequences; 4 goes where 4 is left, 3 and 2 where 5 is left."""
    layout = best_fit(ints([2, 6, 3, 5, 4]), 10)
    by_document = dict(zip(layout.document.tolist(), layout.sequence.tolist(), strict=True))
    assert by_document == {1: 0, 4: 0, 3: 1, 2: 1, 0: 1}
    assert layout.sequences == 2


def test_a_long_document_gives_full_sequences_and_one_rest():
    layout = best_fit(ints([25]), 10)
    assert layout.length.tolist() == [10, 10, 5]
    assert layout.document_start.tolist() == [0, 10, 20]


def test_concatenate_cuts_at_every_sequence_end():
    layout = concatenate(ints([4, 9, 2]), 5)
    assert layout.sequence.tolist() == [0, 0, 1, 2, 2]
    assert layout.start.tolist() == [0, 4, 0, 0, 3]
    assert layout.length.tolist() == [4, 1, 5, 3, 2]
    assert layout.document.tolist() == [0, 1, 1, 1, 2]
    assert layout.document_start.tolist() == [0, 0, 1, 6, 0]


def cropped(lengths, capacity):
    """Lengths of the pieces, sequence by sequence, by looking at all that wait each time."""
    waiting, rows, row = sorted(min(size, capacity) for size in lengths if size), [], []
    while waiting:
        room = capacity - sum(row)
        fitting = [size for size in waiting if size <= room]
        taken = max(fitting) if fitting else waiting[0]
        waiting.remove(taken)
        row.append(min(taken, room))
        if sum(row) == capacity:
            rows, row = [*rows, row], []
    return [*rows, row] if row else rows


@settings(max_examples=150, deadline=None)
@given(lengths=LENGTHS, length=st.integers(1, 60))
def test_crop_fills_every_sequence_but_the_last_with_beginnings(lengths, length):
    layout = best_fit_crop(ints(lengths), length)
    assert (layout.used()[:-1] == length).all()
    assert not layout.document_start.any(), "no sequence begins inside a document"
    assert sorted(layout.document.tolist()) == [n for n, size in enumerate(lengths) if size]
    rows = [[] for _ in range(layout.sequences)]
    for sequence, size, document in zip(
        layout.sequence, layout.length, layout.document, strict=True
    ):
        rows[sequence].append(int(size))
        if size < lengths[document]:
            assert sum(rows[sequence]) == length, "what is cropped reaches the sequence's end"
    assert rows == cropped(lengths, length)


@pytest.mark.parametrize("seed", [0, 1])
def test_best_fit_fills_nearly_everything(seed):
    """Log-normal lengths with median 403 stand for web text."""
    lengths = np.random.default_rng(seed).lognormal(6, 1, 20_000).astype(np.int64) + 2
    layout = best_fit(lengths, 2048)
    assert lengths.sum() / (layout.sequences * 2048) > 0.999


def test_crop_loses_little_but_the_tails_of_long_documents():
    lengths = np.random.default_rng(0).lognormal(6, 1, 20_000).astype(np.int64) + 2
    tails = np.maximum(lengths - 2048, 0).sum()
    lost = lengths.sum() - best_fit_crop(lengths, 2048).length.sum()
    assert tails <= lost < tails + 0.01 * lengths.sum()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("length", [2**16, 2**20, 2**24])
def test_long_sequences_are_laid_out_as_well(strategy, length):
    lengths = np.random.default_rng(0).lognormal(9, 3, 3_000).astype(np.int64) + 2
    layout = STRATEGIES[strategy](lengths, length)
    lost = np.maximum(lengths - length, 0).sum() if strategy == "best_fit_crop" else 0
    assert lengths.sum() - 2 * lost <= layout.length.sum() <= lengths.sum()
    assert layout.used().max() <= length


def test_reordering_keeps_the_pieces_of_each_sequence():
    layout = best_fit(ints([2, 6, 3, 5, 4]), 10)
    moved = layout.ordered(ints([1, 0]))
    assert moved.sequence.tolist() == [0, 0, 0, 1, 1]
    assert sorted(moved.document[:3].tolist()) == [0, 2, 3]
    assert moved.start.tolist() == [0, 5, 8, 0, 6]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), bound=st.sampled_from([1, 63, 64, 65, 4095, 4096, 4097, 300_000]))
def test_a_tree_of_bools_is_a_set(data, bound):
    tree = empty_set(bound)
    members: set[int] = set()
    places = st.integers(0, bound - 1)
    for member in data.draw(st.lists(places, max_size=40)):
        if member in members:
            remove(tree, member)
            members.discard(member)
        else:
            add(tree, member)
            members.add(member)
        asked = data.draw(places)
        assert nearest(tree, asked, True) == min(
            (one for one in members if one >= asked), default=-1
        )
        assert nearest(tree, asked, False) == max(
            (one for one in members if one <= asked), default=-1
        )
    for member in members:
        remove(tree, member)
    assert not tree.any()
