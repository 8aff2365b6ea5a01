"""The word splitter that equals spaCy's blank English tokenizer without its white-space tokens.

datatrove's filters split English so (`spacy.blank("en")`, then tokens of white space dropped), and
so do the rule sets that were tuned with it. Compiled, with spaCy's tables as data; spaCy itself is
not needed. Texts that spaCy cannot read are split too: lone surrogates are characters like others.
One token differs: of "IS_ALPHA", a name inside spaCy, its tokenizer makes an error, on which
datatrove drops the word; here it is a token.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.text.characters import Table
from stages.text.lexicon import Lexicon, lexicon_of
from stages.text.native import compiled
from stages.text.spacy_chunks import find_chunk_tokens
from stages.text.spacy_classes import DATA, PLAIN, SPACE, spacy_characters
from stages.text.spacy_merges import Sequences, Spans, merged, sequences_of


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
    sequences = sequences_of((found.split(" ") for found in DATA["found_again"]), strings)
    return _Tables(lexicon_of(strings), pieces, lexicon_of(DATA["after_digit"]), sequences)


def spacy_english_tokens(codes: NDArray[np.uint32], offsets: NDArray[np.int64]) -> Spans:
    """(offsets, starts, ends) of the tokens, as `stages.text.words.unicode_tokens` gives them."""
    exceptions, pieces, after_digit, sequences = _tables()
    table = spacy_characters.covering(codes)
    most_pieces = pieces.shape[1]
    most = _most_tokens(codes, table, most_pieces) + (len(offsets) - 1) * most_pieces
    starts, ends = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    token_offsets = np.zeros_like(offsets)
    rules = exceptions, pieces, after_digit
    found = find_chunk_tokens(codes, offsets, table, *rules, token_offsets, starts, ends)
    tokens = token_offsets, starts[:found], ends[:found]
    return merged(codes, table, sequences, pieces, tokens)


@compiled
def _most_tokens(codes: NDArray[np.uint32], table: Table, most_pieces: int) -> int:
    """A bound on the tokens of one text.

    Tokens begin at characters that are no plain letters, after them, or inside exceptions.
    """
    bound, before = 0, 0
    for i in range(len(codes)):
        bits = table[codes[i]]
        if bits & PLAIN:
            bound += 0 if before & PLAIN else most_pieces
        else:
            bound += not bits & SPACE
        before = bits
    return bound
