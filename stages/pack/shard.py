"""The second map: a group of encoded documents to one token shard with its index.

A group is documents of one source and split that are packed together, over shards in order. Best
fit leaves space in the last sequences alone, so the more tokens it has to choose from, the
fuller the sequences; a shard at a time left 7 % of them empty where shards are small. What is
held of a group is a few numbers and the ids of each document, not its tokens. The cut follows
from counts, so it is the same for any number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from artifacts_schema.kinds import KINDS
from stages.engine.arrays import arrow_array, numpy_array
from stages.pack.documents import (
    DOCUMENTS,
    IDS,
    MARKS,
    SPLITS,
    WEIGHTS,
    excluded_rows,
    write_excluded,
)
from stages.pack.layout import STRATEGIES, Ints, Layout
from stages.pack.plan import Plan
from stages.pack.repetition import runs_without
from stages.training.permutation import Permutation, key_of

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult
    from stages.engine.outputs import LeftFile

TOKENS = 1 << 26
"""A group has so many at least, where its source has: a file of 128 MiB with ids of two bytes."""
SEQUENCES = 1024
"""And so many sequences, so that the last one's padding is less than a thousandth."""
DOCUMENTS_AT_ONCE = 1 << 20
PARTS = 512
"""A group with so many documents, or of so many shards, is large enough, whatever else it has."""


@dataclass(frozen=True)
class Part:
    """Documents of a group that one shard holds: rows of its table, from `first` on."""

    ids: LeftFile
    documents: LeftFile
    first: int
    rows: int
    tokens: int
    marks: LeftFile | None = None
    weights: LeftFile | None = None


@dataclass(frozen=True)
class Group:
    """Documents that are packed together into one token shard."""

    id: str
    source: str
    split: str
    number: int
    parts: tuple[Part, ...]

    @property
    def path(self) -> str:
        """Of its files, without their endings: a folder for each source, whatever its name."""
        return f"{source_folder(self.source)}/{self.number:05d}"


def source_folder(source: str) -> str:
    """The name of a source as that of a folder; different ones stay different."""
    name = quote(source, safe="")
    return name if name.strip(".") else f"%{name.replace('.', '%2E')}"


def make_groups(results: Sequence[ShardResult], sequence_length: int) -> list[Group]:
    """The groups of all shards encoded (`documents.encode_shard`), by source and split."""
    parts: dict[tuple[str, str], list[Part]] = {}
    for result in results:
        for group in result.value["groups"]:
            part = Part(
                result.left(None, IDS),
                result.left(None, DOCUMENTS),
                group["first"],
                group["documents"],
                group["tokens"],
                result.left(None, MARKS) if result.value.get("marked") else None,
                result.left(None, WEIGHTS) if result.value.get("weighted") else None,
            )
            parts.setdefault((group["source"], group["split"]), []).append(part)
    sources = sorted({source for source, _ in parts})
    return [
        Group(f"{split}-{place:05d}-{number:05d}", source, split, number, cut)
        for place, source in enumerate(sources)
        for split in SPLITS
        for number, cut in enumerate(_cut_groups(parts.get((source, split), []), sequence_length))
    ]


def _cut_groups(parts: Sequence[Part], sequence_length: int) -> list[tuple[Part, ...]]:
    """Consecutive parts, each time until they are enough; what is left over goes with the last."""
    enough = max(TOKENS, SEQUENCES * sequence_length)
    cuts: list[tuple[Part, ...]] = []
    held: list[Part] = []
    tokens = rows = 0
    for part in parts:
        held.append(part)
        tokens, rows = tokens + part.tokens, rows + part.rows
        if tokens >= enough or rows >= DOCUMENTS_AT_ONCE or len(held) >= PARTS:
            cuts.append(tuple(held))
            held, tokens, rows = [], 0, 0
    if held:
        cuts[-1:] = [(*(cuts[-1] if cuts else ()), *held)]
    return cuts


INDEX = KINDS["token_shards"].tables["*/*.index.parquet"]
CHUNK_BYTES = 8 << 20
"""Bytes of sequences that are laid out together."""


