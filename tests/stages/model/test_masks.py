"""The rule of what a token sees, against one written out for single pairs."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.model.attention import Visibility


def sees(documents, prefix, window, query, key):
    """The rule in words: same document, key not later or of a prefix, within the window."""
    same = documents is None or documents[query] == documents[key]
    ahead = key > query and not (prefix is not None and prefix[key])
    near = window is None or abs(query - key) < window
    return same and not ahead and near


@st.composite
def rows(draw):
    length = draw(st.integers(1, 12))
    pieces = draw(st.lists(st.integers(1, 5), min_size=length, max_size=length))
    documents = [piece for piece, size in enumerate(pieces) for _ in range(size)][:length]
    padding = draw(st.integers(0, length - 1))
    documents = documents[: length - padding] + [-1] * padding
    prefix = draw(st.lists(st.booleans(), min_size=length, max_size=length))
    return (
        documents if draw(st.booleans()) else None,
        prefix if draw(st.booleans()) else None,
        draw(st.one_of(st.none(), st.integers(1, 14))),
        length,
    )


@settings(max_examples=150, deadline=None)
@given(rows=rows())
def test_the_dense_mask_follows_the_rule_for_every_pair(rows):
    documents, prefix, window, length = rows
    visible = Visibility.from_batch(
        torch.zeros(1, length),
        None if documents is None else torch.tensor([documents]),
        None if prefix is None else torch.tensor([prefix]),
    )
    visible = Visibility(**{**vars(visible), "window": window})
    expected = [
        [sees(documents, prefix, window, query, key) for key in range(length)]
        for query in range(length)
    ]
    assert visible.dense()[0, 0].tolist() == expected
    assert all(any(row) for row in expected), "a row of the softmax is empty"
    if visible.is_causal:
        assert torch.equal(visible.dense()[0, 0], torch.ones(length, length).tril().bool())


def test_each_row_of_a_batch_has_its_own_documents_and_prefix():
    documents_BL = torch.tensor([[0, 0, 1], [0, 1, 1]])
    prefix_BL = torch.tensor([[False, True, False], [False, False, True]])
    seen = Visibility.from_batch(documents_BL, documents_BL, prefix_BL).dense()
    assert seen.shape == (2, 1, 3, 3)
    assert seen[:, 0].int().tolist() == [
        [[1, 1, 0], [1, 1, 0], [0, 0, 1]],
        [[1, 0, 0], [0, 1, 1], [0, 1, 1]],
    ]


def test_a_window_no_shorter_than_the_row_bounds_nothing():
    tokens_BL = torch.zeros(1, 4)
    plain = Visibility.from_batch(tokens_BL, None, None)
    assert Visibility(**{**vars(plain), "window": 4}).is_causal
    assert not Visibility(**{**vars(plain), "window": 3}).is_causal
