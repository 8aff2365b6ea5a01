"""The first map: a documents shard to token ids, and a table of whose they are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stages.engine.arrays import arrow_array, numpy_array
from stages.pack.fim import Segment, is_chosen, turned
from stages.pack.plan import Plan
from stages.pack.probe import SHARD_BYTES, check_ids, encoder_of
from stages.pack.spelling import spelt
from stages.pack.texts import batches
from stages.text.draw import draw

if TYPE_CHECKING:
    from stages.engine import Input, Shard, ShardOutput

COLUMNS = ("doc_id", "source", "language", "text", "duplicate_class", "linked_classes")

IDS, DOCUMENTS = "ids", "documents"
"""Scratch files: ids of all documents with text in order of rows, as the token shards will hold
them; a table of Arrow IPC with a row for each of them, by source and split."""

SPLITS = ("train", "held_out")

ROW = pa.schema(
    [
        pa.field("doc_id", pa.string()),
        pa.field("language", pa.string()),
        pa.field("content_hash", pa.string()),
        pa.field("length", pa.int64()),
        pa.field("offset", pa.int64()),
    ]
)
"""`length` in tokens, from `offset` on in the file of ids."""


@dataclass(frozen=True)
class DocumentShard:
    """A shard of one of several documents inputs, with an id that is unique over all of them."""

    id: str
    shard: Shard


def document_shards(documents: Sequence[Input]) -> list[DocumentShard]:
    """The shards of all inputs, in order."""
    return [
        DocumentShard(f"{place:03d}-{shard.id}", shard)
        for place, given in enumerate(documents)
        for shard in given.shards()
    ]


def encode_shard(item: DocumentShard, out: ShardOutput, *, plan: Plan) -> dict[str, Any]:
    """Encode the documents with text into scratch: `IDS` and `DOCUMENTS`.

    Returns {"documents": rows, "empty": rows without text, "torn": those between the splits, "fim":
    documents turned, "groups": [{source, split, first, documents, tokens}]}, a group's rows being
    `documents` from `first` on.
    """
    encoder = encoder_of(plan)
    rows = _Rows()
    seen = empty = torn = offset = fim = 0
    with out.open_scratch(IDS) as file:
        for batch in batches(item.shard, COLUMNS, encoder.text_bytes):
            seen, there = seen + len(batch), len(batch)
            batch = _with_text(batch)
            empty, there = empty + there - len(batch), len(batch)
            batch, held = _split(batch, plan)
            torn += there - len(batch)
            if not offset and plan.encoder != "tokenizers":
                first = _beginning(batch["text"], SHARD_BYTES)
                check_ids(encoder, plan, first, f"one of the first documents of {item.shard.path}")
            chosen = _turned(batch, held, plan)
            found = spelt(batch["text"], chosen, encoder, plan)
            kept = np.flatnonzero(found.lengths)
            rows.add(batch, held, found.lengths, kept)
            file.write(found.ids.view(np.uint8).data)
            empty += len(batch) - len(kept)
            offset, fim = offset + len(found.ids), fim + found.turned
    table, groups = rows.by_group()
    with out.open_scratch(DOCUMENTS) as file, pa.ipc.new_file(file, ROW) as writer:
        writer.write_table(table)
    return {"documents": seen, "empty": empty, "torn": torn, "fim": fim, "groups": groups}


def _beginning(texts: pa.StringArray, size: int) -> pa.StringArray:
    """The first texts, as many as take `size` bytes; at least one of those there are."""
    ends = np.cumsum(numpy_array(pc.binary_length(texts)), dtype=np.int64)
    return texts.slice(0, int(np.searchsorted(ends, size)) + 1)


def _with_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The documents that have more than white space."""
    texts = batch["text"]
    empty = pc.or_(pc.equal(pc.binary_length(texts), 0), pc.utf8_is_space(texts))
    return batch.filter(pc.invert(empty)) if pc.any(empty).as_py() else batch


def _split(batch: pa.RecordBatch, plan: Plan) -> tuple[pa.RecordBatch, npt.NDArray[np.bool_]]:
    """The documents of one split or the other, and whether each is held out.

    Drawn by duplicate class, so that no near-duplicate of a held-out document is trained on, be it
    in this shard, in another one, or in another snapshot with the same class: `filter` goes on
    naming a class as it first did. A document of several classes, of which some are held out and
    others trained on, belongs to neither and is left out.
    """
    if not plan.held_out_share:
        return batch, np.zeros(len(batch), dtype=np.bool_)
    classes = pc.coalesce(batch["duplicate_class"], batch["doc_id"]).to_pylist()
    drawn = (_is_held_out(name, plan) for name in classes)
    held = np.fromiter(drawn, np.bool_, len(classes))
    torn = np.zeros(len(batch), dtype=np.bool_)
    for row in numpy_array(pc.indices_nonzero(pc.is_valid(batch["linked_classes"]))).tolist():
        linked = batch["linked_classes"][row].as_py()
        torn[row] = any(_is_held_out(name, plan) != held[row] for name in linked)
    if not torn.any():
        return batch, held
    stay = np.flatnonzero(~torn)
    return batch.take(arrow_array(stay)), held[stay]


