"""The batch of tokens: what is looked up must equal what is computed word by word."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.text.punctuation import SYMBOLS
from stages.text.tokens import Vocabulary

WORD = st.text(alphabet=st.sampled_from("abA.#…1é日\x00\ud800"), min_size=1, max_size=5)
BATCH = st.lists(st.lists(WORD, max_size=8), max_size=6)


@given(st.lists(BATCH, max_size=3), st.integers(0, 5))
@settings(deadline=None, max_examples=150)
def test_attributes_are_those_of_the_words_for_any_history(
    batches: list[list[list[str]]], limit: int
) -> None:
    vocabulary = Vocabulary(limit)
    for texts in batches:
        tokens = vocabulary.tokens(texts)
        words = [word for text in texts for word in text]
        assert np.diff(tokens.offsets).tolist() == [len(text) for text in texts]
        assert tokens.lengths.tolist() == [len(word) for word in words]
        assert tokens.symbols.tolist() == [all(c in SYMBOLS for c in word) for word in words]
        assert tokens.alphabetic.tolist() == [any(map(str.isalpha, word)) for word in words]
        same_ids = tokens.ids[:, None] == tokens.ids[None, :]
        assert same_ids.tolist() == [[a == b for b in words] for a in words]
        assert tokens.sums(tokens.lengths).tolist() == [len("".join(text)) for text in texts]


@given(st.lists(WORD, min_size=1, max_size=6), st.lists(WORD, min_size=1, max_size=6))
@settings(deadline=None, max_examples=150)
def test_string_hashes_compose(first: list[str], second: list[str]) -> None:
    def concatenated(words: list[str]) -> int:
        tokens = Vocabulary().tokens([words])
        value = 0
        for power, number in zip(tokens.powers.tolist(), tokens.hashes.tolist(), strict=True):
            value = (value * power + number) % 2**64
        return value

    assert concatenated(first) == concatenated(["".join(first)])
    assert (concatenated(first) == concatenated(second)) == ("".join(first) == "".join(second))
