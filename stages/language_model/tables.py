"""The files of an n-gram model, and the scorer that reads them: flat hash tables, mapped and
shared.

A model is ARPA text for every tool, `model.json`, and tables on the disk that many processes map
into memory. A table holds the n-grams of one order: 16 bytes a slot, little-endian: the hash
(uint64; 0 in an empty slot), log10 probability and log10 back-off (float32 each). n-grams lie in
the order of their hashes, each at or after its home slot, hash * capacity / 2^64, with 1.5 slots
for one n-gram: a table is written from sorted rows without a seek, and a search ends at the
first greater hash.

The hash of an n-gram is made from its last word to its first: each search for a longer match
continues the one before. n-grams are identified by their hashes alone, as in kenlm; two of one
order with equal hashes are an error when a table is made. Scores are those of kenlm's full
score.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from artifacts_schema.errors import InputError, UsageError
from stages.engine.kernels import kernel
from stages.language_model.config import NgramConfig
from stages.language_model.vocabulary import BEGIN, END, Vocabulary

SLOT = np.dtype([("hash", "<u8"), ("p", "<f4"), ("backoff", "<f4")])

_A, _B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_GOLDEN, _ONE = np.uint64(0x9E3779B97F4A7C15), np.uint64(1)
_S27, _S30, _S31, _S32 = (np.uint64(shift) for shift in (27, 30, 31, 32))
_LOW = np.uint64(0xFFFFFFFF)


class Table(NamedTuple):
    """One order's n-grams, as a kernel takes them: two views of one array."""

    words: NDArray[np.uint64]
    """[slots, 2]: hash, weights."""
    weights: NDArray[np.float32]
    """[slots, 4]: hash (twice), log10 probability, log10 back-off."""
    capacity: int
    """Number of home slots; the array has some more after them."""


def capacity(count: int) -> int:
    """Home slots for so many n-grams."""
    return count + count // 2 + 1


@kernel
def extend_hash(value: np.uint64, word: int) -> np.uint64:
    """The hash of an n-gram with one more word before it; the empty n-gram's is 0. Never 0."""
    value = (value ^ np.uint64(word)) + _GOLDEN
    value = (value ^ (value >> _S30)) * _A
    value = (value ^ (value >> _S27)) * _B
    value ^= value >> _S31
    return value if value else _ONE


@kernel
def home_slot(value: np.uint64, slots: int) -> int:
    """value * slots / 2^64, without its lowest 32 bits."""
    return int(np.int64(((value >> _S32) * np.uint64(slots)) >> _S32))


@kernel
def find_slot(table: Table, value: np.uint64) -> int:
    """The slot of a hash, or -1."""
    at = home_slot(value, table.capacity)
    while at < len(table.words):
        hashed = table.words[at, 0]
        if hashed >= value or not hashed:
            return at if hashed == value else -1
        at += 1
    return -1


@kernel
def hash_ngrams(words: NDArray[np.int32]) -> NDArray[np.uint64]:
    """The hashes of n-grams [rows, order]."""
    values = np.empty(len(words), np.uint64)
    for row in range(len(words)):
        value = np.uint64(0)
        for place in range(words.shape[1] - 1, -1, -1):
            value = extend_hash(value, words[row, place])
        values[row] = value
    return values


def write_table(path: Path, count: int, batches: Iterable[NDArray[np.void]]) -> int:
    """Write `count` rows of `SLOT`, in the order of their hashes. The number of slots written."""
    slots, written, before = capacity(count), 0, np.uint64(0)
    with path.open("wb") as file:
        for rows in batches:
            if not len(rows):
                continue
            if _repeats(rows["hash"], before):
                raise InputError(
                    "two n-grams have one hash", where=str(path), hint="prune the model"
                )
            before = rows["hash"][-1]
            places = np.empty(len(rows), np.int64)
            end = _places(rows["hash"], slots, written, places)
            block = np.zeros(end - written, SLOT)
            block[places - written] = rows
            file.write(block.tobytes())
            written = end
    return written


def _repeats(hashes: NDArray[np.uint64], before: np.uint64) -> bool:
    return bool(hashes[0] == before or (hashes[1:] == hashes[:-1]).any())


