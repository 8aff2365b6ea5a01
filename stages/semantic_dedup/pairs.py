"""Embeddings of documents, and every pair of them whose cosine is at least the floor.

The search is exact: products of blocks of embeddings, so recall on the embeddings is 1, and cost
grows with the square of the documents (a million of width 384: 4 × 10^14 multiplications, hours of
one core). A pair that the products propose is computed again in float64, so the bits of a product
decide nothing and blocks, workers and threads change no pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stages.encoders.encoder import EncoderSpec, load_encoder
from stages.encoders.parts import Part, digest_text

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult

EMBEDDED, PAIRS = "embedded", "pairs"
BLOCK = 2048
"""Embeddings on each side of one product."""
MARGIN = 1e-4
"""By which a product in float32 may lie below the cosine: far more than it rounds."""


def embed_part(part: Part, out: ShardOutput, *, spec: EncoderSpec) -> dict[str, int]:
    """Leave id, digest and embedding (null without a token) of each document; return counts."""
    documents = part.read(["doc_id", "text"])
    texts = documents["text"].to_pylist()
    encoder = load_encoder(spec)
    tokenized = encoder.tokenize(texts)
    sequences = [one for windows, _ in tokenized for one in windows]
    states = encoder.run(sequences, out.check_stop)
    embeddings: list[NDArray[np.float32] | None] = []
    end = 0
    for windows, _ in tokenized:
        begin, end = end, end + len(windows)
        embeddings.append(_mean(states[begin:end], [len(one) for one in windows]))
    kept = [one for one in embeddings if one is not None]
    width = len(kept[0]) if kept else 1
    filled = [np.zeros(width, np.float32) if one is None else one for one in embeddings]
    flat = np.concatenate([np.empty(0, np.float32), *filled])
    values = pa.FixedSizeListArray.from_arrays(pa.array(flat), width)
    columns = {
        "doc_id": documents["doc_id"],
        "digest": pa.array([digest_text(text) for text in texts], pa.string()),
        "has_tokens": pa.array([one is not None for one in embeddings], pa.bool_()),
        "embedding": values,
    }
    out.write_scratch(EMBEDDED, pa.table(columns))
    return {
        "documents": len(texts),
        "empty": len(texts) - len(kept),
        "cut": sum(goes_on for _, goes_on in tokenized),
        "tokens": sum(map(len, sequences)),
    }


def _mean(states: NDArray[np.float32], tokens: Sequence[int]) -> NDArray[np.float32] | None:
    """[width] The mean over all tokens of a text, of length 1; None without any."""
    if not tokens:
        return None
    mean = np.average(states.astype(np.float64), axis=0, weights=tokens)
    return (mean / max(float(np.linalg.norm(mean)), 1e-30)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Corpus:
    """All documents in the order of inputs and rows.

    Those that stand for their class of equal texts are the nodes; their embeddings lie in a file.
    """

    ids: pa.StringArray
    generation: NDArray[np.int64]
    """The place of each document's input: a later one is newer."""
    stands_for: NDArray[np.int64]
    """The row of the document that stands for each one's class."""
    nodes: NDArray[np.int64]
    """Rows of the nodes that have an embedding, ascending."""

    @classmethod
    def gather(cls, results: Sequence[tuple[int, ShardResult]], path: Path) -> Corpus:
        """From the parts, each with the place of its input; writes the embeddings to `path`."""
        tables = [result.read_scratch(EMBEDDED) for _, result in results]
        joined = [table.select(["doc_id", "digest", "has_tokens"]) for table in tables]
        known = pa.concat_tables(joined)
        ids = known["doc_id"].combine_chunks()
        places = [place for place, _ in results]
        generation = np.repeat(np.array(places, np.int64), [len(table) for table in tables])
        stands_for = _classes(known["digest"].combine_chunks(), generation, ids)
        has_tokens = known["has_tokens"].to_numpy()
        own = (stands_for == np.arange(len(ids))) & has_tokens
        with open(path, "wb") as file:
            start = 0
            for table in tables:
                stop = start + len(table)
                flat = table["embedding"].combine_chunks().flatten().to_numpy()
                if len(table):
                    file.write(flat.reshape(len(table), -1)[own[start:stop]].tobytes())
                start = stop
        return cls(ids, generation, stands_for, np.flatnonzero(own))


