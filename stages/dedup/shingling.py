"""Texts to the 64-bit numbers of their shingles, straight from Arrow's buffers.

By default a text is folded (`stages.dedup.folding`) and its words are hashed without a Python
object for any of them. Other systems' normalisations go through Python strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from xxhash import xxh3_128_digest

from stages.dedup.folding import EXPANSION, PADDING, FoldTable
from stages.dedup.published import marin, redpajama, unchanged
from stages.dedup.settings import Settings
from stages.dedup.tokens import (
    BASE,
    DONE,
    FOLDED,
    NO_ROOM,
    RAW,
    SPACED,
    Fold,
    Form,
    Room,
    shingle_texts,
)

_NORMALISED: dict[str, Callable[[str], str]] = {
    "redpajama": redpajama,
    "marin": marin,
    "none": unchanged,
}

_table = FoldTable()

Bytes = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""(data, offsets): text d is the UTF-8 of data[offsets[d] : offsets[d + 1]]."""


@dataclass(frozen=True, eq=False)
class Shingled:
    """What one batch of texts comes to, in order."""

    hashes: NDArray[np.uint64]
    """[shingles] of all documents end to end, in text order, repeats included."""
    offsets: NDArray[np.int64]
    """[documents + 1] document d has the shingles [offsets[d], offsets[d + 1])."""
    texts: NDArray[np.uint64]
    """[documents, 2] XXH3-128 of the raw UTF-8 bytes, upper half first."""
    words: NDArray[np.uint64]
    """[documents, 2] 128-bit hash of the normalised tokens; where there are none, that of the raw
    bytes, so that it meets no other's but an equal text's."""


Shingler = Callable[[pa.Array], Shingled]
"""Takes texts as `pa.string()` or `pa.large_string()`, sliced or not, without nulls."""


def shingler(settings: Settings) -> Shingler:
    """What turns texts into shingles as `settings` say.

    A text of fewer tokens than an n-gram has one shingle, all of them; one without tokens has none.
    Memory is eight bytes a token and the fold of the longest text; address space is taken for the
    worst case, but not touched. Raises ValueError for settings that do not go together; the
    shingler does for nulls and other types.
    """
    if settings.ngram < 1:
        raise ValueError(f"an n-gram has at least one token, not {settings.ngram}")
    characters = settings.unit == "character"
    if settings.normalise == "datatrove" and settings.hash != "ingot" and not characters:
        return partial(_shingled_by_datatrove, ngram=settings.ngram, hash=settings.hash)
    if settings.normalise == "datatrove" or settings.hash != "ingot":
        raise ValueError(
            f"datatrove's normalisation goes with its hashes of words, not {settings.normalise} "
            f"with {settings.hash} of {settings.unit}s"
        )
    power = np.uint64(pow(BASE, settings.ngram, 1 << 64))
    if settings.normalise == "fold":
        return partial(_shingled, form=Form(FOLDED, characters, settings.ngram, power))
    if settings.normalise == "none" and characters:
        return partial(_shingled, form=Form(RAW, characters, settings.ngram, power))
    form = Form(SPACED, characters, settings.ngram, power)
    return partial(_shingled, form=form, normalised=_NORMALISED[settings.normalise])


def _shingled(
    texts: pa.Array, *, form: Form, normalised: Callable[[str], str] | None = None
) -> Shingled:
    raw = _arrow_bytes(texts)
    if normalised is None:
        hashes, offsets, words = _shingle(*raw, form)
    else:
        hashes, offsets, words = _shingle(*_encoded(map(normalised, texts.to_pylist())), form)
    digests = _text_digests(*raw)
    empty = offsets[1:] == offsets[:-1]
    words[empty] = digests[empty]
    return Shingled(hashes, offsets, digests, words)


def _shingled_by_datatrove(
    texts: pa.Array, *, ngram: int, hash: Literal["sha1", "xxh64"]
) -> Shingled:
    from stages.dedup.datatrove import datatrove_shingles

    hashes, offsets, tokens = datatrove_shingles(texts.to_pylist(), ngram, hash)
    digests = _text_digests(*_arrow_bytes(texts))
    words = np.where(tokens.any(axis=1, keepdims=True), tokens, digests)
    return Shingled(hashes, offsets, digests, words)


def _shingle(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], form: Form
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64]]:
    """Hashes, their offsets, and digests of the tokens."""
    count = len(offsets) - 1
    total, longest = int(offsets[-1] - offsets[0]), int(np.diff(offsets).max(initial=0))
    fold = Fold(_table.entries, _table.pool, np.empty(EXPANSION * longest + PADDING, np.uint8))
    room = Room(
        # What is too much is never touched: an English word takes six bytes of text.
        hashes=np.empty((total if form.characters else total // 4) + longest + 1, np.uint64),
        ends=np.zeros(count + 1, np.int64),
        digests=np.empty((count, 2), np.uint64),
    )
    for piece, places, first, last in _padded(data, offsets):
        text, stop = shingle_texts(piece, places, first, last, form, fold, room)
        while stop != DONE:
            if stop == NO_ROOM:
                room = _with_more(room, int(room.ends[text]))
            else:
                _table.learn(stop)
            text, stop = shingle_texts(piece, places, text, last, form, fold, room)
    return room.hashes[: room.ends[-1]], room.ends, room.digests


def _with_more(room: Room, used: int) -> Room:
    hashes = np.empty(2 * len(room.hashes), dtype=np.uint64)
    hashes[:used] = room.hashes[:used]
    return room._replace(hashes=hashes)


def _padded(
    data: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], int, int]]:
    """Pieces (data, offsets, first, last) with PADDING bytes after each text from first to last.

    The texts at the very end are copied: what lies behind Arrow's buffers is not ours to read.
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


def _encoded(texts: Iterator[str]) -> Bytes:
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return np.frombuffer(b"".join([*encoded, bytes(PADDING)]), dtype=np.uint8), offsets


def _text_digests(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    view = data.data
    places = pairwise(offsets.tolist())
    digests = b"".join([xxh3_128_digest(view[start:end]) for start, end in places])
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64).reshape(-1, 2)
