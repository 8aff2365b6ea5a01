"""Words as integers, found in UTF-8 text by a compiled hash table that holds no Python object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stages.engine.kernels import kernel

UNKNOWN, BEGIN, END = 0, 1, 2
"""Ids of <unk>, <s> and </s>: lmplz's numbers."""

SPECIAL = (b"<unk>", b"<s>", b"</s>")

_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x9E3779B185EBCA87)
_S29, _S32 = np.uint64(29), np.uint64(32)


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines of tokens in UTF-8: line i is data[offsets[i]:offsets[i + 1]].

    Tokens are separated by NUL and ASCII white space: what lmplz and kenlm's Python module take for
    it, together.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def from_texts(cls, lines: Sequence[str]) -> Lines:
        """Lone surrogates become U+FFFD."""
        parts = [utf8(line) for line in lines]
        offsets = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return cls(np.frombuffer(b"".join(parts), dtype=np.uint8), offsets)


def utf8(text: str) -> bytes:
    """`text` in UTF-8; a lone surrogate, which has no UTF-8, as U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


@dataclass(eq=False)
class Vocabulary:
    """Words in the order of their ids, and the table that finds them.

    Word i is arena[ends[i]:ends[i + 1]]. `slots` [2^k, 2] is an open-addressing table of hashes
    and ids + 1, zeros where empty: words are known by 64 bits, as in kenlm.
    """

    arena: NDArray[np.uint8]
    ends: NDArray[np.int64]
    slots: NDArray[np.uint64]
    size: int

    @classmethod
    def new(cls, words: Iterable[bytes] = SPECIAL) -> Vocabulary:
        """A vocabulary of <unk>, <s> and </s>, or of distinct `words`."""
        texts = list(words)
        vocabulary = cls(
            np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros((1, 2), np.uint64), 0
        )
        vocabulary.arena = np.frombuffer(b"".join(texts), np.uint8).copy()
        vocabulary.ends = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(word) for word in texts], out=vocabulary.ends[1:])
        vocabulary.size = len(texts)
        vocabulary._rehash()
        return vocabulary

    def word(self, index: int) -> bytes:
        """The word of id `index`."""
        return self.arena[self.ends[index] : self.ends[index + 1]].tobytes()

    def to_arrow(self) -> pa.LargeBinaryArray:
        """All words, in the order of their ids."""
        ends = np.ascontiguousarray(self.ends[: self.size + 1])
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(self.arena))]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), self.size, buffers)

    def ids(self, lines: Lines) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """(ids of the tokens of all lines, [lines + 1] offsets into them); strange words are 0."""
        ids, offsets = _room(lines)
        _find_words(_read_only(lines.data), lines.offsets, _read_only(self.slots), ids, offsets)
        return ids[: offsets[-1]], offsets

    def learn(self, lines: Lines) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The same, where strange words get the next ids; <unk>, <s>, </s> are white space."""
        ids, offsets = _room(lines)
        state = np.array([0, lines.offsets[0], self.size, 0], dtype=np.int64)
        while not _learn_words(
            _read_only(lines.data), lines.offsets, self.slots, self.arena, self.ends,
            ids, offsets, state,
        ):  # fmt: skip
            self.size = int(state[2])
            self._grow()
        self.size = int(state[2])
        return ids[: offsets[-1]], offsets

    def compact(self) -> None:
        """Give back the room kept for more words."""
        self.ends = self.ends[: self.size + 1]
        self.arena = self.arena[: self.ends[-1]]
        self._rehash()

    def _grow(self) -> None:
        """Twice the room for words, or for their bytes: whichever is full."""
        if self.size + 1 == len(self.ends):
            self.ends = np.concatenate((self.ends, np.zeros(len(self.ends) + 4096, np.int64)))
            self._rehash()
        else:
            room = np.zeros(len(self.arena) + (1 << 16), np.uint8)
            self.arena = np.concatenate((self.arena, room))

    def _rehash(self) -> None:
        slots = 16
        while slots < 2 * len(self.ends):
            slots *= 2
        self.slots = np.zeros((slots, 2), np.uint64)
        _fill(self.slots, self.arena, self.ends, self.size)


