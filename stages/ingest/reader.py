"""The records of a file or a part of one, whatever its format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.engine.reading.rows import Readable, RowLimits
from stages.ingest.archives.archive import Capture, read_archive
from stages.ingest.extraction import ExtractionRules
from stages.ingest.files import read_file
from stages.ingest.formats import (
    Format,
    describes_dataset,
    format_by_content,
    format_by_name,
    why_unsupported,
)
from stages.ingest.guard import DETAILS, Guard, page_name
from stages.ingest.pages import PageRules, record_of
from stages.ingest.records import Ignored, Place, Record, Rejected
from stages.ingest.tables import read_table
from stages.ingest.units import Part
from stages.ingest.wat_pages import is_wat, wat_record

if TYPE_CHECKING:
    from stages.ingest.stage import IngestConfig


def rules_of(config: IngestConfig) -> PageRules:
    """What the Config says about pages."""
    return PageRules(
        extraction=ExtractionRules(
            extractor=config.extractor,
            markup=config.markup,
            boilerplate=config.boilerplate,
            max_nodes=config.max_nodes,
            max_depth=config.max_depth,
            careful_from=config.careful_from,
        ),
        max_bytes=config.max_document_bytes,
        max_expansion=config.max_expansion,
        min_characters=config.min_characters,
        max_replaced_share=config.max_replaced_share,
        truncated=config.truncated,
        plain_text=config.plain_text,
    )


@dataclass
class Reader:
    """Reads the records of a part; `first` and `next` are told by archives once it is read."""

    part: Part
    config: IngestConfig
    guard: Guard | None = None
    licences: Mapping[str, str] = field(default_factory=dict)
    """Folder of a code tree → licence of its files."""
    is_archive: bool = False
    first: int | None = None
    next: int | None = None

    def __iter__(self) -> Iterator[Record]:
        source = self.part.file
        form = self._format()
        if form == "unsupported":
            detail = why_unsupported(source.name) or source.name
            yield Rejected(Place(0, 0, source.bytes), "unsupported_format", detail)
        elif form == "warc":
            yield from self._archive(source)
        elif form == "jsonl":
            yield from self._table(source)
        elif self.part.beside_tables and describes_dataset(source):
            yield Ignored("dataset_description")
        else:
            place = Place(0, 0, source.bytes)
            yield self._guarded(place, source.name, lambda: self._file(source, form))

    def _format(self) -> Format:
        source = self.part.file
        if self.config.format == "auto":
            return format_by_name(source.name) or format_by_content(source)
        return "warc" if self.config.format == "wat" else self.config.format

    def _archive(self, source: Readable) -> Iterator[Record]:
        config, part = self.config, self.part
        rules, self.is_archive = rules_of(config), True
        with source.open() as stream:
            reading = read_archive(
                stream,
                source.bytes,
                limit=rules.max_bytes,
                expansion=config.max_expansion,
                start=part.start,
                end=part.end,
                exact=part.exact,
            )
            for capture in reading:
                if config.format == "wat" and is_wat(capture):
                    yield wat_record(capture, rules)
                    continue
                place = Place(capture.record, capture.member, capture.length)
                yield self._guarded(place, capture.uri, _record(capture, rules))
            self.first, self.next = reading.first, reading.next

    def _table(self, source: Readable) -> Iterator[Record]:
        config, part = self.config, self.part
        limits = RowLimits(row=config.max_document_bytes, expansion=config.max_expansion)
        if part.beside_tables and describes_dataset(source):
            yield Ignored("dataset_description")
            return
        yield from read_table(
            source, limits, config.text_field, config.min_characters, part.start, part.end
        )

    def _file(self, source: Readable, form: Format) -> Record:
        return read_file(source, form, rules_of(self.config), self.licences)

    def _guarded(self, place: Place, url: str | None, read: Callable[[], Record]) -> Record:
        """The record, unless it is known to end the process that reads it."""
        if self.guard is None:
            return read()
        page = page_name(self.part.file.name, place.record)
        if (reason := self.guard.culprit(page)) is not None:
            return Rejected(place, reason, DETAILS[reason], url)
        with self.guard.page(page):
            return read()


def _record(capture: Capture, rules: PageRules) -> Callable[[], Record]:
    return lambda: record_of(capture, rules)