def _is_held_out(name: str, plan: Plan) -> bool:
    return draw(name, f"held out {plan.seed}") < plan.held_out_share


def _turned(
    batch: pa.RecordBatch, held: npt.NDArray[np.bool_], plan: Plan
) -> dict[int, list[Segment]]:
    """By row the parts of documents that are turned to fill in the middle; none is held out."""
    if plan.fim is None:
        return {}
    found = {}
    sources, languages = batch["source"].to_pylist(), batch["language"].to_pylist()
    for row in np.flatnonzero(~held).tolist():
        if is_chosen(sources[row], languages[row], plan.fim):
            doc_id, text = batch["doc_id"][row].as_py(), batch["text"][row].as_py()
            if parts := turned(doc_id, text, plan.fim, plan.tokens, plan.seed):
                found[row] = parts
    return found


@dataclass
class _Rows:
    """What is told of the documents encoded so far."""

    sources: dict[str, int] = field(default_factory=dict)
    groups: list[npt.NDArray[np.int64]] = field(default_factory=list)
    """2 × place of the source in `sources` + 1 where held out."""
    strings: dict[str, list[pa.Array]] = field(
        default_factory=lambda: {"doc_id": [], "language": [], "content_hash": []}
    )
    lengths: list[npt.NDArray[np.int64]] = field(default_factory=list)

    def add(
        self,
        batch: pa.RecordBatch,
        held: npt.NDArray[np.bool_],
        lengths: npt.NDArray[np.int64],
        kept: npt.NDArray[np.int64],
    ) -> None:
        """The rows `kept` of a batch, of which `lengths` tells the tokens."""
        if len(kept) < len(batch):
            batch = batch.take(arrow_array(kept))
        sources = pc.dictionary_encode(batch["source"])
        places = [
            self.sources.setdefault(name, len(self.sources))
            for name in sources.dictionary.to_pylist()
        ]
        codes = np.array(places, dtype=np.int64)[numpy_array(sources.indices)]
        self.groups.append(2 * codes + held[kept])
        self.lengths.append(lengths[kept])
        for name in ("doc_id", "language"):
            self.strings[name].append(batch[name])
        self.strings["content_hash"].append(_content_hashes(batch["text"]))

    def by_group(self) -> tuple[pa.Table, list[dict[str, Any]]]:
        """The table of `ROW`, sorted by source and split, and where the rows of each lie in it."""
        lengths, groups = _joined(self.lengths), _joined(self.groups)
        names = list(self.sources)
        known = sorted(np.unique(groups).tolist(), key=lambda group: (names[group // 2], group % 2))
        rank = np.zeros(2 * len(names), dtype=np.int64)
        rank[known] = np.arange(len(known))
        order = np.argsort(rank[groups], kind="stable")
        rows = arrow_array(order)
        columns = [
            pa.concat_arrays([pa.array([], pa.string()), *self.strings[name]]).take(rows)
            for name in ("doc_id", "language", "content_hash")
        ]
        offsets = np.cumsum(lengths) - lengths
        columns += [arrow_array(lengths[order]), arrow_array(offsets[order])]
        documents = np.bincount(rank[groups], minlength=len(known)).astype(int).tolist()
        tokens = np.bincount(rank[groups], lengths, minlength=len(known)).astype(int).tolist()
        firsts = np.cumsum([0, *documents]).tolist()
        return pa.table(columns, schema=ROW), [
            {
                "source": names[group // 2],
                "split": SPLITS[group % 2],
                "first": firsts[place],
                "documents": documents[place],
                "tokens": tokens[place],
            }
            for place, group in enumerate(known)
        ]


def _joined(parts: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _content_hashes(texts: pa.StringArray) -> pa.Array:
    """BLAKE2b of 8 bytes of each text, as 16 hex digits; texts are not copied."""
    width = "<i8" if pa.types.is_large_string(texts.type) else "<i4"
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1].tolist()
    view = memoryview(data) if data else memoryview(b"")
    digest = hashlib.blake2b
    return pa.array(
        [digest(view[begin:end], digest_size=8).hexdigest() for begin, end in pairwise(ends)],
        pa.string(),
    )
