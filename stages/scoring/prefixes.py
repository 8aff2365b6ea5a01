"""Token sequences as rows of tries, so that what several begin with is computed once.

Sequences are sorted, which puts those that begin alike together; a row is a run of them, its tokens
those of their trie in depth-first order. What many rows begin with is their stem and in none of
them. Everything follows from the sequences alone, so all ranks make the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

TOKEN_COST = 512
"""What a token costs apart from attention, as tokens that it attends to."""
MOST_TOKENS = 1024
"""Tokens of a row, unless one sequence has more: bounds the memory of its mask."""
LEAST_STEM, LEAST_AFTER = 64, 512
"""Tokens of a stem, and of all that goes on from it: with fewer each row as well has its own."""


@dataclass(frozen=True)
class Row:
    """Tokens of a trie in depth-first order, and of its tokens where they are.

    `places` has for each of the row's sequences its number and the places in the row of its scored
    positions.
    """

    tokens: Ints
    positions: Ints
    """Tokens before each on its text, the stem's among them."""
    ends: Ints
    """Place after the last token that goes on from each."""
    places: tuple[tuple[int, Ints], ...]

    @property
    def branches(self) -> bool:
        """Whether it is more than one text."""
        return bool((self.ends != len(self.tokens)).any())


@dataclass(frozen=True)
class StemRows:
    """Rows that go on from one stem, which may be empty."""

    stem: Ints
    rows: tuple[Row, ...]


def share_prefixes(
    sequences: Sequence[Sequence[int]],
    scored: Sequence[int],
    *,
    token_cost: int = TOKEN_COST,
    most_tokens: int = MOST_TOKENS,
    least_stem: int = LEAST_STEM,
    least_after: int = LEAST_AFTER,
) -> list[StemRows]:
    """Rows for `sequences`, of each of which the last `scored` positions (1 or more) are wanted.

    Every such position is in a row, none in a stem. Longer rows share more and cost more attention:
    `token_cost` weighs the two.
    """
    trie = _Trie.sort(sequences, scored)
    groups: dict[bytes, list[Row]] = {}
    stems: dict[bytes, Ints] = {}
    for first, last, depth in _stems(trie, least_stem, least_after):
        stem = trie.ids[first][:depth]
        stems[stem.tobytes()] = stem
        rows = groups.setdefault(stem.tobytes(), [])
        runs = _cut(trie, first, last, depth, token_cost, most_tokens)
        rows += [_row(trie, a, b, depth) for a, b in runs]
    return [StemRows(stems[name], tuple(rows)) for name, rows in groups.items()]


def rows_apart(sequences: Sequence[Sequence[int]], scored: Sequence[int]) -> list[StemRows]:
    """A row for each sequence: nothing is shared."""
    rows = []
    for number, (ids, wanted) in enumerate(zip(sequences, scored, strict=True)):
        places = np.arange(len(ids))
        ends = np.full(len(ids), len(ids))
        last = ((number, places[len(ids) - wanted :]),)
        rows.append(Row(np.array(ids, dtype=np.int64), places, ends, last))
    return [StemRows(np.empty(0, dtype=np.int64), tuple(rows))]


@dataclass(frozen=True)
class _Trie:
    """Sorted sequences; `shared[i]` is how many tokens i begins with as i - 1 does."""

    numbers: list[int]
    """Places of the sequences before they were sorted."""
    ids: list[Ints]
    first_scored: Ints
    lengths: Ints
    shared: Ints

    @classmethod
    def sort(cls, sequences: Sequence[Sequence[int]], scored: Sequence[int]) -> _Trie:
        keys = [np.asarray(one, dtype=">u4").tobytes() for one in sequences]
        order = sorted(range(len(keys)), key=lambda index: (keys[index], index))
        ids = [np.frombuffer(keys[index], dtype=">u4").astype(np.int64) for index in order]
        lengths = np.array([len(one) for one in ids], dtype=np.int64)
        shared = np.zeros(len(ids), dtype=np.int64)
        for index in range(1, len(ids)):
            most = min(lengths[index - 1], lengths[index])
            differ = ids[index - 1][:most] != ids[index][:most]
            shared[index] = differ.argmax() if differ.any() else most
        first_scored = lengths - np.array([scored[index] for index in order], dtype=np.int64)
        return cls(order, ids, first_scored, lengths, shared)

    @cached_property
    def new(self) -> Ints:
        """Tokens of the trie of the first i sequences, for each i up to all."""
        return np.concatenate(([0], np.cumsum(self.lengths - self.shared)))