@dataclass(frozen=True)
class Documents:
    """The documents of a group: where the ids of each are, and its columns in the index."""

    table: pa.Table
    """doc_id, language, content_hash."""
    lengths: Ints
    part: Ints
    """Which of `ids` holds it."""
    offset: Ints
    repetitive: dict[int, list[int]]
    """By document the segments that are left out."""
    ids: list[npt.NDArray[Any]]
    marks: list[npt.NDArray[np.uint8]]
    """Of conversations, those of the tokens in `ids`."""
    weights: list[npt.NDArray[np.float32]]
    """The same; empty where every token counts 1."""

    @classmethod
    def read(cls, group: Group, dtype: str) -> Documents:
        """Read the tables; ids stay in their files until they are copied."""
        tables, ids, marks, weights = [], [], [], []
        weighted = any(part.weights is not None for part in group.parts)
        for part in group.parts:
            with pa.memory_map(str(part.documents.path())) as source:
                tables.append(pa.ipc.open_file(source).read_all().slice(part.first, part.rows))
            ids.append(_map_array(part.ids, dtype))
            if part.marks is not None:
                marks.append(_map_array(part.marks, "uint8"))
            if part.weights is not None:
                weights.append(_map_array(part.weights, "<f4"))
            elif weighted:
                weights.append(np.broadcast_to(np.float32(1), ids[-1].shape))
        table = pa.concat_tables(tables).combine_chunks()
        return cls(
            table.select(["doc_id", "language", "content_hash"]),
            numpy_array(table["length"].combine_chunks()),
            np.repeat(np.arange(len(ids)), [part.rows for part in group.parts]),
            numpy_array(table["offset"].combine_chunks()),
            cls._segments(table["repetitive"].combine_chunks()),
            ids,
            marks,
            weights,
        )

    @staticmethod
    def _segments(lists: pa.ListArray) -> dict[int, list[int]]:
        rows = pc.indices_nonzero(pc.is_valid(lists))
        return dict(zip(rows.to_pylist(), lists.take(rows).to_pylist(), strict=True))


def _map_array(file: LeftFile, dtype: str) -> npt.NDArray[Any]:
    with pa.memory_map(str(file.path())) as source:
        return np.frombuffer(source.read_buffer(), dtype=dtype)


def pack_group(
    group: Group, out: ShardOutput, *, plan: Plan, token_bytes: npt.NDArray[np.uint16]
) -> dict[str, Any]:
    """Lay out a group without segments that repeat themselves, and write it.

    Returns what `shards_table` adds up: {source, split, file, weights, sequences, tokens,
    documents, bytes, languages, cut, repetitive, dropped_tokens: {cropped, repetitive},
    dropped_documents}; occurrences of each token of the train split go to scratch.
    """
    documents = Documents.read(group, plan.dtype)
    key = key_of("pack", plan.seed, group.source, group.split, group.number)
    layout, repetitive = lay_out(documents, plan)
    layout = shuffle_layout(layout, key)
    counts = np.zeros(plan.vocabulary_size, dtype=np.int64)
    file = f"{group.path}.tokens"
    with ExitStack() as opened:
        writer = None
        for rows, used in sequences(layout, documents, plan):
            tokens = rows[np.arange(plan.sequence_length) < used[:, None]]
            counts += np.bincount(tokens, minlength=len(counts))
            writer = writer or opened.enter_context(out.open(group.split, file))
            writer.write(rows.view(np.uint8).data)
        for values, ending in ((documents.marks, "marks"), (documents.weights, "weights")):
            writer = None
            for part in sidecar_of(values, layout, documents, plan):
                path = f"{group.path}.{ending}"
                writer = writer or opened.enter_context(out.open(group.split, path))
                writer.write(part.view(np.uint8).data)
    if layout.sequences:
        table = index_table(layout, documents.table)
        out.write_table(group.split, f"{group.path}.index.parquet", table)
    _list_excluded(group, out, layout, documents, repetitive)
    if group.split == "train":
        out.write_scratch("counts", pa.table({"count": arrow_array(counts)}))
    return {
        "source": group.source,
        "split": group.split,
        "file": file,
        "weights": bool(documents.weights),
        "bytes": int(counts @ token_bytes.astype(np.int64)),
        **_account_for_tokens(layout, documents, repetitive, plan.sequence_length),
    }


