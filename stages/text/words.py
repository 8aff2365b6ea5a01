"""The default word splitter: Unicode words and symbols, no dictionary, no language model.

A word is a run of letters, digits, marks and underscores. Inside a word an apostrophe, a full stop
("e.g", "3.14", "example.com") and a comma between digits ("1,000") do not break it, as in UAX #29
(WB6-WB12), except that a stop after a small and before a capital letter does ("end.Next"), since
crawled text loses spaces. Scripts without spaces: each Han, Hiragana, Thai, Lao, Khmer or Myanmar
letter is a word with its marks; Katakana runs are words. Everything else that is not white space is
a token of one character; runs of full stops or hyphens ("...", "--") are one token.

Tokens never overlap, and together hold every character that is not white space.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import regex
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.text.characters import CharacterTable, Table, code_points

_WORD, _ALONE, _MARK, _SMALL, _CAPITAL, _DIGIT, _SPACE = (1 << bit for bit in range(7))
_STOP, _COMMA, _HYPHEN, _APOSTROPHE, _QUOTE = (ord(char) for char in ".,-'’")

_SCRIPTS = r"\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_CLASSES = {
    bit: regex.compile(characters, flags=regex.VERSION1)
    for bit, characters in (
        (_WORD, rf"[\w--[{_SCRIPTS}]]"),
        (_ALONE, rf"[{_SCRIPTS}]"),
        (_MARK, r"\p{M}"),
        (_SMALL, r"\p{Ll}"),
        (_CAPITAL, r"\p{Lu}"),
        (_DIGIT, r"\p{Nd}"),
        (_SPACE, r"[\s\x1c-\x1f]"),
    )
}


def _flags(chars: str) -> Iterator[tuple[int, Iterable[int]]]:
    for bit, pattern in _CLASSES.items():
        yield bit, (match.start() for match in pattern.finditer(chars))


_table = CharacterTable(_flags)

Spans = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""(offsets, starts, ends): text d has the tokens [offsets[d], offsets[d + 1]), token t the code
points [starts[t], ends[t])."""


def split_words(text: str) -> list[str]:
    """The tokens of `text` in order: words, and symbols one by one. Empty for blank text."""
    return [text[start:end] for start, end in find_words(text)]


def find_words(text: str) -> list[tuple[int, int]]:
    """Where those tokens lie: characters [start, end) of each."""
    _, starts, ends = find_unicode_tokens(
        code_points(text), np.array([0, len(text)], dtype=np.int64)
    )
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def find_unicode_tokens(codes: NDArray[np.uint32], offsets: NDArray[np.int64]) -> Spans:
    """The tokens of a batch of texts; text d has the code points [offsets[d], offsets[d + 1])."""
    table = _table.covering(codes)
    starts, ends = np.empty((2, len(codes)), dtype=np.int64)
    token_offsets = np.zeros_like(offsets)
    count = _find_tokens(codes, offsets, table, token_offsets, starts, ends)
    return token_offsets, starts[:count], ends[:count]


@kernel
def _find_tokens(
    codes: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    table: Table,
    token_offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> int:
    count = 0
    for text in range(len(offsets) - 1):
        i, end = offsets[text], offsets[text + 1]
        while i < end:
            bits = table[codes[i]]
            if bits & _SPACE:
                i += 1
                continue
            starts[count] = i
            if bits & _WORD:
                i = _word_end(codes, table, i, end)
            elif bits & _ALONE:
                i += 1
                while i < end and table[codes[i]] & _MARK:
                    i += 1
            elif codes[i] == _STOP or codes[i] == _HYPHEN:
                i += 1
                while i < end and codes[i] == codes[i - 1]:
                    i += 1
            else:
                i += 1
            ends[count] = i
            count += 1
        token_offsets[text + 1] = count
    return count


@kernel
def _word_end(codes: NDArray[np.uint32], table: Table, i: int, end: int) -> int:
    """The end of the word whose first character is at `i`."""
    while True:
        i += 1
        while i < end and table[codes[i]] & _WORD:
            i += 1
        if i + 1 >= end or not table[codes[i + 1]] & _WORD:
            return i
        before, after, code = table[codes[i - 1]], table[codes[i + 1]], codes[i]
        if code == _STOP:
            joined = not (before & _SMALL and after & _CAPITAL)
        elif code == _COMMA:
            joined = before & after & _DIGIT != 0
        else:
            joined = code in (_APOSTROPHE, _QUOTE)
        if not joined:
            return i
