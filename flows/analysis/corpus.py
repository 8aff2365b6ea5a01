"""A corpus that `filter` made: its config and inputs, ready to decide again, and its token counts.

Tokens of a document are counted where it was packed, else estimated from its tokenizer's report.
Token shards hold only what the corpus kept, so the tokens of other documents are estimated by the
tokens per character of their source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.kinds import sidecar_folder
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.artifacts import list_manifests, load_inputs
from flows.analysis.documents import open_outputs
from stages.engine.inputs import Input
from stages.filter.config import FilterConfig
from stages.filter.stage import Filter
from stages.filter.verdicts import FilterInputs, Verdicts, compute_verdicts
from stages.text.chat_rows import list_chat_shards

if TYPE_CHECKING:
    from stages.engine.tally import Row


@dataclass(frozen=True)
class Corpus:
    """A filter artifact with its config and its inputs."""

    store: Store
    manifest: Manifest
    config: FilterConfig
    inputs: FilterInputs

    @classmethod
    def open(cls, store: Store, text: str) -> Corpus:
        """The corpus that a ref or key names, or one of its outputs.

        UsageError if a filter did not make it, InputError if an input was collected.
        """
        manifest, _ = store.resolve(text)
        if manifest.stage != Filter.name:
            corpora = [name for name, ref in store.refs().items() if ref.stage == Filter.name]
            known = f": {', '.join(corpora[:5])}" if corpora else ""
            raise UsageError(
                f"{manifest.stage} {short(manifest.key)} is not a corpus",
                where=text,
                hint=f"give the artifact of a filter step{known}",
            )
        if manifest.version != Filter.version:
            raise UsageError(
                f"made by filter version {manifest.version}, this Ingot decides by version "
                f"{Filter.version}",
                where=text,
                hint="run its recipe again, through the filter step",
            )
        config = FilterConfig.parse(manifest.config, where=text)
        inputs: dict[str, Any] = {role: [] for role in Filter.inputs}
        inputs |= load_inputs(store, manifest.inputs)
        inputs["contamination"] = next(iter(inputs["contamination"]), None)
        return cls(store, manifest, config, FilterInputs(**inputs))

    def decide(self, config: FilterConfig) -> Verdicts:
        """What the stage would decide under another config."""
        return compute_verdicts(self.inputs, config)

    @cached_property
    def ledger(self) -> pa.Table:
        """Characters and verdict of every document, in the order of `Verdicts`."""
        ledger = Input.from_manifest(self.store, self.manifest, "ledger", full_check=False)
        paths = [
            f"{sidecar_folder(documents.digest)}/{shard.path}"
            for documents in self.inputs.documents
            for shard in documents.shards()
        ]
        chat = {"conversations": self.inputs.conversations, "preferences": self.inputs.preferences}
        paths += [shard.path for shard in list_chat_shards(chat, where="filter")]
        columns = ["verdict", "characters"]
        return pa.concat_tables([ledger.read_table(path, columns) for path in paths])

    @property
    def characters(self) -> NDArray[np.int64]:
        """[documents] Characters of each text before any edit."""
        return self.ledger["characters"].to_numpy()

    @property
    def was_kept(self) -> NDArray[np.bool_]:
        """[documents] Whether the ledger says that it was kept."""
        return pc.equal(self.ledger["verdict"], "kept").to_numpy()

    def texts(self, doc_ids: Sequence[str]) -> dict[str, Row]:
        """Text, address and source by doc_id, personal data and secrets replaced where found.

        Of conversations and preference pairs no text is shown.
        """
        from stages.engine.tally import rows_by_id
        from stages.filter.config import PERSONAL_DATA, SECRETS
        from stages.filter.edits import apply_views, spans_by_id

        rows = rows_by_id(self.inputs.documents, doc_ids, ["text", "url", "source"])
        spans = spans_by_id(self.inputs.views, doc_ids)
        hidden = tuple(dict.fromkeys((PERSONAL_DATA, SECRETS, *self.config.views)))
        for doc_id, row in rows.items():
            row["text"] = apply_views(row["text"], spans.get(doc_id, ()), hidden)
        chat = {"text": "", "url": None, "source": ""}
        return {doc_id: rows.get(doc_id, chat) for doc_id in doc_ids}


@dataclass(frozen=True, eq=False)
class TokenCounts:
    """Tokens of each document, and how they are known."""

    tokens: NDArray[np.float64]
    counted: NDArray[np.bool_]
    """Whether a document was counted; the others are estimated."""
    origin: str
    """Which artifact they were read from, in words."""


def count_tokens(corpus: Corpus, verdicts: Verdicts) -> TokenCounts | None:
    """The tokens of each document that `verdicts` are about; None if no tokenizer read them."""
    digest = corpus.manifest.output("documents").digest
    named = {(ref.stage, ref.key) for ref in corpus.store.refs().values()}
    readers = [
        manifest
        for manifest in list_manifests(corpus.store)
        if any(r.digest == digest for r in chain.from_iterable(manifest.inputs.values()))
    ]
    readers.sort(key=lambda m: (m.stage, m.key) not in named)  # Those with a ref first.
    for kind, count in (("token_shards", _count_packed), ("tokenizer", _estimate_measured)):
        for manifest in readers:
            outputs = [source for _, _, source in open_outputs(corpus.store, [manifest], (kind,))]
            if outputs:
                return count(corpus, verdicts, outputs)
    return None


def _count_packed(
    corpus: Corpus, verdicts: Verdicts, outputs: Sequence[Input]
) -> TokenCounts | None:
    """Tokens by the indexes of token shards, special tokens around a document included."""
    tables = [
        shards.read_table(path, ["doc_id", "length"])
        for shards in outputs
        for path in shards.paths("*/*.index.parquet")
    ]
    if not tables:
        return None
    sums = pa.concat_tables(tables).group_by("doc_id").aggregate([("length", "sum")])
    places = pc.index_in(verdicts.doc_ids, value_set=sums["doc_id"].combine_chunks())
    counts = sums["length_sum"].combine_chunks().take(places)
    counted = ~pc.is_null(counts).to_numpy(zero_copy_only=False)
    tokens = pc.fill_null(counts.cast(pa.float64()), 0.0).to_numpy()
    rates = _estimate_rates(verdicts, tokens, corpus.characters, counted)
    estimated = corpus.characters * rates
    where = f"counted in {outputs[0].stage} {short(outputs[0].key)}"
    return TokenCounts(np.where(counted, tokens, estimated), counted, where)


def _estimate_rates(
    verdicts: Verdicts,
    tokens: NDArray[np.float64],
    characters: NDArray[np.int64],
    counted: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """[documents] Tokens per character of the counted documents of each one's source, or of all."""
    encoded = verdicts.sources.dictionary_encode()
    codes, sources = encoded.indices.to_numpy(), len(encoded.dictionary)
    source_tokens = np.bincount(codes[counted], tokens[counted], minlength=sources)
    source_characters = np.bincount(codes[counted], characters[counted], minlength=sources)
    overall = source_tokens.sum() / max(1.0, source_characters.sum())
    known = source_characters > 0
    rates = np.where(known, source_tokens / np.where(known, source_characters, 1), overall)
    return np.asarray(rates[codes], dtype=np.float64)


