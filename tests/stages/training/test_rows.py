import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.training.examples import Example, pack_rows
from stages.training.token_shards import IGNORED


def example(length, first=10):
    """`length` predictions: ids first, first+1, …; all but the first learnt."""
    ids = np.arange(first, first + length + 1)
    return Example(ids, np.ones(length + 1, dtype=bool))


def test_longest_go_first_each_into_the_fullest_row_that_fits():
    """Lengths 5, 3, 4, 2 into 8: [5, 3] and [4, 2], as TRL's best-fit-decreasing packs them."""
    rows = pack_rows([example(5), example(3), example(4), example(2)], 8)
    assert rows.documents_BL.tolist() == [
        [0, 0, 0, 0, 0, 1, 1, 1],
        [2, 2, 2, 2, 3, 3, -1, -1],
    ]
    assert (rows.tokens, rows.targets) == (14, 14)


def test_targets_are_the_next_trained_tokens_of_the_same_example():
    ids = np.array([5, 6, 7, 8])
    rows = pack_rows([Example(ids, np.array([False, False, True, True]))], 8)
    assert rows.tokens_BL[0, :3].tolist() == [5, 6, 7]
    assert rows.targets_BL[0].tolist() == [IGNORED, 7, 8] + [IGNORED] * 5


def test_rows_are_only_as_wide_as_the_fullest():
    assert pack_rows([example(9), example(3)], 64).tokens_BL.shape == (1, 16)
    assert pack_rows([example(5)], 6).tokens_BL.shape == (1, 6)


def test_an_example_longer_than_the_context_is_an_error():
    with pytest.raises(ValueError, match="9 tokens, context 8"):
        pack_rows([example(9)], 8)


def test_cutting_keeps_the_first_predictions():
    cut = example(5).cut(2)
    assert (len(cut), cut.ids.tolist()) == (2, [10, 11, 12])


@settings(max_examples=60, deadline=None)
@given(lengths=st.lists(st.integers(1, 16), min_size=1, max_size=30), micro_batch=st.integers(1, 5))
def test_every_example_lies_whole_in_one_row_and_micro_batches_lose_none(lengths, micro_batch):
    examples = [example(length, first=100 * i) for i, length in enumerate(lengths)]
    parts = pack_rows(examples, 16).split(micro_batch)
    seen = {}
    for part in parts:
        assert len(part) <= micro_batch
        for row in range(len(part)):
            for document in set(part.documents_BL[row].tolist()) - {-1}:
                inside = part.documents_BL[row] == document
                assert document not in seen
                seen[document] = part.tokens_BL[row][inside].tolist()
                assert part.targets_BL[row][inside].tolist() == [t + 1 for t in seen[document]]
    assert seen == {i: e.ids[:-1].tolist() for i, e in enumerate(examples)}
