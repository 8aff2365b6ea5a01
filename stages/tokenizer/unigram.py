"""Training a unigram tokenizer over bytes (Kudo 2018, arXiv 1804.10959): equal input, equal bytes.

As SentencePiece does it: many frequent substrings are seeds; expectation-maximisation finds
their probabilities, with a sparse prior (exp of digamma, Liang & Klein 2007); the pieces whose
loss would cost the likelihood least are dropped, a quarter at a time. `tokenizers` trains one
too, but sums in the order of a hash table and of threads: its vocabularies differ from run to
run. SentencePiece itself (0.2.3, one thread, which makes it repeatable) was tried on 27,000
distinct words of Markdown and Python, 4,096 pieces: held-out text takes 12 % more tokens and
2.7 % more nats than with this trainer, and its pieces depend on the order of the words.

The mathematical libraries of two systems, or one on two processors, differ in the last bit of
exp and log, and a vocabulary that is pruned by rank would not be the same: functions of positive
numbers are computed from +, -, * and / alone. A probability is a mantissa and an exponent of
two, so that no word is too long for it and only products and sums are computed. Pieces are found
by a trie in a hash table: the child of a node by a byte.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.tokens.vocabulary import make_byte_alphabet

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LN2 = 0.6931471805599453
_ROOT_HALF = 0.7071067811865476
_FROM = 12.0


def log(x: Floats) -> Floats:
    """Natural logarithm, to about 1e-15: 2 artanh((m - 1) / (m + 1)) + e ln 2 of x = m 2**e."""
    mantissa, exponent = np.frexp(x)
    low = mantissa < _ROOT_HALF
    mantissa, exponent = np.where(low, 2 * mantissa, mantissa), exponent - low
    t = (mantissa - 1) / (mantissa + 1)
    square, series = t * t, np.zeros_like(t)
    for power in range(25, 0, -2):
        series = series * square + 1 / power
    return np.asarray(exponent * _LN2 + 2 * t * series, dtype=np.float64)


def exp_digamma(x: Floats) -> Floats:
    """exp(psi(x)) for x >= 0.4, to about 1e-13.

    psi(x) = psi(x + 1) - 1 / x until x is large; there exp(psi(z + 1/2)) = z + 1/(24 z) - 37/(5760
    z^3) + 10313/(2903040 z^5) - 5509121/(1393459200 z^7) + ...
    """
    large, lowered = np.array(x, dtype=np.float64), np.zeros(len(x))
    for _ in range(12):
        small = large < _FROM
        lowered += np.where(small, 1 / large, 0.0)
        large += small
    z = large - 0.5
    inverse = 1 / (z * z)
    last = 10313 / 2903040 - inverse * (5509121 / 1393459200)
    series = 1 / 24 - inverse * (37 / 5760 - inverse * last)
    return np.asarray((z + series / z) * _exp_minus(lowered), dtype=np.float64)


def _exp_minus(x: Floats) -> Floats:
    """exp(-x) for 0 <= x < 8: Taylor's series of the 64th root, squared six times."""
    root, series = -x / 64, np.ones_like(x)
    for factor in range(14, 0, -1):
        series = 1 + series * root / factor
    for _ in range(6):
        series = series * series
    return series


_POWERS = np.array([math.ldexp(1.0, power) for power in range(-1074, 65)])
"""2 ** (k - 1074)."""


@dataclass(frozen=True)
class Words:
    """Distinct words end to end: `data` [bytes], `starts` [words + 1], `counts` [words]."""

    data: NDArray[np.uint8]
    starts: Ints
    counts: Ints

    @classmethod
    def from_pieces(cls, pieces: Sequence[bytes]) -> Words:
        """Each piece as a word that occurs once."""
        starts = np.cumsum([0, *(len(piece) for piece in pieces)], dtype=np.int64)
        data = np.frombuffer(b"".join(pieces), dtype=np.uint8)
        return cls(data, starts, np.ones(len(pieces), dtype=np.int64))


