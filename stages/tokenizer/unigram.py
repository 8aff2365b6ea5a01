"""Training a unigram tokenizer over bytes (Kudo 2018, arXiv 1804.10959), to the same bytes always.

As SentencePiece does it: many frequent substrings are seeds; expectation-maximisation finds their
probabilities, with a sparse prior (exp of digamma, Liang & Klein 2007); the pieces whose loss would
cost the likelihood least are dropped, a quarter at a time. `tokenizers` trains one too, but sums in
the order of a hash table and of threads: its vocabularies differ from run to run.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tokenizers.pre_tokenizers import ByteLevel

from stages.tokenizer.exact import Floats, exp_digamma, log, total
from stages.tokenizer.lattice import (
    Trie,
    Words,
    alternatives,
    expected_counts,
    likeliest_counts,
)
from stages.tokenizer.seeds import seed_pieces

LONGEST = 48
"""Bytes of a piece: 16 characters of three bytes, SentencePiece's limit."""
SEEDS = 1_000_000
SHRINK = 0.75
ROUNDS = 2
"""Of expectation-maximisation between two prunings."""
LEAST = 0.5
"""Expected count below which a piece is dropped."""
DIGITS = 6
"""Of a score, which is a natural logarithm."""


def train_unigram(
    words: Mapping[str, int], size: int, min_frequency: int
) -> list[tuple[str, float]]:
    """At most `size` pieces with their scores, the 256 bytes first, then by falling score.

    `words` counts words in the characters that stand for bytes (`ByteLevel.alphabet`).
    """
    to_byte, from_byte = _alphabet()
    counted = _words(words, to_byte)
    pieces, counts = seed_pieces(counted, LONGEST, min_frequency, SEEDS)
    probability = counts / total(counts)
    while True:
        trie = Trie.of(pieces)
        for _ in range(ROUNDS):
            expected = expected_counts(counted, trie, probability)
            expected[:256] = np.maximum(expected[:256], LEAST)
            kept = expected >= LEAST
            weight = np.where(kept, exp_digamma(np.maximum(expected, LEAST)), 0.0)
            probability = weight / total(weight)
        if len(pieces) - 256 <= (size - 256) * 11 // 10:
            break
        order = _worth_keeping(counted, pieces, trie, probability, size)
        pieces, probability = [pieces[i] for i in order], probability[order]
    scores = log(np.where(kept, probability, 1.0))
    best = [i for i in range(256, len(pieces)) if kept[i]]
    best.sort(key=lambda i: (-scores[i], pieces[i]))
    return [
        ("".join(from_byte[byte] for byte in pieces[i]), round(float(scores[i]), DIGITS))
        for i in [*range(256), *best[: size - 256]]
    ]


def _worth_keeping(
    words: Words, pieces: list[bytes], trie: Trie, probability: Floats, size: int
) -> list[int]:
    """Indexes of what stays: bytes, and the pieces whose loss would cost most.

    A piece lost is taken to become its likeliest other segmentation wherever it is now used.
    """
    used = likeliest_counts(words, trie, probability)
    others, edges, itself = alternatives(pieces, trie, probability)
    number = np.diff(edges)
    alive = (used > 0) & itself & (number > 0)
    alive[:256] = False
    chosen = np.flatnonzero(alive)
    whole = total(used)
    own = log(used[chosen]) - log(np.array([whole]))
    sums = log(whole + used[chosen] * (number[chosen] - 1))
    instead = np.zeros(len(chosen))
    longest = int(number[chosen].max(initial=0))
    for step in range(longest):  # The sums run in one order on every machine.
        has = number[chosen] > step
        other = others[np.where(has, edges[chosen] + step, 0)]
        instead += np.where(has, log(used[other] + used[chosen]) - sums, 0.0)
    loss = used[chosen] / whole * (own - instead)
    ordered = chosen[np.argsort(-loss, kind="stable")]
    stay = max((size - 256) * 11 // 10, int((len(pieces) - 256) * SHRINK))
    return [*range(256), *sorted(ordered[:stay].tolist())]


def _words(words: Mapping[str, int], to_byte: dict[int, int]) -> Words:
    """The words as bytes, sorted."""
    ordered = sorted(words)
    data = "".join(ordered).translate(to_byte).encode("latin-1")
    starts = np.cumsum([0, *(len(word) for word in ordered)], dtype=np.int64)
    counts = np.array([words[word] for word in ordered], dtype=np.int64)
    return Words(np.frombuffer(data, dtype=np.uint8), starts, counts)


def _alphabet() -> tuple[dict[int, int], list[str]]:
    """Code point to byte, and byte to character (`bytes_to_unicode` of GPT-2).

    Printable bytes stand for themselves; the others follow from code point 256 on, in order.
    """
    alphabet = ByteLevel.alphabet()
    later = sorted(character for character in alphabet if ord(character) >= 256)
    missing = iter(later)
    characters = [chr(b) if chr(b) in alphabet else next(missing) for b in range(256)]
    return {ord(character): byte for byte, character in enumerate(characters)}, characters
