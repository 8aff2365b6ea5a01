"""One unit of work: the records of some files as shards of the tables that `ingest` writes.

The `pages` tables are written last, since only the whole snapshot knows how often a URL came
before: that count is kept, and `filter` may decide by it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from artifacts_schema.identity import document_id
from artifacts_schema.kinds import KINDS
from artifacts_schema.kinds.documents import PAGE_COLUMNS
from stages.engine import ShardOutput, ShardResult
from stages.engine.outputs import TableWriter
from stages.engine.reading.row import scrub
from stages.engine.reading.rows import metadata_json
from stages.ingest.config import IngestConfig
from stages.ingest.guard import Watch
from stages.ingest.pages import Document, Ignored, Record, Rejected
from stages.ingest.reader import Reader, Unit

AT_ONCE = 1 << 22
"""Documents whose URLs are compared at once: some 200 MB, for a snapshot of any size."""

_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_DEFAULT_PORT = re.compile(r":(?:80|443)?(?=$|[/?])")


def url_key(url: str | None) -> int:
    """A 64-bit hash of what names a page; 0 without a URL.

    Scheme, default port and fragment are left out, the host is taken in lower case, so that
    `HTTP://A.example:80/b#c` and `https://a.example/b` are one page.
    """
    if not url:
        return 0
    address = url.partition("#")[0]
    if (scheme := _SCHEME.match(address)) is not None:
        host, _, path = address[scheme.end() :].partition("/")
        address = f"//{_DEFAULT_PORT.sub('', host.lower(), count=1)}/{path}"
    return xxh3_64_intdigest(address.encode("utf-8", "surrogatepass")) or 1


def url_repeats(keys: Sequence[NDArray[np.uint64]], at_once: int = AT_ONCE) -> list[dict[int, int]]:
    """For each array of keys, in order: row → earlier rows of all arrays with its key.

    Rows without a URL (key 0), and those that come first, are left out.
    """
    repeats: list[dict[int, int]] = [{} for _ in keys]
    if not repeats:
        return repeats
    parts = max(1, -(-sum(map(len, keys)) // at_once))
    for part in range(parts):
        chosen = [np.flatnonzero((own % parts == part) & (own != 0)) for own in keys]
        together = np.concatenate([own[rows] for own, rows in zip(keys, chosen, strict=True)])
        owners = np.repeat(np.arange(len(keys)), [len(rows) for rows in chosen])
        rows = np.concatenate(chosen)
        for place, earlier in _repeats(together):
            repeats[owners[place]][int(rows[place])] = earlier
    return repeats


def _repeats(keys: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
    """(place, earlier places with its key) where there are any."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    rank = np.arange(len(keys)) - np.repeat(begins, np.diff(np.append(begins, len(keys))))
    for place in np.flatnonzero(rank):
        yield int(order[place]), int(rank[place])


DETAIL = 200
"""Characters kept of a detail."""
SAMPLES = 5


@dataclass
class Tally:
    """Counts by what a record became, and the first few samples of each reason."""

    documents: int = 0
    characters: int = 0
    repaired: int = 0
    rejected: Counter[str] = field(default_factory=Counter[str])
    ignored: Counter[str] = field(default_factory=Counter[str])
    extractors: Counter[str] = field(default_factory=Counter[str])
    samples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, record: Record, file: str) -> None:
        """Count a record of `file`."""
        if isinstance(record, Document):
            self.documents += 1
            self.characters += len(record.text)
            self.repaired += record.repaired
            if (extractor := record.page.get("extractor")) is not None:
                self.extractors[extractor] += 1
        elif isinstance(record, Ignored):
            self.ignored[record.type] += 1
        else:
            self.rejected[record.reason] += 1
            samples = self.samples.setdefault(record.reason, [])
            if len(samples) < SAMPLES:
                parts = [f"{file} at {record.place.record}", record.url, record.detail]
                samples.append(scrub(" ".join(part for part in parts if part))[0][:DETAIL])


def sum_tallies(values: Iterable[dict[str, Any]]) -> Tally:
    """The tallies of all units, as plain values in their order, as one."""
    total = Tally()
    for value in values:
        total.documents += value["documents"]
        total.characters += value["characters"]
        total.repaired += value["repaired"]
        total.rejected.update(value["rejected"])
        total.ignored.update(value["ignored"])
        total.extractors.update(value["extractors"])
        for reason, texts in value["samples"].items():
            kept = total.samples.setdefault(reason, [])
            kept.extend(texts[: SAMPLES - len(kept)])
    return total


