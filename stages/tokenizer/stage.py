"""The tokenizer stage: documents to a byte-level BPE tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from artifacts_schema.config import Config, Execution
from artifacts_schema.errors import InputError
from stages.engine import Context, Many, Stage

if TYPE_CHECKING:
    from stages.tokenizer.fertility import Fertility
    from stages.tokenizer.sample import Sample


class TokenizerConfig(Config):
    """What tokenizer is trained, and on how much text."""

    vocabulary_size: int = Field(
        default=32_768,
        ge=261,
        le=2**20,
        description="Tokens, 5 special ones and 256 bytes included; fewer if the text runs out.",
    )
    pre_tokenizer: Literal["gpt-2", "smollm", "llama-bpe", "qwen2"] = Field(
        default="llama-bpe",
        description="How text is cut before merging, by llama.cpp's name; decides how digits go.",
    )
    min_frequency: int = Field(
        default=2, ge=1, description="Occurrences that a pair needs to become a token."
    )
    max_bytes: int = Field(
        default=1_000_000_000,
        ge=1,
        description="Bytes of text to train on, about; documents are drawn by a stable hash.",
    )
    held_share: float = Field(
        default=0.01,
        ge=0,
        lt=1,
        description="Share of the drawn documents kept out of training, to measure fertility on.",
    )


class TokenizerStage(Stage):
    """Train a byte-level BPE tokenizer on a stated sample; it is frozen for the life of a model.

    Any text survives encoding and decoding unchanged. The pre-tokenizer is one that llama.cpp
    implements, and its name is kept, so that a release can be converted for it.
    """

    name, version, reproducible = "tokenizer", 1, "bytes"
    inputs = {"documents": Many("documents", at_least=1)}
    outputs = {"tokenizer": "tokenizer"}
    libraries = ("tokenizers", "pyarrow")
    handles_documents = True
    Config, Execution = TokenizerConfig, Execution

    def run(self, context: Context) -> None:
        """Draw the sample, train, measure on held documents, write three files."""
        from stages.tokenizer.fertility import fertility_by_source
        from stages.tokenizer.sample import Sample
        from stages.tokenizer.training import train, transformers_config

        config: TokenizerConfig = context.config
        shards = [shard for given in context.many("documents") for shard in given.shards()]
        sample = Sample(shards, config.max_bytes, config.held_share, context.check_stop)
        tokenizer = train(
            sample.training(),
            vocabulary_size=config.vocabulary_size,
            pre_tokenizer=config.pre_tokenizer,
            min_frequency=config.min_frequency,
        )
        if not sample.documents:
            raise InputError("no document to train on", where="tokenizer")
        held = fertility_by_source(tokenizer, sample.held())
        size = tokenizer.get_vocab_size()
        if size < config.vocabulary_size:
            context.log.warning("the text has pairs for only %d tokens", size)
        context.write_bytes("tokenizer", "tokenizer.json", tokenizer.to_str(pretty=True).encode())
        context.write_json(
            "tokenizer", "tokenizer_config.json", transformers_config(config.pre_tokenizer)
        )
        context.write_json("tokenizer", "training.json", _record(config, sample, size, held))
        trained = sample.documents.total()
        measured = sum(source.documents for source in held.values())
        context.count(vocabulary_size=size, bytes_trained=sample.bytes.total())
        context.conserve(
            records_in=sample.total_documents,
            out=trained,
            dropped={
                "held": measured,
                "not_drawn": sample.total_documents - trained - measured,
            },
        )


def _record(
    config: TokenizerConfig, sample: Sample, size: int, held: dict[str, Fertility]
) -> dict[str, Any]:
    """The content of training.json."""
    return {
        "algorithm": "byte-level BPE",
        "pre_tokenizer": config.pre_tokenizer,
        "vocabulary_size": size,
        "documents": sample.documents.total(),
        "bytes": sample.bytes.total(),
        "drawn_share": sample.share,
        "sources": {
            source: {"documents": sample.documents[source], "bytes": sample.bytes[source]}
            for source in sorted(sample.documents)
        },
        "held": {source: measured.plain() for source, measured in held.items()},
    }
