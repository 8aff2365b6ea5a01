"""A model as ARPA text, as lmplz writes it, without a Python object for an n-gram."""

from __future__ import annotations

from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stages.language_model.vocabulary import Vocabulary
from stages.text.native import compiled


def write_head(file: IO[bytes], counts: list[int]) -> None:
    """How many n-grams of each order follow."""
    lines = [f"ngram {order}={count}\n" for order, count in enumerate(counts, 1)]
    file.write(f"\\data\\\n{''.join(lines)}\n".encode())


def write_section_head(file: IO[bytes], order: int) -> None:
    """The line before the n-grams of an order."""
    file.write(f"\\{order}-grams:\n".encode())


def write_end(file: IO[bytes]) -> None:
    """The last line."""
    file.write(b"\\end\\\n")


def write_entries(
    file: IO[bytes],
    words: NDArray[np.int32],
    p: pa.StringArray,
    backoff: pa.StringArray | None,
    vocabulary: Vocabulary,
) -> None:
    """n-grams [rows, order], with their numbers as text; the longest have no back-off."""
    p_data, p_ends = _text(p)
    backoff_data, backoff_ends = _text(p if backoff is None else backoff)
    last = backoff is None
    sizes = np.diff(vocabulary.ends[: vocabulary.size + 1])
    room = len(p_data) + len(backoff_data) + int(sizes[words].sum()) + 4 * len(words) + words.size
    out = np.empty(room, np.uint8)
    length = _fill(
        words, p_data, p_ends, backoff_data, backoff_ends, last,
        vocabulary.arena, vocabulary.ends, out,
    )  # fmt: skip
    file.write(out[:length].data)


def _text(array: pa.StringArray) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data, np.uint8), ends


@compiled
def _copy(out: NDArray[np.uint8], at: int, data: NDArray[np.uint8], start: int, end: int) -> int:
    for i in range(start, end):
        out[at] = data[i]
        at += 1
    return at


@compiled
def _copy_number(
    out: NDArray[np.uint8], at: int, data: NDArray[np.uint8], start: int, end: int
) -> int:
    """Without a ".0" at its end, nor a sign before zero."""
    if end - start > 2 and data[end - 2] == 46 and data[end - 1] == 48:
        end -= 2
    if end - start == 2 and data[start] == 45 and data[start + 1] == 48:
        start += 1
    return _copy(out, at, data, start, end)


@compiled
def _fill(
    words: NDArray[np.int32],
    p_data: NDArray[np.uint8],
    p_ends: NDArray[np.int32],
    backoff_data: NDArray[np.uint8],
    backoff_ends: NDArray[np.int32],
    last: bool,
    arena: NDArray[np.uint8],
    ends: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> int:
    at = 0
    for row in range(len(words)):
        at = _copy_number(out, at, p_data, p_ends[row], p_ends[row + 1])
        for place in range(words.shape[1]):
            out[at] = 32 if place else 9
            word = words[row, place]
            at = _copy(out, at + 1, arena, ends[word], ends[word + 1])
        if not last:
            out[at] = 9
            at = _copy_number(out, at + 1, backoff_data, backoff_ends[row], backoff_ends[row + 1])
        out[at] = 10
        at += 1
    return at
