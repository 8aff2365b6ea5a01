"""Prefix language modelling against its definition, piece by piece."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.pretrain.corruption import segment_bounds, split_documents, token_draws
from stages.training.token_shards import IGNORED

END, PAD = 1, 0


def packed(lengths_of_rows, width):
    """Rows of pieces with these lengths: next-token targets and piece numbers, padded."""
    targets = np.full((len(lengths_of_rows), width), IGNORED, dtype=np.int64)
    documents = np.full((len(lengths_of_rows), width), -1, dtype=np.int32)
    for row, lengths in enumerate(lengths_of_rows):
        start = 0
        for number, length in enumerate(lengths):
            targets[row, start : start + length - 1] = 100 + start + np.arange(1, length)
            documents[row, start : start + length] = number
            start += length
    return targets, documents


ROWS = st.lists(st.lists(st.integers(1, 9), max_size=4), min_size=1, max_size=4)


@settings(max_examples=80, deadline=None)
@given(lengths=ROWS, seed=st.integers(0, 99))
def test_each_piece_is_split_once_and_its_rest_alone_is_learnt(lengths, seed):
    targets, documents = packed(lengths, 40)
    learnt, prefix = split_documents(targets, documents, token_draws(targets.shape, seed, 1, 0))
    assert not prefix[documents == -1].any()
    for row, pieces in enumerate(lengths):
        start = 0
        for length in pieces:
            inside = slice(start, start + length)
            given = int(prefix[row, inside].sum())
            assert prefix[row, inside].tolist() == [True] * given + [False] * (length - given)
            assert 1 <= given <= max(length - 1, 1)
            # The last token of the prefix predicts the first behind it.
            expected = [IGNORED] * (given - 1) + targets[row, inside].tolist()[given - 1 :]
            assert learnt[row, inside].tolist() == expected
            start += length
        assert (learnt[row, start:] == IGNORED).all()


def test_every_split_point_is_as_likely():
    """4,000 pieces of 5 tokens: prefixes of 1, 2, 3 and 4, a thousand each ± 5 σ = 137."""
    targets, documents = packed([[5] * 8] * 500, 40)
    _, prefix = split_documents(targets, documents, token_draws(targets.shape, 0, 1, 0))
    sizes = prefix.reshape(500, 8, 5).sum(axis=2)
    assert np.bincount(sizes.ravel(), minlength=6) == pytest.approx([0, *[1000] * 4, 0], abs=137)


def test_pieces_are_found_by_their_number():
    starts, lengths = segment_bounds(np.array([[0, 0, 1, 1, 1], [0, 1, 1, -1, -1]]))
    assert starts.tolist() == [0, 2, 5, 6, 8]
    assert lengths.tolist() == [2, 3, 1, 2, 2]
