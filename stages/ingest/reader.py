"""The records of a file, or of a part of one, in any format: archives, WAT, tables, files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Any

from stages.engine.reading.row import (
    Readable,
    Row,
    RowLimits,
    format_fields,
    scrub,
    suggest_renames,
)
from stages.engine.reading.rows import read_rows
from stages.engine.sources import SourceFile
from stages.engine.strict_json import parse_json
from stages.ingest.archive import ArchiveReader
from stages.ingest.archive_heads import Capture
from stages.ingest.config import IngestConfig
from stages.ingest.formats import (
    Format,
    describes_dataset,
    format_by_content,
    format_by_name,
    why_unsupported,
)
from stages.ingest.guard import DETAILS, Guard, page_name
from stages.ingest.http_response import media_type
from stages.ingest.linked_data import normalise_date
from stages.ingest.pages import (
    Document,
    Ignored,
    Place,
    Record,
    Rejected,
    capture_date,
    read_capture,
    read_file,
)

_COLUMN_NAMES = {
    "url": ("url", "uri", "source_url", "path"),
    "title": ("title",),
    "language": ("language", "lang"),
}
"""Column of a document → names under which data sets keep it, the first that is there wins."""
_DATE_NAMES = ("date", "timestamp", "published", "created")
"""The same of the date; a name without a date is passed over."""
MOST_LINKS = 10_000
_LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*")


def document_from_row(row: Row, text_field: str, min_characters: int = 1) -> Record:
    """The document that a row holds; fields that are no columns go to its metadata."""
    place = Place(row.record, row.record, row.length)
    if row.value is None:
        return Rejected(place, row.reason or "malformed_record", row.detail)
    fields = dict(row.value)
    text = fields.pop(text_field, None)
    columns = {column: _take_text(fields, names) for column, names in _COLUMN_NAMES.items()}
    if not isinstance(text, str):
        return Rejected(place, "missing_text", _missing(row.value, text_field), columns["url"])
    if len(text.strip()) < min_characters:
        return Rejected(place, "no_text", f"{len(text)} characters", columns["url"])
    declared = _take_date(fields)
    fields = {name: value for name, value in fields.items() if value is not None}
    return Document(
        place,
        text,
        url=columns["url"],
        date=declared,
        title=columns["title"],
        language=columns["language"],
        metadata=fields,
        repaired=row.repaired,
    )


def _missing(fields: dict[str, Any], text_field: str) -> str:
    """That a row has no text under this name, and where it may be; short, as it is kept."""
    value = fields.get(text_field)
    what = "absent" if value is None else type(value).__name__
    texts = {name: one for name, one in fields.items() if isinstance(one, str)}
    likely = next(iter(suggest_renames(texts, ("text",))), None)
    if likely is None and texts:
        likely = max(texts, key=lambda name: len(texts[name]))
    guess = f"; did you mean `text_field: {likely[:40]}`?" if likely else ""
    return f"'{text_field[:40]}' is {what}{guess} {format_fields(fields)}"


def _take_text(fields: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """Take the first field that is a non-empty text out of `fields`."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            del fields[name]
            return value
    return None


def _take_date(fields: dict[str, Any]) -> str | None:
    """The first field that is a date, in ISO 8601; taken out of `fields` if it is written so."""
    for name in _DATE_NAMES:
        value = fields.get(name)
        if isinstance(value, date):
            del fields[name]
            return value.isoformat()
        if isinstance(value, str) and (moment := normalise_date(value)) is not None:
            if moment == value:
                del fields[name]
            return moment
    return None


def is_wat(capture: Capture) -> bool:
    """Whether a record is of the sort that a WAT holds: metadata in JSON."""
    is_json = media_type(capture.content_type) == "application/json"
    return capture.type == "metadata" and is_json


def read_wat(capture: Capture, config: IngestConfig) -> Record:
    """The document of title and description that a metadata record makes, or why it makes none.

    A WAT holds what Common Crawl says of a page without its text, one JSON envelope a record. Only
    records that describe a response make documents; those of requests and of the crawl are ignored.
    Parts of another shape than expected count as absent. Of the links their number is kept.
    """
    place = Place(capture.record, capture.member, capture.length)
    if capture.fault is not None:
        return Rejected(place, capture.fault, capture.detail, capture.uri)
    try:
        envelope = _object(parse_json(capture.block), "Envelope")
    except ValueError as error:
        return Rejected(place, "malformed_json", str(error)[:200], capture.uri)
    if not envelope:
        return Rejected(place, "not_an_object", "no Envelope", capture.uri)
    header = _object(envelope, "WARC-Header-Metadata")
    if _text(header.get("WARC-Type")) != "response":
        return Ignored("metadata")
    url = _text(header.get("WARC-Target-URI")) or capture.uri
    response = _object(envelope, "Payload-Metadata", "HTTP-Response-Metadata")
    status = str(_object(response, "Response-Message").get("Status"))
    if status != "200":
        detail = status if re.fullmatch(r"[1-9][0-9]{2}", status) else "None"
        return Rejected(place, "http_status", detail, url)
    html = _object(response, "HTML-Metadata")
    metas = _metas(_object(html, "Head").get("Metas"))
    headers = {name.lower(): value for name, value in _object(response, "Headers").items()}
    title = _text(_object(html, "Head").get("Title"))
    description = metas.get("description") or metas.get("og:description")
    text, repaired = scrub("\n".join(part for part in (title, description) if part))
    if len(text.strip()) < config.min_characters:
        return Rejected(place, "no_text", f"{len(text)} characters", url)
    languages = (
        metas.get("content-language"),
        headers.get("content-language"),
        metas.get("og:locale"),
    )
    captured, metadata = capture_date(capture)
    return Document(
        place,
        text,
        url=url,
        date=captured,
        title=title,
        language=_language(languages),
        metadata={**metadata, "links": _count_links(html.get("Links"))},
        page={"record_type": "metadata", "http_status": 200},
        repaired=repaired,
    )


