"""The first map: a documents shard to token ids, and a table that says which ids are whose.

Fill in the middle: documents reordered so that a model learns to write between two parts. A
document is cut at two places drawn among its characters, and its three parts are encoded
separately (Bavarian et al. 2022, "Efficient training of language models to fill in the middle",
arXiv 2207.14255; so do SantaCoder and StarCoder):

    PSM   begin <|fim_prefix|> prefix <|fim_suffix|> suffix <|fim_middle|> middle end
    SPM   begin <|fim_prefix|> <|fim_suffix|> suffix <|fim_middle|> prefix middle end

SPM is the paper's second form, which shares its first token with PSM so that the two are learnt
together. A document's draw depends on its id alone, not on its shard. One of more tokens than a
sequence stays as it is: its middle would be separated from what it fills.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from artifacts_schema.errors import InputError
from artifacts_schema.kinds import KINDS
from stages.engine.arrays import arrow_array, numpy_array
from stages.pack.config import FillInTheMiddle
from stages.pack.encoder import SHARD_BYTES, DocumentShard, batches, check_ids, load_encoder
from stages.pack.plan import Plan
from stages.pack.repetition import repetitive_segments
from stages.text.draw import draw
from stages.tokens.vocabulary import SpecialTokens

if TYPE_CHECKING:
    from stages.engine import ShardOutput
    from stages.pack.encoder import Encoder


@dataclass(frozen=True)
class Segment:
    """A text with the tokens that precede it."""

    before: tuple[int, ...]
    text: str


def takes_part(source: str, language: str | None, settings: FillInTheMiddle) -> bool:
    """Whether documents of this source and language take part at all."""
    if language is not None and language in settings.languages:
        return True
    return any(fnmatchcase(source, pattern) for pattern in settings.sources)


def split_for_fim(
    doc_id: str, text: str, settings: FillInTheMiddle, tokens: SpecialTokens, seed: int
) -> list[Segment] | None:
    """The parts of a document in the order in which they are learnt; None if it stays as it is."""
    digest = hashlib.blake2b(doc_id.encode(), digest_size=32, key=f"fim {seed}".encode()).digest()
    turn, order, one, two = (
        (int.from_bytes(digest[at : at + 8], "big") >> 11) / 2**53 for at in range(0, 32, 8)
    )
    if turn >= settings.rate:
        return None
    begin, end = sorted(int(place * (len(text) + 1)) for place in (one, two))
    return _ordered(
        (text[:begin], text[begin:end], text[end:]), tokens, spm=order < settings.spm_rate
    )


def _ordered(parts: Sequence[str], tokens: SpecialTokens, *, spm: bool) -> list[Segment]:
    prefix, middle, suffix = parts
    fim_prefix, fim_middle, fim_suffix = tokens.fim_prefix, tokens.fim_middle, tokens.fim_suffix
    assert fim_prefix is not None
    assert fim_middle is not None
    assert fim_suffix is not None
    start = (*tokens.document_start, fim_prefix)
    if spm:
        return [
            Segment((*start, fim_suffix), suffix),
            Segment((fim_middle,), prefix),
            Segment((), middle),
        ]
    return [
        Segment(start, prefix),
        Segment((fim_suffix,), suffix),
        Segment((fim_middle,), middle),
    ]


@dataclass(frozen=True)
class EncodedDocuments:
    """Ids of documents, one after the other, and how many each has; 0 for one of no tokens."""

    ids: npt.NDArray[Any]
    lengths: npt.NDArray[np.int64]
    reordered: int
    """Documents reordered to fill in the middle."""


def encode_documents(
    texts: pa.StringArray,
    segments: Mapping[int, Sequence[Segment]],
    encoder: Encoder,
    plan: Plan,
) -> EncodedDocuments:
    """Each text as begin (if the tokenizer has one), its ids, end; rows of `segments` as these say.

    A reordered document of more tokens than a sequence is encoded in its own order. InputError if
    an id lies outside the vocabulary.
    """
    start, end = plan.tokens.document_start, plan.tokens.end
    reordered = _encode_segments(segments, encoder, plan) if segments else {}
    plain = np.array([row for row in range(len(texts)) if row not in reordered], dtype=np.int64)
    encoded = encoder(texts.take(arrow_array(plain)) if reordered else texts)
    _check_vocabulary(encoded.ids, plan)
    begins, ends = encoded.starts[:-1], encoded.starts[1:]
    filled = ends > begins
    # The end of one document and the start of the next are inserted at one place, in this order.
    places = np.column_stack([begins[filled]] * len(start) + [ends[filled]])
    marks = np.tile([*start, end], len(places))
    ids = np.insert(encoded.ids.astype(plan.dtype), places.ravel(), marks.astype(plan.dtype))
    lengths = np.zeros(len(texts), dtype=np.int64)
    lengths[plain] = np.where(filled, ends - begins + len(start) + 1, 0)
    if reordered:
        parts = dict(zip(plain.tolist(), np.split(ids, np.cumsum(lengths[plain])), strict=False))
        parts |= reordered
        lengths[list(reordered)] = [len(part) for part in reordered.values()]
        ids = np.concatenate([parts[row] for row in range(len(texts))])
    return EncodedDocuments(ids, lengths, len(reordered))


def _encode_segments(
    segments: Mapping[int, Sequence[Segment]], encoder: Encoder, plan: Plan
) -> dict[int, npt.NDArray[Any]]:
    """By row the ids of the documents that fit into a sequence in this order."""
    texts = [segment.text for parts in segments.values() for segment in parts]
    encoded = encoder(pa.array(texts, pa.string()))
    _check_vocabulary(encoded.ids, plan)
    parts_ids = iter(np.split(encoded.ids, encoded.starts[1:-1]))
    documents = {}
    for row, parts in segments.items():
        pairs = [(part.before, next(parts_ids).tolist()) for part in parts]
        ids = [token for before, own in pairs for token in (*before, *own)]
        if len(ids) < plan.sequence_length and any(own for _, own in pairs):
            documents[row] = np.array([*ids, plan.tokens.end], dtype=plan.dtype)
    return documents


def _check_vocabulary(ids: npt.NDArray[Any], plan: Plan) -> None:
    if len(ids) and int(ids.max()) >= plan.vocabulary_size:
        raise InputError(
            f"a text has token {int(ids.max())}, but the vocabulary has {plan.vocabulary_size}",
            where="tokenizer.json",
            hint="train the tokenizer again, or import it again",
        )


COLUMNS = ("doc_id", "source", "language", "text", "duplicate_class", "linked_classes")

IDS, DOCUMENTS = "ids", "documents"
"""Scratch files: ids of all documents with text in order of rows, as the token shards will hold
them; a table of Arrow IPC with a row for each of them, by source and split."""

MARKS = "marks"
WEIGHTS = "weights"
"""Scratch file of conversations: a byte for each of the ids."""

SPLITS = ("train", "held_out")

EXCLUDED = KINDS["excluded"].tables["*/*.parquet"].arrow()

ROW = pa.schema(
    [
        pa.field("doc_id", pa.string()),
        pa.field("language", pa.string()),
        pa.field("content_hash", pa.string()),
        pa.field("length", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("repetitive", pa.list_(pa.int64())),
    ]
)
"""`length` in tokens, from `offset` on in the file of ids; `repetitive` are the numbers of the
segments that are left out, null where there are none."""

ENCODED = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("doc_id", "language", "source")),
        *(ROW.field(name) for name in ("content_hash", "length", "repetitive")),
        pa.field("held_out", pa.bool_()),
    ]
)


def encode_shard(item: DocumentShard, out: ShardOutput, *, plan: Plan) -> dict[str, Any]:
    """Encode the documents with text into scratch: `IDS` and `DOCUMENTS`; list the others.

    Returns {"documents": rows, "empty": rows without text, "torn": those between the splits,
    "fim": documents reordered, "groups": [{source, split, first, documents, tokens}]}, a group's
    rows being `documents` from `first` on.
    """
    encoder = load_encoder(plan)
    rows: list[pa.RecordBatch] = []
    excluded: list[pa.Table] = []
    seen = empty = torn = offset = fim = 0
    with out.open_scratch(IDS) as file:
        for batch in batches(item.shard, COLUMNS, encoder.text_bytes):
            seen, filled = seen + len(batch), _with_text(batch)
            without_text = batch.filter(pc.invert(filled))
            batch, held, between = _split(batch.filter(filled), plan)
            torn += len(between)
            if not offset and plan.encoder != "tokenizers":
                first = _first_texts(batch["text"], SHARD_BYTES)
                check_ids(encoder, plan, first, f"one of the first documents of {item.shard.path}")
            segments = _fim_segments(batch, held, plan)
            encoded = encode_documents(batch["text"], segments, encoder, plan)
            rows.append(_encoded_rows(batch, held, encoded, plan))
            file.write(encoded.ids.view(np.uint8).data)
            no_tokens = batch.filter(pa.array(encoded.lengths == 0))
            empty += len(without_text) + len(no_tokens)
            excluded += [excluded_rows(one, "empty") for one in (without_text, no_tokens)]
            excluded.append(excluded_rows(between, "between_splits"))
            offset, fim = offset + len(encoded.ids), fim + encoded.reordered
    table, groups = sort_by_group(rows)
    with out.open_scratch(DOCUMENTS) as file, pa.ipc.new_file(file, ROW) as writer:
        writer.write_table(table)
    write_excluded(out, f"documents/{item.id}.parquet", excluded)
    return {"documents": seen, "empty": empty, "torn": torn, "fim": fim, "groups": groups}


def _first_texts(texts: pa.StringArray, size: int) -> pa.StringArray:
    """The first texts, as many as take `size` bytes; at least one of those there are."""
    ends = np.cumsum(numpy_array(pc.binary_length(texts)), dtype=np.int64)
    return texts.slice(0, int(np.searchsorted(ends, size)) + 1)


def excluded_rows(documents: pa.Table | pa.RecordBatch, reason: str, **columns: Any) -> pa.Table:
    """Rows of `excluded` about documents with `doc_id` and `source`.

    The other columns by name; by default no split, no tokens, and nothing stays of a document.
    """
    count = len(documents)
    values = {"split": pa.nulls(count, pa.string()), "tokens": arrow_array(np.zeros(count, int))}
    values |= {"reason": pa.repeat(reason, count), "whole": pa.repeat(True, count), **columns}
    values |= {name: documents[name] for name in ("doc_id", "source")}
    return pa.table([values[name] for name in EXCLUDED.names], schema=EXCLUDED)


def write_excluded(out: ShardOutput, path: str, tables: Sequence[pa.Table]) -> None:
    """Write a table of `excluded`, where there is a row for it."""
    table = pa.concat_tables(tables) if tables else EXCLUDED.empty_table()
    if len(table):
        out.write_table("excluded", path, table)


def _with_text(batch: pa.RecordBatch) -> pa.BooleanArray:
    """Whether each document has more than white space."""
    texts = batch["text"]
    return pc.invert(pc.or_(pc.equal(pc.binary_length(texts), 0), pc.utf8_is_space(texts)))


def _split(
    batch: pa.RecordBatch, plan: Plan
) -> tuple[pa.RecordBatch, npt.NDArray[np.bool_], pa.RecordBatch]:
    """The documents of one split or the other, whether each is held out, and those of neither.

    Drawn by duplicate class, so that no near-duplicate of a held-out document is trained on, be it
    in this shard, in another one, or in another snapshot with the same class: `filter` keeps
    the first name of a class. A document of several classes, of which some are held out and
    others trained on, belongs to neither and is left out.
    """
    if not plan.held_out_share:
        return batch, np.zeros(len(batch), dtype=np.bool_), batch.slice(0, 0)
    classes = pc.coalesce(batch["duplicate_class"], batch["doc_id"]).to_pylist()
    drawn = (_is_held_out(name, plan) for name in classes)
    held = np.fromiter(drawn, np.bool_, len(classes))
    torn = np.zeros(len(batch), dtype=np.bool_)
    for row in numpy_array(pc.indices_nonzero(pc.is_valid(batch["linked_classes"]))).tolist():
        linked = batch["linked_classes"][row].as_py()
        torn[row] = any(_is_held_out(name, plan) != held[row] for name in linked)
    if not torn.any():
        return batch, held, batch.slice(0, 0)
    stay = np.flatnonzero(~torn)
    between = batch.take(arrow_array(np.flatnonzero(torn)))
    return batch.take(arrow_array(stay)), held[stay], between


def _is_held_out(name: str, plan: Plan) -> bool:
    return draw(name, f"held out {plan.seed}") < plan.held_out_share


def _fim_segments(
    batch: pa.RecordBatch, held: npt.NDArray[np.bool_], plan: Plan
) -> dict[int, list[Segment]]:
    """By row the parts of documents that are reordered to fill in the middle; none is held out."""
    segments: dict[int, list[Segment]] = {}
    if plan.fim is None:
        return segments
    sources, languages = batch["source"].to_pylist(), batch["language"].to_pylist()
    for row in np.flatnonzero(~held).tolist():
        if takes_part(sources[row], languages[row], plan.fim):
            doc_id, text = batch["doc_id"][row].as_py(), batch["text"][row].as_py()
            if parts := split_for_fim(doc_id, text, plan.fim, plan.tokens, plan.seed):
                segments[row] = parts
    return segments


def _encoded_rows(
    batch: pa.RecordBatch,
    held: npt.NDArray[np.bool_],
    encoded: EncodedDocuments,
    plan: Plan,
) -> pa.RecordBatch:
    """The documents of a batch that have tokens."""
    kept = np.flatnonzero(encoded.lengths)
    segments = repetitive_segments(
        encoded.ids, encoded.lengths, plan.sequence_length, plan.repetition
    )
    if len(kept) < len(batch):
        batch = batch.take(arrow_array(kept))
    columns = [
        *(batch[name] for name in ("doc_id", "language", "source")),
        _content_hashes(batch["text"]),
        arrow_array(encoded.lengths[kept]),
        pa.array([segments.get(row) for row in kept.tolist()], pa.list_(pa.int64())),
        pa.array(held[kept].tolist(), pa.bool_()),
    ]
    return pa.record_batch(columns, schema=ENCODED)


def sort_by_group(batches: Sequence[pa.RecordBatch]) -> tuple[pa.Table, list[dict[str, Any]]]:
    """The table of `ROW`, sorted by source and split, and where the rows of each are in it."""
    rows = pa.Table.from_batches(batches, schema=ENCODED)
    lengths = numpy_array(rows["length"].combine_chunks())
    rows = rows.append_column("offset", arrow_array(np.cumsum(lengths) - lengths))
    rows = rows.sort_by([("source", "ascending"), ("held_out", "ascending")])  # It is stable.
    sums = rows.group_by(["source", "held_out"], use_threads=False).aggregate(
        [("length", "count"), ("length", "sum")]
    )
    groups, first = [], 0
    for group in sums.to_pylist():
        groups.append(
            {
                "source": group["source"],
                "split": SPLITS[group["held_out"]],
                "first": first,
                "documents": group["length_count"],
                "tokens": group["length_sum"],
            }
        )
        first += group["length_count"]
    return rows.select(ROW.names), groups


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
