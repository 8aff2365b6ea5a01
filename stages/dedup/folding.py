"""The fold of a text: its letters and numbers, without case, marks or typography.

The fold is the compatibility decomposition (NFKD) without combining marks and format characters
(zero width, soft hyphen), case-folded, repeated until nothing changes; a decimal digit of any
script (category Nd) is then the ASCII digit of its value. Of the result, letters, numbers and
spacing vowel signs (categories L, N, Mc) make words; everything else separates them, the low line
too. So quotation marks, full-width forms, ligatures, accents, combining marks, the digits of a
region and case never separate two copies, while numbers do: tables that differ in their figures are
not copies.

In scripts without spaces each letter is a word of its own, as in `stages.text.words`, with the
spacing vowel signs after it. Katakana is one of them here: a loan word may be written with or
without a middle dot or space between its parts, and in one Japanese text a shingle should span as
many characters in either syllabary. Digits of those scripts stay together, as all numbers do.

A combining mark has a combining class, or is of category Mn or Me. All that decomposition reorders
is thereby dropped, so the fold of a text is that of its code points one by one, and texts that are
canonically or compatibly equal have one fold.

The first functions are single LLVM instructions on eight and sixty-four bytes that numba has no
expression for. None checks bounds: the caller is responsible for the bytes. The first of eight
bytes is the lowest, as on all machines that numba supports. Plain numba loops give the same hashes
of words at 3.6 instead of 0.6 ns a byte: 6 µs more for a document of 359 words, for which `dedup`
takes 58 µs, or 23 with `verify: false` (docs/stages/dedup.md, "How fast").
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import regex
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from stages.engine.kernels import kernel

Bytes = NDArray[np.uint8]

_WORD = ir.IntType(64)
_DOUBLE = ir.IntType(128)
_SIXTY_FOUR = ir.VectorType(ir.IntType(8), 64)


def _pointer(context: Any, builder: Any, array_type: Any, arguments: Any, target: Any) -> Any:
    """The address of element `arguments[1]` of a contiguous array, as a pointer to `target`."""
    array = context.make_array(array_type)(context, builder, arguments[0])
    return builder.bitcast(builder.gep(array.data, [arguments[1]]), target.as_pointer())


def _all(byte: int) -> Any:
    return ir.Constant(_SIXTY_FOUR, [byte] * 64)


def _load_eight(typing: Any, data: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments, _WORD)
        return builder.load(pointer, align=1)

    return types.uint64(data, types.int64), generate


def _store_eight(typing: Any, data: Any, place: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments, _WORD)
        builder.store(arguments[2], pointer, align=1)
        return context.get_dummy_value()

    return types.void(data, types.int64, types.uint64), generate


def _word_bits(typing: Any, data: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments, _SIXTY_FOUR)
        block = builder.load(pointer, align=1)
        small = builder.or_(block, _all(0x20))
        letters = builder.icmp_unsigned("<", builder.sub(small, _all(ord("a"))), _all(26))
        digits = builder.icmp_unsigned("<", builder.sub(block, _all(ord("0"))), _all(10))
        beyond = builder.icmp_unsigned(">=", block, _all(0x80))
        return builder.bitcast(builder.or_(builder.or_(letters, digits), beyond), _WORD)

    return types.uint64(data, types.int64), generate


def _unspaced_bits(typing: Any, data: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments, _SIXTY_FOUR)
        block = builder.load(pointer, align=1)
        return builder.bitcast(builder.icmp_unsigned("!=", block, _all(ord(" "))), _WORD)

    return types.uint64(data, types.int64), generate


def _lowest_bit(typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


def _multiply_halves(typing: Any, left: Any, right: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        product = builder.mul(*(builder.zext(argument, _DOUBLE) for argument in arguments))
        upper = builder.lshr(product, ir.Constant(_DOUBLE, 64))
        return builder.xor(builder.trunc(product, _WORD), builder.trunc(upper, _WORD))

    return types.uint64(types.uint64, types.uint64), generate


def _compiled_only(generator: Callable[..., Any]) -> Any:
    return intrinsic(generator)


load_eight: Callable[[Bytes, int], np.uint64] = _compiled_only(_load_eight)
"""The eight bytes of `data` from a place on, as one number."""

store_eight: Callable[[Bytes, int, np.uint64], None] = _compiled_only(_store_eight)
"""Write a number over the eight bytes of `data` from a place on."""

word_bits: Callable[[Bytes, int], np.uint64] = _compiled_only(_word_bits)
"""Bit k: whether the k-th byte from a place on is an ASCII letter or digit, or beyond ASCII."""

unspaced_bits: Callable[[Bytes, int], np.uint64] = _compiled_only(_unspaced_bits)
"""Bit k: whether the k-th byte from a place on is another than the space."""

lowest_bit: Callable[[np.uint64], int] = _compiled_only(_lowest_bit)
"""Place of the lowest bit that is set in a number; 64 where none is."""

multiply_halves: Callable[[np.uint64, np.uint64], np.uint64] = _compiled_only(_multiply_halves)
"""Upper half XOR lower half of the 128-bit product."""


EXPANSION = 12
"""The fold of a text has at most as many times its bytes, and `PADDING` more may be written."""
PADDING = 64

_ALONE = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー〆〼〱-〵]",
    flags=regex.VERSION1,
)
"""Scripts without spaces, and signs that Unicode counts to no script since both kana use them."""

_BLOCK = 32
"""Code points that are learned together: 10 µs each, and few texts need all of 256 neighbours."""
_POOL = 1 << 18
_INLINE = 6

_SPACE = np.uint8(ord(" "))
_HIGH = np.uint64(0x8080808080808080)
_TOP, _FOUR = np.uint64(0x80), np.uint64(0xFFFFFFFF)
_LENGTH_AT, _LENGTH = np.uint64(48), np.uint64(63)
_PLACE = np.uint64(0xFFFFFFFF)
_KNOWN, _POOLED, _JOINS, _KEEPS, _LEAVES = (np.uint64(1 << bit) for bit in (63, 62, 61, 60, 59))
"""Flags of an entry above its length (6 bits) and its bytes or, if pooled, their place: it begins
with a letter that would join a word before it; it leaves what came before as it was (marks or
nothing); it ends with a letter that is a word of its own."""


class FoldTable:
    """The fold of each code point, computed when one of its block is first needed.

    `entries` is uint64 [0x110000], zero where unknown. A fold of up to six bytes lies in its entry,
    a longer one in `pool`. Bytes are UTF-8, a space wherever words are separated. The
    content depends on the code point only, never on earlier texts.
    """

    def __init__(self) -> None:
        self.entries: NDArray[np.uint64] = np.zeros(0x110000, dtype=np.uint64)
        self.pool: NDArray[np.uint8] = np.zeros(_POOL, dtype=np.uint8)
        self._used = 0
        self._lock = Lock()

    def learn(self, code: int) -> None:
        """Work out the fold of `code` and of the code points around it."""
        first = code - code % _BLOCK
        with self._lock:
            for neighbour in range(first, first + _BLOCK):
                self.entries[neighbour] = self._entry(fold_character(chr(neighbour)))

    def _entry(self, folded: str) -> np.uint64:
        text, flags = _spaced(folded)
        encoded = text.encode()
        if len(encoded) > _INLINE:
            place, self._used = self._used, self._used + len(encoded)
            self.pool[place : self._used] = np.frombuffer(encoded, dtype=np.uint8)
            content, flags = np.uint64(place), flags | _POOLED
        else:
            content = np.uint64(int.from_bytes(encoded, "little"))
        return flags | np.uint64(len(encoded)) << _LENGTH_AT | content


def fold_character(char: str) -> str:
    """The fold of one code point: letters, marks and symbols, none parted yet."""
    folded = ""
    while folded != char:
        folded, char = char, _without_marks(unicodedata.normalize("NFKD", char)).casefold()
    return "".join(str(unicodedata.decimal(one, one)) for one in folded)


def _without_marks(text: str) -> str:
    return "".join(
        char
        for char in text
        if unicodedata.category(char) not in ("Mn", "Me", "Cf") and not unicodedata.combining(char)
    )


def _spaced(folded: str) -> tuple[str, np.uint64]:
    """A fold with spaces where words part in it, and the flags of its entry."""
    text, flags = "", _KNOWN
    alone: bool | None = None
    for char in folded:
        category = unicodedata.category(char)
        if category == "Mc":
            text += char
        elif category[0] == "L" or category[0] == "N":
            stands_alone = category != "Nd" and _ALONE.match(char) is not None
            if alone is None and not stands_alone:
                flags |= _JOINS
            text += f" {char}" if stands_alone or alone else char
            alone = stands_alone
        else:
            text += " "
            alone = False
    if alone is None:
        flags |= _KEEPS
    return text, flags | (_LEAVES if alone else np.uint64(0))


@kernel
def fold_bytes(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    entries: NDArray[np.uint64],
    pool: NDArray[np.uint8],
    folded: NDArray[np.uint8],
) -> int:
    """Write the fold of the UTF-8 text data[start:end] to `folded`: words parted by spaces.

    ASCII is copied unchanged: the reader of the fold treats its capitals as small letters, and
    everything but letters and digits as a space. Bytes that are not UTF-8 separate words. `folded`
    has room for EXPANSION * (end - start) + PADDING bytes.

    Returns the bytes written or, where a code point is unknown to the table, -1 minus that.
    """
    i, length, alone = start, 0, False
    while i < end:
        eight = load_eight(data, i)
        if not eight & _TOP:
            if alone:
                folded[length] = _SPACE
                length, alone = length + 1, False
            copied = _copy_ascii(data, i, end, folded, length)
            i, length = i + copied, length + copied
            continue
        code, size = decode(eight, end - i)
        entry = entries[code]
        if not entry:
            return -1 - int(code)
        i += size
        if alone and entry & _JOINS:
            folded[length] = _SPACE
            length += 1
        written = int(np.int64((entry >> _LENGTH_AT) & _LENGTH))
        if entry & _POOLED:
            place = np.int64(entry & _PLACE)
            for k in range(written):
                folded[length + k] = pool[place + k]
        else:
            store_eight(folded, length, entry)
        length += written
        if not entry & _KEEPS:
            alone = entry & _LEAVES != 0
    return length


@kernel
def _copy_ascii(
    data: NDArray[np.uint8], start: int, end: int, folded: NDArray[np.uint8], place: int
) -> int:
    """Copy the bytes from `start` up to the first that is no ASCII; returns how many."""
    i = start
    while i < end:
        eight = load_eight(data, i)
        store_eight(folded, place + i - start, eight)
        high = eight & _HIGH
        if high:
            return min(i + (lowest_bit(high) >> 3), end) - start
        i += 8
    return end - start


@kernel
def decode(eight: np.uint64, left: int) -> tuple[int | np.int64, int]:
    """The code point whose UTF-8 `eight` bytes begin with, and its bytes; (0, 1) for what is none.

    No more than `left` bytes are taken. Overlong forms are accepted.
    """
    four = np.int64(eight & _FOUR)
    second, third, fourth = four >> 8 & 0x3F, four >> 16 & 0x3F, four >> 24 & 0x3F
    if four & 0x80 == 0:
        return four & 0x7F, 1
    if four & 0xC0C0F0 == 0x8080E0 and left >= 3:
        return (four & 0x0F) << 12 | second << 6 | third, 3
    if four & 0xC0E0 == 0x80C0 and left >= 2:
        return (four & 0x1F) << 6 | second, 2
    code = (four & 0x07) << 18 | second << 12 | third << 6 | fourth
    if four & 0xC0C0C0F8 == 0x808080F0 and left >= 4 and code <= 0x10FFFF:
        return code, 4
    return 0, 1
