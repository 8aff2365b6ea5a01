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

A document of 359 words takes 420 µs with SHA-1 and 250 with XXH64; compiled code of our own would
save 310 and 180 of them (datatrove needs 6,700). Only the parity presets pay that.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

import numpy as np
import regex
import xxhash
from numpy.typing import NDArray

from stages.text.characters import PUNCTUATION, code_points
from stages.text.spacy_english import find_spacy_tokens

_NUMBER = regex.compile(r"\p{Nd}+(?:[.,،٫⎖⎗⎘]\p{Nd}+)?")
_ASCII_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)?")
_TO_SPACE = dict.fromkeys(map(ord, PUNCTUATION), " ")
_SPACE = ord(" ")


def datatrove_shingles(
    texts: Sequence[str], ngram: int, hash: Literal["sha1", "xxh64"]
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64]]:
    """The hashes of the texts' word n-grams, end to end: (hashes, offsets, tokens).

    Text d has hashes[offsets[d]:offsets[d + 1]], in order, repeats included; none where it has
    fewer than `ngram` words. `sha1` is its first eight bytes as a little-endian number. `tokens`
    [texts, 2] is a 128-bit digest of each text's words, zeros for a text without any. Memory is
    about 25 bytes a character.
    """
    simple = list(map(simplify_text, texts))
    codes, offsets = code_points("".join(simple)), np.cumsum([0, *map(len, simple)])
    token_offsets, starts, ends = find_spacy_tokens(codes, offsets)
    data, starts, ends = _join_tokens(codes, starts, ends)
    counts = np.maximum(np.diff(token_offsets) - (ngram - 1), 0)
    shingle_offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(counts, out=shingle_offsets[1:])
    first = np.repeat(token_offsets[:-1] - shingle_offsets[:-1], counts)
    first += np.arange(shingle_offsets[-1])
    hashes = hash_slices(hash, data, starts[first], ends[first + (ngram - 1)])
    return hashes, shingle_offsets, _token_digests(data, token_offsets, starts, ends)


def hash_slices(
    hash: Literal["sha1", "xxh64"],
    data: bytes,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.uint64]:
    """The 64-bit hash of each data[start:end], which may overlap: uint64 [slices].

    `sha1` is the first eight bytes of the digest as a little-endian number.
    """
    slices = (data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True))
    if hash == "xxh64":
        return np.fromiter(map(xxhash.xxh64_intdigest, slices), np.uint64, len(starts))
    digests = [hashlib.sha1(part, usedforsecurity=False).digest()[:8] for part in slices]
    return np.frombuffer(b"".join(digests), dtype="<u8")


def simplify_text(text: str) -> str:
    """The text as `simplify_text` leaves it.

    In this order: lower case; a number, with one decimal part at most, becomes 0; punctuation
    becomes space; white space is squeezed and stripped; accents are removed (NFD without Mn);
    spaces at the ends are stripped again.
    """
    lowered = text.lower()
    if lowered.isascii():
        return " ".join(_ASCII_NUMBER.sub("0", lowered).translate(_TO_SPACE).split())
    squeezed = " ".join(_NUMBER.sub("0", lowered).translate(_TO_SPACE).split())
    parts = unicodedata.normalize("NFD", squeezed)
    return "".join([part for part in parts if unicodedata.category(part) != "Mn"]).strip()


def _join_tokens(
    codes: NDArray[np.uint32], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[bytes, NDArray[np.int64], NDArray[np.int64]]:
    """The tokens in UTF-8 with a space after each, and the bytes [start, end) of each.

    So the words of any n-gram, joined by one space, lie in one piece. What is between tokens is
    spaces alone.
    """
    joined = np.insert(codes[codes != _SPACE], np.cumsum(ends - starts), _SPACE)
    widths = 1 + (joined >= 0x80) + (joined >= 0x800) + (joined >= 0x10000)
    after = np.cumsum(widths)[joined == _SPACE]
    text = joined.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    return text.encode("utf-8", "surrogatepass"), np.append(0, after)[:-1], after - 1


def _token_digests(
    data: bytes,
    token_offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.uint64]:
    digests = np.zeros((len(token_offsets) - 1, 2), dtype=np.uint64)
    some = np.flatnonzero(np.diff(token_offsets))
    first, last = starts[token_offsets[some]], ends[token_offsets[some + 1] - 1]
    named = b"".join(
        xxhash.xxh3_128_digest(data[start:end])
        for start, end in zip(first.tolist(), last.tolist(), strict=True)
    )
    digests[some] = np.frombuffer(named, dtype=">u8").reshape(-1, 2)
    return digests
