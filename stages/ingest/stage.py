"""ingest: a snapshot's files become documents, and what could not, with its reason."""

from __future__ import annotations

from typing import Any

from stages.engine import Context, Inputs, One, Stage
from stages.ingest.config import IngestConfig, IngestExecution


class Ingest(Stage):
    """Read every record of a snapshot once; keep its text, or say why there is none.

    A file is one unit of work and gives one shard of each output; small files are joined, huge
    ones read in parts. `pages` holds row for row what archive and page say about each document,
    `views` the boilerplate in the texts if it is kept. Records that cannot be
    documents by their type (requests, warcinfo, metadata) are counted as ignored.
    `stages.ingest.snapshot.BROKEN` lists the reasons that count against `max_bad_share`.
    """

    name, version, reproducible = "ingest", 6, "bytes"
    inputs = {"snapshot": One("snapshot")}
    outputs = {
        "documents": "documents",
        "rejected": "rejected",
        "pages": "pages",
        "views": "views",
    }
    libraries = (
        "brotli",
        "fastwarc",
        "html-to-markdown",
        "numpy",
        "pyarrow",
        "resiliparse",
        "selectolax",
        "trafilatura",
        "zstandard",
    )
    handles_documents = True
    Config, Execution = IngestConfig, IngestExecution

    @classmethod
    def sources(cls, config: Any, inputs: Inputs) -> frozenset[str]:
        """The one source that all documents of a snapshot have."""
        return frozenset([config.source])

    def run(self, context: Context) -> None:
        """Map over units of files, count URLs over the whole snapshot, account for every record."""
        from stages.engine.sources import snapshot_name, source_files
        from stages.ingest.guard import CrashingPages
        from stages.ingest.shards import SHARDS_A_WORKER, pages_shards, write_pages
        from stages.ingest.snapshot import (
            account_for_records,
            make_units,
            read_tree_licences,
            read_units,
        )

        config: IngestConfig = context.config
        snapshot = context.one("snapshot")
        files = source_files(snapshot)[: config.max_files]
        crashing_pages = CrashingPages(context.state, seconds=context.execution.page_seconds)
        results = read_units(
            context,
            make_units(files, config, config.split_bytes),
            crashing_pages,
            snapshot=snapshot_name(snapshot),
            config=config,
            licences=read_tree_licences(files, config.format),
        )
        shards = pages_shards(results)
        written = context.map(write_pages, shards, workers=1 + len(shards) // SHARDS_A_WORKER)
        repeats = sum(shard.value["url_repeats"] for shard in written)
        context.count(files=len(files), url_repeats=repeats)
        account_for_records(context, [result.value for result in results], snapshot_name(snapshot))
