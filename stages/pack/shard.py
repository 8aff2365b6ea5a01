"""One documents shard to token shards, by source and split: what a worker does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from artifacts_schema.kinds import KINDS
from stages.pack.encode import Encoded, encode_documents
from stages.pack.layout import STRATEGIES, Layout
from stages.pack.plan import Plan, token_type
from stages.text.chat import PADDING
from stages.text.draw import draw
from stages.training.permutation import Permutation, key_of

if TYPE_CHECKING:
    from stages.engine import Shard, ShardOutput

COLUMNS = ["doc_id", "source", "language", "text", "duplicate_class"]
INDEX = KINDS["token_shards"].tables["*/*.index.parquet"]


def pack_shard(shard: Shard, out: ShardOutput, *, plan: Plan) -> dict[str, Any]:
    """Encode and pack one documents shard.

    Returns {"empty": documents without text, "groups": [{split, source, file, sequences, tokens,
    documents, bytes}]}; occurrences of each token in the train split go to scratch.
    """
    table = shard.read(COLUMNS)
    tokenizer = plan.tokenizer()
    size = tokenizer.get_vocab_size()
    counts = np.zeros(size, dtype=np.int64)
    groups = []
    for source, split, rows in groups_of(table, plan.held_out_share, plan.seed):
        documents = table.take(pa.array(rows))
        encoded = encode_documents(tokenizer, documents["text"].to_pylist())
        key = key_of("pack", plan.seed, source, split, shard.id)
        layout = shuffled(STRATEGIES[plan.strategy](encoded.lengths, plan.sequence_length), key)
        shape = (layout.sequences, plan.sequence_length)
        dtype = np.dtype(token_type(size)).newbyteorder("<")
        sequences = np.full(shape, tokenizer.token_to_id(PADDING), dtype=dtype)
        fill(sequences, encoded, layout)
        path = f"{quote(source, safe='')}/{shard.id}"  # one folder, whatever the source's name
        with out.open(split, f"{path}.tokens") as file:
            file.write(sequences.view(np.uint8).data)
        out.write_table(split, f"{path}.index.parquet", index_table(layout, documents))
        if split == "train":
            counts += np.bincount(encoded.ids, minlength=size)
        groups.append(
            {
                "split": split,
                "source": source,
                "file": f"{path}.tokens",
                "sequences": layout.sequences,
                "tokens": len(encoded.ids),
                "documents": len(rows),
                "bytes": pc.sum(pc.binary_length(documents["text"])).as_py(),
            }
        )
    out.write_scratch("counts", pa.table({"count": counts}))
    return {"empty": table.num_rows - sum(g["documents"] for g in groups), "groups": groups}


def groups_of(
    table: pa.Table, held_out_share: float, seed: int
) -> Iterator[tuple[str, str, list[int]]]:
    """(source, split, rows) of the documents with text; sources sorted, `train` first.

    The split is drawn by duplicate class, so that no near-duplicate of a held-out document is
    trained on, in this shard, another one, or another snapshot with the same class.
    """
    rows: dict[tuple[str, str], list[int]] = {}
    classes = pc.coalesce(table["duplicate_class"], table["doc_id"]).to_pylist()
    filled = pc.greater(pc.binary_length(table["text"]), 0).to_pylist()
    for row, source in enumerate(table["source"].to_pylist()):
        if filled[row]:
            held_out = draw(classes[row], f"held out {seed}") < held_out_share
            rows.setdefault((source, "held_out" if held_out else "train"), []).append(row)
    for source, split in sorted(rows, key=lambda group: (group[0], group[1] != "train")):
        yield source, split, rows[source, split]


def shuffled(layout: Layout, key: bytes) -> Layout:
    """The layout with its sequences in another order, so that neighbours are unrelated."""
    return layout.ordered(Permutation(layout.sequences, key)(np.arange(layout.sequences)))


def fill(sequences: npt.NDArray[Any], encoded: Encoded, layout: Layout) -> None:
    """Copy every piece to its place in `sequences` [sequences, sequence_length]."""
    first = encoded.starts[layout.document] + layout.document_start
    for sequence, start, length, origin in zip(
        layout.sequence.tolist(),
        layout.start.tolist(),
        layout.length.tolist(),
        first.tolist(),
        strict=True,
    ):
        sequences[sequence, start : start + length] = encoded.ids[origin : origin + length]


def index_table(layout: Layout, documents: pa.Table) -> pa.Table:
    """One row a piece, by sequence and start; `documents` are those that were encoded, in order."""
    rows = pa.array(layout.document)
    columns = {
        "sequence": pa.array(layout.sequence),
        "start": pa.array(layout.start, pa.int32()),
        "length": pa.array(layout.length, pa.int32()),
        "doc_id": documents["doc_id"].take(rows),
        "document_start": pa.array(layout.document_start),
        "language": documents["language"].take(rows),
    }
    return pa.table(columns, schema=INDEX.arrow())