@kernel
def _places(hashes: NDArray[np.uint64], slots: int, free: int, places: NDArray[np.int64]) -> int:
    for row in range(len(hashes)):
        places[row] = max(free, home_slot(hashes[row], slots))
        free = places[row] + 1
    return free


def build_table(
    words: NDArray[np.int32], p: NDArray[np.float32], backoff: NDArray[np.float32]
) -> Table:
    """A table in memory, of n-grams [rows, order] in any order. Raises InputError."""
    rows = np.empty(len(words), SLOT)
    rows["hash"], rows["p"], rows["backoff"] = hash_ngrams(words), p, backoff
    rows = rows[np.argsort(rows["hash"], kind="stable")]
    if len(rows) and _repeats(rows["hash"], np.uint64(0)):
        raise InputError("an n-gram is listed twice")
    places = np.empty(len(rows), np.int64)
    slots = capacity(len(rows))
    block = np.zeros(_places(rows["hash"], slots, 0, places), SLOT)
    block[places] = rows
    return _view(block, slots)


def _view(block: NDArray[np.void], slots: int) -> Table:
    plain = np.asarray(block)
    plain.flags.writeable = False  # As those of mapped files: one type for a kernel.
    return Table(plain.view("<u8").reshape(-1, 2), plain.view("<f4").reshape(-1, 4), slots)


