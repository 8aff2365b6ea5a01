"""Heads of archive records: the fields of WARC and ARC, and the record that the readers give.

ARC 1.0 and 1.1 is the Internet Archive's format before WARC: one line, then the HTTP message. The
line has five fields (URL, IP address, date, type, length), or ten in version 2 of the block
(archive.org/web/researcher/ArcFileFormat.php). The file's own record is `filedesc://`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

_TYPES = {
    name: name
    for name in (
        "warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion",
        "continuation",
    )
}  # fmt: skip
_PAGES = frozenset({"response", "resource", "conversion", "revisit"})


@dataclass(slots=True)
class Capture:
    """One record of an archive, or a stretch without a readable record (`type` "damage").

    `member` is the first byte of the record, or of the gzip member or zstd frame that holds it;
    `ordinal` counts the records before it in that member; `length` is 0 where a member holds
    several. Types that WARC does not name are "unknown". `block` is read for records that may be
    documents, and for metadata in JSON (WAT).
    """

    type: str
    member: int
    ordinal: int
    length: int = 0
    uri: str | None = None
    date: str | None = None
    content_type: str | None = None
    truncated: str | None = None
    language: str | None = None
    block: bytes = b""
    fault: str | None = None
    detail: str | None = None

    @property
    def record(self) -> int | str:
        """What names the record within its file: the offset, with `#ordinal` if it is shared."""
        return f"{self.member}#{self.ordinal}" if self.ordinal else self.member

    def close(self, end: int) -> Capture:
        """Set the length, now that the next start is known."""
        self.length = 0 if self.ordinal > 0 or end <= self.member else end - self.member
        return self


def record_type(value: str | None) -> str:
    """The type of a WARC record by its header: one of the standard's eight, or "unknown"."""
    if value is None:
        return "unknown"
    return _TYPES.get(value) or _TYPES.get(value.strip().lower(), "unknown")


def is_read(kind: str, content_type: str | None) -> bool:
    """Whether the block of such a record is wanted."""
    if kind in _PAGES:
        return True
    return kind == "metadata" and (content_type or "").lower().startswith("application/json")


def bare_uri(value: str | None) -> str | None:
    """The URI without the angle brackets that WARC 1.0 allowed and wget writes."""
    if value is not None and value[:1] == "<" and value[-1:] == ">":
        return value[1:-1]
    return value


LONGEST_WARC_HEAD = 32 << 10
_VERSION = re.compile(rb"WARC/\d\.\d{1,2}\r?\n")
_VERSION_END = re.compile(rb"WARC/\d\.\d{1,2}\r?\n$")
_BLANK = (b"\r\n", b"\n")
_LENGTH = re.compile(rb"\d{1,18}")
_WARC_FIELDS = {
    b"warc-type", b"warc-target-uri", b"warc-date", b"content-type", b"content-length",
    b"warc-truncated", b"warc-identified-content-language",
}  # fmt: skip


class LineSource(Protocol):
    """What a head is read from: a file, or one member."""

    def readline(self, limit: int = -1, /) -> bytes:
        """A line with its end, cut at `limit` bytes."""


def is_warc_head(line: bytes) -> bool:
    """Whether this is the first line of a record."""
    return _VERSION.fullmatch(line) is not None


