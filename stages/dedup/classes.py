"""What exact classes came to, by document: which are first, and who is the first of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stages.dedup.exact import COPY, class_tasks, find_classes
from stages.dedup.index_reading import OpenFiles
from stages.dedup.pairs import PairFiles

if TYPE_CHECKING:
    from stages.dedup.index import Corpus
    from stages.engine import Context, ShardOutput, ShardResult

BLOCK = 1 << 20
"""Documents whose classes lie together."""


@dataclass(frozen=True)
class BlockTask:
    """The documents [low, high)."""

    low: int
    high: int

    @property
    def id(self) -> str:
        """The first one's number."""
        return f"{self.low:015d}"


def block_tasks(documents: int) -> list[BlockTask]:
    """All documents, in blocks."""
    return [BlockTask(low, min(low + BLOCK, documents)) for low in range(0, documents, BLOCK)]


def order_copies(
    task: BlockTask,
    out: ShardOutput,
    *,
    words: Sequence[ShardResult],
    texts: Sequence[ShardResult],
    first_new: int,
) -> None:
    """Write what is known of a block: a bit for each document that is a copy, and the new copies
    with the first of their class, by words and by texts, in the order of documents.

    `words` and `texts` are what `find_classes` gave.
    """
    copies = _between(words, task)
    is_copy = np.zeros(task.high - task.low, dtype=np.bool_)
    is_copy[copies["right"] - task.low] = True
    with out.open_scratch("bits") as file:
        file.write(np.packbits(is_copy, bitorder="little").tobytes())
    for name, found in (("words", copies), ("texts", _between(texts, task))):
        new = found[found["right"] >= first_new]
        with out.open_scratch(name) as file:
            file.write(new[np.argsort(new["right"])].tobytes())


def _between(found: Sequence[ShardResult], task: BlockTask) -> NDArray[np.void]:
    paths = [result.scratch_path(name) for result in found for name in result.value["files"]]
    files = PairFiles.at(paths, COPY)
    return np.concatenate([np.empty(0, COPY), *files.slices(task.low, task.high, BLOCK)])


@dataclass(frozen=True, eq=False)
class _Block:
    result: ShardResult

    @property
    def id(self) -> str:
        return self.result.id

    def path(self, part: str) -> Path:
        return self.result.scratch_path(part)


@dataclass(frozen=True, eq=False)
class Classes:
    """Exact classes of all documents. Picklable; holds nothing, reads what is asked for."""

    blocks: tuple[_Block, ...]
    documents: int
    counts: dict[str, int]
    """`exact_classes`: of several documents, a new one among them; `exact_copies`: new documents
    that are not the first of theirs; `text_classes` and `text_copies`: the same of raw texts."""
    files: OpenFiles = field(default_factory=OpenFiles)

    def is_first(self, low: int, high: int) -> NDArray[np.bool_]:
        """Whether each of the documents [low, high) is the first of its class, by words."""
        found = np.empty(high - low, dtype=np.bool_)
        for block, begin, end in self._spans(low, high):
            start = begin // 8
            packed = self.files.read(block, "bits", start, -(-end // 8) - start)
            bits = np.unpackbits(packed, bitorder="little")[begin - 8 * start : end - 8 * start]
            at = int(block.id) + begin - low
            np.equal(bits, 0, out=found[at : at + end - begin])
        return found

    def first(self, low: int, high: int) -> NDArray[np.int64]:
        """The first of the class by words, for each of the new documents [low, high)."""
        return self._first("words", low, high)

    def text_first(self, low: int, high: int) -> NDArray[np.int64]:
        """The first of the class by texts, for each of the new documents [low, high)."""
        return self._first("texts", low, high)

    def _first(self, name: str, low: int, high: int) -> NDArray[np.int64]:
        found = np.arange(low, high)
        for block, _, _ in self._spans(low, high):
            for copies in PairFiles.at([block.path(name)], COPY).slices(low, high, BLOCK):
                found[copies["right"] - low] = copies["left"]
        return found

    def _spans(self, low: int, high: int) -> list[tuple[_Block, int, int]]:
        """Blocks that hold documents of [low, high), and which places of theirs."""
        if not 0 <= low <= high <= self.documents:
            raise ValueError(f"[{low}, {high}) is not within the {self.documents} documents")
        return [
            (self.blocks[place], max(low - place * BLOCK, 0), min(high - place * BLOCK, BLOCK))
            for place in range(low // BLOCK, -(-high // BLOCK))
        ]


def exact_classes(context: Context, corpus: Corpus, rows: int) -> Classes:
    """Find the classes, in maps of the stage: first by ranges of digests, then by documents."""
    found = context.map(find_classes, class_tasks(corpus, rows), corpus=corpus, rows=rows)
    of_words = [result for result in found if result.id.startswith("words")]
    of_texts = [result for result in found if result.id.startswith("texts")]
    ordered = context.map(
        order_copies,
        block_tasks(corpus.documents),
        words=of_words,
        texts=of_texts,
        first_new=corpus.first_new,
    )
    return Classes(
        blocks=tuple(_Block(result) for result in ordered),
        documents=corpus.documents,
        counts={
            "exact_classes": _sum(of_words, "classes"),
            "exact_copies": _sum(of_words, "new_copies"),
            "text_classes": _sum(of_texts, "classes"),
            "text_copies": _sum(of_texts, "new_copies"),
        },
    )


def _sum(results: Sequence[ShardResult], name: str) -> int:
    return sum(result.value[name] for result in results)
