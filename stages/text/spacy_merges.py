"""spaCy's last pass: exceptions that affixes tore apart are found again among the tokens.

A sequence of tokens that an exception would be split into without exceptions is looked for in the
whole text, over single spaces too (the tokenizer's `PhraseMatcher` does not see them). Of sequences
that overlap the longest stands, then the first; sequences set aside still keep shorter ones from
their tokens. One that stands becomes the exception's own tokens if no space is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.text.characters import Table
from stages.text.lexicon import Lexicon, find, lexicon_of
from stages.text.native import compiled
from stages.text.spacy_classes import PLAIN

_SPACE = ord(" ")

Spans = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


class Sequences(NamedTuple):
    """A trie of token sequences: next[state, number of the word] → state; 0 is the root.

    `exceptions[state]` is the exception whose sequence ends there, or -1.
    """

    words: Lexicon
    next: NDArray[np.int16]
    exceptions: NDArray[np.int16]
    longest: int


def sequences_of(sequences: Iterable[Sequence[str]], exceptions: Sequence[str]) -> Sequences:
    """The trie of `sequences`; each, joined, is one of `exceptions`."""
    given = [tuple(sequence) for sequence in sequences]
    words = sorted({word for sequence in given for word in sequence})
    prefixes = sorted({s[:length] for s in given for length in range(len(s) + 1)})
    state_of = {prefix: state for state, prefix in enumerate(prefixes)}
    word_of = {word: number for number, word in enumerate(words)}
    exception_of = {exception: index for index, exception in enumerate(exceptions)}
    following = np.zeros((len(prefixes), len(words)), dtype=np.int16)
    ending = np.full(len(prefixes), -1, dtype=np.int16)
    for prefix, state in state_of.items():
        if prefix:
            following[state_of[prefix[:-1]], word_of[prefix[-1]]] = state
    for sequence in given:
        ending[state_of[sequence]] = exception_of["".join(sequence)]
    return Sequences(lexicon_of(words), following, ending, max(map(len, given)))


def merged(
    codes: NDArray[np.uint32],
    table: Table,
    sequences: Sequences,
    pieces: NDArray[np.int64],
    tokens: Spans,
) -> Spans:
    """The tokens after the pass."""
    offsets, starts, ends = tokens
    none = np.zeros((0, 3), dtype=np.int64)
    trie = sequences.words, sequences.next, sequences.exceptions
    count = _find_sequences(codes, table, *trie, offsets, starts, ends, none)
    if count == 0:
        return tokens
    found = np.empty((count, 3), dtype=np.int64)
    _find_sequences(codes, table, *trie, offsets, starts, ends, found)
    chosen = found[_standing(found, len(starts), sequences.longest, starts, ends)]
    if not len(chosen):
        return tokens
    most = len(starts) + len(chosen) * pieces.shape[1]
    new_starts, new_ends = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    new_offsets = np.zeros_like(offsets)
    length = _replace(offsets, starts, ends, chosen, pieces, new_offsets, new_starts, new_ends)
    return new_offsets, new_starts[:length], new_ends[:length]


@compiled
def _find_sequences(
    codes: NDArray[np.uint32],
    table: Table,
    words: Lexicon,
    following: NDArray[np.int16],
    exceptions: NDArray[np.int16],
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    found: NDArray[np.int64],
) -> int:
    """Rows (first token, tokens, exception) in order of the first token, as many as fit.

    Returns how many there are.
    """
    count = 0
    for text in range(len(offsets) - 1):
        last = offsets[text + 1]
        for first in range(offsets[text], last - 1):
            # The first or the second token of every sequence begins with no plain letter.
            if table[codes[starts[first]]] & table[codes[starts[first + 1]]] & PLAIN:
                continue
            state, token = 0, first
            while token < last:
                gap = starts[token] - ends[token - 1] if token > first else 0
                if gap > 1 or (gap == 1 and codes[ends[token - 1]] != _SPACE):
                    break
                word = find(words, codes, starts[token], ends[token])
                state = following[state, word] if word >= 0 else 0
                if state == 0:
                    break
                token += 1
                if exceptions[state] >= 0:
                    if count < len(found):
                        found[count, 0] = first
                        found[count, 1] = token - first
                        found[count, 2] = exceptions[state]
                    count += 1
    return count


@compiled
def _standing(
    found: NDArray[np.int64],
    tokens: int,
    longest: int,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Which of the sequences stand and hold no space."""
    taken = np.zeros(tokens, dtype=np.bool_)
    standing = np.zeros(len(found), dtype=np.bool_)
    for length in range(longest, 0, -1):
        for row in range(len(found)):
            if found[row, 1] != length:
                continue
            first, last = found[row, 0], found[row, 0] + length - 1
            standing[row] = not (taken[first] or taken[last])
            for token in range(first, last + 1):
                taken[token] = True
                if token > first and starts[token] != ends[token - 1]:
                    standing[row] = False
    return standing


@compiled
def _replace(
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    chosen: NDArray[np.int64],
    pieces: NDArray[np.int64],
    new_offsets: NDArray[np.int64],
    new_starts: NDArray[np.int64],
    new_ends: NDArray[np.int64],
) -> int:
    row = length = 0
    for text in range(len(offsets) - 1):
        token = offsets[text]
        while token < offsets[text + 1]:
            if row == len(chosen) or chosen[row, 0] != token:
                new_starts[length], new_ends[length] = starts[token], ends[token]
                length += 1
                token += 1
                continue
            at, piece = starts[token], 0
            token += chosen[row, 1]
            while at < ends[token - 1]:
                new_starts[length] = at
                at += pieces[chosen[row, 2], piece]
                new_ends[length] = at
                length += 1
                piece += 1
            row += 1
        new_offsets[text + 1] = length
    return length
