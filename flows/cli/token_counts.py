"""Tokens of each document of a corpus: counted where it was packed, else as its tokenizer measured.

Token shards hold what the corpus kept, so the tokens of other documents are told by the tokens per
character of those of their source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from flows.cli.artifacts import all_manifests
from stages.engine.inputs import Input

if TYPE_CHECKING:
    from flows.cli.corpus import Corpus
    from stages.filter.verdicts import Verdicts


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens of each document, and whether they were counted; `origin` says where they are from."""

    of: NDArray[np.float64]
    counted: NDArray[np.bool_]
    origin: str


def token_counts(corpus: Corpus, decided: Verdicts) -> Tokens | None:
    """The tokens of each document that `decided` is about; None if no tokenizer read them."""
    digest = corpus.manifest.output("documents").digest
    readers = [
        manifest
        for manifest in _newest_first(corpus)
        if any(r.digest == digest for given in manifest.inputs.values() for r in given)
    ]
    for manifest in readers:
        shards = [n for n, o in manifest.outputs.items() if o.kind == "token_shards"]
        if shards:
            return _packed(corpus, decided, manifest, shards)
    for manifest in readers:
        if any(output.kind == "tokenizer" for output in manifest.outputs.values()):
            return _measured(corpus, decided, manifest)
    return None


def _newest_first(corpus: Corpus) -> Iterator[Manifest]:
    """All artifacts, those with a name before the others."""
    named = {(ref.stage, ref.key) for ref in corpus.store.refs().values()}
    manifests = all_manifests(corpus.store)
    yield from sorted(manifests, key=lambda m: (m.stage, m.key) not in named)


def _packed(
    corpus: Corpus, decided: Verdicts, manifest: Manifest, outputs: list[str]
) -> Tokens | None:
    """Tokens by the indexes of token shards, those that frame a document included."""
    tables = [
        given.read_table(path, ["doc_id", "length"])
        for name in outputs
        if (given := Input.of(corpus.store, manifest, name, full_check=False))
        for path in given.paths("*/*.index.parquet")
    ]
    if not tables:
        return None
    sums = pa.concat_tables(tables).group_by("doc_id").aggregate([("length", "sum")])
    places = pc.index_in(decided.doc_ids, value_set=sums["doc_id"].combine_chunks())
    counts = sums["length_sum"].combine_chunks().take(places)
    counted = ~pc.is_null(counts).to_numpy(zero_copy_only=False)
    tokens = pc.fill_null(counts.cast(pa.float64()), 0.0).to_numpy()
    rates = _rates(decided, tokens, corpus.characters, counted)
    estimated = corpus.characters * rates
    where = f"counted in {manifest.stage} {short(manifest.key)}"
    return Tokens(np.where(counted, tokens, estimated), counted, where)


def _rates(
    decided: Verdicts,
    tokens: NDArray[np.float64],
    characters: NDArray[np.int64],
    counted: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """[documents] Tokens per character of the counted documents of each one's source, or of all."""
    codes, sources = _coded(decided)
    tokens_of = np.bincount(codes[counted], tokens[counted], minlength=sources)
    characters_of = np.bincount(codes[counted], characters[counted], minlength=sources)
    overall = tokens_of.sum() / max(1.0, characters_of.sum())
    known = characters_of > 0
    rates = np.where(known, tokens_of / np.where(known, characters_of, 1), overall)
    return np.asarray(rates[codes], dtype=np.float64)


def _measured(corpus: Corpus, decided: Verdicts, manifest: Manifest) -> Tokens | None:
    """Bytes by the bytes per token that a tokenizer measured on held documents of each source."""
    (name,) = [n for n, output in manifest.outputs.items() if output.kind == "tokenizer"]
    given = Input.of(corpus.store, manifest, name, full_check=False)
    held: Mapping[str, Any] = given.read_json("training.json")["held"]
    total_tokens = sum(source["tokens"] for source in held.values())
    sizes = _bytes(corpus)
    if not total_tokens or sizes is None:
        return None
    overall = sum(source["bytes"] for source in held.values()) / total_tokens
    of_source = {name: source["bytes_per_token"] or overall for name, source in held.items()}
    per_token = np.array([of_source.get(s, overall) for s in decided.sources.to_pylist()])
    none = np.zeros(len(sizes), dtype=bool)
    where = f"bytes by the bytes per token of {manifest.stage} {short(manifest.key)}"
    return Tokens(sizes / per_token, none, where)


def _bytes(corpus: Corpus) -> NDArray[np.float64] | None:
    """[documents] UTF-8 bytes of each text, as the signals tell them; None if they do not."""
    columns = []
    for shard in [shard for signals in corpus.given.signals for shard in signals.shards()]:
        with shard.input.open(shard.path) as file:
            if "bytes" not in pq.read_schema(file).names:
                return None
        columns.append(shard.read(["bytes"])["bytes"])
    if not columns:
        return None
    joined = pa.chunked_array([chunk for column in columns for chunk in column.chunks])
    return joined.cast(pa.float64()).to_numpy()


def _coded(decided: Verdicts) -> tuple[NDArray[np.int64], int]:
    encoded = decided.sources.dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
