"""Benchmark items as a sorted array of n-gram numbers, with the items that hold each.

N-grams are compared by their 64-bit numbers alone: among 10^7 of the benchmarks and 10^10 of a
corpus a false match is expected with a chance of 0.5 %, so no words are kept to verify one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stages.text.normalise import normalised_words
from stages.text.shingles import ngram_hashes, word_hashes

if TYPE_CHECKING:
    from stages.decontaminate.stage import DecontaminateConfig
    from stages.engine import Input, ShardOutput, ShardResult


@dataclass(frozen=True)
class BenchmarkSet:
    """All benchmarks of a run: the one work item of the index."""

    id: str
    benchmarks: tuple[Input, ...]


@dataclass(frozen=True)
class Passage:
    """The normalised words of a text of an item; `item` is its row in the item list."""

    item: int
    words: list[str]


@dataclass(frozen=True, eq=False)
class Index:
    """`hashes`, sorted and distinct; hash g is held by items[offsets[g]:offsets[g + 1]], ascending.

    `lengths` are the numbers of words of the n-grams: `ngram`, and those of short passages.
    """

    ngram: int
    lengths: tuple[int, ...]
    hashes: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    items: NDArray[np.int64]

    @classmethod
    def of(cls, passages: Iterable[Passage], ngram: int, min_words: int) -> Index:
        """Index every n-gram that holds a letter, and passages of `min_words` to `ngram` words."""
        hashes: list[NDArray[np.uint64]] = []
        owners: list[NDArray[np.int64]] = []
        lengths = {ngram}
        for passage in passages:
            n = min(ngram, len(passage.words))
            if n < min_words:
                continue
            lengths.add(n)
            found = ngram_hashes(word_hashes(passage.words), n)[_with_letter(passage.words, n)]
            hashes.append(found)
            owners.append(np.full(len(found), passage.item, dtype=np.int64))
        pairs = np.zeros(sum(map(len, hashes)), dtype=[("hash", "<u8"), ("item", "<i8")])
        if hashes:
            pairs["hash"], pairs["item"] = np.concatenate(hashes), np.concatenate(owners)
        pairs = np.unique(pairs)
        distinct, first = np.unique(pairs["hash"], return_index=True)
        offsets = np.append(first, len(pairs)).astype(np.int64)
        return cls(ngram, tuple(sorted(lengths)), distinct, offsets, pairs["item"].copy())

    def find(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions in `hashes` that the index holds, and the index's row of each."""
        if not len(self.hashes):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        rows = np.searchsorted(self.hashes, hashes)
        rows[rows == len(self.hashes)] = 0
        positions = np.flatnonzero(self.hashes[rows] == hashes)
        return positions, rows[positions]

    def items_of(self, row: int) -> NDArray[np.int64]:
        """Items that hold the n-gram in this row."""
        return self.items[self.offsets[row] : self.offsets[row + 1]]


def build_index(
    job: BenchmarkSet, out: ShardOutput, *, config: DecontaminateConfig
) -> dict[str, Any]:
    """Write the scratch tables `ngrams` (hash, items) and `items` (benchmark, item_id, ngrams)."""
    keys: dict[tuple[str, str], int] = {}
    passages: list[Passage] = []
    for source in job.benchmarks:
        for path in source.paths("*.parquet"):
            for row in source.read_table(path).to_pylist():
                item = keys.setdefault((row["benchmark"], row["item_id"]), len(keys))
                texts = item_texts(row["prompt"], row["choices"], row["answer"], config.passages)
                passages += [Passage(item, normalised_words(text)) for text in texts]
    index = Index.of(passages, config.ngram, config.min_words)
    ngrams = np.bincount(index.items, minlength=len(keys))
    out.write_scratch("ngrams", _ngram_table(index))
    out.write_scratch(
        "items",
        pa.table(
            {
                "benchmark": pa.array([benchmark for benchmark, _ in keys], pa.string()),
                "item_id": pa.array([item_id for _, item_id in keys], pa.string()),
                "ngrams": ngrams,
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
    )


def item_texts(prompt: str, choices: Sequence[str], answer: int | None, passages: str) -> list[str]:
    """The texts of an item that count, `passages` as in `DecontaminateConfig`."""
    if passages == "prompt" or not choices:
        return [prompt]
    if passages == "choices":
        return [f"{prompt} {choice}" for choice in choices]
    answered = prompt if answer is None else f"{prompt} {choices[answer]}"
    # A short text matches only as a whole, so that of prompt and answer misses a lone prompt.
    return [prompt, answered] if passages == "prompt_and_answer" else [answered]


def _with_letter(words: list[str], n: int) -> NDArray[np.bool_]:
    """Which n-grams hold a letter: tables of numbers, all "0" once normalised, match anywhere."""
    letters = np.array([any(map(str.isalpha, word)) for word in words], dtype=np.int64)
    return np.convolve(letters, np.ones(n, dtype=np.int64), mode="valid") > 0


def _ngram_table(index: Index) -> pa.Table:
    items = pa.LargeListArray.from_arrays(pa.array(index.offsets), pa.array(index.items))
    return pa.table({"hash": pa.array(index.hashes), "items": items})
