"""datatrove's shingles of English text, bit for bit: signatures equal those of FineWeb's code.

Its three steps (datatrove 0.10.1: `utils/text.py`, `utils/word_tokenizers.py`,
`pipeline/dedup/minhash.py`) are `simplify_text` with its defaults, the words of spaCy's blank
English tokenizer, and a hash of each n-gram's words joined by one space. Its faults are kept:

- opening single quote marks (‘ ‹ ›) stay, while all their relatives become spaces;
- accents are removed after white space is squeezed, so a lone accent leaves two spaces;
- words are split after punctuation is gone, so "don't" is "don" and "t", but "cannot" "can", "not";
- a text of fewer words than an n-gram has no shingle and is compared with nothing.

The characters are those of this Python's and this `regex`'s Unicode, as there. A text with lone
surrogates, on which datatrove fails, is hashed as if they could be written in UTF-8.

Hashing with hashlib and xxhash takes 180 and 50 µs more for a document of 359 words than kernels of
our own did (of 290 and 125 in all; datatrove needs 6,700); only the parity presets pay that.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
import regex
import xxhash
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.text.characters import PUNCTUATION, CharacterTable, Table, code_points
from stages.text.spacy_english import find_spacy_tokens

Codes = tuple[NDArray[np.uint32], NDArray[np.int64]]
"""(codes, offsets): text d has the code points codes[offsets[d]:offsets[d + 1]]."""

_DIGIT, _SEPARATOR, _BLANK, _MARK = (1 << bit for bit in range(4))
_ZERO, _SPACE, _NEWLINE = (np.uint32(ord(char)) for char in "0 \n")

_NUMBERS = regex.compile(r"\p{Nd}")
_SEPARATORS = ".,،٫⎖⎗⎘"


def datatrove_shingles(
    texts: Sequence[str], ngram: int, hash: Literal["sha1", "xxh64"]
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64]]:
    """The hashes of the texts' word n-grams, end to end: (hashes, offsets, tokens).

    Text d has hashes[offsets[d]:offsets[d + 1]], in order, repeats included; none where it has
    fewer than `ngram` words. `sha1` is its first eight bytes as a little-endian number. `tokens`
    [texts, 2] is a 128-bit digest of each text's words, zeros for a text without any. Memory is
    about 25 bytes a character.
    """
    codes, offsets = simplify_texts(texts)
    token_offsets, starts, ends = find_spacy_tokens(codes, offsets)
    data, starts, ends = _join_tokens(codes, token_offsets, starts, ends)
    counts = np.maximum(np.diff(token_offsets) - (ngram - 1), 0)
    shingle_offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(counts, out=shingle_offsets[1:])
    first = np.repeat(token_offsets[:-1] - shingle_offsets[:-1], counts)
    first += np.arange(shingle_offsets[-1])
    hashes = hash_slices(hash, data, starts[first], ends[first + (ngram - 1)])
    return hashes, shingle_offsets, _token_digests(data, token_offsets, starts, ends)


def hash_slices(
    hash: Literal["sha1", "xxh64"],
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.uint64]:
    """The 64-bit hash of each data[start:end], which may overlap: uint64 [slices].

    `sha1` is the first eight bytes of the digest as a little-endian number.
    """
    content = data.tobytes()
    slices = (content[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True))
    if hash == "xxh64":
        return np.fromiter(map(xxhash.xxh64_intdigest, slices), np.uint64, len(starts))
    digests = [hashlib.sha1(part, usedforsecurity=False).digest()[:8] for part in slices]
    return np.frombuffer(b"".join(digests), dtype="<u8")


def simplify_texts(texts: Sequence[str]) -> Codes:
    """The texts as `simplify_text` leaves them.

    In this order: lower case; a number, with one decimal part at most, becomes 0; punctuation
    becomes space; white space is squeezed and stripped; accents are taken off (NFD without Mn);
    spaces at the ends are stripped again.
    """
    lowered = [text.lower() for text in texts]
    codes = code_points("".join(lowered))
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in lowered], out=offsets[1:])
    squeezed = np.empty(len(codes) + len(texts), dtype=np.uint32)
    length = _squeeze(codes, offsets, _table.covering(codes), squeezed)
    plain = squeezed[:length]
    if (codes > 0x7F).any():
        # Normalised together: line feeds, of which the texts have none, separate the sequences.
        joined = plain.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
        plain = code_points(unicodedata.normalize("NFD", joined))
    return _remove_marks(plain, _table.covering(plain), len(texts))


def _flags(chars: str) -> Iterator[tuple[int, Iterable[int]]]:
    yield _DIGIT, (match.start() for match in _NUMBERS.finditer(chars))
    yield _SEPARATOR, (place for place, char in enumerate(chars) if char in _SEPARATORS)
    yield (
        _BLANK,
        (place for place, char in enumerate(chars) if char in PUNCTUATION or char.isspace()),
    )
    yield _MARK, (p for p, char in enumerate(chars) if unicodedata.category(char) == "Mn")


_table = CharacterTable(_flags)


@kernel
def _squeeze(
    codes: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    table: Table,
    out: NDArray[np.uint32],
) -> int:
    """Numbers, punctuation and white space dealt with, a line feed after each text; the length.

    A space at the beginning of a text is left to `_unmarked`.
    """
    length = 0
    for text in range(len(offsets) - 1):
        i, end = offsets[text], offsets[text + 1]
        blank = False
        while i < end:
            bits = table[codes[i]]
            if bits & _BLANK:
                blank = True
                i += 1
                continue
            if blank:
                out[length] = _SPACE
                length += 1
            blank = False
            out[length] = codes[i]
            i += 1
            if bits & _DIGIT:
                out[length] = _ZERO
                i = _number_end(codes, table, i, end)
            length += 1
        out[length] = _NEWLINE
        length += 1
    return length


@kernel
def _number_end(codes: NDArray[np.uint32], table: Table, i: int, end: int) -> int:
    """The end of the number whose first digit is at `i` - 1."""
    while i < end and table[codes[i]] & _DIGIT:
        i += 1
    if i + 1 < end and table[codes[i]] & _SEPARATOR and table[codes[i + 1]] & _DIGIT:
        i += 2
        while i < end and table[codes[i]] & _DIGIT:
            i += 1
    return i


@kernel
def _remove_marks(lines: NDArray[np.uint32], table: Table, texts: int) -> Codes:
    """The texts, each ended by a line feed, without accents and spaces at the ends."""
    codes = np.empty(len(lines), dtype=np.uint32)
    offsets = np.zeros(texts + 1, dtype=np.int64)
    text = length = 0
    for i in range(len(lines)):
        if lines[i] == _NEWLINE:
            while length > offsets[text] and codes[length - 1] == _SPACE:
                length -= 1
            text += 1
            offsets[text] = length
        elif not table[lines[i]] & _MARK and (lines[i] != _SPACE or length > offsets[text]):
            codes[length] = lines[i]
            length += 1
    return codes[:length], offsets


@kernel
def _join_tokens(
    codes: NDArray[np.uint32],
    token_offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The tokens in UTF-8 with a space after each, and the bytes [start, end) of each.

    So the words of any n-gram, joined by one space, lie in one piece.
    """
    data = np.empty(4 * len(codes) + len(starts), dtype=np.uint8)
    first, last = np.empty_like(starts), np.empty_like(ends)
    length = 0
    for token in range(len(starts)):
        first[token] = length
        for i in range(starts[token], ends[token]):
            length = _write(data, length, codes[i])
        last[token] = length
        data[length] = _SPACE
        length += 1
    return data[:length].copy(), first, last


@kernel
def _write(data: NDArray[np.uint8], at: int, code: np.uint32) -> int:
    """A code point in UTF-8 at `at`; where it ends."""
    if code < 0x80:
        data[at] = code
        return at + 1
    trailing = 1 if code < 0x800 else 2 if code < 0x10000 else 3
    data[at] = (0xFF00 >> (trailing + 1)) & 0xFF | code >> (6 * trailing)
    for i in range(1, trailing + 1):
        data[at + i] = 0x80 | (code >> (6 * (trailing - i))) & 0x3F
    return at + trailing + 1


def _token_digests(
    data: NDArray[np.uint8],
    token_offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.uint64]:
    digests = np.zeros((len(token_offsets) - 1, 2), dtype=np.uint64)
    some = np.flatnonzero(np.diff(token_offsets))
    first, last = starts[token_offsets[some]], ends[token_offsets[some + 1] - 1]
    view = data.data
    named = b"".join(
        xxhash.xxh3_128_digest(view[start:end])
        for start, end in zip(first.tolist(), last.tolist(), strict=True)
    )
    digests[some] = np.frombuffer(named, dtype=">u8").reshape(-1, 2)
    return digests
