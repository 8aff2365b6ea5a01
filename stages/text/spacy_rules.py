"""What spaCy's English tokenizer knows: classes of characters, its exceptions as a lexicon, URLs.

A URL matches spaCy's `URL_PATTERN`: an optional scheme, an optional user and @, then a public IPv4
address or a host of labels and a top-level domain in small letters, an optional port of 2 to 5
digits, and anything after /, ? or #. As a regular expression it takes quadratic time on chunks full
of @ and colons; here it is one pass over the characters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.text.characters import CharacterTable, Table, code_points

Lexicon = NDArray[np.uint32]
"""[slots, 2 + longest string] a hash table: the length of a string (0 where the slot is empty), its
index, its code points. One array, since compiled code takes several apart at each call."""

_STRING_BASE, _STRING_HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


def build_lexicon(strings: Sequence[str]) -> Lexicon:
    """The lexicon of distinct, non-empty strings; at most a quarter of its slots are taken."""
    longest = max(map(len, strings))
    lexicon = np.zeros((1 << (4 * len(strings)).bit_length(), 2 + longest), dtype=np.uint32)
    for index, string in enumerate(strings):
        codes = code_points(string)
        slot = _slot(codes, 0, len(codes), len(lexicon))
        while lexicon[slot, 0]:
            slot = (slot + 1) % len(lexicon)
        lexicon[slot, :2] = len(codes), index
        lexicon[slot, 2 : 2 + len(codes)] = codes
    return lexicon


@kernel
def find_string(lexicon: Lexicon, codes: NDArray[np.uint32], start: int, end: int) -> int:
    """The index of the string codes[start:end], or -1."""
    length = end - start
    if length > lexicon.shape[1] - 2:
        return -1
    slot = _slot(codes, start, end, len(lexicon))
    while lexicon[slot, 0]:
        if lexicon[slot, 0] == length:
            same = 0
            while same < length and lexicon[slot, 2 + same] == codes[start + same]:
                same += 1
            if same == length:
                return int(np.int64(lexicon[slot, 1]))
        slot = (slot + 1) & (len(lexicon) - 1)
    return -1


@kernel
def _slot(codes: NDArray[np.uint32], start: int, end: int, slots: int) -> int:
    value = np.uint64(0)
    for i in range(start, end):
        value = value * _STRING_BASE + np.uint64(codes[i])
    return int(np.int64((value ^ (value >> _STRING_HALF)) & np.uint64(slots - 1)))


DATA: dict[str, Any] = json.loads(
    Path(__file__).with_name("spacy_english.json").read_text(encoding="utf-8")
)
"""spaCy's tables, with their source, version and licence."""

(
    SPACE,
    PREFIX,
    SUFFIX,
    INFIX,
    ALPHA,
    LOWER,
    UPPER,
    QUOTE,
    BEFORE_STOP,
    HOST,
    WORD,
    DECIMAL,
    PLAIN,
) = (1 << bit for bit in range(13))
"""Bits of a character: white space; a prefix, suffix or infix on its own; in spaCy's classes
`ALPHA`, `ALPHA_LOWER`, `ALPHA_UPPER` and `CONCAT_QUOTES`; before a full stop that is a suffix; of a
host name; `\\w`; `\\d`; a letter that no rule splits at."""

_NAMED = {
    "prefix": PREFIX,
    "suffix": SUFFIX,
    "infix": INFIX,
    "alpha": ALPHA,
    "lower": LOWER,
    "upper": UPPER,
    "quote": QUOTE,
    "before_stop": BEFORE_STOP,
}


def _members(ranges: str) -> np.ndarray:
    """[0x110000] whether each code point is in ranges such as `21 2e-2f`."""
    members = np.zeros(0x110000, dtype=np.bool_)
    for item in ranges.split():
        first, _, last = item.partition("-")
        members[int(first, 16) : int(last or first, 16) + 1] = True
    return members


_classes = np.zeros(0x110000, dtype=np.uint16)
for _name, _bit in _NAMED.items():
    _classes[_members(DATA["classes"][_name])] |= np.uint16(_bit)


def _flags(chars: str) -> Iterator[tuple[int, Iterable[int]]]:
    bits = _classes[[ord(char) for char in chars]].tolist()
    for bit in _NAMED.values():
        yield bit, (place for place, own in enumerate(bits) if own & bit)
    yield SPACE, (place for place, char in enumerate(chars) if char.isspace())
    yield WORD, (place for place, char in enumerate(chars) if char.isalnum() or char == "_")
    yield DECIMAL, (place for place, char in enumerate(chars) if char.isdecimal())
    yield HOST, (place for place, char in enumerate(chars) if _in_host(char))
    splitting = PREFIX | SUFFIX | INFIX
    yield (
        PLAIN,
        (p for p, own in enumerate(bits) if own & ALPHA and not own & splitting),
    )


def _in_host(char: str) -> bool:
    return (char.isascii() and char.isalnum()) or "\u00a1" <= char <= "\uffff"


