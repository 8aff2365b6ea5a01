"""Layouts: every token once, nothing overlaps, best fit cuts nothing that fits and fills."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.pack.layout import STRATEGIES, best_fit, concatenate

LENGTHS = st.lists(st.integers(1, 100), max_size=60)


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


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=80, deadline=None)
@given(lengths=LENGTHS, length=st.integers(1, 40))
def test_every_token_of_every_document_has_exactly_one_place(strategy, lengths, length):
    layout = STRATEGIES[strategy](np.array(lengths, dtype=np.int64), length)
    cells = occupied(layout, length)
    expected = [(d, t) for d, size in enumerate(lengths) for t in range(size)]
    assert sorted(cells.values()) == expected
    for sequence in range(layout.sequences):
        columns = sorted(column for row, column in cells if row == sequence)
        assert columns == list(range(len(columns))), "padding stands at the right only"
        assert columns, "no sequence is empty"


@settings(max_examples=80, deadline=None)
@given(lengths=LENGTHS, length=st.integers(1, 40))
def test_best_fit_cuts_no_document_that_fits(lengths, length):
    layout = best_fit(np.array(lengths, dtype=np.int64), length)
    pieces = np.bincount(layout.document, minlength=len(lengths))
    assert pieces.tolist() == [-(-size // length) for size in lengths]


def test_best_fit_takes_the_fullest_sequence_with_room():
    """By hand: 6 | 5 open two sequences; 4 goes where 4 is left, 3 and 2 where 5 is left."""
    layout = best_fit(np.array([2, 6, 3, 5, 4]), 10)
    by_document = dict(zip(layout.document.tolist(), layout.sequence.tolist(), strict=True))
    assert by_document == {1: 0, 4: 0, 3: 1, 2: 1, 0: 1}
    assert layout.sequences == 2


def test_a_long_document_gives_full_sequences_and_one_rest():
    layout = best_fit(np.array([25]), 10)
    assert layout.length.tolist() == [10, 10, 5]
    assert layout.document_start.tolist() == [0, 10, 20]


def test_concatenate_cuts_at_every_sequence_end():
    layout = concatenate(np.array([4, 9, 2]), 5)
    assert layout.sequence.tolist() == [0, 0, 1, 2, 2]
    assert layout.start.tolist() == [0, 4, 0, 0, 3]
    assert layout.length.tolist() == [4, 1, 5, 3, 2]
    assert layout.document.tolist() == [0, 1, 1, 1, 2]
    assert layout.document_start.tolist() == [0, 0, 1, 6, 0]


def test_best_fit_fills_nearly_everything():
    """Log-normal lengths with median 403 stand for web text."""
    lengths = np.random.default_rng(0).lognormal(6, 1, 20_000).astype(np.int64) + 2
    layout = best_fit(lengths, 2048)
    assert lengths.sum() / (layout.sequences * 2048) > 0.999


def test_reordering_keeps_the_pieces_of_each_sequence():
    layout = best_fit(np.array([2, 6, 3, 5, 4]), 10)
    moved = layout.ordered(np.array([1, 0]))
    assert moved.sequence.tolist() == [0, 0, 0, 1, 1]
    assert sorted(moved.document[:3].tolist()) == [0, 2, 3]
    assert moved.start.tolist() == [0, 5, 8, 0, 6]
