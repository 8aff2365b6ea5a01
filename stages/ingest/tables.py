"""Documents from rows of JSON lines, Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

from stages.engine.reading.fields import fields_there, suggested
from stages.engine.reading.rows import Readable, Row, RowLimits, read_rows, scrub
from stages.ingest.records import Document, Place, Record, Rejected

_NAMES = {
    "url": ("url", "uri", "source_url", "path"),
    "date": ("date", "timestamp", "published", "created"),
    "title": ("title",),
    "language": ("language", "lang"),
}
"""Column of a document → names under which data sets keep it, the first that is there wins."""


def read_table(
    source: Readable,
    limits: RowLimits,
    text_field: str,
    min_characters: int,
    start: int = 0,
    end: int | None = None,
) -> Iterator[Record]:
    """One record for each row of the file, or of its part from byte `start` to `end`."""
    for row in read_rows(source, limits, start, end):
        yield document_of(row, text_field, min_characters)


def document_of(row: Row, text_field: str, min_characters: int = 1) -> Record:
    """The document that a row holds; fields that are no columns go to its metadata."""
    place = Place(row.record, row.record, row.length)
    if row.value is None:
        return Rejected(place, row.reason or "malformed_record", row.detail)
    fields = dict(row.value)
    text = fields.pop(text_field, None)
    told = {column: _first(fields, names) for column, names in _NAMES.items()}
    if not isinstance(text, str):
        return Rejected(place, "missing_text", _missing(row.value, text_field), told["url"])
    text, repaired = scrub(text)
    if len(text.strip()) < max(1, min_characters):
        return Rejected(place, "no_text", f"{len(text)} characters", told["url"])
    fields = {name: value for name, value in fields.items() if value is not None}
    return Document(
        place,
        text,
        url=told["url"],
        date=told["date"],
        title=told["title"],
        language=told["language"],
        metadata=fields,
        repaired=repaired,
    )


def _missing(fields: dict[str, Any], text_field: str) -> str:
    """That a row has no text under this name, and where it may be; short, as it is kept."""
    value = fields.get(text_field)
    what = "absent" if value is None else type(value).__name__
    texts = {name: one for name, one in fields.items() if isinstance(one, str)}
    likely = next(iter(suggested(texts, ("text",))), None)
    if likely is None and texts:
        likely = max(texts, key=lambda name: len(texts[name]))
    guess = f"; did you mean `text_field: {likely[:40]}`?" if likely else ""
    return f"'{text_field[:40]}' is {what}{guess} {fields_there(fields)}"


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """Take the first field that is a non-empty text (a date may be a date) out of `fields`."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, date):
            value = value.isoformat()
        if isinstance(value, str) and value.strip():
            del fields[name]
            return value
    return None
