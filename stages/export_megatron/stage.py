"""The export_megatron stage: token shards to the indexed datasets that Megatron-LM trains on."""

from __future__ import annotations

from artifacts_schema.config import MapExecution
from stages.engine import Context, Many, Stage


class ExportMegatron(Stage):
    """Write the documents behind packed sequences as Megatron-LM's indexed datasets.

    Each source becomes one pair of files, each document one sequence of it: whole again, its pieces
    joined over sequences and shards, with the tokens that begin and end it and without padding.
    Documents that are whole in one shard come first, by input, shard and place; then all others by
    id. A document that `pack` cropped or dropped in part is written without the missing part.
    """

    name, version, reproducible = "export_megatron", 1, "bytes"
    inputs = {"shards": Many("token_shards", at_least=1)}
    outputs = {"dataset": "megatron_dataset"}
    libraries = ("numpy", "pyarrow")
    handles_documents = True
    Execution = MapExecution

    def run(self, context: Context) -> None:
        """Find whole documents, join the others, write each source, then the table of contents."""
        from stages.export_megatron.dataset import (
            dataset_table,
            drop_counts,
            join_source,
            write_source,
        )
        from stages.export_megatron.shards import Packed, scan_shard

        packed = Packed.read(context.many("shards"))
        files = [file for source in packed.sources for file in source.files]
        packed = packed.with_scans(context.map(scan_shard, files))
        packed = packed.with_joins(context.map(join_source, packed.sources))
        written = context.map(write_source, packed.sources)
        table = dataset_table(packed, written)
        context.write_json("dataset", "dataset.json", table)
        sources = table["sources"].values()
        for name in ("documents", "tokens", "bytes", "incomplete"):
            context.count(**{name: sum(source[name] for source in sources)})
        context.conserve(**drop_counts(packed, written))
