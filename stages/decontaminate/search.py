"""Benchmark items as a sorted array of n-gram hashes, and the search for them in documents.

N-grams are compared by their 64-bit hashes only: among 10^7 of the benchmarks and 10^10 of a corpus
a false match is expected with a probability of 0.5 %, so no words are kept to verify one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.kinds import sidecar_folder
from stages.decontaminate.passages import read_without_answers, row_texts
from stages.decontaminate.shingles import (
    ngram_hashes,
    normalise_words,
    plain_words,
    strip_markup,
    word_hashes,
)
from stages.text.words import find_words

if TYPE_CHECKING:
    from stages.decontaminate.config import DecontaminateConfig
    from stages.engine import Input, Shard, ShardOutput, ShardResult


@dataclass(frozen=True)
class BenchmarkSet:
    """All benchmarks of a run: the one work item of the index."""

    id: str
    benchmarks: tuple[Input, ...]


@dataclass(frozen=True)
class Passage:
    """The normalised words of a text of an item, none if there are fewer than `least`.

    `item` is its row in the item list.
    """

    item: int
    words: list[str]
    least: int = 1


@dataclass(frozen=True, eq=False)
class Index:
    """`hashes`, sorted and distinct; hash g is held by items[offsets[g]:offsets[g + 1]], ascending.

    `lengths` are the numbers of words of the n-grams: `ngram`, and those of short passages; hash g
    is one of words[g] words. The first passage of item i, its prompt, has prompts[i] n-grams.
    """

    ngram: int
    lengths: tuple[int, ...]
    hashes: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    items: NDArray[np.int64]
    words: NDArray[np.uint8]
    prompts: NDArray[np.int64]

    @classmethod
    def build(cls, passages: Iterable[Passage], ngram: int) -> Index:
        """Index every n-gram of words, not of numbers; a passage of fewer words as a whole."""
        hashes: list[NDArray[np.uint64]] = []
        owners: list[NDArray[np.int64]] = []
        lengths, sizes, prompts = {ngram}, list[int](), dict[int, int]()
        for passage in passages:
            n = min(ngram, len(passage.words))
            if n < max(passage.least, 1):
                prompts.setdefault(passage.item, 1)
                continue
            lengths.add(n)
            passage_hashes = ngram_hashes(word_hashes(passage.words), n)[
                _with_words(passage.words, n)
            ]
            prompts.setdefault(passage.item, len(passage_hashes))
            hashes.append(passage_hashes)
            sizes.append(n)
            owners.append(np.full(len(passage_hashes), passage.item, dtype=np.int64))
        pairs = np.zeros(
            sum(map(len, hashes)), dtype=[("hash", "<u8"), ("item", "<i8"), ("words", "u1")]
        )
        if hashes:
            pairs["hash"], pairs["item"] = np.concatenate(hashes), np.concatenate(owners)
            pairs["words"] = np.repeat(sizes, [len(part) for part in hashes])
        pairs = np.unique(pairs)
        distinct, first = np.unique(pairs["hash"], return_index=True)
        offsets = np.append(first, len(pairs)).astype(np.int64)
        words = pairs["words"][first].copy()
        prompt_sizes = np.zeros(max(prompts, default=-1) + 1, dtype=np.int64)
        prompt_sizes[list(prompts)] = list(prompts.values())
        return cls(
            ngram=ngram,
            lengths=tuple(sorted(lengths)),
            hashes=distinct,
            offsets=offsets,
            items=pairs["item"].copy(),
            words=words,
            prompts=prompt_sizes,
        )

    def find(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions in `hashes` that the index holds, and the index's row of each."""
        if not len(self.hashes):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        rows = np.searchsorted(self.hashes, hashes)
        rows[rows == len(self.hashes)] = 0
        positions = np.flatnonzero(self.hashes[rows] == hashes)
        return positions, rows[positions]

    def items_with(self, row: int) -> NDArray[np.int64]:
        """Items that hold the n-gram in this row."""
        return self.items[self.offsets[row] : self.offsets[row + 1]]


def build_index(
    job: BenchmarkSet, out: ShardOutput, *, config: DecontaminateConfig
) -> dict[str, Any]:
    """Write the scratch tables `ngrams` (hash, items) and `items` (benchmark, item_id, ngrams)."""
    keys: dict[tuple[str, str], int] = {}
    passages: list[Passage] = []
    for source in job.benchmarks:
        without_answers = read_without_answers(source)
        for path in source.paths("*.parquet"):
            for row in source.read_table(path).to_pylist():
                item = keys.setdefault((row["benchmark"], row["item_id"]), len(keys))
                texts = row_texts(row, config, without_answers)
                passages += [Passage(item, plain_words(text), least) for text, least in texts]
    index = Index.build(passages, config.ngram)
    ngrams = np.bincount(index.items, minlength=len(keys))
    out.write_scratch("ngrams", _ngram_table(index))
    out.write_scratch(
        "items",
        pa.table(
            {
                "benchmark": pa.array([benchmark for benchmark, _ in keys], pa.string()),
                "item_id": pa.array([item_id for _, item_id in keys], pa.string()),
                "ngrams": ngrams,
                "prompt_ngrams": index.prompts,
            }
        ),
    )
    return {
        "ngram": index.ngram,
        "lengths": list(index.lengths),
        "items": len(keys),
        "items_too_short": int((ngrams == 0).sum()),
    }


