"""The pack stage: documents to token shards that training reads as they lie."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artifacts_schema.config import Config, MapExecution
from stages.engine import Context, One, Stage


class PackConfig(Config):
    """How documents become sequences."""

    sequence_length: int = Field(
        default=2048, ge=8, le=2**24, description="Tokens of a sequence; the model's context."
    )
    strategy: Literal["best_fit", "concatenate"] = Field(
        default="best_fit",
        description="`best_fit` cuts no document that fits into a sequence; `concatenate` cuts a "
        "stream of documents at every sequence's end.",
    )
    held_out_share: float = Field(
        default=0.02,
        ge=0,
        lt=1,
        description="Share of duplicate classes that is never trained on, to measure loss on.",
    )
    seed: int = Field(default=0, ge=0, description="Draws held-out documents and sequence order.")


class Pack(Stage):
    """Encode documents and lay them into sequences of one length, by source.

    A document is `begin_of_text`, its tokens, `end_of_text`; every token of every document comes
    exactly once, in `train` or in `held_out`. A source and documents shard is one token shard with
    an index that names the document of every piece. Sequences are shuffled within their shard.
    """

    name, version, reproducible = "pack", 1, "bytes"
    inputs = {"documents": One("documents"), "tokenizer": One("tokenizer")}
    outputs = {"train": "token_shards", "held_out": "token_shards"}
    libraries = ("tokenizers", "pyarrow", "numpy")
    handles_documents = True
    Config, Execution = PackConfig, MapExecution

    def run(self, context: Context) -> None:
        """Pack each documents shard, then write what describes all of them."""
        from stages.pack.plan import Plan
        from stages.pack.shard import pack_shard
        from stages.pack.summary import SUMS, shards_table, total, train_counts
        from stages.text.token_bytes import token_byte_lengths

        config: PackConfig = context.config
        documents, tokenizer = context.one("documents"), context.one("tokenizer")
        description = tokenizer.read_bytes("tokenizer.json").decode()
        plan = Plan(description, **config.plain())
        loaded = plan.tokenizer()
        token_bytes = token_byte_lengths(loaded).astype("<u2").tobytes()
        results = context.map(pack_shard, documents.shards(), plan=plan)
        counts = train_counts(results, loaded.get_vocab_size()).astype("<i8").tobytes()
        packed = 0
        for split in ("train", "held_out"):
            table = shards_table(plan, loaded, tokenizer.digest, split, results)
            if not table["sources"]:
                context.log.warning("no document fell into '%s'", split)
            context.write_json(split, "shards.json", table)
            context.write_bytes(split, "token_bytes.bin", token_bytes)
            context.write_bytes(split, "train_counts.bin", counts)
            context.count(**{f"{split}_{name}": total(table, name) for name in SUMS})
            packed += total(table, "documents")
        empty = sum(result.value["empty"] for result in results)
        context.conserve(records_in=documents.rows, out=packed, dropped={"empty": empty})
