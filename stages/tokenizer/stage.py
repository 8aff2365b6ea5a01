"""The tokenizer stage: documents to a byte-level tokenizer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from artifacts_schema.config import MapExecution, did_you_mean
from artifacts_schema.errors import InputError, UsageError
from stages.engine import Context, Inputs, Many, Stage, source_names
from stages.tokenizer.config import TokenizerConfig

if TYPE_CHECKING:
    from stages.tokenizer.sample import Sample

T = TypeVar("T")


class TokenizerStage(Stage):
    """Train a byte-level tokenizer on a stated sample; it is frozen for the life of a model.

    Any text survives encoding and decoding unchanged. The pre-tokenizer is one that llama.cpp
    implements, and its name is kept, so that a release of a BPE can be converted for it.
    """

    name, version, reproducible = "tokenizer", 3, "bytes"
    inputs = {"documents": Many("documents", at_least=1)}
    outputs = {"tokenizer": "tokenizer"}
    libraries = ("numba", "numpy", "tokenizers", "pyarrow")
    handles_documents = True
    Config, Execution = TokenizerConfig, MapExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """A weight for a source that no document can have."""
        sources = source_names(inputs["documents"])
        for name in config.weights:
            if sources is not None and name not in sources:
                near = did_you_mean(name, sources)
                raise UsageError(f"no source '{name}' in the documents{near}", where="weights")

    def run(self, context: Context) -> None:
        """Draw the sample, train, measure on held documents, write three files."""
        from stages.tokenizer.drawing import (
            DrawnShard,
            TextShard,
            bytes_by_depth,
            draw_texts,
            drawn_texts,
            scan_depths,
        )
        from stages.tokenizer.sample import RequestedShares, Sample
        from stages.tokenizer.training import train, transformers_config
        from stages.tokens.fertility import fertility_by_source
        from stages.tokens.vocabulary import describe_tokenizer

        config: TokenizerConfig = context.config
        shards = [
            TextShard(f"{number:02d}-{shard.id}", shard)
            for number, documents in enumerate(context.many("documents"))
            for shard in documents.shards()
        ]
        scans = context.map(scan_depths, shards)
        shares = RequestedShares(config.weights, config.language_weights, config.language_alpha)
        bins = bytes_by_depth(scans)
        sample = Sample(bins, config.max_bytes, config.held_share, shares)
        if not sample.target:
            raise InputError("no document to train on", where="tokenizer")
        items = [
            DrawnShard(one.id, one.shard, scan) for one, scan in zip(shards, scans, strict=True)
        ]
        drawn = context.map(draw_texts, items, held=sample.held, limits=sample.limits)
        tokenizer = train(
            sample.count(_each_until_stop(context, drawn_texts(drawn, held=False))),
            algorithm=config.algorithm,
            vocabulary_size=config.vocabulary_size,
            pre_tokenizer=config.pre_tokenizer,
            min_frequency=config.min_frequency,
            reserved_tokens=config.reserved_tokens,
        )
        if not sample.documents:
            raise InputError("no document to train on", where="tokenizer")
        measuring = _each_until_stop(context, drawn_texts(drawn, held=True))
        held = fertility_by_source(tokenizer, ((cell[0], text) for cell, text in measuring))
        described = transformers_config(config.pre_tokenizer, config.reserved_tokens)
        record = {
            **describe_tokenizer(
                tokenizer,
                described,
                algorithm=config.algorithm,
                multiple=config.pad_to_multiple_of,
            ),
            **sample.account(),
            "held": {source: measured.plain() for source, measured in held.items()},
        }
        _warn_of_shortages(context, config, sample, record["vocabulary_size"])
        context.write_bytes("tokenizer", "tokenizer.json", tokenizer.to_str(pretty=True).encode())
        context.write_json("tokenizer", "tokenizer_config.json", described)
        context.write_json("tokenizer", "training.json", record)
        trained = sample.documents.total()
        measured = sum(source.documents for source in held.values())
        context.count(
            vocabulary_size=record["vocabulary_size"],
            bytes_trained=sample.bytes.total(),
            documents_trained=trained,
            documents_held=measured,
        )
        used = trained + measured  # Held documents are used too: they measure it.
        total = sum(one.shard.rows for one in shards)
        context.conserve(records_in=total, out=used, dropped={"not_drawn": total - used})


def _each_until_stop(context: Context, texts: Iterator[T]) -> Iterator[T]:
    """The same; raises Stopped when the stage is asked to stop."""
    for number, text in enumerate(texts):
        if number % 1024 == 0:
            context.check_stop()
        yield text


def _warn_of_shortages(
    context: Context, config: TokenizerConfig, sample: Sample, size: int
) -> None:
    """Warn of what was requested and cannot be had."""
    if size < config.vocabulary_size:
        context.log.warning("the text has strings for only %d tokens", size)
    fits = int(sample.largest() / (1 - config.held_share))
    for short in sample.shortages():
        context.log.warning(
            "%s %s: its share asks for %s bytes and there are %s; with max_bytes: %d every share "
            "would be met",
            short["by"],
            short["name"],
            f"{short['asked']:,}",
            f"{short['available']:,}",
            fits,
        )
