"""One unit of work: the records of some files as a shard of documents and one of rejected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from artifacts_schema.identity import document_id
from artifacts_schema.kinds import KINDS
from stages.engine import ShardOutput
from stages.engine.reading.rows import Readable, RowLimits, metadata_json, scrub
from stages.engine.sources import SourceFile
from stages.engine.tables import TableWriter
from stages.ingest.archive import read_archive
from stages.ingest.files import read_file
from stages.ingest.formats import Format, format_by_content, format_by_name
from stages.ingest.pages import PageRules, record_of
from stages.ingest.records import DETAIL, Document, Ignored, Place, Record, Rejected
from stages.ingest.tables import read_table

if TYPE_CHECKING:
    from stages.ingest.stage import IngestConfig

SAMPLES = 5
_BATCH_ROWS = 1_000
_BATCH_CHARACTERS = 16 << 20


@dataclass(frozen=True)
class Unit:
    """Files that one worker reads into one shard."""

    id: str
    files: tuple[SourceFile, ...]


@dataclass
class Tally:
    """What became of the records of a unit."""

    documents: int = 0
    characters: int = 0
    repaired: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)
    samples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, record: Record, file: str) -> None:
        """Count a record, and keep the first few of each reason as samples."""
        if isinstance(record, Document):
            self.documents += 1
            self.characters += len(record.text)
            self.repaired += record.repaired
        elif isinstance(record, Ignored):
            self.ignored[record.type] = self.ignored.get(record.type, 0) + 1
        else:
            self.rejected[record.reason] = self.rejected.get(record.reason, 0) + 1
            samples = self.samples.setdefault(record.reason, [])
            if len(samples) < SAMPLES:
                told = [f"{file} at {record.place.record}", record.url, record.detail]
                samples.append(scrub(" ".join(part for part in told if part))[0][:DETAIL])


def units_of(files: Sequence[SourceFile], config: IngestConfig) -> list[Unit]:
    """Files in their order as units: archives and tables alone, others up to `shard_bytes`."""
    units: list[tuple[SourceFile, ...]] = []
    group: list[SourceFile] = []
    for file in files:
        form = format_by_name(file.name) if config.format == "auto" else config.format
        alone = form in ("warc", "jsonl") or file.bytes >= config.shard_bytes
        if group and (alone or sum(f.bytes for f in group) + file.bytes > config.shard_bytes):
            units.append(tuple(group))
            group = []
        if alone:
            units.append((file,))
        else:
            group.append(file)
    if group:
        units.append(tuple(group))
    return [Unit(f"{number:05d}", members) for number, members in enumerate(units)]


def total_of(values: Iterable[dict[str, Any]]) -> Tally:
    """The tallies of all units as one."""
    total = Tally()
    for value in values:
        total.documents += value["documents"]
        total.characters += value["characters"]
        total.repaired += value["repaired"]
        for name in ("rejected", "ignored"):
            counts = getattr(total, name)
            for key, number in value[name].items():
                counts[key] = counts.get(key, 0) + number
        for reason, texts in value["samples"].items():
            kept = total.samples.setdefault(reason, [])
            kept.extend(texts[: SAMPLES - len(kept)])
    return total


def ingest_unit(
    unit: Unit, out: ShardOutput, *, snapshot: str, config: IngestConfig
) -> dict[str, Any]:
    """Write the unit's documents and rejected records; its tally as plain values."""
    tally = Tally()
    path = f"{unit.id}.parquet"
    schemas = {name: KINDS[name].tables["*.parquet"].arrow() for name in ("documents", "rejected")}
    with (
        out.table_writer("documents", path, schemas["documents"]) as documents,
        out.table_writer("rejected", path, schemas["rejected"]) as rejected,
    ):
        batches = {"documents": _Batch(documents), "rejected": _Batch(rejected)}
        for source in unit.files:
            for record in _first(read_records(source, config), config.max_records):
                tally.add(record, source.name)
                if isinstance(record, Document):
                    row = document_row(record, snapshot, source.name, config.source)
                    batches["documents"].add(row, len(record.text))
                elif isinstance(record, Rejected):
                    batches["rejected"].add(rejected_row(record, snapshot, source.name), 0)
        for batch in batches.values():
            batch.flush()
    return asdict(tally)


def read_records(source: Readable, config: IngestConfig) -> Iterator[Record]:
    """The records of one file, whatever its format."""
    rules = PageRules(
        extractor=config.extractor,
        max_bytes=config.max_document_bytes,
        min_characters=config.min_characters,
        max_replaced_share=config.max_replaced_share,
    )
    form: Format
    if config.format == "auto":
        form = format_by_name(source.name) or format_by_content(source)
    else:
        form = config.format
    if form == "unsupported":
        yield Rejected(Place(0, 0, source.bytes), "unsupported_format", source.name)
    elif form == "warc":
        with source.open() as stream:
            for capture in read_archive(
                stream, source.bytes, limit=rules.max_bytes, expansion=config.max_expansion
            ):
                yield record_of(capture, rules)
    elif form == "jsonl":
        limits = RowLimits(row=config.max_document_bytes, expansion=config.max_expansion)
        yield from read_table(source, limits, config.text_field, config.min_characters)
    else:
        yield read_file(source, form, rules, config.max_expansion)


def document_row(document: Document, snapshot: str, file: str, source: str) -> dict[str, Any]:
    """The row of the `documents` table."""
    return {
        "doc_id": document_id(snapshot, file, document.place.record),
        "source": source,
        "snapshot": snapshot,
        "url": _stored(document.url),
        "date": _stored(document.date),
        "title": _stored(document.title),
        "language": _stored(document.language),
        "text": document.text,
        "metadata": metadata_json(document.metadata),
        "origin_file": file,
        "origin_offset": document.place.offset,
        "origin_length": document.place.length,
        "duplicate_class": None,
    }


def rejected_row(record: Rejected, snapshot: str, file: str) -> dict[str, Any]:
    """The row of the `rejected` table."""
    return {
        "doc_id": document_id(snapshot, file, record.place.record),
        "snapshot": snapshot,
        "url": _stored(record.url),
        "reason": record.reason,
        "detail": _stored(record.detail[:DETAIL] if record.detail else None),
        "origin_file": file,
        "origin_offset": record.place.offset,
        "origin_length": record.place.length,
    }


class _Batch:
    """Rows until they are worth a row group, so that memory does not grow with the file."""

    def __init__(self, writer: TableWriter) -> None:
        self.writer, self.rows, self.characters = writer, [], 0  # type: TableWriter, list[Any], int

    def add(self, row: dict[str, Any], characters: int) -> None:
        self.rows.append(row)
        self.characters += characters
        if len(self.rows) >= _BATCH_ROWS or self.characters >= _BATCH_CHARACTERS:
            self.flush()

    def flush(self) -> None:
        import pyarrow as pa

        if self.rows:
            self.writer.write(pa.Table.from_pylist(self.rows, schema=self.writer.schema))
            self.rows, self.characters = [], 0


def _stored(value: str | None) -> str | None:
    return scrub(value)[0] if value is not None else None


def _first(records: Iterator[Record], limit: int | None) -> Iterator[Record]:
    """The first `limit` records that are not ignored by their type."""
    if limit is None:
        yield from records
        return
    counted = 0
    for record in records:
        counted += not isinstance(record, Ignored)
        yield record
        if counted >= limit:
            return
