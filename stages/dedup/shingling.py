"""Texts to the 64-bit hashes of their shingles, straight from Arrow's buffers.

By default a text is folded (`stages.dedup.folding`) and its words are hashed without a Python
object for any of them. Other systems' normalisations go through Python strings.

A token is a word or a character of a text as it is read. A word's hash depends on its bytes only,
so it is the same wherever the word occurs. A shingle's hash is a polynomial in those of its tokens,
so that their order counts, mixed until every bit depends on all of them. Two of k distinct shingles
share a hash with a probability of about k²/2⁶⁵.

All reads take eight or sixty-four bytes at a time, up to `PADDING` bytes past the end of a text.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from xxhash import xxh3_128_digest

from stages.dedup.folding import (
    EXPANSION,
    PADDING,
    FoldTable,
    decode,
    fold_bytes,
    load_eight,
    lowest_bit,
    multiply_halves,
    unspaced_bits,
    word_bits,
)
from stages.dedup.presets import Settings
from stages.engine.kernels import kernel

FOLDED, SPACED, RAW = range(3)
"""How bytes are read. Folded: ASCII letters (small for capital), digits and all beyond ASCII make
words. Spaced: all but the space does. Raw: every character counts; there are no words."""

DONE, NO_ROOM = -1, -2

BASE = 0xD1342543DE82EF95
"""Of a shingle's polynomial: a multiplier of Steele and Vigna (2021), odd and well spread."""
_BASE = np.uint64(BASE)
_LENGTH, _MIDDLE, _LAST, _OTHER = (
    np.uint64(secret)
    for secret in (0x9E3779B97F4A7C15, 0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3)
)
"""Odd random numbers: the golden ratio and three of wyhash's secrets."""

_SMALL, _HIGH = np.uint64(0x2020202020202020), np.uint64(0x8080808080808080)
_ZERO, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
_SPACE_CODE = ord(" ")


class Form(NamedTuple):
    """What shingles are made of; `power` is BASE to the `ngram`, modulo 2^64."""

    reading: int
    characters: bool
    ngram: int
    power: np.uint64


class Fold(NamedTuple):
    """`entries` and `pool` of a FoldTable, and room for the fold of the longest text."""

    entries: NDArray[np.uint64]
    pool: NDArray[np.uint8]
    folded: NDArray[np.uint8]


class Output(NamedTuple):
    """Where results go: text d has the shingles [ends[d], ends[d + 1]) of `hashes`."""

    hashes: NDArray[np.uint64]
    ends: NDArray[np.int64]
    digests: NDArray[np.uint64]
    """[texts, 2] 128-bit hash of each text's tokens, in order."""


@kernel
def shingle_texts(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    first: int,
    last: int,
    form: Form,
    fold: Fold,
    room: Output,
) -> tuple[int, int]:
    """Shingle the UTF-8 texts `first` to `last`; text d is data[offsets[d] : offsets[d + 1]].

    Returns the text at which it stopped, and why: DONE; NO_ROOM in `hashes`; or a code point that
    the table must learn. Called again with that text as first, it goes on.
    """
    used = room.ends[first]
    for text in range(first, last):
        start, end = offsets[text], offsets[text + 1]
        source = data
        if form.reading == FOLDED and not is_ascii(data, start, end):
            end = fold_bytes(data, start, end, fold.entries, fold.pool, fold.folded)
            if end < 0:
                return text, -1 - end
            source, start = fold.folded, 0
        most = end - start if form.characters else (end - start + 1) // 2
        if used + most > len(room.hashes):
            return text, NO_ROOM
        if form.characters:
            count = _hash_characters(source, start, end, form.reading, room.hashes, used)
        else:
            count = _hash_words(source, start, end, form.reading, room.hashes, used)
        tokens = room.hashes[used : used + count]
        room.digests[text, 0], room.digests[text, 1] = _digest(tokens)
        used += _hash_shingles(tokens, form.ngram, form.power)
        room.ends[text + 1] = used
    return last, DONE


@kernel
def is_ascii(data: NDArray[np.uint8], start: int, end: int) -> bool:
    """Whether no byte of [start, end) is above 0x7F."""
    seen = _ZERO
    for i in range(start, end - 7, 8):
        seen |= load_eight(data, i)
    left = (end - start) & 7
    if left:
        seen |= load_eight(data, end - left) & _lowest(left)
    return not seen & _HIGH


