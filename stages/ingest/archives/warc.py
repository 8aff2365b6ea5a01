"""The head of a WARC record: its fields, as text and as fastwarc reads them."""

from __future__ import annotations

import re
from typing import Any, Protocol

from stages.ingest.archives.captures import Capture, bare_uri, record_type

LONGEST_HEAD = 32 << 10
_VERSION = re.compile(rb"WARC/\d\.\d{1,2}\r?\n")
_VERSION_END = re.compile(rb"WARC/\d\.\d{1,2}\r?\n$")
_BLANK = (b"\r\n", b"\n")
_LENGTH = re.compile(rb"\d{1,18}")
_WANTED = {
    b"warc-type",
    b"warc-target-uri",
    b"warc-date",
    b"content-type",
    b"content-length",
    b"warc-truncated",
    b"warc-identified-content-language",
}


class Lines(Protocol):
    """What a head is read from: a file, or one member."""

    def readline(self, limit: int = -1, /) -> bytes:
        """A line with its end, cut at `limit` bytes."""


def is_head(line: bytes) -> bool:
    """Whether this is the first line of a record."""
    return _VERSION.fullmatch(line) is not None


def read_head(line: bytes, source: Lines, member: int, ordinal: int) -> tuple[Capture, int, int]:
    """The record under a version line, its length, and the bytes of its head, `line` included.

    Of a field given twice the first counts; two different lengths are a fault, as is none. The
    fault is "truncated" if the source ends within the head.
    """
    fields: dict[bytes, bytes] = {}
    taken, name, fault, detail = len(line), b"", None, None
    is_cut = False  # Whether another head seems to begin within this one.
    while line := source.readline(LONGEST_HEAD):
        taken += len(line)
        if line in _BLANK or taken > LONGEST_HEAD:
            break
        if line[0] in b" \t":
            if name in fields:
                fields[name] += b" " + line.strip()
            continue
        if b"WARC/" in line and _VERSION_END.search(line):
            is_cut = True
        name, colon, value = line.partition(b":")
        name = name.strip().lower()
        if colon and name in _WANTED:
            value = value.strip()
            if is_cut and name in fields:
                fault, detail = "malformed_record", "the head runs into another one"
            if fields.setdefault(name, value) != value and name == b"content-length":
                fault, detail = "malformed_record", "two values of Content-Length"
    length = fields.get(b"content-length", b"")
    if not line:
        fault, detail = "truncated", "the file ends within the head"
    elif taken > LONGEST_HEAD:
        fault, detail = "malformed_record", f"head of more than {LONGEST_HEAD} bytes"
    elif fault is None and not _LENGTH.fullmatch(length):
        fault, detail = "malformed_record", "no Content-Length"
    capture = Capture(
        record_type(_text(fields, b"warc-type")),
        member,
        ordinal,
        uri=bare_uri(_text(fields, b"warc-target-uri")),
        date=_text(fields, b"warc-date"),
        content_type=_text(fields, b"content-type"),
        truncated=_text(fields, b"warc-truncated"),
        language=_text(fields, b"warc-identified-content-language"),
        fault=fault,
        detail=detail,
    )
    return capture, int(length) if fault is None else 0, taken


def _text(fields: dict[bytes, bytes], name: bytes) -> str | None:
    value = fields.get(name)
    return value.decode("utf-8", "replace") if value is not None else None


def capture_of(record: Any, field: Any, member: int, ordinal: int) -> Capture:
    """The same from a record of fastwarc, whose own length is `record.content_length`.

    `field` is fastwarc's `WarcHeader`: its constants are found nine times faster than names.
    """
    get = record.headers.get
    kind = record_type(get(field.WARC_TYPE))
    capture = Capture(
        kind,
        member,
        ordinal,
        0,
        bare_uri(get(field.WARC_TARGET_URI)),
        get(field.WARC_DATE),
        get(field.CONTENT_TYPE),
        get(field.WARC_TRUNCATED),
    )
    if kind == "conversion":
        capture.language = get("WARC-Identified-Content-Language")
    lengths = record.headers.get_multiple(field.CONTENT_LENGTH)
    if len(lengths) > 1 and len(set(lengths)) > 1:
        capture.fault, capture.detail = "malformed_record", "two values of Content-Length"
    elif not lengths or not (
        lengths[0].isascii() and lengths[0].isdigit() and len(lengths[0]) < 19
    ):
        capture.fault, capture.detail = "malformed_record", "no Content-Length"
    return capture
