"""Names of links matched with documents: a join on disk, a range of numbers in a task.

A document is a number: its row among all documents to decide on. A name that no such document has
gets a number as well, after those of all documents. That no two documents have one id is proved by
the same sorting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.filter.links import NAMES, NUMBERS
from stages.filter.ordered import read_range

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult
    from stages.engine.outputs import LeftFile

NODES = "nodes"
"""Scratch file: for each name of the range, shard after shard, its document as an int64."""
_ROW_BYTES = 64
"""Bytes that an id or a name takes while a range is matched, with the copies that sorting makes."""
_BITS = 64


@dataclass(frozen=True)
class NumberRange:
    """The numbers in [low, high); an item of a map."""

    id: str
    low: int
    high: int


@dataclass(frozen=True)
class LinkFiles:
    """The tables that `leave_links` left of a shard, or those of earlier runs. Picklable."""

    numbers: LeftFile | None
    """None for earlier runs."""
    names: LeftFile
    start: int
    """The first document of the shard."""

    @classmethod
    def from_result(cls, result: ShardResult, start: int, *, numbered: bool = True) -> LinkFiles:
        """Those that a task left."""
        numbers = result.left(None, NUMBERS) if numbered else None
        return cls(numbers, result.left(None, NAMES), start)


def number_ranges(rows: int, memory: int) -> list[NumberRange]:
    """All numbers in as many ranges as it takes to match one of them in `memory` bytes."""
    parts = max(1, -(-rows * _ROW_BYTES // memory))
    edges = [(part << _BITS) // parts for part in range(parts + 1)]
    return [NumberRange(f"{n:05d}", *ends) for n, ends in enumerate(pairwise(edges))]


def match_names(
    item: NumberRange, out: ShardOutput, *, files: Sequence[LinkFiles]
) -> dict[str, Any]:
    """Leave `NODES` of a range; returns how many names are `beyond` all documents.

    A name that no document has is -1 less its place among such names of the range. InputError if
    two documents have one id.
    """
    index = _Index.read(item, files)
    matched, beyond = [], [np.empty((0, 2), np.uint64)]
    for one in files:
        words = _read_words(one.names, item, "check")
        nodes = index.find(words)
        matched.append(nodes)
        beyond.append(words[nodes < 0])
    del index
    unknown, places = np.unique(np.concatenate(beyond), axis=0, return_inverse=True)
    stop, places = 0, places.reshape(-1)
    with out.open_scratch(NODES) as file:
        for nodes, others in zip(matched, beyond[1:], strict=True):
            start, stop = stop, stop + len(others)
            nodes[nodes < 0] = -1 - places[start:stop]
            file.write(nodes.tobytes())
    return {"beyond": len(unknown)}


@dataclass(frozen=True)
class _Index:
    """Documents of a range in the order of their first numbers."""

    numbers: NDArray[np.uint64]
    checks: NDArray[np.uint64]
    documents: NDArray[np.int64]
    most: int
    """Documents of one first number, at most."""

    @classmethod
    def read(cls, item: NumberRange, files: Sequence[LinkFiles]) -> _Index:
        """Those of all shards; InputError if two have one id."""
        words, documents = [np.empty((0, 2), np.uint64)], [np.empty(0, np.int64)]
        for one in files:
            if one.numbers is not None:
                rows = _read_words(one.numbers, item, "check", "row")
                words.append(rows[:, :2])
                documents.append(one.start + rows[:, 2].astype(np.int64))
        numbers = np.concatenate([part[:, 0] for part in words])
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        checks = np.concatenate([part[:, 1] for part in words])[order]
        del words
        most = _most_equal(numbers, checks)
        return cls(numbers, checks, np.concatenate(documents)[order], most)

    def find(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The document of each name, -1 for none."""
        nodes = np.full(len(words), -1, dtype=np.int64)
        if not len(self.numbers):
            return nodes
        places = np.searchsorted(self.numbers, words[:, 0])
        for step in range(self.most):
            at = np.minimum(places + step, len(self.numbers) - 1)
            same = (self.numbers[at] == words[:, 0]) & (self.checks[at] == words[:, 1])
            nodes[same] = self.documents[at[same]]
        return nodes


def _most_equal(numbers: NDArray[np.uint64], checks: NDArray[np.uint64]) -> int:
    """How many documents have one first number at most; InputError if two have both."""
    equal = np.flatnonzero(numbers[1:] == numbers[:-1])
    if not len(equal):
        return 1
    among = np.unique(np.concatenate([equal, equal + 1]))
    words = np.stack([numbers[among], checks[among]], axis=1)
    if len(np.unique(words, axis=0)) < len(words):
        raise InputError(
            "two documents have the same doc_id",
            where="filter",
            hint="the same documents, or overlapping snapshots under one name, came in twice",
        )
    return int(np.unique(words[:, 0], return_counts=True)[1].max())


def _read_words(left: LeftFile, item: NumberRange, *columns: str) -> NDArray[np.uint64]:
    """[row, column] `number` and other columns of a range."""
    tables = read_range(left.path(), item.low, item.high, ["number", *columns])
    parts = [
        np.stack([column.to_numpy().astype(np.uint64) for column in rows.columns], axis=1)
        for rows in tables
    ]
    return np.concatenate([np.empty((0, 1 + len(columns)), np.uint64), *parts])


class MatchedNames:
    """The documents of the names of each shard, for which the shards are asked in order."""

    def __init__(
        self, ranges: Sequence[NumberRange], results: Sequence[ShardResult], documents: int
    ) -> None:
        self._edges = np.array([one.low for one in ranges[1:]], dtype=np.uint64)
        self._files = [result.left(None, NODES) for result in results]
        self._beyond = documents + np.cumsum([0, *(one.value["beyond"] for one in results)])
        self._places = [0] * len(self._files)

    @property
    def nodes(self) -> int:
        """One more than the greatest number: all documents, and all other names."""
        return int(self._beyond[-1])

    def rewind(self) -> None:
        """Begin with the first shard again."""
        self._places = [0] * len(self._files)

    def read(self, numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The documents of the next shard's names, of which these are the first numbers."""
        return np.concatenate([np.empty(0, np.int64), *self._parts(numbers)])

    def _parts(self, numbers: NDArray[np.uint64]) -> Iterator[NDArray[np.int64]]:
        cuts = [0, *np.searchsorted(numbers, self._edges).tolist(), len(numbers)]
        for part, (begin, end) in enumerate(pairwise(cuts)):
            size, path = 8 * (end - begin), self._files[part].path()
            with open(path, "rb") as file:
                file.seek(self._places[part])
                data = file.read(size)
            if len(data) < size:
                raise CorruptArtifact(
                    f"the file ends before byte {self._places[part] + size:,}",
                    where=str(path),
                    hint="it was cut short: run the step that made it again",
                )
            self._places[part] += size
            nodes = np.frombuffer(data, dtype=np.int64)
            yield np.where(nodes < 0, self._beyond[part] - 1 - nodes, nodes)