def _room(lines: Lines) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Arrays for the ids of as many tokens as the lines can hold, and for their offsets."""
    characters = int(lines.offsets[-1] - lines.offsets[0])
    most = (characters + len(lines)) // 2 + 1
    return np.empty(most, dtype=np.int32), np.zeros(len(lines) + 1, dtype=np.int64)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """One type for mapped arrays and for those in memory: a kernel is compiled once for both."""
    view = array.view()
    view.flags.writeable = False
    return view


@kernel
def _hash(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    value = _SEED
    for i in range(start, end):
        value = (value ^ np.uint64(data[i])) * _PRIME
        value ^= value >> _S32
    return value ^ (value >> _S29)


@kernel
def _slot(slots: NDArray[np.uint64], value: np.uint64) -> int:
    """Where the word of a hash is, or would be put."""
    mask = len(slots) - 1
    at = int(np.int64(value & np.uint64(mask)))
    while slots[at, 1] and slots[at, 0] != value:
        at = (at + 1) & mask
    return at


@kernel
def find_word(slots: NDArray[np.uint64], data: NDArray[np.uint8], start: int, end: int) -> int:
    """The id of the word data[start:end], or -1."""
    return int(np.int64(slots[_slot(slots, _hash(data, start, end)), 1])) - 1


@kernel
def _fill(
    slots: NDArray[np.uint64], arena: NDArray[np.uint8], ends: NDArray[np.int64], size: int
) -> None:
    for word in range(size):
        value = _hash(arena, ends[word], ends[word + 1])
        at = _slot(slots, value)
        slots[at, 0], slots[at, 1] = value, word + 1


@kernel
def _find_words(
    data: NDArray[np.uint8],
    lines: NDArray[np.int64],
    slots: NDArray[np.uint64],
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
) -> None:
    written = 0
    for line in range(len(lines) - 1):
        place, end = _next_token(data, lines[line], lines[line + 1])
        while place < end:
            ids[written] = max(find_word(slots, data, place, end), UNKNOWN)
            written += 1
            place, end = _next_token(data, end, lines[line + 1])
        offsets[line + 1] = written


@kernel
def _learn_words(
    data: NDArray[np.uint8],
    lines: NDArray[np.int64],
    slots: NDArray[np.uint64],
    arena: NDArray[np.uint8],
    ends: NDArray[np.int64],
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    state: NDArray[np.int64],
) -> bool:
    """Go on from `state`: (line, place in data, words known, ids written). False: make room."""
    first, place, known, written = state[0], state[1], state[2], state[3]
    for line in range(first, len(lines) - 1):
        place, end = _next_token(data, place, lines[line + 1])
        while place < end:
            value = _hash(data, place, end)
            at = _slot(slots, value)
            word = int(np.int64(slots[at, 1])) - 1
            if word < 0:
                if ends[known] + end - place > len(arena) or known + 1 == len(ends):
                    state[0], state[1], state[2], state[3] = line, place, known, written
                    return False
                for i in range(end - place):
                    arena[ends[known] + i] = data[place + i]
                ends[known + 1] = ends[known] + end - place
                slots[at, 0], slots[at, 1], word = value, known + 1, known
                known += 1
            if word > END:
                ids[written] = word
                written += 1
            place, end = _next_token(data, end, lines[line + 1])
        offsets[line + 1] = written
    state[2], state[3] = known, written
    return True


@kernel
def _next_token(data: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """(start, end) of the first token from `at`; (end, end) where there is none."""
    while at < end and _is_space(data[at]):
        at += 1
    stop = at
    while stop < end and not _is_space(data[stop]):
        stop += 1
    return at, stop


@kernel
def _is_space(byte: np.uint8) -> bool:
    return bool(byte == 32 or 9 <= byte <= 13 or byte == 0)
