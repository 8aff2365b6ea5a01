"""ingest: a snapshot's files become documents, and what could not, with its reason."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from artifacts_schema.config import Config, Execution
from stages.engine import Context, Inputs, One, Stage


class IngestConfig(Config):
    """What is read, and when a record is turned away before anything is known of its quality."""

    source: str = Field(
        default="web",
        min_length=1,
        pattern=r"^[\w.-]+$",
        description="Name of the source: web, code, …",
    )
    format: Literal["auto", "warc", "wat", "jsonl", "html", "text", "code"] = Field(
        default="auto",
        description="What the files are (warc: WET, WAT and ARC too; jsonl: every table); wat: "
        "documents of title and description; auto: name, then content.",
    )
    extractor: Literal["blocks", "resiliparse", "trafilatura"] = Field(
        default="blocks", description="What finds the main text of HTML pages."
    )
    careful_from: int = Field(
        default=1001,
        ge=0,
        le=1001,
        description="Doubt of `blocks` in thousandths from which trafilatura decides; 1001: never.",
    )
    markup: Literal["plain", "markdown"] = Field(
        default="plain", description="Whether headings, lists, tables, code and links are marked."
    )
    boilerplate: Literal["cut", "keep"] = Field(
        default="cut",
        description="What is not main text: cut, or kept as spans of the view `boilerplate`.",
    )
    plain_text: bool = Field(
        default=False, description="Whether responses of plain text are documents too."
    )
    truncated: Literal["reject", "keep"] = Field(
        default="reject",
        description="Pages that the crawler or the server cut: turned away, or kept and marked.",
    )
    text_field: str = Field(
        default="text", min_length=1, description="Field of a row that holds the text."
    )
    max_document_bytes: int = Field(
        default=10_000_000,
        ge=1,
        description="Longest record or body in bytes; longer ones are too_large.",
    )
    max_nodes: int = Field(
        default=250_000, ge=1, description="Most nodes of a page's tree; others: too_many_nodes."
    )
    max_depth: int = Field(
        default=1_000,
        ge=1,
        le=5_000,
        description="Deepest nesting of a page; deeper ones are too_deep.",
    )
    max_expansion: int = Field(
        default=200,
        ge=1,
        description="Decompressed over compressed bytes above which data is refused as a bomb.",
    )
    max_replaced_share: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="Share of undecodable characters that a text may have.",
    )
    min_characters: int = Field(
        default=1, ge=1, description="Shortest text; thresholds of quality are the filter's."
    )
    max_bad_share: float = Field(
        default=0.10, ge=0, le=1, description="Share of broken records above which the stage fails."
    )
    max_files: int | None = Field(
        default=None, ge=1, description="Only the first files by name, for a small run."
    )
    max_records: int | None = Field(
        default=None, ge=1, description="Only the first records of each file, for a small run."
    )
    shard_bytes: int = Field(
        default=16_000_000,
        ge=1,
        description="Files of one document each are joined into shards of this many bytes.",
    )
    split_bytes: int = Field(
        default=256_000_000,
        ge=1_000_000,
        description="Larger archives, Parquet and plain JSON lines are read in parts of this size.",
    )


class IngestExecution(Execution):
    """How it runs."""

    page_seconds: float = Field(
        default=60,
        gt=0,
        description="CPU seconds after which a page that hangs its parser is turned away (hung).",
    )


class Ingest(Stage):
    """Read every record of a snapshot once; keep its text, or say why there is none.

    A file is one unit of work and gives one shard of each output; small files are joined, huge
    ones read in parts. `pages` tells row for row beside the documents what archive and page say of
    themselves, `views` where boilerplate stands in the texts if it is kept. Records that cannot be
    documents by their type (requests, warcinfo, metadata) are counted as ignored.
    `stages.ingest.records.BROKEN` lists the reasons that count against `max_bad_share`.
    """

    name, version, reproducible = "ingest", 4, "bytes"
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
        """Map over units of files, join what only the whole tells, account for every record."""
        from stages.engine.sources import snapshot_name, source_files
        from stages.ingest.account import account
        from stages.ingest.beside import SHARDS_A_WORKER, pages_shards, write_pages
        from stages.ingest.guard import Culprits
        from stages.ingest.parts import read_units
        from stages.ingest.trees import licences_of_trees
        from stages.ingest.units import units_of

        config: IngestConfig = context.config
        snapshot = context.one("snapshot")
        files = source_files(snapshot)[: config.max_files]
        culprits = Culprits(context.state, seconds=context.execution.page_seconds)
        results = read_units(
            context,
            units_of(files, config, config.split_bytes),
            culprits,
            snapshot=snapshot_name(snapshot),
            config=config,
            licences=licences_of_trees(files, config.format),
        )
        shards = pages_shards(results)
        written = context.map(write_pages, shards, workers=1 + len(shards) // SHARDS_A_WORKER)
        repeats = sum(shard.value["url_repeats"] for shard in written)
        context.count(files=len(files), url_repeats=repeats)
        account(context, [result.value for result in results], snapshot_name(snapshot))