def _estimate_measured(
    corpus: Corpus, verdicts: Verdicts, outputs: Sequence[Input]
) -> TokenCounts | None:
    """Bytes over the bytes per token that a tokenizer measured on held-out documents by source."""
    (tokenizer,) = outputs
    held: Mapping[str, Any] = tokenizer.read_json("training.json")["held"]
    total_tokens = sum(source["tokens"] for source in held.values())
    sizes = _read_text_bytes(corpus, len(verdicts.sources))
    if not total_tokens or sizes is None:
        return None
    overall = sum(source["bytes"] for source in held.values()) / total_tokens
    by_source = {name: source["bytes_per_token"] or overall for name, source in held.items()}
    per_token = np.array([by_source.get(s, overall) for s in verdicts.sources.to_pylist()])
    none = np.zeros(len(sizes), dtype=bool)
    where = f"bytes by the bytes per token of {tokenizer.stage} {short(tokenizer.key)}"
    return TokenCounts(sizes / per_token, none, where)


def _read_text_bytes(corpus: Corpus, documents: int) -> NDArray[np.float64] | None:
    """[documents] UTF-8 bytes of each text, from the signals; None if they lack it."""
    columns = []
    for signals in corpus.inputs.signals:
        for shard in signals.shards():
            with shard.input.open(shard.path) as file:
                if "bytes" not in pq.read_schema(file).names:
                    break  # Scores of a model: other signals count the bytes.
            columns.append(shard.read(["bytes"])["bytes"])
    if not columns or sum(map(len, columns)) != documents:
        return None
    joined = pa.chunked_array([chunk for column in columns for chunk in column.chunks])
    return joined.cast(pa.float64()).to_numpy()