@kernel
def _hash_words(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    reading: int,
    hashes: NDArray[np.uint64],
    used: int,
) -> int:
    """Write the number of each word of [start, end) from hashes[used] on; returns how many.

    Sixty-four bytes are classified together; then the bits at which words begin and end are read.
    """
    first = used
    case = _SMALL if reading == FOLDED else _ZERO
    word, inside = start, _ZERO
    for base in range(start, end, 64):
        bits = word_bits(data, base) if reading == FOLDED else unspaced_bits(data, base)
        if end - base < 64:
            bits &= (_ONE << np.uint64(end - base)) - _ONE
        before = bits << _ONE | inside
        starts, stops = bits & ~before, before & ~bits
        if not inside:
            word = base + lowest_bit(starts)
            starts &= starts - _ONE
        while stops:
            hashes[used] = hash_word(data, word, base + lowest_bit(stops), case)
            used += 1
            stops &= stops - _ONE
            word = base + lowest_bit(starts)
            starts &= starts - _ONE
        inside = bits >> np.uint64(63)
    if inside:
        hashes[used] = hash_word(data, word, end, case)
        used += 1
    return used - first


@kernel
def hash_word(data: NDArray[np.uint8], start: int, end: int, case: np.uint64) -> np.uint64:
    """The number of the word data[start:end], of at least one byte.

    Its length and its bytes, eight at a time, go through the folded 128-bit product of wyhash. The
    bit 0x20 is set in ASCII bytes if `case` has it in every byte: capitals become small letters.
    """
    value = np.uint64(end - start) * _LENGTH
    while end - start > 8:
        value = multiply_halves(value ^ _lower(load_eight(data, start), case), _MIDDLE)
        start += 8
    eight = _lower(load_eight(data, start), case) & _lowest(end - start)
    return multiply_halves(value ^ eight, _LAST)


@kernel
def _lower(eight: np.uint64, case: np.uint64) -> np.uint64:
    """`eight` with the bits of `case` set in its ASCII bytes."""
    return eight | case & ~((eight & _HIGH) >> np.uint64(2))


@kernel
def _lowest(count: int) -> np.uint64:
    """The lowest `count` bytes of a word set, 1 to 8."""
    return _ALL >> np.uint64(64 - 8 * count)


@kernel
def _hash_characters(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    reading: int,
    hashes: NDArray[np.uint64],
    used: int,
) -> int:
    """Write the number of each character of [start, end) from hashes[used] on; returns how many.

    Unless read raw: of the words, with one space between two of them.
    """
    first, i, gap = used, start, False
    while i < end:
        code, size = decode(load_eight(data, i), end - i)
        i += size
        if reading == FOLDED and code < 0x80:
            parts = not (0x61 <= code | 0x20 <= 0x7A or 0x30 <= code <= 0x39)
            code |= 0x20
        else:
            parts = reading == SPACED and code == _SPACE_CODE
        if parts:
            gap = used > first
            continue
        if gap:
            hashes[used] = _hash_character(_SPACE_CODE)
            used, gap = used + 1, False
        hashes[used] = _hash_character(code)
        used += 1
    return used - first


@kernel
def _hash_character(code: int | np.int64) -> np.uint64:
    return multiply_halves(np.uint64(code) ^ _LENGTH, _LAST)


@kernel
def _digest(tokens: NDArray[np.uint64]) -> tuple[np.uint64, np.uint64]:
    """128 bits of the sequence of `tokens`: two sums of mixed numbers of token and place.

    Not a polynomial: a sum needs no token before the next, so processors add many at once.
    """
    left, right = _ZERO, _ZERO
    for i in range(len(tokens)):
        placed = tokens[i] + np.uint64(i) * _LENGTH
        left += mix(placed)
        right += mix(placed ^ _OTHER)
    length = np.uint64(len(tokens)) * _MIDDLE
    return mix(left + length), mix(right ^ length)


@kernel
def _hash_shingles(tokens: NDArray[np.uint64], ngram: int, power: np.uint64) -> int:
    """Put the numbers of the shingles in the place of the tokens'; returns how many.

    Fewer than `ngram` tokens make one shingle. A token leaves the polynomial as the next one comes.
    """
    if len(tokens) == 0:
        return 0
    width = min(ngram, len(tokens))
    shingles, coming = tokens[: len(tokens) - width + 1], tokens[width:]
    polynomial = _ZERO
    for i in range(width):
        polynomial = polynomial * _BASE + tokens[i]
    for i in range(len(coming)):
        leaving, shingles[i] = shingles[i], polynomial
        polynomial = polynomial * _BASE + (coming[i] - leaving * power)
    shingles[-1] = polynomial
    for i in range(len(shingles)):
        shingles[i] = mix(shingles[i])
    return len(shingles)


