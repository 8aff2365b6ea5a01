"""All segmentations of words into pieces at once: expected counts, and the likeliest one.

A probability is a mantissa and an exponent of two, so that no word is too long for it and nothing
but products and sums is computed (`stages/tokenizer/exact.py` says why). Pieces are found by a trie
in a hash table: the child of a node by a byte.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.text.native import compiled

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_LOWEST = 1074
_POWERS = np.array([math.ldexp(1.0, k - _LOWEST) for k in range(_LOWEST + 65)])
"""2 ** (k - 1074)."""


@dataclass(frozen=True)
class Words:
    """Distinct words end to end: `data` [bytes], `starts` [words + 1], `counts` [words]."""

    data: NDArray[np.uint8]
    starts: Ints
    counts: Ints


@dataclass(frozen=True)
class Trie:
    """Nodes by (parent, byte) in an open hash table; `piece` of a node, or -1."""

    keys: Ints
    nodes: Ints
    piece: Ints

    @classmethod
    def of(cls, pieces: list[bytes]) -> Trie:
        """The trie of `pieces`, by their index."""
        data = np.frombuffer(b"".join(pieces), dtype=np.uint8)
        starts = np.cumsum([0, *(len(piece) for piece in pieces)], dtype=np.int64)
        size = 1 << max(8, (3 * len(data) // 2).bit_length())
        keys, nodes = np.full(size, -1, dtype=np.int64), np.zeros(size, dtype=np.int64)
        piece = np.full(len(data) + 1, -1, dtype=np.int64)
        used = _insert(data, starts, keys, nodes, piece)
        return cls(keys, nodes, piece[:used].copy())


def expected_counts(words: Words, trie: Trie, probability: Floats) -> Floats:
    """[pieces] how often each is expected in `words` under the unigram model (Kudo 2018)."""
    mantissa, exponent = np.frexp(probability)
    result = np.zeros(len(probability), dtype=np.float64)
    _expect(_POWERS, result, *_arguments(words, trie, mantissa, exponent))
    return result


def likeliest_counts(words: Words, trie: Trie, probability: Floats) -> Floats:
    """[pieces] how often each comes in the likeliest segmentations of `words`."""
    mantissa, exponent = np.frexp(probability)
    result = np.zeros(len(probability), dtype=np.float64)
    _count_likeliest(result, *_arguments(words, trie, mantissa, exponent))
    return result


def alternatives(
    pieces: list[bytes], trie: Trie, probability: Floats
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """The likeliest segmentation of each piece without itself, and whether itself is likelier.

    Piece i's lies in the first array from second[i] to second[i + 1].
    """
    mantissa, exponent = np.frexp(probability)
    data = np.frombuffer(b"".join(pieces), dtype=np.uint8)
    starts = np.cumsum([0, *(len(piece) for piece in pieces)], dtype=np.int64)
    found = np.zeros(len(data), dtype=np.int64)
    edges = np.zeros(len(pieces) + 1, dtype=np.int64)
    itself = np.zeros(len(pieces), dtype=np.bool_)
    words = Words(data, starts, np.ones(len(pieces), dtype=np.int64))
    _alternatives(found, edges, itself, *_arguments(words, trie, mantissa, exponent))
    return found, edges, itself


def _arguments(words: Words, trie: Trie, mantissa: Any, exponent: Any) -> Any:
    exponent = exponent.astype(np.int64)
    longest = int(np.diff(words.starts).max(initial=0))
    size = np.zeros(longest + 1, dtype=np.int64)
    return (
        words.data, words.starts, words.counts,
        trie.keys, trie.nodes, trie.piece, mantissa, exponent, size,
    )  # fmt: skip


@compiled
def _slot(key, keys):  # type: ignore[no-untyped-def]
    """Where `key` lies in the table, or the free place where it would."""
    mask = np.uint64(len(keys) - 1)
    at = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)
    at = at & mask
    while keys[at] != -1 and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return at


@compiled
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


@compiled
def _edges(data, start, stop, keys, nodes, piece, mantissa, found):  # type: ignore[no-untyped-def]
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
                if number == len(found):
                    return -1
                found[number, 0] = first
                found[number, 1] = place + 1
                found[number, 2] = index
                number += 1
    return number


@compiled
def _all_edges(data, start, stop, keys, nodes, piece, mantissa, found):  # type: ignore[no-untyped-def]
    """As `_edges`, with as much room as it takes."""
    number = _edges(data, start, stop, keys, nodes, piece, mantissa, found)
    while number < 0:
        found = np.empty((2 * len(found), 3), dtype=np.int64)
        number = _edges(data, start, stop, keys, nodes, piece, mantissa, found)
    return number, found


@compiled
def _add(mantissas, exponents, at, m, e, powers):  # type: ignore[no-untyped-def]
    """mantissas[at] * 2 ** exponents[at] += m * 2 ** e."""
    if mantissas[at] == 0.0:
        mantissas[at], exponents[at] = m, e
    elif e <= exponents[at]:
        mantissas[at] += m * powers[max(0, e - exponents[at] + 1074)]
    else:
        mantissas[at] = mantissas[at] * powers[max(0, exponents[at] - e + 1074)] + m
        exponents[at] = e


@compiled
def _expect(  # type: ignore[no-untyped-def]
    powers, result, data, starts, counts, keys, nodes, piece, mantissa, exponent, size
):
    am, ae = np.empty(len(size)), np.empty(len(size), dtype=np.int64)
    bm, be = np.empty(len(size)), np.empty(len(size), dtype=np.int64)
    found = np.empty((4096, 3), dtype=np.int64)
    for word in range(len(counts)):
        start, stop = starts[word], starts[word + 1]
        length = stop - start
        number, found = _all_edges(data, start, stop, keys, nodes, piece, mantissa, found)
        am[: length + 1], ae[: length + 1] = 0.0, 0
        bm[: length + 1], be[: length + 1] = 0.0, 0
        am[0], bm[length] = 1.0, 1.0
        last = -1
        for edge in range(number):
            i, j, p = found[edge, 0], found[edge, 1], found[edge, 2]
            if i != last:
                am[i], shift = math.frexp(am[i])
                ae[i] += shift
                last = i
            _add(am, ae, j, am[i] * mantissa[p], ae[i] + exponent[p], powers)
        last = -1
        for edge in range(number - 1, -1, -1):
            i, j, p = found[edge, 0], found[edge, 1], found[edge, 2]
            if i != last and last >= 0:
                bm[last], shift = math.frexp(bm[last])
                be[last] += shift
            last = i
            _add(bm, be, i, bm[j] * mantissa[p], be[j] + exponent[p], powers)
        for edge in range(number):
            i, j, p = found[edge, 0], found[edge, 1], found[edge, 2]
            shift = ae[i] + exponent[p] + be[j] - ae[length]
            share = am[i] * mantissa[p] * bm[j] / am[length]
            if shift > -1074:
                result[p] += counts[word] * share * powers[min(shift, 64) + 1074]


@compiled
def _likeliest(found, number, length, mantissa, exponent, own, vm, ve, back):  # type: ignore[no-untyped-def]
    """Viterbi: `back` holds, for each place, the edge that ends there; edge `own` is left out."""
    vm[: length + 1], ve[: length + 1] = 0.0, 0
    vm[0] = 0.5
    ve[0] = 1
    for edge in range(number):
        i, j, p = found[edge, 0], found[edge, 1], found[edge, 2]
        if vm[i] == 0.0 or (p == own and j - i == length):
            continue
        m, e = vm[i] * mantissa[p], ve[i] + exponent[p]
        if m < 0.5:
            m, e = m * 2.0, e - 1
        if vm[j] == 0.0 or e > ve[j] or (e == ve[j] and m > vm[j]):
            vm[j], ve[j], back[j] = m, e, edge


@compiled
def _count_likeliest(  # type: ignore[no-untyped-def]
    result, data, starts, counts, keys, nodes, piece, mantissa, exponent, size
):
    vm, ve = np.empty(len(size)), np.empty(len(size), dtype=np.int64)
    back = np.empty(len(size), dtype=np.int64)
    found = np.empty((4096, 3), dtype=np.int64)
    for word in range(len(counts)):
        start, stop = starts[word], starts[word + 1]
        number, found = _all_edges(data, start, stop, keys, nodes, piece, mantissa, found)
        _likeliest(found, number, stop - start, mantissa, exponent, -1, vm, ve, back)
        place = stop - start
        while place > 0:
            result[found[back[place], 2]] += counts[word]
            place = found[back[place], 0]


@compiled
def _alternatives(  # type: ignore[no-untyped-def]
    chosen, edges, itself, data, starts, counts, keys, nodes, piece, mantissa, exponent, size
):
    vm, ve = np.empty(len(size)), np.empty(len(size), dtype=np.int64)
    back = np.empty(len(size), dtype=np.int64)
    found = np.empty((4096, 3), dtype=np.int64)
    used = 0
    for own in range(len(counts)):
        start, stop = starts[own], starts[own + 1]
        length = stop - start
        number, found = _all_edges(data, start, stop, keys, nodes, piece, mantissa, found)
        _likeliest(found, number, length, mantissa, exponent, own, vm, ve, back)
        if vm[length] > 0.0:
            place = length
            while place > 0:
                chosen[used] = found[back[place], 2]
                used += 1
                place = found[back[place], 0]
            less = ve[length] < exponent[own]
            equal = ve[length] == exponent[own]
            itself[own] = less or (equal and vm[length] < mantissa[own])
        else:
            itself[own] = True
        edges[own + 1] = used