@dataclass(frozen=True)
class Trie:
    """Nodes by (parent, byte) in an open hash table; `piece` of a node, or -1."""

    keys: Ints
    nodes: Ints
    piece: Ints

    @classmethod
    def from_pieces(cls, pieces: list[bytes]) -> Trie:
        """The trie of `pieces`, by their index."""
        words = Words.from_pieces(pieces)
        size = 1 << max(8, (3 * len(words.data) // 2).bit_length())
        keys, nodes = np.full(size, -1, dtype=np.int64), np.zeros(size, dtype=np.int64)
        piece = np.full(len(words.data) + 1, -1, dtype=np.int64)
        used = _insert(words.data, words.starts, keys, nodes, piece)
        return cls(keys, nodes, piece[:used].copy())


def expected_counts(words: Words, trie: Trie, probability: Floats) -> Floats:
    """[pieces] how often each is expected in `words` under the unigram model (Kudo 2018)."""
    result = np.zeros(len(probability), dtype=np.float64)
    _expect(_POWERS, result, *_arguments(words, trie, probability))
    return result


def likeliest_counts(words: Words, trie: Trie, probability: Floats) -> Floats:
    """[pieces] how often each comes in the likeliest segmentations of `words`."""
    result = np.zeros(len(probability), dtype=np.float64)
    _count_likeliest(result, *_arguments(words, trie, probability))
    return result


def alternatives(
    pieces: list[bytes], trie: Trie, probability: Floats
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """The likeliest segmentation of each piece without itself, and whether itself is likelier.

    Piece i's lies in the first array from second[i] to second[i + 1].
    """
    words = Words.from_pieces(pieces)
    segmentation = np.zeros(len(words.data), dtype=np.int64)
    edges = np.zeros(len(pieces) + 1, dtype=np.int64)
    itself = np.zeros(len(pieces), dtype=np.bool_)
    _alternatives(segmentation, edges, itself, *_arguments(words, trie, probability))
    return segmentation, edges, itself


def _arguments(words: Words, trie: Trie, probability: Floats) -> Any:
    """What the kernels take: words, trie, probabilities, and an array as long as a lattice."""
    mantissa, exponent = np.frexp(probability)
    longest = int(np.diff(words.starts).max(initial=0))
    size = np.zeros(longest + 1, dtype=np.int64)
    return (
        words.data, words.starts, words.counts,
        trie.keys, trie.nodes, trie.piece, mantissa, exponent.astype(np.int64), size,
    )  # fmt: skip


@kernel
def _slot(key, keys):  # type: ignore[no-untyped-def]
    """Where `key` lies in the table, or the free place where it would."""
    mask = np.uint64(len(keys) - 1)
    at = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)
    at = at & mask
    while keys[at] != -1 and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return at


@kernel
def _insert(data, starts, keys, nodes, piece):  # type: ignore[no-untyped-def]
    used = 1
    for index in range(len(starts) - 1):
        node = 0
        for place in range(starts[index], starts[index + 1]):
            key = node * 256 + np.int64(data[place])
            at = _slot(key, keys)
            if keys[at] == -1:
                keys[at] = key
                nodes[at] = used
                used += 1
            node = nodes[at]
        piece[node] = index
    return used


@kernel
def _edges(data, start, stop, keys, nodes, piece, mantissa, edges):  # type: ignore[no-untyped-def]
    """Write (from, to, piece) of all pieces in the word, by `from`; how many, -1: no room."""
    number = 0
    for first in range(stop - start):
        node = 0
        for place in range(first, stop - start):
            key = node * 256 + np.int64(data[start + place])
            at = _slot(key, keys)
            if keys[at] == -1:
                break
            node = nodes[at]
            index = piece[node]
            if index >= 0 and mantissa[index] > 0.0:
                if number == len(edges):
                    return -1
                edges[number, 0] = first
                edges[number, 1] = place + 1
                edges[number, 2] = index
                number += 1
    return number


@kernel
def _all_edges(data, start, stop, keys, nodes, piece, mantissa, edges):  # type: ignore[no-untyped-def]
    """As `_edges`, with as much room as it takes."""
    number = _edges(data, start, stop, keys, nodes, piece, mantissa, edges)
    while number < 0:
        edges = np.empty((2 * len(edges), 3), dtype=np.int64)
        number = _edges(data, start, stop, keys, nodes, piece, mantissa, edges)
    return number, edges


@kernel
def _add(mantissas, exponents, at, m, e, powers):  # type: ignore[no-untyped-def]
    """mantissas[at] * 2 ** exponents[at] += m * 2 ** e."""
    if mantissas[at] == 0.0:
        mantissas[at], exponents[at] = m, e
    elif e <= exponents[at]:
        mantissas[at] += m * powers[max(0, e - exponents[at] + 1074)]
    else:
        mantissas[at] = mantissas[at] * powers[max(0, exponents[at] - e + 1074)] + m
        exponents[at] = e


@kernel
def _expect(  # type: ignore[no-untyped-def]
    powers, result, data, starts, counts, keys, nodes, piece, mantissa, exponent, size
):
    am, ae = np.empty(len(size)), np.empty(len(size), dtype=np.int64)
    bm, be = np.empty(len(size)), np.empty(len(size), dtype=np.int64)
    edges = np.empty((4096, 3), dtype=np.int64)
    for word in range(len(counts)):
        start, stop = starts[word], starts[word + 1]
        length = stop - start
        number, edges = _all_edges(data, start, stop, keys, nodes, piece, mantissa, edges)
        am[: length + 1], ae[: length + 1] = 0.0, 0
        bm[: length + 1], be[: length + 1] = 0.0, 0
        am[0], bm[length] = 1.0, 1.0
        last = -1
        for edge in range(number):
            i, j, p = edges[edge, 0], edges[edge, 1], edges[edge, 2]
            if i != last:
                am[i], shift = math.frexp(am[i])
                ae[i] += shift
                last = i
            _add(am, ae, j, am[i] * mantissa[p], ae[i] + exponent[p], powers)
        last = -1
        for edge in range(number - 1, -1, -1):
            i, j, p = edges[edge, 0], edges[edge, 1], edges[edge, 2]
            if i != last and last >= 0:
                bm[last], shift = math.frexp(bm[last])
                be[last] += shift
            last = i
            _add(bm, be, i, bm[j] * mantissa[p], be[j] + exponent[p], powers)
        for edge in range(number):
            i, j, p = edges[edge, 0], edges[edge, 1], edges[edge, 2]
            shift = ae[i] + exponent[p] + be[j] - ae[length]
            share = am[i] * mantissa[p] * bm[j] / am[length]
            if shift > -1074:
                result[p] += counts[word] * share * powers[min(shift, 64) + 1074]


@kernel
def _likeliest(edges, number, length, mantissa, exponent, own, vm, ve, back):  # type: ignore[no-untyped-def]
    """Viterbi: `back` holds, for each place, the edge that ends there; edge `own` is left out."""
    vm[: length + 1], ve[: length + 1] = 0.0, 0
    vm[0] = 0.5
    ve[0] = 1
    for edge in range(number):
        i, j, p = edges[edge, 0], edges[edge, 1], edges[edge, 2]
        if vm[i] == 0.0 or (p == own and j - i == length):
            continue
        m, e = vm[i] * mantissa[p], ve[i] + exponent[p]
        if m < 0.5:
            m, e = m * 2.0, e - 1
        if vm[j] == 0.0 or e > ve[j] or (e == ve[j] and m > vm[j]):
            vm[j], ve[j], back[j] = m, e, edge


@kernel
def _count_likeliest(  # type: ignore[no-untyped-def]
    result, data, starts, counts, keys, nodes, piece, mantissa, exponent, size
):
    vm, ve = np.empty(len(size)), np.empty(len(size), dtype=np.int64)
    back = np.empty(len(size), dtype=np.int64)
    edges = np.empty((4096, 3), dtype=np.int64)
    for word in range(len(counts)):
        start, stop = starts[word], starts[word + 1]
        number, edges = _all_edges(data, start, stop, keys, nodes, piece, mantissa, edges)
        _likeliest(edges, number, stop - start, mantissa, exponent, -1, vm, ve, back)
        place = stop - start
        while place > 0:
            result[edges[back[place], 2]] += counts[word]
            place = edges[back[place], 0]


@kernel
def _alternatives(  # type: ignore[no-untyped-def]
    chosen, bounds, itself, data, starts, counts, keys, nodes, piece, mantissa, exponent, size
):
    vm, ve = np.empty(len(size)), np.empty(len(size), dtype=np.int64)
    back = np.empty(len(size), dtype=np.int64)
    edges = np.empty((4096, 3), dtype=np.int64)
    used = 0
    for own in range(len(counts)):
        start, stop = starts[own], starts[own + 1]
        length = stop - start
        number, edges = _all_edges(data, start, stop, keys, nodes, piece, mantissa, edges)
        _likeliest(edges, number, length, mantissa, exponent, own, vm, ve, back)
        if vm[length] > 0.0:
            place = length
            while place > 0:
                chosen[used] = edges[back[place], 2]
                used += 1
                place = edges[back[place], 0]
            less = ve[length] < exponent[own]
            equal = ve[length] == exponent[own]
            itself[own] = less or (equal and vm[length] < mantissa[own])
        else:
            itself[own] = True
        bounds[own + 1] = used


def seed_pieces(
    words: Words, longest: int, min_frequency: int, most: int
) -> tuple[list[bytes], Floats]:
    """(pieces, counts): the 256 bytes, then at most `most` substrings of 2 to `longest` bytes.

    Substrings come `min_frequency` times or oftener in the text, and not always before the same
    byte (then the longer one is as frequent). The best by count times length are taken, as in
    SentencePiece; the first of equal ones by place. A byte that never comes has count 1.
    """
    weights = np.repeat(words.counts, np.diff(words.starts))
    ends = np.repeat(words.starts[1:], np.diff(words.starts))
    data = words.data.astype(np.int64)
    single = _sums(data, weights, 256)
    at = np.arange(len(data))
    names, counts, first = data, single, np.zeros(256, dtype=np.int64)
    by_length: list[tuple[Ints, Ints, int]] = []
    for length in range(2, longest + 2):
        inside = (at + length <= ends[at]) & (counts[names] >= min_frequency)
        at, names = at[inside], names[inside]
        keys = names * 256 + data[at + length - 1]
        distinct, index, longer = np.unique(keys, return_index=True, return_inverse=True)
        longer_counts = _sums(longer, weights[at], len(distinct))
        if length > 2:
            best = np.zeros(len(counts), dtype=np.int64)
            np.maximum.at(best, distinct // 256, longer_counts)
            ending = (counts >= min_frequency) & (best < counts)
            by_length.append((first[ending], counts[ending], length - 1))
        if not len(at):
            break
        names, counts, first = longer, longer_counts, at[index]
    return _best(words, single, by_length, most)


def _best(
    words: Words, single: Ints, by_length: list[tuple[Ints, Ints, int]], most: int
) -> tuple[list[bytes], Floats]:
    places = np.concatenate([place for place, _, _ in by_length] or [np.zeros(0, dtype=np.int64)])
    counts = np.concatenate([count for _, count, _ in by_length] or [np.zeros(0, dtype=np.int64)])
    lengths = np.repeat(
        [length for _, _, length in by_length], [len(place) for place, _, _ in by_length]
    )
    order = np.lexsort((places, lengths, -counts * lengths))[:most]
    raw = words.data.tobytes()
    pieces = [bytes([byte]) for byte in range(256)]
    pieces += [raw[places[i] : places[i] + lengths[i]] for i in order.tolist()]
    return pieces, np.concatenate([np.maximum(single, 1), counts[order]]).astype(np.float64)


def _sums(groups: Ints, weights: Ints, size: int) -> Ints:
    """Sum of weights by group; exact, a double holding integers up to 2**53."""
    return np.bincount(groups, weights=weights, minlength=size).astype(np.int64)


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
    to_byte = make_byte_alphabet()
    from_byte = {byte: character for character, byte in to_byte.items()}
    counted = _words(words, str.maketrans(to_byte))
    pieces, counts = seed_pieces(counted, LONGEST, min_frequency, SEEDS)
    probability = counts / math.fsum(counts)  # Correctly rounded, in any order.
    while True:
        trie = Trie.from_pieces(pieces)
        for _ in range(ROUNDS):
            expected = expected_counts(counted, trie, probability)
            expected[:256] = np.maximum(expected[:256], LEAST)
            kept = expected >= LEAST
            weight = np.where(kept, exp_digamma(np.maximum(expected, LEAST)), 0.0)
            probability = weight / math.fsum(weight)
        if len(pieces) - 256 <= (size - 256) * 11 // 10:
            break
        order = _pieces_to_keep(counted, pieces, trie, probability, size)
        pieces, probability = [pieces[i] for i in order], probability[order]
    scores = log(np.where(kept, probability, 1.0))
    best = [i for i in range(256, len(pieces)) if kept[i]]
    best.sort(key=lambda i: (-scores[i], pieces[i]))
    return [
        ("".join(from_byte[byte] for byte in pieces[i]), round(float(scores[i]), DIGITS))
        for i in [*range(256), *best[: size - 256]]
    ]


def _pieces_to_keep(
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
    whole = math.fsum(used)
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