def pad_tables(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Tables of orders 2 to 6, as the scorer takes them: empty above the model's own order."""
    empty = _view(np.zeros(0, SLOT), 1)
    return (*tables, *[empty] * (5 - len(tables)))


@kernel
def token_scores(
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    unigrams: NDArray[np.float32],
    tables: tuple[Table, ...],
    order: int,
) -> NDArray[np.float64]:
    """log10 p of each token after those before it in its line, and of </s> at each line's end.

    Line i has the tokens [offsets[i], offsets[i + 1]) and, with its </s>, the scores
    [offsets[i] + i, offsets[i + 1] + i + 1). A line begins after <s>. The score of a token is that
    of the longest n-gram that ends in it, and the back-offs of the longer contexts that are known
    (Katz 1987). `tables` are those of orders from 2; `unigrams` [words, 2] holds log10 p, back-off.
    """
    words, starts = _with_marks(ids, offsets)
    count = len(words)
    hashes, lengths = np.empty(count, np.uint64), np.ones(count, np.int8)
    p, backoffs = np.empty(count, np.float32), np.empty((count, order), np.float32)
    for i in range(count):
        hashes[i] = extend_hash(np.uint64(0), words[i])
        p[i], backoffs[i, 0] = unigrams[words[i], 0], unigrams[words[i], 1]
    # All tokens at one order before the next: their searches wait for memory side by side. An
    # n-gram is in the model only if its context is, which also keeps searches inside their lines.
    for length in range(1, order):
        table = tables[length - 1]
        for i in range(length, count):
            if lengths[i] < length or lengths[i - 1] < length or starts[i]:
                continue
            hashes[i] = extend_hash(hashes[i], words[i - length])
            slot = find_slot(table, hashes[i])
            if slot >= 0:
                lengths[i] = length + 1
                p[i], backoffs[i, length] = table.weights[slot, 2], table.weights[slot, 3]
    scores = np.empty(len(ids) + len(offsets) - 1, np.float64)
    at = 0
    for i in range(count):
        if not starts[i]:
            scores[at] = p[i]
            for context in range(lengths[i], min(lengths[i - 1], order - 1) + 1):
                scores[at] += backoffs[i - 1, context - 1]
            at += 1
    return scores


@kernel
def _with_marks(
    ids: NDArray[np.int32], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """All lines, each between <s> and </s>, and where those <s> are."""
    words = np.empty(len(ids) + 2 * (len(offsets) - 1), np.int32)
    starts = np.zeros(len(words), np.bool_)
    at = 0
    for line in range(len(offsets) - 1):
        words[at], starts[at] = BEGIN, True
        at += 1
        for i in range(offsets[line], offsets[line + 1]):
            words[at] = ids[i]
            at += 1
        words[at] = END
        at += 1
    return words, starts


@kernel
def line_sums(scores: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """The sum of the scores [offsets[i], offsets[i + 1]) of each line, in order."""
    sums = np.zeros(len(offsets) - 1)
    for line in range(len(offsets) - 1):
        for i in range(offsets[line], offsets[line + 1]):
            sums[line] += scores[i]
    return sums


ARPA, DESCRIPTION = "model.arpa", "model.json"

_WORDS, _ENDS, _SLOTS, _UNIGRAMS = "words.bin", "word_ends.bin", "word_slots.bin", "1-grams.bin"


class Description(BaseModel):
    """`model.json`: what was estimated, and how large the tables are. Lists go by order, from 1."""

    model_config = ConfigDict(extra="forbid")

    config: dict[str, Any]
    lines: int
    tokens: int
    """Words of the text; ends of lines are not counted."""
    counts: list[int] = Field(min_length=2, max_length=6)
    """n-grams in the model; unigrams include <unk>, <s> and </s>."""
    counts_before_pruning: list[int]
    discounts: list[tuple[float, float, float]]
    """What is taken from counts of 1, 2, and 3 or more."""
    fallback_orders: list[int]
    """Orders whose discounts are the fallback."""
    word_bytes: int = Field(ge=0)
    word_slots: int = Field(ge=1)
    table_slots: list[int] = Field(min_length=1, max_length=5)


def table_name(order: int) -> str:
    """The file of the table of an order from 2."""
    return f"{order}-grams.bin"


def write_vocabulary(folder: Path, words: Vocabulary, weights: NDArray[np.float32]) -> None:
    """The words, the table that finds them, and the unigrams' [words, 2] weights."""
    words.compact()
    for name, array in (
        (_WORDS, words.arena),
        (_ENDS, words.ends.astype("<i8")),
        (_SLOTS, words.slots.astype("<u8")),
        (_UNIGRAMS, weights.astype("<f4")),
    ):
        (folder / name).write_bytes(array.tobytes())


def read_description(folder: Path) -> tuple[Description, NgramConfig]:
    """`model.json` of a folder. Raises InputError."""
    path = folder / DESCRIPTION
    try:
        described = Description.model_validate_json(path.read_bytes())
        config = NgramConfig.parse(described.config, where=str(path))
        if not config.order == len(described.counts) == len(described.table_slots) + 1:
            raise ValueError("the numbers of counts and tables are not the order")
    except OSError as error:
        raise InputError(f"not a language model: {error.strerror}", where=str(path)) from None
    except (ValidationError, ValueError, UsageError) as error:
        problem = error.what if isinstance(error, UsageError) else " ".join(str(error).split())
        raise InputError(f"not the description of a model: {problem}", where=str(path)) from None
    return described, config


def map_model(
    folder: Path, description: Description
) -> tuple[Vocabulary, NDArray[np.float32], list[Table]]:
    """The words, the unigrams' weights and the other tables, mapped. Raises InputError."""
    count = description.counts[0]
    arena = _map_array(folder / _WORDS, "u1", description.word_bytes)
    ends = _map_array(folder / _ENDS, "<i8", count + 1)
    slots = _map_array(folder / _SLOTS, "<u8", 2 * description.word_slots).reshape(-1, 2)
    weights = _map_array(folder / _UNIGRAMS, "<f4", 2 * count).reshape(-1, 2)
    whole = (
        description.word_slots & (description.word_slots - 1) == 0
        and ends[0] == 0
        and ends[-1] == description.word_bytes
        and (ends[1:] >= ends[:-1]).all()
        and slots[:, 1].max() <= count
        and slots[:, 1].min() == 0
    )
    if not whole:
        raise InputError("the table of words is not whole", where=str(folder / _SLOTS))
    tables = []
    sizes = zip(description.counts[1:], description.table_slots, strict=True)
    for order, (size, table_slots) in enumerate(sizes, 2):
        path = folder / table_name(order)
        if table_slots < size:
            raise InputError(f"{table_slots} slots for {size} n-grams", where=str(path))
        tables.append(_view(_map_array(path, SLOT, table_slots), capacity(size)))
    return Vocabulary(arena, ends, slots, count), weights, tables


def _map_array(path: Path, dtype: str | np.dtype[Any], length: int) -> NDArray[Any]:
    expected = length * np.dtype(dtype).itemsize
    size = path.stat().st_size if path.is_file() else None
    if size != expected:
        raise InputError(
            f"{'no such file' if size is None else f'{size} bytes'}; {expected} bytes expected",
            where=str(path),
        )
    return np.asarray(np.memmap(path, dtype, "r")) if length else np.zeros(0, dtype)
