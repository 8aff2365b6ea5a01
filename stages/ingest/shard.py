"""One unit of work: the records of some files as shards of what `ingest` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from artifacts_schema.identity import document_id
from artifacts_schema.kinds import KINDS
from artifacts_schema.kinds.pages import PAGE_COLUMNS
from stages.engine import ShardOutput
from stages.engine.reading.rows import metadata_json, scrub
from stages.engine.tables import TableWriter
from stages.ingest.guard import Watch
from stages.ingest.reader import Reader
from stages.ingest.records import DETAIL, Document, Ignored, Record, Rejected
from stages.ingest.repeats import url_key
from stages.ingest.tally import Tally
from stages.ingest.units import Unit

if TYPE_CHECKING:
    import pyarrow as pa

    from stages.ingest.stage import IngestConfig

VIEW = "boilerplate"
SCRATCH = "pages"
_BATCH_ROWS = 1_000
_BATCH_CHARACTERS = 16 << 20
_FROM_RECORD = frozenset({"characters_repaired", "url_repeats"})
_TOLD = tuple(column.name for column in PAGE_COLUMNS if column.name not in _FROM_RECORD)


def ingest_unit(
    unit: Unit,
    out: ShardOutput,
    *,
    snapshot: str,
    config: IngestConfig,
    watch: Watch,
    licences: Mapping[str, str],
) -> dict[str, Any]:
    """Write the unit's documents, rejected records and views; its tally as plain values.

    What pages say is left as scratch, with the key of each URL: whether a URL came before is not
    known yet. Of a part of an archive `first` and `next` are told, see `units.parts_to_mend`.
    """
    tally, reader = Tally(), None
    with watch.over(unit.id) as guard, ExitStack() as opened:
        tables = _Tables(unit.id, out, opened)
        for part in unit.parts:
            reader = Reader(part, config, guard, licences)
            name = part.file.name
            for record in _first(iter(reader), config.max_records):
                tally.add(record, name)
                if isinstance(record, Document):
                    tables.add_document(record, snapshot, name, config.source)
                elif isinstance(record, Rejected):
                    tables.add_rejected(record, snapshot, name)
        tables.flush()
    assert reader is not None, "a unit holds a part"
    told = {name: getattr(reader, name) for name in ("is_archive", "first", "next")}
    return {**asdict(tally), **told}


class _Tables:
    """The four tables of a unit, written in row groups so that memory does not grow with it."""

    def __init__(self, unit: str, out: ShardOutput, opened: ExitStack) -> None:
        path = f"{unit}.parquet"

        def batch(name: str) -> _Batch:
            schema = KINDS[name].tables["*.parquet"].arrow()
            return _Batch(opened.enter_context(out.table_writer(name, path, schema)))

        self._documents, self._rejected, self._views = map(
            batch, ("documents", "rejected", "views")
        )
        file = opened.enter_context(out.open_scratch(SCRATCH))
        writer = TableWriter(file, scratch_schema(), kind=None, path=SCRATCH)
        self._pages = _Batch(opened.enter_context(writer))

    def flush(self) -> None:
        """Write what is held."""
        for batch in (self._documents, self._rejected, self._views, self._pages):
            batch.flush()

    def add_document(self, document: Document, snapshot: str, file: str, source: str) -> None:
        """A row of `documents`, and those beside it."""
        row = document_row(document, snapshot, file, source)
        doc_id = row["doc_id"]
        self._documents.add(row, len(document.text))
        self._views.add({"doc_id": doc_id, "spans": spans_of(document)}, 0)
        self._pages.add({"doc_id": doc_id, **page_values(document)}, 0)

    def add_rejected(self, record: Rejected, snapshot: str, file: str) -> None:
        """A row of `rejected`."""
        self._rejected.add(rejected_row(record, snapshot, file), 0)


def scratch_schema() -> pa.Schema:
    """Columns of `pages` as they are left until repeated URLs are known."""
    import pyarrow as pa

    schema = KINDS["pages"].tables["*.parquet"].arrow()
    place = schema.get_field_index("url_repeats")
    return schema.set(place, pa.field("url_key", pa.uint64(), nullable=False))


def page_values(document: Document) -> dict[str, Any]:
    """What the scratch table holds of a document."""
    page = document.page
    told = {name: _stored_value(page.get(name)) for name in _TOLD}
    repaired = {"characters_repaired": document.repaired}
    return {**told, **repaired, "url_key": url_key(document.url)}


def spans_of(document: Document) -> list[dict[str, Any]]:
    """The boilerplate in a document as spans of a view that cuts it."""
    return [
        {"view": VIEW, "start": start, "end": end, "label": label, "replacement": ""}
        for start, end, label in document.boilerplate
    ]


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
        "linked_classes": None,
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
    """Rows until they are worth a row group."""

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


def _stored_value(value: Any) -> Any:
    return scrub(value)[0] if isinstance(value, str) else value


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