def _object(value: Any, *path: str) -> dict[str, Any]:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return " ".join(value.split()) or None if isinstance(value, str) else None


def _metas(value: Any) -> dict[str, str]:
    """Name, property or http-equiv in lower case → content; the first of a name counts."""
    metas: dict[str, str] = {}
    for meta in value if isinstance(value, list) else ():
        if isinstance(meta, dict) and (content := _text(meta.get("content"))):
            for key in ("name", "property", "http-equiv"):
                if name := _text(meta.get(key)):
                    metas.setdefault(name.lower(), content)
    return metas


def _language(values: Iterable[Any]) -> str | None:
    """The first that is one language tag, as `de` or `pt-BR`; of a list of tags the first."""
    for value in values:
        tag = (_text(value) or "").split(",")[0].strip()
        if _LANGUAGE_TAG.fullmatch(tag):
            return tag.replace("_", "-")
    return None


def _count_links(value: Any) -> int:
    """How many `<a>` have a target, at most `MOST_LINKS`."""
    links = (link for link in (value if isinstance(value, list) else ()) if isinstance(link, dict))
    targets = (_text(link.get("url")) for link in links if _text(link.get("path")) == "A@/href")
    return min(sum(target is not None for target in targets), MOST_LINKS)


@dataclass(frozen=True)
class Part:
    """The records of a file that begin in its bytes [start, end); `end` None is the file's end.

    Where records can only be found by looking for them, the first begins at or after `start`; at
    `start` itself if that is `exact`.
    """

    file: SourceFile
    start: int = 0
    end: int | None = None
    exact: bool = False
    beside_tables: bool = False
    """Whether tables lie in its folder or below, so that it may describe them."""

    @property
    def is_whole(self) -> bool:
        """Whether this is the whole file."""
        return self.start == 0 and self.end is None


@dataclass(frozen=True)
class Unit:
    """Files, or a part of one, that one worker reads into one shard."""

    id: str
    parts: tuple[Part, ...]


@dataclass
class Reader:
    """Reads the records of a part; archives set `first` and `next` once it is read."""

    part: Part
    config: IngestConfig
    guard: Guard | None = None
    licences: Mapping[str, str] = field(default_factory=dict)
    """Folder of a code tree → licence of its files."""
    is_archive: bool = False
    first: int | None = None
    next: int | None = None

    def __iter__(self) -> Iterator[Record]:
        source, part, config = self.part.file, self.part, self.config
        form: Format
        if config.format == "auto":
            form = format_by_name(source.name) or format_by_content(source)
        else:
            form = "warc" if config.format == "wat" else config.format
        whole = Place(0, 0, source.bytes)
        if form == "unsupported":
            detail = why_unsupported(source.name) or source.name
            yield Rejected(whole, "unsupported_format", detail)
        elif form == "warc":
            yield from self._read_archive(source)
        elif part.beside_tables and describes_dataset(source):
            yield Ignored("dataset_description")
        elif form == "jsonl":
            limits = RowLimits(
                row=config.max_document_bytes,
                expansion=config.max_expansion,
                undecodable_share=config.max_replaced_share,
            )
            for row in read_rows(source, limits, part.start, part.end):
                yield document_from_row(row, config.text_field, config.min_characters)
        else:
            read = partial(read_file, source, form, config, self.licences)
            yield self._guarded(whole, source.name, read)

    def _read_archive(self, source: Readable) -> Iterator[Record]:
        part, config = self.part, self.config
        self.is_archive = True
        with source.open() as stream:
            captures = ArchiveReader(
                stream,
                source.bytes,
                limit=config.max_document_bytes,
                expansion=config.max_expansion,
                start=part.start,
                end=part.end,
                exact=part.exact,
            )
            for capture in captures:
                if config.format == "wat" and is_wat(capture):
                    yield read_wat(capture, config)
                    continue
                place = Place(capture.record, capture.member, capture.length)
                yield self._guarded(place, capture.uri, partial(read_capture, capture, config))
            self.first, self.next = captures.first, captures.next

    def _guarded(self, place: Place, url: str | None, read: Callable[[], Record]) -> Record:
        """The record, unless it is known to crash or hang its worker."""
        if self.guard is None:
            return read()
        page = page_name(self.part.file.name, place.record)
        if (reason := self.guard.reason_to_skip(page)) is not None:
            return Rejected(place, reason, DETAILS[reason], url)
        with self.guard.page(page):
            return read()
