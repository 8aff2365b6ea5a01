"""ingest: a snapshot's files become documents, and what could not, with its reason."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artifacts_schema.config import Config, Execution
from artifacts_schema.errors import InputError
from stages.engine import Context, One, Stage, check_bad_share


class IngestConfig(Config):
    """What is read, and when a record is turned away before anything is known of its quality."""

    source: str = Field(
        default="web",
        min_length=1,
        pattern=r"^[\w.-]+$",
        description="Name of the source: web, code, …",
    )
    format: Literal["auto", "warc", "jsonl", "html", "text", "code"] = Field(
        default="auto",
        description="What the files are (jsonl: Parquet and JSON too); auto: name, then content.",
    )
    extractor: Literal["resiliparse", "trafilatura"] = Field(
        default="resiliparse", description="What finds the main text of HTML pages."
    )
    text_field: str = Field(
        default="text", min_length=1, description="Field of a row that holds the text."
    )
    max_document_bytes: int = Field(
        default=10_000_000,
        ge=1,
        description="Longest record or body in bytes; longer ones are too_large.",
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


class Ingest(Stage):
    """Read every record of a snapshot once; keep its text, or say why there is none.

    An archive or table is one unit of work and gives one shard of documents and one of rejected
    records; small files are joined. Records that cannot be documents by their type (requests,
    warcinfo, metadata) are counted as ignored. `stages.ingest.records.BROKEN` lists the reasons
    that count against `max_bad_share`.
    """

    name, version, reproducible = "ingest", 1, "bytes"
    inputs = {"snapshot": One("snapshot")}
    outputs = {"documents": "documents", "rejected": "rejected"}
    libraries = ("fastwarc", "resiliparse", "trafilatura", "zstandard", "pyarrow")
    handles_documents = True
    Config, Execution = IngestConfig, Execution

    def run(self, context: Context) -> None:
        """Map over units of files, then account for every record."""
        from stages.engine.sources import snapshot_name, source_files
        from stages.ingest.records import BROKEN
        from stages.ingest.shard import ingest_unit, total_of, units_of

        config: IngestConfig = context.config
        snapshot = context.one("snapshot")
        name = snapshot_name(snapshot)
        files = source_files(snapshot)[: config.max_files]
        results = context.map(ingest_unit, units_of(files, config), snapshot=name, config=config)

        total = total_of(result.value for result in results)
        records_in = total.documents + sum(total.rejected.values())
        for reason, texts in total.samples.items():
            for text in texts:
                context.sample(reason, text)
        context.count(
            records_in=records_in,
            documents=total.documents,
            characters=total.characters,
            characters_repaired=total.repaired,
            files=len(files),
            **{f"rejected_{reason}": number for reason, number in sorted(total.rejected.items())},
            **{f"ignored_{kind}": number for kind, number in sorted(total.ignored.items())},
        )
        broken = {
            reason: total.rejected[reason] for reason in sorted(BROKEN & total.rejected.keys())
        }
        check_bad_share(
            sum(broken.values()),
            records_in,
            config.max_bad_share,
            [f"{reason}: {text}" for reason in broken for text in total.samples[reason][:1]],
            f"snapshot '{name}'",
        )
        if not total.documents:
            told = ", ".join(f"{reason} {n:,}" for reason, n in sorted(total.rejected.items()))
            raise InputError(
                f"none of {records_in:,} records became a document ({told or 'no records'})",
                where=f"snapshot '{name}'",
                hint="check the format and the reasons",
            )
        context.conserve(records_in=records_in, out=total.documents, dropped=total.rejected)
