"""The pack stage: documents to token shards that training reads as they lie."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from stages.engine import Context, Inputs, Many, One, Stage, source_names
from stages.pack.config import PackConfig, PackExecution


class Pack(Stage):
    """Encode documents and lay them into sequences of one length, by source.

    A document is the tokenizer's begin token (if it has one), its tokens, and the end token. Each
    lies in `train` or in `held_out`, by its duplicate class. Documents of a source are packed
    together whatever shard they come from, many at a time, which fills the sequences; one such
    group is one token shard with an index that names the document of every piece, and its sequences
    are shuffled. Segments of documents that say the same over and over are left out; a table names
    all that is left out.
    """

    name, version, reproducible = "pack", 4, "bytes"
    inputs = {"documents": Many("documents", at_least=1), "tokenizer": One("tokenizer")}
    outputs = {"train": "token_shards", "held_out": "token_shards", "excluded": "excluded"}
    worker_modules = ("stages.pack.shard",)
    libraries = ("tokenizers", "pyarrow", "numpy")
    handles_documents = True
    Config, Execution = PackConfig, PackExecution

    @classmethod
    def sources(cls, config: Any, inputs: Inputs) -> frozenset[str] | None:
        """Those of its documents."""
        return source_names(inputs["documents"])

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> Sequence[str]:
        """A note where fill in the middle can turn no document."""
        sources, fim = source_names(inputs["documents"]), config.fim
        if fim is None or fim.languages or sources is None:
            return ()
        if any(fnmatchcase(name, pattern) for name in sources for pattern in fim.sources):
            return ()
        wanted, known = ", ".join(fim.sources), ", ".join(sorted(sources))
        return (f"fim.sources ({wanted}) match no source (known here: {known})",)

    def run(self, context: Context) -> None:
        """Encode each documents shard, pack groups of them, then write what describes all."""
        from dataclasses import replace

        from stages.pack.documents import encode_shard
        from stages.pack.encoder import choose_encoder, document_shards
        from stages.pack.plan import Plan
        from stages.pack.shard import make_groups, pack_group, shards_table, totals, train_counts
        from stages.tokens.vocabulary import count_token_bytes

        documents, tokenizer = context.many("documents"), context.one("tokenizer")
        plan = Plan.from_tokenizer(context.config, tokenizer)
        token_bytes = count_token_bytes(plan.tokenizer())
        shards = document_shards(documents)
        encoder = choose_encoder(context.execution.encoder, plan, shards, context.log)
        encoded = context.map(encode_shard, shards, plan=replace(plan, encoder=encoder))
        packed = context.map(
            pack_group,
            make_groups(encoded, plan.sequence_length),
            plan=plan,
            token_bytes=token_bytes,
        )
        counts = train_counts(packed, plan.vocabulary_size).astype("<i8").tobytes()
        for split in ("train", "held_out"):
            table = shards_table(plan, tokenizer.digest, split, packed)
            if not table["sources"]:
                context.log.warning("no document fell into '%s'", split)
            context.write_json(split, "shards.json", table)
            context.write_bytes(split, "token_bytes.bin", token_bytes.astype("<u2").tobytes())
            context.write_bytes(split, "train_counts.bin", counts)
            context.count(**totals(split, packed))
        if plan.fim:
            turned = sum(result.value["fim"] for result in encoded)
            context.count(fim_documents=turned)
            if not turned:
                context.log.warning("no document was turned to fill in the middle")
        context.telemetry(encoder=encoder)
        context.conserve(
            records_in=sum(one.rows for one in documents),
            out=sum(result.value["documents"] for result in packed),
            dropped={
                "empty": sum(result.value["empty"] for result in encoded),
                "between_splits": sum(result.value["torn"] for result in encoded),
                "repetitive": sum(result.value["dropped_documents"] for result in packed),
            },
        )
