"""The unigram trainer against enumeration by hand, and against the library's own trainer."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, trainers
from tokenizers.pre_tokenizers import ByteLevel

from stages.tokenizer import unigram
from stages.tokenizer.training import train
from stages.tokenizer.unigram import (
    Trie,
    Words,
    alternatives,
    exp_digamma,
    expected_counts,
    likeliest_counts,
    log,
    seed_pieces,
    train_unigram,
)
from stages.tokens.pre_tokenizers import build_pre_tokenizer, count_words

EULER = 0.5772156649015329
WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=9), st.integers(1, 50), min_size=1)
PIECES = st.sets(st.text("abc", min_size=2, max_size=4), max_size=12)


def as_words(counts: dict[str, int]) -> Words:
    ordered = sorted(counts)
    data = np.frombuffer("".join(ordered).encode(), dtype=np.uint8)
    starts = np.cumsum([0, *(len(word) for word in ordered)], dtype=np.int64)
    return Words(data, starts, np.array([counts[word] for word in ordered], dtype=np.int64))


def segmentations(word: str, pieces: dict[str, float]) -> Iterator[tuple[list[str], float]]:
    if not word:
        yield [], 1.0
    for size in range(1, len(word) + 1):
        if pieces.get(word[:size], 0.0) > 0:
            for rest, likelihood in segmentations(word[size:], pieces):
                yield [word[:size], *rest], pieces[word[:size]] * likelihood


def model_of(longer: set[str], seed: int) -> dict[str, float]:
    names = ["a", "b", "c", *sorted(longer)]
    weights = np.random.default_rng(seed).uniform(0.01, 1, len(names))
    return dict(zip(names, (weights / weights.sum()).tolist(), strict=True))


@settings(max_examples=150, deadline=None)
@given(words=WORDS, longer=PIECES, seed=st.integers(0, 1000))
def test_counts_are_those_of_all_segmentations_one_by_one(words, longer, seed):
    pieces = model_of(longer, seed)
    expected, likeliest = Counter[str](), Counter[str]()
    for word, count in words.items():
        found = list(segmentations(word, pieces))
        total = sum(likelihood for _, likelihood in found)
        for parts, likelihood in found:
            for part in parts:
                expected[part] += count * likelihood / total
        for part in max(found, key=lambda one: one[1])[0]:
            likeliest[part] += count
    trie = Trie.from_pieces([piece.encode() for piece in pieces])
    probability = np.array(list(pieces.values()))
    given_words = as_words(words)
    assert expected_counts(given_words, trie, probability) == pytest.approx(
        [expected[piece] for piece in pieces], rel=1e-12, abs=1e-12
    )
    assert likeliest_counts(given_words, trie, probability).tolist() == [
        likeliest[piece] for piece in pieces
    ]


@settings(max_examples=100, deadline=None)
@given(longer=PIECES, seed=st.integers(0, 1000))
def test_an_alternative_is_the_likeliest_without_the_piece_itself(longer, seed):
    pieces = model_of(longer, seed)
    names = list(pieces)
    raw = [piece.encode() for piece in pieces]
    found, edges, itself = alternatives(raw, Trie.from_pieces(raw), np.array(list(pieces.values())))
    for index, piece in enumerate(names):
        others = [one for one in segmentations(piece, pieces) if one[0] != [piece]]
        parts = [names[i] for i in found[edges[index] : edges[index + 1]]]
        if not others:
            assert parts == []
            assert itself[index]
            continue
        best = max(others, key=lambda one: one[1])
        assert sorted(parts) == sorted(best[0])
        assert itself[index] == (best[1] < pieces[piece])


def test_no_word_is_too_long_or_too_unlikely_for_a_probability():
    """2 ** -40 a byte over 3,000 bytes: 2 ** -120,000, where a double ends at 2 ** -1,074."""
    raw = [b"a", b"b", b"ab"]
    probability = np.array([2.0**-40, 2.0**-40, 2.0**-81])
    words = Words(
        np.frombuffer(b"ab" * 1500, dtype=np.uint8),
        np.array([0, 3000], dtype=np.int64),
        np.array([7], dtype=np.int64),
    )
    # "ab" is half as likely as "a", "b": of 1,500 places a third, with a count of 7.
    assert expected_counts(words, Trie.from_pieces(raw), probability) == pytest.approx(
        [7000, 7000, 3500]
    )
    assert likeliest_counts(words, Trie.from_pieces(raw), probability).tolist() == [10500, 10500, 0]


@settings(max_examples=100, deadline=None)
@given(words=WORDS, least=st.integers(1, 20))
def test_seeds_are_the_frequent_substrings_that_branch(words, least):
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for start in range(len(word)):
            for stop in range(start + 1, min(len(word), start + 5) + 1):
                counts[word[start:stop]] += count
    wanted = {
        text: count
        for text, count in counts.items()
        if 2 <= len(text) <= 4
        and count >= least
        and all(counts[text + letter] < count for letter in "abc")
    }
    pieces, found = seed_pieces(as_words(words), 4, least, 1000)
    assert len(pieces) == len(set(pieces)) == len(found)
    assert pieces[:256] == [bytes([byte]) for byte in range(256)]
    assert found[ord("a")] == max(1, counts["a"])
    assert {p.decode(): int(c) for p, c in zip(pieces[256:], found[256:], strict=True)} == wanted
    worth = [count * len(piece) for piece, count in zip(pieces[256:], found[256:], strict=True)]
    assert worth == sorted(worth, reverse=True)


def test_logarithms_and_digamma_are_right_without_a_library():
    x = np.array([1e-300, 3e-9, 0.1, 0.5, 0.7, 0.75, 1.0, 1.5, 2.0, 12345.678, 1e12])
    assert log(x) == pytest.approx([math.log(one) for one in x], rel=1e-15, abs=1e-15)
    # psi(1/2) = -gamma - 2 ln 2, psi(1) = -gamma, psi(x + 1) = psi(x) + 1 / x.
    digamma = [-EULER - 2 * math.log(2), -EULER]
    for _ in range(40):
        digamma += [digamma[-2] + 2 / (len(digamma) - 1), digamma[-1] + 2 / len(digamma)]
    halves = np.arange(1, len(digamma) + 1) / 2
    assert exp_digamma(halves) == pytest.approx([math.exp(one) for one in digamma], rel=1e-12)


def nats(tokenizer: Tokenizer, texts: list[str]) -> tuple[int, float]:
    """Tokens of the texts, and their negative log-likelihood under scores that sum to one."""
    pieces = [
        (piece, score)
        for piece, score in json.loads(tokenizer.to_str())["model"]["vocab"]
        if not piece.startswith("<|")
    ]
    tokenizer.encode_special_tokens = True
    scores, mass = dict(pieces), sum(math.exp(score) for _, score in pieces)
    found = [tokenizer.encode(text, add_special_tokens=False).tokens for text in texts]
    used = [scores[token] for tokens in found for token in tokens]
    return len(used), len(used) * math.log(mass) - sum(used)


def test_texts_are_likelier_than_under_the_library_s_own_training_and_shorter():
    """15 % fewer nats and 22 % fewer tokens: it takes seeds by words of any frequency alike."""
    docs = Path(__file__).resolve().parents[3] / "docs"
    texts = [path.read_text(encoding="utf-8") for path in sorted(docs.rglob("*.md"))]
    ours = train(
        iter(texts),
        algorithm="unigram",
        vocabulary_size=2016,
        pre_tokenizer="llama-bpe",
        min_frequency=2,
    )
    theirs = Tokenizer(models.Unigram())
    theirs.pre_tokenizer = build_pre_tokenizer("llama-bpe")
    trainer = trainers.UnigramTrainer(
        vocab_size=2000, show_progress=False, initial_alphabet=ByteLevel.alphabet()
    )
    theirs.train_from_iterator(texts, trainer=trainer)
    (own_tokens, own_nats), (tokens, others_nats) = nats(ours, texts), nats(theirs, texts)
    assert own_nats < 0.95 * others_nats
    assert own_tokens < 0.95 * tokens


def test_words_are_counted_as_the_pre_tokenizer_leaves_them():
    words = count_words(iter(["a b a", "a"]), build_pre_tokenizer("gpt-2"))
    assert words == {"a": 2, "Ġb": 1, "Ġa": 1}


def test_pieces_are_the_bytes_then_the_likeliest():
    pieces = train_unigram({"hello": 50, "hell": 30, "low": 20, "Ġlow": 40}, 259, 2)
    alphabet = [piece for piece, _ in pieces[:256]]
    assert sorted(alphabet) == sorted(ByteLevel.alphabet())
    assert (alphabet[0], alphabet[32], alphabet[97], alphabet[255]) == ("Ā", "Ġ", "a", "ÿ")
    longer = pieces[256:]
    assert [score for _, score in longer] == sorted((s for _, s in longer), reverse=True)
    assert [piece for piece, _ in longer] == ["low", "hello", "hell"]
    assert all(score < 0 for _, score in pieces)


def test_order_of_words_changes_no_bit(monkeypatch):
    """Rounding of scores would hide a sum that ran in another order."""
    monkeypatch.setattr(unigram, "DIGITS", 17)
    draw = random.Random(4)
    words = {
        "".join(draw.choices("abcdeéĠ", k=draw.randint(1, 12))): draw.randint(1, 99)
        for _ in range(3000)
    }
    shuffled = list(words.items())
    draw.shuffle(shuffled)
    assert train_unigram(dict(shuffled), 600, 2) == train_unigram(words, 600, 2)


def test_strings_that_are_too_rare_become_no_token():
    pieces = train_unigram({"once": 1, "twice": 2}, 300, 2)
    assert not {"once", "onc", "on"} & {piece for piece, _ in pieces}