SCRATCH = "pages"
_BATCH_ROWS = 1_000
_BATCH_CHARACTERS = 16 << 20
_FROM_RECORD = frozenset({"characters_repaired", "url_repeats"})
_PAGE_VALUES = tuple(column.name for column in PAGE_COLUMNS if column.name not in _FROM_RECORD)


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
    known yet. For a part of an archive it includes `first` and `next`, see
    `snapshot.misaligned_parts`.
    """
    tally, reader = Tally(), None
    with watch.over(unit.id) as guard, ExitStack() as opened:

        def open_table(name: str) -> _Batch:
            schema = KINDS[name].tables["*.parquet"].arrow()
            writer = out.table_writer(name, f"{unit.id}.parquet", schema)
            return _Batch(opened.enter_context(writer))

        documents, rejected, views = map(open_table, ("documents", "rejected", "views"))
        file = opened.enter_context(out.open_scratch(SCRATCH))
        writer = TableWriter(file, scratch_schema(), kind=None, path=SCRATCH)
        pages = _Batch(opened.enter_context(writer))
        for part in unit.parts:
            reader = Reader(part, config, guard, licences)
            name = part.file.name
            for record in _limit_records(iter(reader), config.max_records):
                tally.add(record, name)
                if isinstance(record, Document):
                    row = document_row(record, snapshot, name, config.source)
                    documents.add(row, len(record.text))
                    views.add({"doc_id": row["doc_id"], "spans": boilerplate_spans(record)})
                    pages.add({"doc_id": row["doc_id"], **page_values(record)})
                elif isinstance(record, Rejected):
                    rejected.add(rejected_row(record, snapshot, name))
        for table in (documents, rejected, views, pages):
            table.flush()
    assert reader is not None, "a unit holds a part"
    bounds = {name: getattr(reader, name) for name in ("is_archive", "first", "next")}
    return {**vars(tally), **bounds}


def scratch_schema() -> pa.Schema:
    """Columns of `pages` as they are left until repeated URLs are known."""
    schema = KINDS["pages"].tables["*.parquet"].arrow()
    place = schema.get_field_index("url_repeats")
    return schema.set(place, pa.field("url_key", pa.uint64(), nullable=False))


def page_values(document: Document) -> dict[str, Any]:
    """What the scratch table holds of a document."""
    page = document.page
    columns = {name: _storable(page.get(name)) for name in _PAGE_VALUES}
    repaired = {"characters_repaired": document.repaired}
    return {**columns, **repaired, "url_key": url_key(document.url)}


def boilerplate_spans(document: Document) -> list[dict[str, Any]]:
    """The boilerplate in a document as spans of a view that cuts it."""
    return [
        {"view": "boilerplate", "start": start, "end": end, "label": label, "replacement": ""}
        for start, end, label in document.boilerplate
    ]


def document_row(document: Document, snapshot: str, file: str, source: str) -> dict[str, Any]:
    """The row of the `documents` table."""
    return {
        "doc_id": document_id(snapshot, file, document.place.record),
        "source": source,
        "snapshot": snapshot,
        "url": _storable(document.url),
        "date": _storable(document.date),
        "title": _storable(document.title),
        "language": _storable(document.language),
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
        "url": _storable(record.url),
        "reason": record.reason,
        "detail": _storable(record.detail[:DETAIL] if record.detail else None),
        "origin_file": file,
        "origin_offset": record.place.offset,
        "origin_length": record.place.length,
    }


class _Batch:
    """Rows until they are worth a row group."""

    def __init__(self, writer: TableWriter) -> None:
        self.writer, self.rows, self.characters = writer, [], 0  # type: TableWriter, list[Any], int

    def add(self, row: dict[str, Any], characters: int = 0) -> None:
        self.rows.append(row)
        self.characters += characters
        if len(self.rows) >= _BATCH_ROWS or self.characters >= _BATCH_CHARACTERS:
            self.flush()

    def flush(self) -> None:
        if self.rows:
            self.writer.write(pa.Table.from_pylist(self.rows, schema=self.writer.schema))
            self.rows, self.characters = [], 0


def _storable(value: Any) -> Any:
    return scrub(value)[0] if isinstance(value, str) else value


def _limit_records(records: Iterator[Record], limit: int | None) -> Iterator[Record]:
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


SHARDS_A_WORKER = 32
"""A shard takes hundredths of a second here, the start of a worker half a one."""


@dataclass(frozen=True)
class PagesShard:
    """A unit that was read, and the rows of it whose URL came before in the snapshot."""

    id: str
    read: ShardResult
    repeats: Mapping[int, int]


def pages_shards(results: Sequence[ShardResult]) -> list[PagesShard]:
    """The units in their order, each with its repeated URLs: 8 bytes a document are held."""
    keys = [result.read_scratch(SCRATCH, ["url_key"])["url_key"].to_numpy() for result in results]
    repeats = url_repeats(keys)
    return [
        PagesShard(result.id, result, rows) for result, rows in zip(results, repeats, strict=True)
    ]


def write_pages(item: PagesShard, out: ShardOutput) -> dict[str, Any]:
    """Write a unit's `pages`; how many of its URLs came before."""
    table = item.read.read_scratch(SCRATCH)
    has_url = table["url_key"].to_numpy() != 0
    counts = np.zeros(len(table), dtype=np.int64)
    counts[list(item.repeats)] = list(item.repeats.values())
    column = pa.array(counts, mask=~has_url)
    schema = KINDS["pages"].tables["*.parquet"].arrow()
    columns = {
        field.name: column if field.name == "url_repeats" else table[field.name] for field in schema
    }
    out.write_table("pages", f"{item.id}.parquet", pa.table(columns, schema=schema))
    return {"url_repeats": len(item.repeats)}
