"""The word splitter that equals spaCy's blank English tokenizer without its white-space tokens.

datatrove's filters split English so (`spacy.blank("en")`, then tokens of white space dropped), and
so do the rule sets that were tuned with it. It is a feature of its own, `splitter: spacy_english`
of `signals` (docs/stages/signals.md), and not a wrapper of spaCy, because of its speed: datatrove's
four filters of FineWeb judge 90 documents a CPU second with spaCy, the same filters with these
words 4,013, 45 times as many, and each verdict and reason is equal (`python -m
tests.benchmarks.signals`). spaCy's tables are data here. Texts that spaCy cannot read are split
too: lone surrogates are characters like others. One token differs: on "IS_ALPHA", a name inside
spaCy, its tokenizer raises an error, after which datatrove drops the word; here it is a token.

In spaCy's last pass, exceptions that affixes tore apart are restored among the tokens. A sequence
of tokens that an exception would be split into without exceptions is searched in the whole text,
over single spaces too (the tokenizer's `PhraseMatcher` does not see them). Of sequences that
overlap the longest is kept, then the first; rejected ones still keep shorter ones from their
tokens. A kept sequence becomes the exception's own tokens if no space is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.text.characters import Table
from stages.text.spacy_chunks import find_chunk_tokens
from stages.text.spacy_rules import (
    DATA,
    PLAIN,
    Lexicon,
    build_lexicon,
    find_string,
    spacy_characters,
)

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


def build_sequences(sequences: Iterable[Sequence[str]], exceptions: Sequence[str]) -> Sequences:
    """The trie of `sequences`; each, joined, is one of `exceptions`."""
    token_sequences = [tuple(sequence) for sequence in sequences]
    words = sorted({word for sequence in token_sequences for word in sequence})
    prefixes = sorted({s[:length] for s in token_sequences for length in range(len(s) + 1)})
    states = {prefix: state for state, prefix in enumerate(prefixes)}
    numbers = {word: number for number, word in enumerate(words)}
    indices = {exception: index for index, exception in enumerate(exceptions)}
    following = np.zeros((len(prefixes), len(words)), dtype=np.int16)
    ending = np.full(len(prefixes), -1, dtype=np.int16)
    for prefix, state in states.items():
        if prefix:
            following[states[prefix[:-1]], numbers[prefix[-1]]] = state
    for sequence in token_sequences:
        ending[states[sequence]] = indices["".join(sequence)]
    return Sequences(build_lexicon(words), following, ending, max(map(len, token_sequences)))


def merge_sequences(
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
    matches = np.empty((count, 3), dtype=np.int64)
    _find_sequences(codes, table, *trie, offsets, starts, ends, matches)
    chosen = matches[_select_sequences(matches, len(starts), sequences.longest, starts, ends)]
    if not len(chosen):
        return tokens
    most = len(starts) + len(chosen) * pieces.shape[1]
    new_starts, new_ends = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    new_offsets = np.zeros_like(offsets)
    length = _replace(offsets, starts, ends, chosen, pieces, new_offsets, new_starts, new_ends)
    return new_offsets, new_starts[:length], new_ends[:length]


@kernel
def _find_sequences(
    codes: NDArray[np.uint32],
    table: Table,
    words: Lexicon,
    following: NDArray[np.int16],
    exceptions: NDArray[np.int16],
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    matches: NDArray[np.int64],
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
                word = find_string(words, codes, starts[token], ends[token])
                state = following[state, word] if word >= 0 else 0
                if state == 0:
                    break
                token += 1
                if exceptions[state] >= 0:
                    if count < len(matches):
                        matches[count, 0] = first
                        matches[count, 1] = token - first
                        matches[count, 2] = exceptions[state]
                    count += 1
    return count


@kernel
def _select_sequences(
    matches: NDArray[np.int64],
    tokens: int,
    longest: int,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Which of the sequences match and hold no space."""
    taken = np.zeros(tokens, dtype=np.bool_)
    selected = np.zeros(len(matches), dtype=np.bool_)
    for length in range(longest, 0, -1):
        for row in range(len(matches)):
            if matches[row, 1] != length:
                continue
            first, last = matches[row, 0], matches[row, 0] + length - 1
            selected[row] = not (taken[first] or taken[last])
            for token in range(first, last + 1):
                taken[token] = True
                if token > first and starts[token] != ends[token - 1]:
                    selected[row] = False
    return selected


@kernel
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


class _Tables(NamedTuple):
    """`pieces[e]`: the lengths of the tokens of exception e, and zeros."""

    exceptions: Lexicon
    pieces: NDArray[np.int64]
    after_digit: Lexicon
    sequences: Sequences


@cache
def _tables() -> _Tables:
    exceptions = [exception.split(" ") for exception in DATA["exceptions"]]
    pieces = np.zeros((len(exceptions), max(map(len, exceptions))), dtype=np.int64)
    for index, parts in enumerate(exceptions):
        pieces[index, : len(parts)] = [len(part) for part in parts]
    strings = ["".join(parts) for parts in exceptions]
    sequences = build_sequences((sequence.split(" ") for sequence in DATA["found_again"]), strings)
    return _Tables(build_lexicon(strings), pieces, build_lexicon(DATA["after_digit"]), sequences)


def find_spacy_tokens(codes: NDArray[np.uint32], offsets: NDArray[np.int64]) -> Spans:
    """(offsets, starts, ends) of the tokens, as `find_unicode_tokens` gives them."""
    exceptions, pieces, after_digit, sequences = _tables()
    table = spacy_characters.covering(codes)
    starts, ends = np.empty((2, len(codes)), dtype=np.int64)
    token_offsets = np.zeros_like(offsets)
    rules = exceptions, pieces, after_digit
    count = find_chunk_tokens(codes, offsets, table, *rules, token_offsets, starts, ends)
    tokens = token_offsets, starts[:count], ends[:count]
    return merge_sequences(codes, table, sequences, pieces, tokens)