def _stems(trie: _Trie, least_stem: int, least_after: int) -> Iterator[tuple[int, int, int]]:
    """Runs [first, last) of sequences, and the length of the stem that each run shares.

    A stem is taken where it is `least_stem` longer than one around it, and `least_after` tokens
    follow it. It ends before any position that is scored.
    """
    common = trie.shared.copy()
    if len(common) > 1:
        earliest = np.minimum(trie.first_scored[:-1], trie.first_scored[1:])
        common[1:] = np.minimum(common[1:], earliest)
    new = trie.new
    waiting = [(0, len(trie.ids), 0)]
    run: tuple[int, int, int] | None = None
    while waiting:
        first, last, depth = waiting.pop()
        # Of the first sequence what is new counts from the stem on.
        tokens = new[last] - new[first + 1] + trie.lengths[first] - depth if last > first else 0
        if last - first > 1 and tokens >= least_after:
            least = int(common[first + 1 : last].min())
            inner = least if least - depth >= least_stem else depth
            cuts = first + 1 + np.flatnonzero(common[first + 1 : last] == least)
            edges = [first, *cuts.tolist(), last]
            waiting += reversed([(a, b, inner) for a, b in pairwise(edges)])
            continue
        if run is not None and run[2] == depth and _same_stem(trie, run[0], first, depth):
            run = run[0], last, depth
            continue
        if run is not None:
            yield run
        run = (first, last, depth) if last > first else None
    if run is not None:
        yield run


def _same_stem(trie: _Trie, a: int, b: int, depth: int) -> bool:
    return depth == 0 or bool((trie.ids[a][:depth] == trie.ids[b][:depth]).all())


def _cut(
    trie: _Trie, first: int, last: int, depth: int, token_cost: int, most_tokens: int
) -> Iterator[tuple[int, int]]:
    """Runs of sequences that become rows, at the least cost of them all.

    A row of n tokens costs n (`token_cost` + n); to begin one costs what its first sequence shares
    with the last of the row before.
    """
    costs = np.full(last - first + 1, np.inf)
    costs[0], begins = 0.0, np.zeros(last - first + 1, dtype=np.int64)
    for index in range(first, last):
        sizes = trie.lengths[index] - depth + trie.new[index + 1 : last + 1] - trie.new[index + 1]
        sizes = sizes[: max(1, int(np.searchsorted(sizes, most_tokens, side="right")))]
        here = index - first
        after = costs[here] + sizes * (token_cost + sizes)
        reached = slice(here + 1, here + 1 + len(sizes))
        begins[reached] = np.where(after < costs[reached], here, begins[reached])
        costs[reached] = np.minimum(costs[reached], after)
    stop, rows = last - first, []
    while stop:
        rows.append((first + int(begins[stop]), first + stop))
        stop = int(begins[stop])
    yield from reversed(rows)


def _row(trie: _Trie, first: int, last: int, depth: int) -> Row:
    """The trie of a run of sequences, below its stem."""
    parts = [trie.ids[first][depth:]]
    path = np.arange(len(parts[0]))  # Places of the tokens of the current sequence.
    positions = [np.arange(depth, trie.lengths[first])]
    count, closed = len(path), []
    places = [(trie.numbers[first], path[trie.first_scored[first] - depth :])]
    for index in range(first + 1, last):
        same = int(trie.shared[index]) - depth
        closed.append((path[same:], count))
        more = int(trie.lengths[index] - trie.shared[index])
        path = np.concatenate((path[:same], np.arange(count, count + more)))
        parts.append(trie.ids[index][depth + same :])
        positions.append(np.arange(depth + same, trie.lengths[index]))
        places.append((trie.numbers[index], path[trie.first_scored[index] - depth :]))
        count += more
    ends = np.full(count, count, dtype=np.int64)
    for tokens, end in closed:
        ends[tokens] = end
    return Row(np.concatenate(parts), np.concatenate(positions), ends, tuple(places))