@kernel
def mix(value: np.uint64) -> np.uint64:
    """A bijection of 64-bit numbers that spreads every bit over all: SplitMix64's last step.

    Steele, Lea and Flood (2014), with the constants of Stafford's variant 13.
    """
    value = (value ^ value >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ value >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return value ^ value >> np.uint64(31)


MARIN_CHARACTERS = 500_000
"""Characters of a text that Marin reads (its `text_cap_chars`)."""

_PUNCTUATION: dict[int, str | None] = dict.fromkeys(map(ord, string.punctuation))
_SPACES_ONLY: dict[int, str | None] = {code: " " for code in range(0x3001) if chr(code).isspace()}
_NO_PUNCTUATION = _PUNCTUATION | _SPACES_ONLY
_NO_PUNCTUATION_RUST = {
    code: char for code, char in _NO_PUNCTUATION.items() if not 0x1C <= code <= 0x1F
}
"""Rust's white space is Unicode's property, Python's has four separators more."""


def redpajama(text: str) -> str:
    """RedPajama-V2's `normalize` (app/src/utilities/text/normalization.py): the same words.

    ASCII punctuation is deleted, letters become small, then NFD. White space is not squeezed.
    """
    return unicodedata.normalize("NFD", text.translate(_NO_PUNCTUATION).lower())


def marin(text: str) -> str:
    """Marin's `CleanText` (rust/dupekit/src/minhash_ops.rs) of what it reads: the same words.

    Letters become small, ASCII punctuation is deleted. White space is not squeezed.
    """
    return text[:MARIN_CHARACTERS].lower().translate(_NO_PUNCTUATION_RUST)


def squeeze_spaces(text: str) -> str:
    """The words of a text as it is."""
    return " ".join(text.split())


_NORMALISED: dict[str, Callable[[str], str]] = {
    "redpajama": redpajama,
    "marin": marin,
    "none": squeeze_spaces,
}

_table = FoldTable()

Bytes = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""(data, offsets): text d is the UTF-8 of data[offsets[d] : offsets[d + 1]]."""


@dataclass(frozen=True, eq=False)
class ShingledTexts:
    """The shingles and digests of one batch of texts, in order."""

    hashes: NDArray[np.uint64]
    """[shingles] of all documents end to end, in text order, repeats included."""
    offsets: NDArray[np.int64]
    """[documents + 1] document d has the shingles [offsets[d], offsets[d + 1])."""
    tokens: NDArray[np.uint64]
    """[documents, 2] 128-bit hash of the normalised tokens; means nothing where there are none."""
    has_tokens: NDArray[np.bool_]
    raw: Bytes

    @cached_property
    def texts(self) -> NDArray[np.uint64]:
        """[documents, 2] XXH3-128 of the raw UTF-8 bytes, upper half first."""
        return _text_digests(*self.raw)

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """[documents, 2] 128-bit hash of the normalised tokens; where there are none, that of the
        raw bytes, so that only an equal text has the same."""
        return np.where(self.has_tokens[:, None], self.tokens, self.texts)


Shingler = Callable[[pa.Array], ShingledTexts]
"""Takes texts as `pa.string()` or `pa.large_string()`, sliced or not, without nulls."""


def shingler(settings: Settings) -> Shingler:
    """The function that turns texts into shingles as `settings` define.

    A text of fewer tokens than an n-gram has one shingle, all of them; one without tokens has none.
    Memory is eight bytes a token and the fold of the longest text; address space is taken for the
    worst case, but not touched. Raises ValueError for settings that do not go together; the
    shingler does for nulls and other types.
    """
    if settings.ngram < 1:
        raise ValueError(f"an n-gram has at least one token, not {settings.ngram}")
    characters = settings.unit == "character"
    if settings.normalise == "datatrove" and settings.hash != "ingot" and not characters:
        return partial(_shingle_by_datatrove, ngram=settings.ngram, hash=settings.hash)
    if settings.normalise == "datatrove" or settings.hash != "ingot":
        raise ValueError(
            f"datatrove's normalisation goes with its hashes of words, not {settings.normalise} "
            f"with {settings.hash} of {settings.unit}s"
        )
    power = np.uint64(pow(BASE, settings.ngram, 1 << 64))
    if settings.normalise == "fold":
        return partial(_shingle_texts, form=Form(FOLDED, characters, settings.ngram, power))
    if settings.normalise == "none" and characters:
        return partial(_shingle_texts, form=Form(RAW, characters, settings.ngram, power))
    form = Form(SPACED, characters, settings.ngram, power)
    return partial(_shingle_texts, form=form, normalised=_NORMALISED[settings.normalise])


def _shingle_texts(
    texts: pa.Array, *, form: Form, normalised: Callable[[str], str] | None = None
) -> ShingledTexts:
    raw = _arrow_bytes(texts)
    if normalised is None:
        hashes, offsets, tokens = _shingle_bytes(*raw, form)
    else:
        hashes, offsets, tokens = _shingle_bytes(
            *_encode_texts(map(normalised, texts.to_pylist())), form
        )
    return ShingledTexts(hashes, offsets, tokens, offsets[1:] > offsets[:-1], raw)


def _shingle_by_datatrove(
    texts: pa.Array, *, ngram: int, hash: Literal["sha1", "xxh64"]
) -> ShingledTexts:
    # spaCy's tables would add a tenth of a second to the start of every worker.
    from stages.dedup.datatrove import datatrove_shingles

    hashes, offsets, tokens = datatrove_shingles(texts.to_pylist(), ngram, hash)
    has_tokens = (tokens[:, 0] | tokens[:, 1]) != 0
    return ShingledTexts(hashes, offsets, tokens, has_tokens, _arrow_bytes(texts))


def _shingle_bytes(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], form: Form
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64]]:
    """Hashes, their offsets, and digests of the tokens."""
    count = len(offsets) - 1
    total, longest = int(offsets[-1] - offsets[0]), int(np.diff(offsets).max(initial=0))
    fold = Fold(_table.entries, _table.pool, np.empty(EXPANSION * longest + PADDING, np.uint8))
    room = Output(
        # What is too much is never touched: an English word takes six bytes of text.
        hashes=np.empty((total if form.characters else total // 4) + longest + 1, np.uint64),
        ends=np.zeros(count + 1, np.int64),
        digests=np.empty((count, 2), np.uint64),
    )
    for piece, places, first, last in _pad_texts(data, offsets):
        text, stop = shingle_texts(piece, places, first, last, form, fold, room)
        while stop != DONE:
            if stop == NO_ROOM:
                room = _grow(room, int(room.ends[text]))
            else:
                _table.learn(stop)
            text, stop = shingle_texts(piece, places, text, last, form, fold, room)
    return room.hashes[: room.ends[-1]], room.ends, room.digests


def _grow(room: Output, used: int) -> Output:
    hashes = np.empty(2 * len(room.hashes), dtype=np.uint64)
    hashes[:used] = room.hashes[:used]
    return room._replace(hashes=hashes)


def _pad_texts(
    data: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], int, int]]:
    """Pieces (data, offsets, first, last) with PADDING bytes after each text from first to last.

    The last texts are copied: bytes after the end of Arrow's buffers must not be read.
    """
    count = len(offsets) - 1
    safe = max(int(np.searchsorted(offsets, len(data) - PADDING, side="right")) - 1, 0)
    yield data, offsets, 0, safe
    tail = data[offsets[safe] : offsets[count]]
    padded = np.concatenate([tail, np.zeros(PADDING, dtype=np.uint8)])
    padded.flags.writeable = False  # As Arrow's: kernels are compiled for one kind of array.
    yield padded, offsets - offsets[safe], safe, count


def _arrow_bytes(texts: pa.Array) -> Bytes:
    """The buffers of a string array, nothing copied but 32-bit offsets."""
    if texts.null_count:
        raise ValueError(f"{texts.null_count} texts are null")
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        raise ValueError(f"texts are strings, not {texts.type}")
    if len(texts) == 0:
        return np.frombuffer(b"", dtype=np.uint8), np.zeros(1, dtype=np.int64)
    _, places, content = texts.buffers()
    width = np.int32 if pa.types.is_string(texts.type) else np.int64
    offsets = np.frombuffer(places, dtype=width)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(content if content is not None else b"", dtype=np.uint8)
    data.flags.writeable = False
    return data, offsets.astype(np.int64)


def _encode_texts(texts: Iterator[str]) -> Bytes:
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return np.frombuffer(b"".join([*encoded, bytes(PADDING)]), dtype=np.uint8), offsets


def _text_digests(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    view = data.data
    places = pairwise(offsets.tolist())
    digests = b"".join([xxh3_128_digest(view[start:end]) for start, end in places])
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64).reshape(-1, 2)