def sequences(
    layout: Layout, documents: Documents, plan: Plan
) -> Iterator[tuple[npt.NDArray[Any], Ints]]:
    """Some sequences at a time: ids [n, sequence_length], tokens in each."""
    used, first = layout.used(), 0
    padding = np.array(plan.tokens.padding, dtype=plan.dtype)
    for rows in _laid_out(layout, documents, documents.ids, plan.sequence_length, padding):
        yield rows, used[first : first + len(rows)]
        first += len(rows)


def sidecar_of(
    values: Sequence[npt.NDArray[Any]], layout: Layout, documents: Documents, plan: Plan
) -> Iterator[npt.NDArray[Any]]:
    """Some sequences at a time: the values of their tokens, 0 in padding; nothing of no values."""
    if values:
        padding = np.zeros((), dtype=values[0].dtype)
        yield from _laid_out(layout, documents, values, plan.sequence_length, padding)


def _laid_out(
    layout: Layout,
    documents: Documents,
    values: Sequence[npt.NDArray[Any]],
    sequence_length: int,
    padding: npt.NDArray[Any],
) -> Iterator[npt.NDArray[Any]]:
    """The values of tokens, one array a part, where the tokens lie; elsewhere padding."""
    step = max(1, CHUNK_BYTES // (sequence_length * padding.itemsize))
    for first in range(0, layout.sequences, step):
        count = min(step, layout.sequences - first)
        rows = np.full((count, sequence_length), padding)
        pieces = slice(*np.searchsorted(layout.sequence, [first, first + count]))
        document = layout.document[pieces]
        for row, start, length, part, origin in zip(
            (layout.sequence[pieces] - first).tolist(),
            layout.start[pieces].tolist(),
            layout.length[pieces].tolist(),
            documents.part[document].tolist(),
            (documents.offset[document] + layout.document_start[pieces]).tolist(),
            strict=True,
        ):
            rows[row, start : start + length] = values[part][origin : origin + length]
        yield rows


def shuffle_layout(layout: Layout, key: bytes) -> Layout:
    """The layout with its sequences in another order, so that neighbours are unrelated."""
    if not layout.sequences:
        return layout
    return layout.ordered(Permutation(layout.sequences, key)(np.arange(layout.sequences)))


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


def lay_out(documents: Documents, plan: Plan) -> tuple[Layout, Ints]:
    """Where the tokens of a group go that stay, and how many of each document do not."""
    runs, excluded = runs_without(documents.lengths, documents.repetitive, plan.sequence_length)
    lengths = runs.length
    if plan.strategy == "best_fit_crop":  # It lays out beginnings alone.
        lengths = np.where(runs.start == 0, lengths, 0)
    layout = STRATEGIES[plan.strategy](lengths, plan.sequence_length)
    start = layout.document_start + runs.start[layout.document]
    return replace(layout, document=runs.document[layout.document], document_start=start), excluded


def _account_for_tokens(
    layout: Layout, documents: Documents, repetitive: Ints, sequence_length: int
) -> dict[str, Any]:
    """What became of every document and token of the group."""
    lengths = documents.lengths
    tokens, dropped = int(layout.length.sum()), int(repetitive.sum())
    short = lengths[layout.document] <= sequence_length
    shortened = layout.length < lengths[layout.document]
    present = len(np.unique(layout.document))
    return {
        "sequences": layout.sequences,
        "tokens": tokens,
        "documents": present,
        "languages": _count_by_language(layout, documents.table["language"]),
        "cut": len(np.unique(layout.document[short & shortened])),
        "repetitive": sum(map(len, documents.repetitive.values())),
        "dropped_tokens": {
            "cropped": int(lengths.sum()) - tokens - dropped, "repetitive": dropped,
        },
        "dropped_documents": len(lengths) - present,
    }  # fmt: skip


def _list_excluded(
    group: Group, out: ShardOutput, layout: Layout, documents: Documents, repetitive: Ints
) -> None:
    """Write which documents of the group lost tokens, and why."""
    laid = np.zeros_like(documents.lengths)
    np.add.at(laid, layout.document, layout.length)
    tables = []
    for reason, tokens in (
        ("repetitive", repetitive),
        ("cropped", documents.lengths - laid - repetitive),
    ):
        rows = np.flatnonzero(tokens)
        table = documents.table.select(["doc_id"]).take(arrow_array(rows))
        table = table.append_column("source", pa.repeat(group.source, len(rows)))
        split, whole = pa.repeat(group.split, len(rows)), pa.array(laid[rows] == 0)
        tokens_left = arrow_array(tokens[rows])
        tables.append(excluded_rows(table, reason, split=split, tokens=tokens_left, whole=whole))
    write_excluded(out, f"groups/{group.id}.parquet", tables)


def _count_by_language(layout: Layout, languages: pa.ChunkedArray) -> dict[str, int]:
    """Tokens by declared language; an empty code where none is declared."""
    codes = languages.fill_null("").take(arrow_array(layout.document))
    pieces = pa.table({"language": codes, "tokens": arrow_array(layout.length)})
    sums = pieces.group_by("language", use_threads=False).aggregate([("tokens", "sum")])
    return {row["language"]: row["tokens_sum"] for row in sums.to_pylist()}


SUMS = ("sequences", "tokens", "documents", "bytes", "repetitive", "cut")
TABLES = ("languages", "dropped_tokens")


def shards_table(
    plan: Plan, tokenizer_digest: str, split: str, results: Sequence[ShardResult]
) -> dict[str, Any]:
    """The content of shards.json; shards in the order of the documents that they hold.

    A source of which no sequence stays is not in it.
    """
    sources: dict[str, dict[str, Any]] = {}
    for group in (result.value for result in results if result.value["split"] == split):
        source = sources.setdefault(
            group["source"],
            {"shards": [], **dict.fromkeys(SUMS, 0), **{name: {} for name in TABLES}},
        )
        if group["sequences"]:
            shard = {n: group[n] for n in ("file", "sequences", "tokens")}
            source["shards"].append({**shard, **({"weights": True} if group["weights"] else {})})
        for name in SUMS:
            source[name] += group[name]
        for name in TABLES:
            for part, number in group[name].items():
                source[name][part] = source[name].get(part, 0) + number
    return {
        "dtype": plan.dtype,
        "sequence_length": plan.sequence_length,
        "strategy": plan.strategy,
        "vocabulary_size": plan.vocabulary_size,
        "padded_vocabulary_size": plan.padded_vocabulary_size,
        "tokenizer": tokenizer_digest,
        "begin_id": plan.tokens.begin,
        "end_id": plan.tokens.end,
        "padding_id": plan.tokens.padding,
        "sources": {name: one for name, one in sources.items() if one["sequences"]},
    }


def totals(split: str, results: Sequence[ShardResult]) -> dict[str, int]:
    """Counters of a split over all its sources: SUMS, and tokens that are in no sequence."""
    groups = [result.value for result in results if result.value["split"] == split]
    sums = {name: sum(group[name] for group in groups) for name in SUMS}
    for reason in ("cropped", "repetitive"):
        sums[f"{reason}_tokens"] = sum(group["dropped_tokens"][reason] for group in groups)
    return {f"{split}_{name}": number for name, number in sums.items()}


def train_counts(results: Sequence[ShardResult], vocabulary_size: int) -> npt.NDArray[np.int64]:
    """[vocabulary_size] occurrences of each token in the train split."""
    counts = np.zeros(vocabulary_size, dtype=np.int64)
    for result in results:
        if result.value["split"] == "train":
            counts += numpy_array(result.read_scratch("counts")["count"].combine_chunks())
    return counts
