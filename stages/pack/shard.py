"""The second map: a group of encoded documents to one token shard with its index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from artifacts_schema.kinds import KINDS
from stages.engine.arrays import arrow_array, numpy_array
from stages.pack.groups import Group
from stages.pack.layout import STRATEGIES, Ints, Layout
from stages.pack.plan import Plan
from stages.pack.repetition import repetitive
from stages.text.native import compiled
from stages.training.permutation import Permutation, key_of

if TYPE_CHECKING:
    from stages.engine import ShardOutput

INDEX = KINDS["token_shards"].tables["*/*.index.parquet"]
CHUNK_BYTES = 8 << 20
"""Sequences that are laid out at once."""

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Documents:
    """The documents of a group: where each one's ids lie, and what the index tells of it."""

    table: pa.Table
    """doc_id, language, content_hash."""
    lengths: Ints
    part: Ints
    """Which of `ids` holds it."""
    offset: Ints
    ids: list[npt.NDArray[Any]]

    @classmethod
    def of(cls, group: Group, dtype: str) -> Documents:
        """Read the tables; ids stay in their files until they are copied."""
        tables, ids = [], []
        for part in group.parts:
            with pa.memory_map(str(part.documents.path())) as source:
                tables.append(pa.ipc.open_file(source).read_all().slice(part.first, part.rows))
            with pa.memory_map(str(part.ids.path())) as source:
                ids.append(np.frombuffer(source.read_buffer(), dtype=dtype))
        table = pa.concat_tables(tables).combine_chunks()
        return cls(
            table.select(["doc_id", "language", "content_hash"]),
            numpy_array(table["length"].combine_chunks()),
            np.repeat(np.arange(len(ids)), [part.rows for part in group.parts]),
            numpy_array(table["offset"].combine_chunks()),
            ids,
        )


def pack_group(
    group: Group, out: ShardOutput, *, plan: Plan, token_bytes: npt.NDArray[np.uint16]
) -> dict[str, Any]:
    """Lay out a group, leave out sequences that repeat themselves, and write what stays.

    Returns what `summary.shards_table` adds up: {source, split, file, sequences, tokens, documents,
    bytes, languages, cut, repetitive, dropped_tokens: {cropped, repetitive}, dropped_documents};
    occurrences of each token of the train split go to scratch.
    """
    documents = Documents.of(group, plan.dtype)
    key = key_of("pack", plan.seed, group.source, group.split, group.number)
    layout = shuffled(STRATEGIES[plan.strategy](documents.lengths, plan.sequence_length), key)
    counts = np.zeros(plan.vocabulary_size, dtype=np.int64)
    stays = np.zeros(layout.sequences, dtype=np.bool_)
    file = f"{group.path}.tokens"
    with ExitStack() as opened:
        writer = None
        for first, rows, used in sequences(layout, documents, plan):
            good = _good(rows, used, plan)
            stays[first : first + len(rows)] = good
            if not good.all():
                rows, used = rows[good], used[good]
            if len(rows):
                count(rows, used, counts)
                writer = writer or opened.enter_context(out.open(group.split, file))
                writer.write(rows.view(np.uint8).data)
    kept = _kept(layout, stays)
    if kept.sequences:
        out.write_table(
            group.split, f"{group.path}.index.parquet", index_table(kept, documents.table)
        )
    if group.split == "train":
        out.write_scratch("counts", pa.table({"count": arrow_array(counts)}))
    return {
        "source": group.source,
        "split": group.split,
        "file": file,
        "bytes": int(counts @ token_bytes.astype(np.int64)),
        **_account(layout, kept, documents, plan.sequence_length),
    }