def read_warc_head(
    line: bytes, source: LineSource, member: int, ordinal: int
) -> tuple[Capture, int, int]:
    """The record under a version line, its length, and the bytes of its head, `line` included.

    The first of repeated fields counts; two different lengths are a fault, as is a missing one. The
    fault is "truncated" if the source ends within the head.
    """
    fields: dict[bytes, bytes] = {}
    head_bytes, name, fault, detail = len(line), b"", None, None
    is_cut = False  # Whether another head seems to begin within this one.
    while line := source.readline(LONGEST_WARC_HEAD):
        head_bytes += len(line)
        if line in _BLANK or head_bytes > LONGEST_WARC_HEAD:
            break
        if line[0] in b" \t":
            if name in fields:
                fields[name] += b" " + line.strip()
            continue
        if b"WARC/" in line and _VERSION_END.search(line):
            is_cut = True
        name, colon, value = line.partition(b":")
        name = name.strip().lower()
        if colon and name in _WARC_FIELDS:
            value = value.strip()
            if is_cut and name in fields:
                fault, detail = "malformed_record", "the head runs into another one"
            if fields.setdefault(name, value) != value and name == b"content-length":
                fault, detail = "malformed_record", "two values of Content-Length"
    length = fields.get(b"content-length", b"")
    if not line:
        fault, detail = "truncated", "the file ends within the head"
    elif head_bytes > LONGEST_WARC_HEAD:
        fault, detail = "malformed_record", f"head of more than {LONGEST_WARC_HEAD} bytes"
    elif fault is None and not _LENGTH.fullmatch(length):
        fault, detail = "malformed_record", "no Content-Length"
    capture = Capture(
        record_type(_field_text(fields, b"warc-type")),
        member,
        ordinal,
        uri=bare_uri(_field_text(fields, b"warc-target-uri")),
        date=_field_text(fields, b"warc-date"),
        content_type=_field_text(fields, b"content-type"),
        truncated=_field_text(fields, b"warc-truncated"),
        language=_field_text(fields, b"warc-identified-content-language"),
        fault=fault,
        detail=detail,
    )
    return capture, int(length) if fault is None else 0, head_bytes


def _field_text(fields: dict[bytes, bytes], name: bytes) -> str | None:
    value = fields.get(name)
    return value.decode("utf-8", "replace") if value is not None else None


def capture_from_record(record: Any, field: Any, member: int, ordinal: int) -> Capture:
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


LONGEST_ARC_HEAD = 8 << 10
_ARC_FIELDS = (
    rb"(?P<uri>[A-Za-z][A-Za-z0-9+.\-]{0,40}:[^\r\n]*?) (?P<ip>[0-9A-Fa-f.:]{1,45}|-)"
    rb" (?P<date>\d{8,17}) (?P<kind>[^ \r\n]+)"
    rb"(?: (?:\d{3}|-) [^ \r\n]+ [^ \r\n]+ \d{1,18} [^ \r\n]+)? (?P<length>\d{1,18})"
)
ARC_HEAD = re.compile(_ARC_FIELDS + rb"\r?\n")
_ARC_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)")


def find_arc_heads(window: bytes, whole: bool) -> Iterator[int]:
    """Where in the window a line begins that heads a record, in order.

    A line at the very end may go on after the window unless that is the `whole` rest.
    """
    at = 0
    while (tail := window.find(b" ", at)) >= 0:
        end = window.find(b"\n", tail)
        if end < 0 or (end + 1 == len(window) and not whole):
            return
        start = window.rfind(b"\n", 0, tail) + 1
        if end - start < LONGEST_ARC_HEAD and ARC_HEAD.fullmatch(window, start, end + 1):
            yield start
        at = end + 1


def read_arc_head(line: bytes, member: int, ordinal: int) -> tuple[Capture, int] | None:
    """The record that a line heads, without its block, and the block's length; None for no head."""
    head = ARC_HEAD.fullmatch(line) if len(line) <= LONGEST_ARC_HEAD else None
    if head is None:
        return None
    uri = head["uri"].decode("utf-8", "replace")
    capture = Capture(
        type="warcinfo" if uri.startswith("filedesc:") else "response",
        member=member,
        ordinal=ordinal,
        uri=uri,
        date=arc_date(head["date"].decode()),
        content_type=head["kind"].decode("utf-8", "replace"),
    )
    return capture, int(head["length"])


def set_arc_type(capture: Capture) -> Capture:
    """The capture with its block read: a response if that is an HTTP message, else a resource.

    ARC tells the type of the page where WARC tells that of the block.
    """
    if capture.type == "response":
        if capture.block[:5].upper() == b"HTTP/":
            capture.content_type = "application/http; msgtype=response"
        elif capture.fault is None:
            capture.type = "resource"
    return capture


def arc_date(stamp: str) -> str | None:
    """`20140216050221` → `2014-02-16T05:02:20Z`; None for what is no date of 14 digits."""
    match = _ARC_DATE.fullmatch(stamp)
    if match is None:
        return None
    year, month, day, hour, minute, second = match.groups()
    if not ("01" <= month <= "12" and "01" <= day <= "31" and hour < "24"):
        return None
    if minute >= "60" or second > "60":
        return None
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}Z"
