"""Settings of `ingest`: what is read, and which records are rejected."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artifacts_schema.config import Config, MapExecution


class IngestConfig(Config):
    """What is read, and which records are rejected before anything is known about their quality."""

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
        description="Pages that the crawler or the server cut: rejected, or kept and marked.",
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
        description="Share of undecodable characters that a text, or a row of JSON, may have.",
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


class IngestExecution(MapExecution):
    """How it runs."""

    page_seconds: float = Field(
        default=60,
        gt=0,
        description="CPU seconds after which a page that hangs its parser is rejected (hung).",
    )