def sequences(
    layout: Layout, documents: Documents, plan: Plan
) -> Iterator[tuple[int, npt.NDArray[Any], Ints]]:
    """Some sequences at a time: number of the first, ids [n, sequence_length], tokens in each."""
    used = layout.used()
    dtype = np.dtype(plan.dtype)
    step = max(1, CHUNK_BYTES // (plan.sequence_length * dtype.itemsize))
    for first in range(0, layout.sequences, step):
        count = min(step, layout.sequences - first)
        rows = np.full((count, plan.sequence_length), plan.tokens.padding, dtype=dtype)
        begin, end = np.searchsorted(layout.sequence, [first, first + count])
        pieces = np.arange(begin, end)
        parts = documents.part[layout.document[pieces]]
        if len(documents.ids) > 1:
            order = np.argsort(parts, kind="stable")
            pieces, parts = pieces[order], parts[order]
        borders = np.flatnonzero(np.diff(parts, prepend=-1, append=-1))
        for start, stop in pairwise(borders):
            some = pieces[start:stop]
            document = layout.document[some]
            copy_pieces(
                rows,
                layout.sequence[some] - first,
                layout.start[some],
                layout.length[some],
                documents.ids[parts[start]],
                documents.offset[document] + layout.document_start[some],
            )
        yield first, rows, used[first : first + count]


def shuffled(layout: Layout, key: bytes) -> Layout:
    """The layout with its sequences in another order, so that neighbours are unrelated."""
    if not layout.sequences:
        return layout
    return layout.ordered(Permutation(layout.sequences, key)(np.arange(layout.sequences)))


@compiled
def copy_pieces(
    rows: npt.NDArray[Any],
    sequence: Ints,
    start: Ints,
    length: Ints,
    ids: npt.NDArray[Any],
    first: Ints,
) -> None:
    """Copy `length` ids from `first` on to `start` in row `sequence`, piece by piece."""
    for piece in range(len(sequence)):
        row, at, origin = sequence[piece], start[piece], first[piece]
        for place in range(length[piece]):
            rows[row, at + place] = ids[origin + place]


@compiled
def count(rows: npt.NDArray[Any], used: Ints, counts: Ints) -> None:
    """Add the occurrences of each token; of row i the first `used[i]` are tokens."""
    for row in range(len(rows)):
        for place in range(used[row]):
            counts[rows[row, place]] += 1


def index_table(layout: Layout, documents: pa.Table) -> pa.Table:
    """One row a piece, by sequence and start; `documents` are those that were encoded, in order."""
    rows = arrow_array(layout.document)
    columns = {
        "sequence": arrow_array(layout.sequence),
        "start": arrow_array(layout.start.astype(np.int32)),
        "length": arrow_array(layout.length.astype(np.int32)),
        "doc_id": documents["doc_id"].take(rows),
        "document_start": arrow_array(layout.document_start),
        "language": documents["language"].take(rows),
        "content_hash": documents["content_hash"].take(rows),
    }
    return pa.table(columns, schema=INDEX.arrow())


def _good(rows: npt.NDArray[Any], used: Ints, plan: Plan) -> Bools:
    if plan.repetition is None:
        return np.ones(len(rows), dtype=np.bool_)
    found: Bools = repetitive(rows, used, plan.repetition.max_period, plan.repetition.min_repeats)
    return ~found


def _kept(layout: Layout, stays: Bools) -> Layout:
    """The pieces of the sequences that stay, which are numbered anew."""
    if stays.all():
        return layout
    pieces = stays[layout.sequence]
    places = np.cumsum(stays) - 1
    return Layout(
        int(stays.sum()),
        places[layout.sequence[pieces]],
        layout.start[pieces],
        layout.length[pieces],
        layout.document[pieces],
        layout.document_start[pieces],
    )


def _account(
    layout: Layout, kept: Layout, documents: Documents, sequence_length: int
) -> dict[str, Any]:
    """What became of every document and token of the group."""
    lengths = documents.lengths
    laid, tokens = int(layout.length.sum()), int(kept.length.sum())
    short = lengths[kept.document] <= sequence_length
    shortened = kept.length < lengths[kept.document]
    present = len(np.unique(kept.document))
    return {
        "sequences": kept.sequences,
        "tokens": tokens,
        "documents": present,
        "languages": _languages(kept, documents.table["language"]),
        "cut": len(np.unique(kept.document[short & shortened])),
        "repetitive": layout.sequences - kept.sequences,
        "dropped_tokens": {"cropped": int(lengths.sum()) - laid, "repetitive": laid - tokens},
        "dropped_documents": len(lengths) - present,
    }


def _languages(layout: Layout, languages: pa.ChunkedArray) -> dict[str, int]:
    """Tokens by declared language; an empty code where none is declared."""
    coded = languages.combine_chunks().dictionary_encode()
    names = [*coded.dictionary.to_pylist(), ""]
    codes = numpy_array(coded.indices.fill_null(len(names) - 1))[layout.document]
    tokens = np.bincount(codes, layout.length, minlength=len(names))
    found: dict[str, int] = {}
    for name, many in zip(names, tokens.astype(int).tolist(), strict=True):
        if many:
            found[name] = found.get(name, 0) + many
    return found
