"""What `shards.json` says of token shards, checked and joined over several outputs.

Held as arrays over files, so that a hundred thousand of them cost milliseconds and no object each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, InputError
from artifacts_schema.identity import short
from stages.training.phases import stream_of

if TYPE_CHECKING:
    from stages.engine import Input

_EQUAL = (
    "tokenizer",
    "vocabulary_size",
    "padded_vocabulary_size",
    "dtype",
    "begin_id",
    "end_id",
    "padding_id",
)
_SUMS = ("sequences", "tokens", "documents", "bytes", "repetitive", "cut")
_TYPES: dict[str, np.dtype[Any]] = {"uint16": np.dtype("<u2"), "uint32": np.dtype("<u4")}


class ShardTables:
    """The files of several token_shards outputs, sorted by source, then as inputs and shards come.

    Where the inputs have sequences of several lengths, those of a source with one length are a
    source of their own, called as `phases.stream_of` has it; `lengths` has that of each source.
    Sequences have a number within their source, and one over all sources: that of the source's
    first, `bases[source]`, plus it. `edges` [files + 1] are the numbers at which files begin.
    Raises InputError if the inputs differ in tokenizer or type of ids, CorruptArtifact if one
    contradicts itself.
    """

    def __init__(self, inputs: Sequence[Input]) -> None:
        if not inputs:
            raise InputError("no token shards were given")
        tables = [given.read_json("shards.json") for given in inputs]
        for table, given in zip(tables, inputs, strict=True):
            _check(table, tables[0], given)
        self.common: Mapping[str, Any] = {name: tables[0][name] for name in _EQUAL}
        self.dtype = _TYPES[self.common["dtype"]]
        several = len({table["sequence_length"] for table in tables}) > 1
        named = [
            {stream_of(name, table["sequence_length"], several): name for name in table["sources"]}
            for table in tables
        ]
        self.lengths: dict[str, int] = {
            stream: table["sequence_length"]
            for table, streams in zip(tables, named, strict=True)
            for stream in streams
        }
        self.sources: tuple[str, ...] = tuple(sorted(self.lengths))
        self.totals = {name: Counter[str]() for name in _SUMS}
        self.languages: dict[str, dict[str, int]] = {}
        paths: list[str] = []
        input_of: list[NDArray[np.int32]] = []
        counts: list[NDArray[np.int64]] = []
        ends = [0]
        sizes = [{file.path: file.bytes for file in given.files} for given in inputs]
        for source in self.sources:
            languages = Counter[str]()
            for number, (table, given) in enumerate(zip(tables, inputs, strict=True)):
                if source not in named[number]:
                    continue
                entry = table["sources"][named[number][source]]
                files, rows = self._files(source, entry, given, sizes[number])
                paths += files
                counts.append(rows)
                input_of.append(np.full(len(files), number, dtype=np.int32))
                languages.update(entry["languages"])
                for name in _SUMS:
                    self.totals[name][source] += entry[name]
            self.languages[source] = dict(sorted(languages.items()))
            ends.append(len(paths))
        self.paths = paths
        self.sequences = np.concatenate([np.zeros(0, dtype=np.int64), *counts])
        self.input_of = np.concatenate([np.zeros(0, dtype=np.int32), *input_of])
        self.edges = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.sequences)])
        self.ends = np.array(ends, dtype=np.int64)
        self.bases = self.edges[self.ends]
        self.length_of = np.repeat(
            np.array([self.lengths[source] for source in self.sources], dtype=np.int64),
            np.diff(self.ends),
        )

    def of_source(self, source: int) -> range:
        """The files of a source."""
        return range(int(self.ends[source]), int(self.ends[source + 1]))

    def locate(
        self, sources_B: NDArray[np.int64], sequences_B: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """File and row of each sequence. ValueError for one that is not there."""
        numbers_B = self.bases[sources_B] + sequences_B
        outside = (sequences_B < 0) | (numbers_B >= self.bases[sources_B + 1])
        if outside.any():
            row = int(np.argmax(outside))
            source = self.sources[sources_B[row]]
            raise ValueError(f"source '{source}' has no sequence {sequences_B[row]}")
        files_B = np.searchsorted(self.edges, numbers_B, side="right") - 1
        return files_B, numbers_B - self.edges[files_B]

    def _files(
        self, source: str, entry: Mapping[str, Any], given: Input, sizes: Mapping[str, int]
    ) -> tuple[list[str], NDArray[np.int64]]:
        """Paths and sequences of one source's shards in one input; all that is said must agree."""
        shards = entry["shards"]
        paths = [shard["file"] for shard in shards]
        rows = np.array([shard["sequences"] for shard in shards], dtype=np.int64)
        tokens = np.array([shard["tokens"] for shard in shards], dtype=np.int64)
        for name, held in (("sequences", rows), ("tokens", tokens)):
            if held.sum() != entry[name] or (held < 0).any():
                raise _corrupt(
                    given,
                    f"source '{source}' has {entry[name]:,} {name}, its shards {held.sum():,}",
                )
        expected = rows * (self.lengths[source] * self.dtype.itemsize)
        there = np.array([sizes.get(path, -1) for path in paths], dtype=np.int64)
        for file in np.flatnonzero(there != expected).tolist():
            if there[file] < 0:
                raise _corrupt(given, f"names a file that is not there: {paths[file]}")
            raise _corrupt(
                given,
                f"{paths[file]} has {rows[file]:,} sequences, that is {expected[file]:,} bytes; "
                f"the file has {there[file]:,}",
            )
        return paths, rows


def _check(table: Any, first: Mapping[str, Any], given: Input) -> None:
    for name, missing in _missing(table):
        raise _corrupt(given, f"{name} lacks '{missing}'")
    for name in _EQUAL:
        if table[name] != first[name]:
            ours, theirs = (
                short(one[name]) if name == "tokenizer" else one[name] for one in (table, first)
            )
            raise InputError(
                f"{name} is {ours}, that of the first input is {theirs}",
                where=_where(given),
                hint="pack both with one tokenizer",
            )
    dtype, size, padded = (table[n] for n in ("dtype", *_EQUAL[1:3]))
    if dtype not in _TYPES:
        raise _corrupt(given, f"dtype is {dtype!r}, known are uint16 and uint32")
    most = min(2 ** (8 * _TYPES[dtype].itemsize), 2**31 - 1)
    if not 1 <= size <= min(padded, most):
        raise _corrupt(given, f"a vocabulary of {size:,}, padded to {padded:,}, in {dtype}")
    for name in ("end_id", "padding_id"):
        if not 0 <= table[name] < size:
            raise _corrupt(given, f"{name} is {table[name]}, the vocabulary has {size:,}")
    if table["sequence_length"] < 1:
        raise _corrupt(given, f"sequences of {table['sequence_length']} tokens")


def _missing(table: Any) -> Iterator[tuple[str, str]]:
    """What kind version 2 promises and the table lacks: where, and what."""
    for name in (*_EQUAL, "sequence_length", "sources"):
        if name not in table:
            yield "shards.json", name
            return
    for source, entry in table["sources"].items():
        for name in ("shards", "languages", *_SUMS):
            if name not in entry:
                yield f"source '{source}'", name


def _where(given: Input) -> str:
    return f"token shards {given.stage} {short(given.key)}: {given.output}"


def _corrupt(given: Input, what: str) -> CorruptArtifact:
    return CorruptArtifact(f"shards.json: {what}", where=_where(given), hint="pack again")