def _classes(
    digests: pa.StringArray, generation: NDArray[np.int64], ids: pa.StringArray
) -> NDArray[np.int64]:
    """For each row the one that stands for its text: of the earliest input, in it the least id."""
    encoded = digests.dictionary_encode().indices.to_numpy().astype(np.int64)
    by_id = np.empty(len(ids), np.int64)
    by_id[pa.compute.sort_indices(ids).to_numpy()] = np.arange(len(ids))
    order = np.lexsort((by_id, generation, encoded))
    first = np.ones(len(order), bool)
    first[1:] = encoded[order[1:]] != encoded[order[:-1]]
    heads = order[first]
    stands_for = np.empty(len(ids), np.int64)
    stands_for[order] = heads[np.cumsum(first) - 1]
    return stands_for


@dataclass(frozen=True)
class Block:
    """Nodes [start, stop), to be held against all nodes of their own or earlier inputs."""

    id: str
    start: int
    stop: int
    last: int
    """Nodes from here on are newer than each of these."""


def cut_blocks(generation: NDArray[np.int64]) -> list[Block]:
    """The blocks of nodes whose generations (ascending) are given."""
    blocks = []
    for start in range(0, len(generation), BLOCK):
        stop = min(start + BLOCK, len(generation))
        last = int(np.searchsorted(generation, generation[stop - 1], side="right"))
        blocks.append(Block(f"{start:012d}", start, stop, last))
    return blocks


def find_pairs(
    block: Block,
    out: ShardOutput,
    *,
    embeddings: Path,
    generation: Path,
    floor: float,
    most: int,
) -> dict[str, int]:
    """Leave the pairs of a block's nodes: node, partner, cosine; the nearest first, `most` each."""
    nodes = np.load(generation)
    width = embeddings.stat().st_size // 4 // max(1, len(nodes))
    vectors = np.memmap(embeddings, np.float32, "r", shape=(len(nodes), width))
    own = np.asarray(vectors[block.start : block.stop])
    parts: list[tuple[NDArray[Any], ...]] = []
    for start in range(0, block.last, BLOCK):
        out.check_stop()
        others = np.asarray(vectors[start : min(start + BLOCK, block.last)])
        rows, columns = np.nonzero(own @ others.T >= floor - MARGIN)
        one, two = rows + block.start, columns + start
        fits = (one != two) & (nodes[two] <= nodes[one])
        one, two = one[fits], two[fits]
        cosine = exact_cosine(vectors, one, two)
        above = cosine >= floor
        parts.append((one[above], two[above], cosine[above].astype(np.float32)))
    one, two, cosine = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((two, -cosine, one))
    one, two, cosine = one[order], two[order], cosine[order]
    begins = np.searchsorted(one, one, side="left")
    near = np.arange(len(one)) - begins < most
    table = {"one": one[near], "two": two[near], "cosine": cosine[near]}
    out.write_scratch(PAIRS, pa.table(table))
    return {"pairs": int(near.sum()), "capped": int((~near).sum())}


def exact_cosine(
    vectors: NDArray[np.float32], one: NDArray[np.int64], two: NDArray[np.int64]
) -> NDArray[np.float64]:
    """[pair] The cosine in float64, pair by pair, whatever other pairs there are."""
    cosine = np.empty(len(one), np.float64)
    for start in range(0, len(one), BLOCK):
        some = slice(start, start + BLOCK)
        left, right = vectors[one[some]].astype(np.float64), vectors[two[some]].astype(np.float64)
        lengths = np.sqrt((left * left).sum(1) * (right * right).sum(1))
        cosine[some] = np.minimum((left * right).sum(1) / lengths, 1.0)
    return cosine


def make_rows(
    corpus: Corpus, start: int, stop: int, pairs: pa.Table, schema: pa.Schema
) -> pa.Table:
    """The rows of the duplicates table for documents [start, stop); `pairs` are of all nodes."""
    ids, rows = corpus.ids, np.arange(start, stop)
    names = ids.take(pa.array(corpus.stands_for[start:stop]))
    one, two = (corpus.nodes[pairs[name].to_numpy()] for name in ("one", "two"))
    first, last = np.searchsorted(one, start), np.searchsorted(one, stop)
    offsets = first + np.searchsorted(one[first:last], np.append(rows, stop))
    kind = schema.field("partners").type
    partners = two[first:last]
    members = [
        ids.take(pa.array(partners)),
        pairs["cosine"].to_numpy()[first:last],
        pa.nulls(len(partners), pa.float32()),
        np.zeros(len(partners), np.int32),
    ]
    arrays = [pa.array(values) if isinstance(values, np.ndarray) else values for values in members]
    structs = pa.StructArray.from_arrays(arrays, fields=list(kind.value_type))
    lists = pa.ListArray.from_arrays(
        pa.array((offsets - first).astype(np.int32)), structs, type=kind
    )
    return pa.table([ids.slice(start, stop - start), names, names, lists], schema=schema)
