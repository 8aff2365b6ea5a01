"""The export_tokens stage: token shards to the files that other trainers read."""

from __future__ import annotations

from artifacts_schema.config import MapExecution
from stages.engine import Context, Many, Stage
from stages.export_tokens.config import ExportTokensConfig


class ExportTokens(Stage):
    """Write the documents behind packed sequences for Megatron-LM, nanotron or LLM Foundry.

    Each source becomes files of its own, in which every document is whole again: its pieces joined
    over sequences and shards, with the tokens that begin and end it and without padding.
    Documents that are whole in one shard come first, by input, shard and place; then all others by
    id. A document that `pack` cropped or dropped in part is written without the missing part.
    """

    name, version, reproducible = "export_tokens", 1, "bytes"
    inputs = {"shards": Many("token_shards", at_least=1)}
    outputs = {"dataset": "token_dataset"}
    worker_modules = ("stages.export_tokens.formats",)
    libraries = ("numpy", "pyarrow")
    handles_documents = True
    Config, Execution = ExportTokensConfig, MapExecution

    def run(self, context: Context) -> None:
        """Find whole documents, join the others, write each source, then the table of contents."""
        from stages.export_tokens.formats import dataset_table, write_source
        from stages.export_tokens.joining import drop_counts, join_source
        from stages.export_tokens.shards import Packed, scan_shard

        packed = Packed.read(context.many("shards"))
        files = [file for source in packed.sources for file in source.files]
        packed = packed.with_scans(context.map(scan_shard, files))
        packed = packed.with_joins(context.map(join_source, packed.sources))
        format, length = context.config.format, context.config.sample_length
        length = length or files[0].sequence_length
        written = context.map(
            write_source,
            packed.sources,
            format=format,
            sample_length=length,
            tokenizer=packed.tokenizer,
        )
        table = dataset_table(packed, written, format, length)
        context.write_json("dataset", "dataset.json", table)
        sources = table["sources"].values()
        for name in ("documents", "tokens", "bytes", "incomplete"):
            context.count(**{name: sum(source[name] for source in sources)})
        context.conserve(**drop_counts(packed, written))
