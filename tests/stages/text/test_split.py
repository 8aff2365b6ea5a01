"""A batch of texts: its arrays must be those of its texts one by one, and of each token."""

from __future__ import annotations

import itertools
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.text.batch import (
    LETTER,
    PUNCTUATION,
    SENTENCE_END,
    SENTENCE_MARKS,
    SYMBOL,
    Batch,
    split_texts,
)
from stages.text.characters import SYMBOLS, CharacterTable
from stages.text.splitters import Splitter

SPLITTERS = pytest.mark.parametrize("splitter", ["unicode", "spacy_english"])
ALPHABET = st.one_of(st.sampled_from("ab A.!?…-(1é日 \n\x00\ud800।😀"), st.characters())
TEXTS = st.lists(st.text(alphabet=ALPHABET, max_size=20), max_size=6)


def tokens_of(batch: Batch) -> list[list[str]]:
    """The tokens of each text as strings, read back from the code points."""
    spans = zip(batch.tokens.starts.tolist(), batch.tokens.ends.tolist(), strict=True)
    strings = ["".join(map(chr, batch.codes[start:end].tolist())) for start, end in spans]
    offsets = batch.tokens.offsets.tolist()
    return [strings[a:b] for a, b in itertools.pairwise(offsets)]


@SPLITTERS
@given(TEXTS)
@settings(deadline=None, max_examples=100)
def test_a_batch_holds_what_its_texts_hold_one_by_one(splitter: Splitter, texts: list[str]) -> None:
    batch = split_texts(texts, splitter)
    assert tokens_of(batch) == [tokens_of(split_texts([text], splitter))[0] for text in texts]
    assert np.diff(batch.offsets).tolist() == [len(text) for text in texts]
    assert ["".join(found) for found in tokens_of(batch)] == ["".join(t.split()) for t in texts]
    assert "".join(map(chr, batch.codes.tolist())) == "".join(texts)


@SPLITTERS
@given(TEXTS)
@settings(deadline=None, max_examples=100)
def test_kinds_follow_from_the_characters(splitter: Splitter, texts: list[str]) -> None:
    batch = split_texts(texts, splitter)
    words = [word for found in tokens_of(batch) for word in found]
    assert batch.tokens.lengths.tolist() == [len(word) for word in words]
    for word, kind in zip(words, batch.tokens.kinds.tolist(), strict=True):
        punctuation = all(unicodedata.category(char)[0] == "P" for char in word)
        assert bool(kind & SYMBOL) == all(char in SYMBOLS for char in word)
        assert bool(kind & LETTER) == any(map(str.isalpha, word))
        assert bool(kind & PUNCTUATION) == punctuation
        assert bool(kind & SENTENCE_END) == (word in SENTENCE_MARKS)


def test_the_sentence_marks_are_single_and_a_run_of_them_is_none() -> None:
    kinds = split_texts(["! !! ... 。 ។ -"]).tokens.kinds & SENTENCE_END
    assert (kinds > 0).tolist() == [True, True, True, False, True, False, False]


@given(st.lists(st.text(alphabet="abA.\x00\ud800日", min_size=1, max_size=5), max_size=8))
@settings(deadline=None, max_examples=150)
def test_hashes_name_strings_and_compose(words: list[str]) -> None:
    joined = split_texts(["".join(words)]).tokens
    tokens = split_texts(words).tokens
    one, other = (_composed(t.hashes.tolist(), t.powers.tolist()) for t in (joined, tokens))
    assert one == other
    strings = [word for found in tokens_of(split_texts(words)) for word in found]
    same = tokens.hashes[:, None] == tokens.hashes[None, :]
    assert same.tolist() == [[a == b for b in strings] for a in strings]


def _composed(hashes: list[int], powers: list[int]) -> int:
    value = 0
    for number, power in zip(hashes, powers, strict=True):
        value = (value * power + number) % 2**64
    return value


def test_hashes_are_the_same_on_every_machine() -> None:
    # (code + 1) · multiplier, folded, times falling powers of the base, modulo 2^64.
    def mixed(char: str) -> int:
        value = (ord(char) + 1) * 0xD6E8FEB86659FD93 % 2**64
        return value ^ (value >> 32)

    base = 0x9E3779B97F4A7C15
    tokens = split_texts(["ab"]).tokens
    assert tokens.hashes.tolist() == [(mixed("a") * base + mixed("b")) % 2**64]
    assert tokens.powers.tolist() == [base * base % 2**64]


@SPLITTERS
@pytest.mark.parametrize("texts", [[], [""], ["", ""], [" \n\t"], ["", " ", "a", ""]])
def test_nothing_to_split(splitter: Splitter, texts: list[str]) -> None:
    batch = split_texts(texts, splitter)
    assert len(batch.offsets) == len(batch.tokens.offsets) == len(texts) + 1
    assert tokens_of(batch) == [text.split() for text in texts]
    assert batch.offsets.dtype == batch.tokens.offsets.dtype == np.int64


@SPLITTERS
@pytest.mark.parametrize(
    ("piece", "tokens"),
    [("x", 1), ("a ", 10**6), ("(", 10**6), (":) ", 10**6), ("a@", None), ("a.b:", None)],
)
def test_a_million_times_the_same_takes_linear_time(
    splitter: Splitter, piece: str, tokens: int | None
) -> None:
    # A quadratic search would take hours.
    found = split_texts([piece * 10**6], splitter).tokens
    if tokens is not None and (splitter, piece) != ("unicode", ":) "):
        assert len(found.starts) == tokens
    assert int(found.lengths.sum()) == 10**6 * len(piece.strip())


@SPLITTERS
@pytest.mark.parametrize(("text", "tokens"), [("a", 1), ("gonna", 2), ("a's", 2), ("(", 1)])
def test_texts_without_white_space_between_them_stay_apart(
    splitter: Splitter, text: str, tokens: int
) -> None:
    batch = split_texts([text] * 5000, splitter)
    expected = 1 if splitter == "unicode" else tokens
    assert (np.diff(batch.tokens.offsets) == expected).all()
    assert len(batch.tokens.starts) == len(batch.tokens.hashes) == 5000 * expected
    assert batch.tokens.starts[::expected].tolist() == batch.offsets[:-1].tolist()


def test_what_a_table_says_does_not_depend_on_what_it_met_before() -> None:
    def digits(chars: str):
        yield 1, (place for place, char in enumerate(chars) if char.isdigit())

    whole, parts = CharacterTable(digits), CharacterTable(digits)
    codes = np.arange(0, 0x3000, dtype=np.uint32)
    expected = whole.covering(codes)
    for part in (codes[5:9], codes[::7], codes[::-1]):
        found = parts.covering(part)
        assert (found[part] == expected[part]).all()
    assert [chr(code) for code in codes[:128] if expected[code] & 1] == list("0123456789")
