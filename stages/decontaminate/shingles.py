"""Text as n-gram overlap sees it: normalised words, and word n-grams as 64-bit numbers.

The steps of normalisation and their order are those of datatrove's `simplify_text`, with which
FineWeb was deduplicated (Penedo et al. 2024): lower case; each number becomes 0; punctuation
becomes a space; white space is squeezed; accents are dropped (NFD without Mn). What behaves better
here: the full-width digit one is a number; the opening quote marks are punctuation like their
closing ones; a number is one however many separators it has (`1,200.50`), so that another number
in its place changes nothing; an apostrophe is dropped (`don't`, `don’t` and `dont` are one word);
full-width letters, ligatures and other compatibility forms are their plain letters (NFKD instead of
NFD, and first); format characters (soft hyphen, zero width) are dropped.
Before that, `plain_words` takes out the tags of HTML and XML and decodes entities.

A word's number is XXH3-64 of its UTF-8 bytes; an n-gram's number is a polynomial in those of its
words, so word order counts, mixed so that every bit depends on all of them. The numbers are equal
on every machine, in every process and every run. Distinct n-grams share a number with a chance of
about k²/2⁶⁵ among k of them: 1e-6 for six million, so no caller compares the words behind two equal
numbers.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import regex
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from stages.text.characters import PUNCTUATION
from stages.text.words import split_words

_ASCII_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_NUMBER = regex.compile(r"\p{Nd}+(?:[.,،٫٬⎖⎗⎘]\p{Nd}+)*")
_UNSEEN = regex.compile(r"[\p{Mn}\p{Cf}]+")
_APOSTROPHES = dict.fromkeys(map(ord, "'’"))
_TO_SPACE = {**dict.fromkeys(map(ord, PUNCTUATION | frozenset("‘‹›")), " "), **_APOSTROPHES}


def normalise(text: str) -> str:
    """`text` in lower case, numbers as 0, punctuation as single spaces, accents removed, stripped.

    "Rose by 1.5 – très CHER!" becomes "rose by 0 tres cher". Any string is fine; the result may be
    empty.
    """
    if text.isascii():
        numbered = _ASCII_NUMBER.sub("0", text.lower())
        return " ".join(numbered.translate(_TO_SPACE).split())
    plain = _UNSEEN.sub("", unicodedata.normalize("NFKD", text)).lower()
    # A small letter may be two characters, of which one is a mark (İ).
    numbered = _NUMBER.sub("0", _UNSEEN.sub("", plain))
    return " ".join(numbered.translate(_TO_SPACE).split())


def normalise_words(text: str) -> list[str]:
    """The words of the normalised text, `words(normalise(text))`."""
    plain = normalise(text)
    # ASCII without punctuation is letters, digits and spaces, which splitting at spaces divides
    # alike.
    return plain.split() if plain.isascii() else split_words(plain)


_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9-]{0,30}(?:\s[^<>]{0,500})?/?>|<!--[^<>]{0,500}-->")
_ENTITY = re.compile(r"&(?:#[0-9]{1,6}|#[xX][0-9A-Fa-f]{1,5}|[A-Za-z][A-Za-z0-9]{1,24});")
_JOINER = "\u034f"
"""A combining mark without a form: normalisation drops it, so that it fills up a decoded entity."""


def strip_markup(text: str) -> str:
    """`text`, as long as it was, with spaces for the tags of HTML and XML, and entities decoded."""
    if "<" in text:
        text = _TAG.sub(lambda tag: " " * len(tag[0]), text)
    return _ENTITY.sub(_decode, text) if "&" in text else text


def _decode(entity: re.Match[str]) -> str:
    decoded = html.unescape(entity[0])
    if len(decoded) != 1:  # Unknown, or one of the few that stand for two characters.
        return entity[0]
    # An apostrophe or a soft hyphen joins the letters around it as well: `don&#39;t` is one word.
    joins = decoded.isalnum() or ord(decoded) in _APOSTROPHES or _UNSEEN.match(decoded)
    filler = _JOINER if joins else " "
    return decoded + filler * (len(entity[0]) - 1)


def plain_words(text: str) -> list[str]:
    """The words that n-grams are made of: those of the normalised text without markup."""
    return normalise_words(strip_markup(text))


_BASE = 0x9E3779B97F4A7C15
_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)


@lru_cache(maxsize=1 << 17)
def _word_hash(word: str) -> int:
    return xxh3_64_intdigest(word.encode("utf-8", "surrogatepass"))


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64-bit numbers that spreads every bit over all (shift, multiply, twice)."""
    mixed = values ^ (values >> _HALF)
    mixed *= _MULTIPLIER
    mixed ^= mixed >> _HALF
    mixed *= _MULTIPLIER
    mixed ^= mixed >> _HALF
    return mixed


def word_hashes(words: Sequence[str]) -> NDArray[np.uint64]:
    """The 64-bit number of each word, in order."""
    return np.fromiter(map(_word_hash, words), dtype=np.uint64, count=len(words))


def ngram_hashes(hashes: NDArray[np.uint64], n: int) -> NDArray[np.uint64]:
    """The number of each n-gram of consecutive words, given the words' numbers.

    There are length − n + 1 of them, none where that is not positive. The cost does not depend on
    `n`: the polynomial over words i to i + n is a difference of two running sums, divided by the
    base to the power of i. Raises ValueError for n < 1.
    """
    if n < 1:
        raise ValueError(f"an n-gram has at least one word, not {n}")
    count = max(len(hashes) - n + 1, 0)
    powers, inverse_powers = _powers(_capacity(len(hashes)))
    sums = np.zeros(len(hashes) + 1, dtype=np.uint64)
    np.cumsum(hashes * powers[: len(hashes)], out=sums[1:])
    return mix((sums[n:] - sums[:count]) * inverse_powers[:count])


def _capacity(length: int) -> int:
    """The least power of two that is at least `length`, and at least 1024."""
    return max(1 << (length - 1).bit_length() if length else 0, 1024)


@lru_cache(maxsize=32)
def _powers(length: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The first `length` powers of the base and of its inverse, modulo 2^64."""
    return base_powers(_BASE, length), base_powers(pow(_BASE, -1, 1 << 64), length)


def base_powers(base: int, length: int) -> NDArray[np.uint64]:
    """base^0 to base^(length − 1), modulo 2^64."""
    factors = np.full(length, base, dtype=np.uint64)
    factors[0] = 1
    return np.cumprod(factors, dtype=np.uint64)
