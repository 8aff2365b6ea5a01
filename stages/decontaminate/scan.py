"""Find the index's n-grams in documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.kinds import beside
from stages.decontaminate.index import Index, load_index
from stages.text.normalise import normalised_words
from stages.text.shingles import ngram_hashes, word_hashes
from stages.text.words import word_spans

if TYPE_CHECKING:
    from stages.engine import Input, Shard, ShardOutput, ShardResult

TEXTS_AT_ONCE = 256


Source = TypeVar("Source")


@dataclass(frozen=True)
class Searched(Generic[Source]):
    """A shard that is searched: where its table lies, and later what was found in it."""

    id: str
    shard: Source
    path: str
    matches: ShardResult | None = None

    def with_matches(self, matches: ShardResult) -> Searched[Source]:
        """The same shard with what the search found in it."""
        return replace(self, matches=matches)


@dataclass(frozen=True, eq=False)
class Matches:
    """Occurrences of indexed n-grams: text, first word in it, number of words, row of the index."""

    texts: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    ngrams: NDArray[np.int64]


def document_shards(documents: Sequence[Input]) -> list[Searched[Shard]]:
    """The shards of all inputs, in order, each with the path of its table beside it."""
    return [
        Searched(f"{number:03d}-{shard.id}", shard, f"{beside(source.digest)}/{shard.path}")
        for number, source in enumerate(documents)
        for shard in source.shards()
    ]


def scan_shard(item: Searched[Shard], out: ShardOutput, *, index: ShardResult) -> dict[str, Any]:
    """Write the scratch tables `documents` (n-grams of each) and `matches` (with their places)."""
    return scan_texts(item.shard.read(["text"])["text"], out, index)


def scan_texts(texts: pa.ChunkedArray, out: ShardOutput, index: ShardResult) -> dict[str, Any]:
    """Write the scratch tables of `scan_shard` for some texts."""
    benchmarks = load_index(index)
    counts: list[NDArray[np.int64]] = []
    rows: list[tuple[int, int, int, int, int]] = []
    for first in range(0, len(texts), TEXTS_AT_ONCE):
        batch = texts.slice(first, TEXTS_AT_ONCE).to_pylist()
        ngrams, matches = find_matches(batch, benchmarks)
        counts.append(ngrams)
        rows += [(first + place[0], *place[1:]) for place in _placed(batch, matches)]
    names = ("row", "start_word", "ngram", "start", "end")
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), len(names)).T
    out.write_scratch("matches", pa.table(dict(zip(names, columns, strict=True))))
    out.write_scratch(
        "documents", pa.table({"ngrams": np.concatenate(counts) if counts else np.zeros(0, "i8")})
    )
    return {"documents": len(texts)}


def find_matches(texts: Sequence[str], index: Index) -> tuple[NDArray[np.int64], Matches]:
    """N-grams of each text (1 for a text of fewer words, 0 for one of none), and all matches.

    Matches are ordered by text, then place, then length.
    """
    words = [normalised_words(text) for text in texts]
    counts = np.array([len(found) for found in words], dtype=np.int64)
    ends = np.cumsum(counts)
    text_of = np.repeat(np.arange(len(texts)), counts)
    hashes = word_hashes([word for found in words for word in found])
    parts = []
    for length in index.lengths:
        positions, rows = index.find(ngram_hashes(hashes, length))
        inside = positions + length <= ends[text_of[positions]]
        positions, rows = positions[inside], rows[inside]
        parts.append((positions, np.full(len(positions), length, dtype=np.int64), rows))
    positions, lengths, rows = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((lengths, positions))
    owners = text_of[positions[order]]
    matches = Matches(
        texts=owners,
        starts=positions[order] - (ends - counts)[owners],
        lengths=lengths[order],
        ngrams=rows[order],
    )
    return np.maximum(counts - index.ngram + 1, np.minimum(counts, 1)), matches


def _placed(texts: Sequence[str], matches: Matches) -> Iterator[tuple[int, int, int, int, int]]:
    """Text, first word, index row, and characters [start, end) of each match."""
    located, places = -1, list[tuple[int, int]]()
    for text, start, length, ngram in zip(
        matches.texts.tolist(),
        matches.starts.tolist(),
        matches.lengths.tolist(),
        matches.ngrams.tolist(),
        strict=True,
    ):
        if text != located:
            located, places = text, normalised_word_places(texts[text])
        yield text, start, ngram, places[start][0], places[start + length - 1][1]


def normalised_word_places(text: str) -> list[tuple[int, int]]:
    """For each word of the normalised text, characters [start, end) of `text` that it comes from.

    Words are located token by token. Where a token's neighbours bear on its normal form (numbers of
    some scripts), by pieces between white space, whose normal forms never depend on each other.
    """
    expected = normalised_words(text)
    for spans in (word_spans(text), _pieces(text)):
        places, found = [], []
        for start, end in spans:
            piece = normalised_words(text[start:end])
            found += piece
            places += [(start, end)] * len(piece)
        if found == expected:
            return places
    raise AssertionError("normalisation depends on text across white space")


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    end = 0
    for piece in text.split():
        start = text.index(piece, end)
        end = start + len(piece)
        yield start, end