spacy_characters = CharacterTable(_flags)
"""The table of these bits."""


_PLUS, _HYPHEN, _STOP, _SLASH, _COLON, _QUERY, _AT, _HASH, _UNDERSCORE = map(ord, "+-./:?@#_")
_0, _1, _2, _3, _4, _5, _6, _9 = map(ord, "01234569")


@kernel
def is_url(codes: NDArray[np.uint32], table: Table, start: int, end: int) -> bool:
    """Whether codes[start:end], which holds no white space, matches as a whole."""
    if _is_location(codes, table, start, end):
        return True
    i = start
    while i < end and (
        table[codes[i]] & WORD or codes[i] == _PLUS or codes[i] == _HYPHEN or codes[i] == _STOP
    ):
        i += 1
    if (
        i - start >= 2
        and i + 3 <= end
        and codes[i] == _COLON
        and codes[i + 1] == _SLASH
        and codes[i + 2] == _SLASH
        and _is_location(codes, table, i + 3, end)
    ):
        return True
    for at in range(start + 1, end):
        if codes[at] == _AT and _is_location(codes, table, at + 1, end):
            return True
    return False


@kernel
def _is_location(codes: NDArray[np.uint32], table: Table, start: int, end: int) -> bool:
    """Host, port and path."""
    return _is_address(codes, table, start, end) or _is_domain(codes, table, start, end)


@kernel
def _is_domain(codes: NDArray[np.uint32], table: Table, start: int, end: int) -> bool:
    labels, first, i = 0, start, start
    while True:
        while i < end and (
            table[codes[i]] & HOST or codes[i] == _UNDERSCORE or codes[i] == _HYPHEN
        ):
            i += 1
        if i == end or codes[i] != _STOP:
            break
        if not 1 <= i - first <= 64:
            return False
        if not (table[codes[first]] & HOST and table[codes[i - 1]] & HOST):
            return False
        labels += 1
        i += 1
        first = i
    i = first
    while i < end and table[codes[i]] & LOWER:
        i += 1
    return labels > 0 and 2 <= i - first <= 63 and _is_rest(codes, table, i, end)


@kernel
def _is_rest(codes: NDArray[np.uint32], table: Table, i: int, end: int) -> bool:
    """A port and a path, or nothing."""
    if i < end and codes[i] == _COLON:
        first = i + 1
        i = first
        while i < end and table[codes[i]] & DECIMAL:
            i += 1
        if not 2 <= i - first <= 5:
            return False
    return i == end or codes[i] == _SLASH or codes[i] == _QUERY or codes[i] == _HASH


@kernel
def _is_address(codes: NDArray[np.uint32], table: Table, start: int, end: int) -> bool:
    """An IPv4 address, outside the ranges for private and local networks, and what follows."""
    i, second = start, start
    for octet in range(4):
        first = i
        while i < end and i - first < 3 and table[codes[i]] & DECIMAL:
            i += 1
        if not _is_octet(codes, first, i, octet):
            return False
        if octet == 1:
            second = first
        if octet < 3:
            if i == end or codes[i] != _STOP:
                return False
            i += 1
    return _is_rest(codes, table, i, end) and not _is_private(codes, start, second)


@kernel
def _is_octet(codes: NDArray[np.uint32], first: int, end: int, octet: int) -> bool:
    """Whether 1 to 3 digits are a number in range: 1-223, 0-255, 0-255, 1-254.

    Digits of other scripts count where the pattern says any digit; inner octets may begin with 0.
    """
    inner = octet == 1 or octet == 2
    if end == first:
        return False
    if end - first < 3:
        return inner or _1 <= codes[first] <= _9
    if codes[first] == _1:
        return True
    if codes[first] != _2:
        return False
    tens, ones = codes[first + 1], codes[first + 2]
    if octet == 0:
        return tens in (_0, _1) or (tens == _2 and _0 <= ones <= _3)
    return _0 <= tens <= _4 or (tens == _5 and _0 <= ones <= (_5 if inner else _4))


@kernel
def _is_private(codes: NDArray[np.uint32], start: int, second: int) -> bool:
    """10, 127, 169.254, 192.168 and 172.16 to 172.31."""
    one, two = codes[start], codes[start + 1]
    if second - start == 3:
        return one == _1 and two == _0
    if second - start != 4 or one != _1:
        return False
    three, end = codes[start + 2], second
    while codes[end] != _STOP:
        end += 1
    if two == _2:
        return three == _0 + 7
    if end - second == 3:
        tail = (codes[second], codes[second + 1], codes[second + 2])
        link = two == _6 and three == _9 and tail == (_2, _5, _4)
        home = two == _9 and three == _2 and tail == (_1, _6, _0 + 8)
        return link or home
    if end - second == 2 and two == _0 + 7 and three == _2:
        tens, ones = codes[second], codes[second + 1]
        return (tens == _1 and _6 <= ones <= _9) or tens == _2 or (tens == _3 and _0 <= ones <= _1)
    return False