def load_index(result: ShardResult) -> Index:
    """The index that `build_index` wrote."""
    table = result.read_scratch("ngrams")
    items = table["items"].combine_chunks()
    return Index(
        ngram=result.value["ngram"],
        lengths=tuple(result.value["lengths"]),
        hashes=table["hash"].to_numpy(),
        offsets=items.offsets.to_numpy().astype(np.int64),
        items=items.values.to_numpy(),
        words=table["words"].to_numpy(),
        prompts=result.read_scratch("items")["prompt_ngrams"].to_numpy(),
    )


def _with_words(words: list[str], n: int) -> NDArray[np.bool_]:
    """Which n-grams are words with a letter by half: tables of numbers, all "0", match anywhere."""
    letters = np.array([any(map(str.isalpha, word)) for word in words], dtype=np.int64)
    return 2 * np.convolve(letters, np.ones(n, dtype=np.int64), mode="valid") >= n


def _ngram_table(index: Index) -> pa.Table:
    items = pa.LargeListArray.from_arrays(pa.array(index.offsets), pa.array(index.items))
    return pa.table({"hash": index.hashes, "items": items, "words": index.words})


TEXTS_AT_ONCE = 256


Source = TypeVar("Source")


@dataclass(frozen=True)
class SearchTask(Generic[Source]):
    """A shard that is searched: the path of its table, and later the matches in it."""

    id: str
    shard: Source
    path: str
    matches: ShardResult | None = None

    def with_matches(self, matches: ShardResult) -> SearchTask[Source]:
        """The same shard with what the search found in it."""
        return replace(self, matches=matches)


@dataclass(frozen=True, eq=False)
class Matches:
    """Occurrences of indexed n-grams: text, first word in it, number of words, row of the index."""

    texts: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    ngrams: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Overlaps:
    """Items of which a text holds enough: text, item, different n-grams shared; by text, then item.

    `entries` are the places in `Index.items` of those n-grams, [n-grams shared in all].
    """

    texts: NDArray[np.int64]
    items: NDArray[np.int64]
    shared: NDArray[np.int64]
    entries: NDArray[np.int64]


def find_overlaps(
    texts: NDArray[np.int64], ngrams: NDArray[np.int64], index: Index, share: float
) -> Overlaps:
    """Items of which a text holds enough, given its matches: text and index row of each.

    Enough are as many n-grams of the item as `share` of its prompt has, and one in any case.
    """
    pairs = np.unique(np.column_stack((texts, ngrams)), axis=0)
    begins, owners = index.offsets[pairs[:, 1]], np.diff(index.offsets)[pairs[:, 1]]
    entries = np.repeat(begins - np.cumsum(owners) + owners, owners) + np.arange(owners.sum())
    items = max(len(index.prompts), 1)
    held, pair_of, shared = np.unique(
        np.repeat(pairs[:, 0], owners) * items + index.items[entries],
        return_inverse=True,
        return_counts=True,
    )
    text_of, item_of = np.divmod(held, items)
    enough = shared >= np.ceil(share * index.prompts[item_of] - 1e-9)  # 0.05 * 140 exceeds 7.
    return Overlaps(text_of[enough], item_of[enough], shared[enough], entries[enough[pair_of]])


def document_shards(documents: Sequence[Input]) -> list[SearchTask[Shard]]:
    """The shards of all inputs, in order, each with the path of its table."""
    return [
        SearchTask(
            f"{number:03d}-{shard.id}", shard, f"{sidecar_folder(source.digest)}/{shard.path}"
        )
        for number, source in enumerate(documents)
        for shard in source.shards()
    ]


def scan_shard(item: SearchTask[Shard], out: ShardOutput, *, index: ShardResult) -> dict[str, Any]:
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
    words = [plain_words(text) for text in texts]
    counts = np.array([len(words_of_text) for words_of_text in words], dtype=np.int64)
    ends = np.cumsum(counts)
    text_of = np.repeat(np.arange(len(texts)), counts)
    hashes = word_hashes([word for words_of_text in words for word in words_of_text])
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
    """For each word of `plain_words`, characters [start, end) of `text` that it comes from.

    Words are located token by token. Where a token's neighbours bear on its normal form (numbers of
    some scripts), by pieces between white space, whose normal forms never depend on each other.
    """
    text = strip_markup(text)
    expected = normalise_words(text)
    for spans in (find_words(text), _pieces(text)):
        places, words = [], []
        for start, end in spans:
            piece = normalise_words(text[start:end])
            words += piece
            places += [(start, end)] * len(piece)
        if words == expected:
            return places
    raise AssertionError("normalisation depends on text across white space")


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    end = 0
    for piece in text.split():
        start = text.index(piece, end)
        end = start + len(piece)
        yield start, end
