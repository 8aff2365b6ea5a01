"""ARC 1.0 and 1.1, the Internet Archive's format before WARC: one line, then the HTTP message.

The line has five fields (URL, IP address, date, type, length), or ten in version 2 of the block
(archive.org/web/researcher/ArcFileFormat.php). The file's own record is `filedesc://`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.ingest.archives.captures import Capture

LONGEST_LINE = 8 << 10
_FIELDS = (
    rb"(?P<uri>[A-Za-z][A-Za-z0-9+.\-]{0,40}:[^\r\n]*?) (?P<ip>[0-9A-Fa-f.:]{1,45}|-)"
    rb" (?P<date>\d{8,17}) (?P<kind>[^ \r\n]+)"
    rb"(?: (?:\d{3}|-) [^ \r\n]+ [^ \r\n]+ \d{1,18} [^ \r\n]+)? (?P<length>\d{1,18})"
)
HEAD_LINE = re.compile(_FIELDS + rb"\r?\n")
_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)")


def find_head(window: bytes, whole: bool) -> Iterator[int]:
    """Where in the window a line begins that heads a record, in order.

    A line at the very end may go on behind the window unless that is the `whole` rest.
    """
    at = 0
    while (tail := window.find(b" ", at)) >= 0:
        end = window.find(b"\n", tail)
        if end < 0 or (end + 1 == len(window) and not whole):
            return
        start = window.rfind(b"\n", 0, tail) + 1
        if end - start < LONGEST_LINE and HEAD_LINE.fullmatch(window, start, end + 1):
            yield start
        at = end + 1


def read_head(line: bytes, member: int, ordinal: int) -> tuple[Capture, int] | None:
    """The record that a line heads, without its block, and the block's length; None for no head."""
    head = HEAD_LINE.fullmatch(line) if len(line) <= LONGEST_LINE else None
    if head is None:
        return None
    uri = head["uri"].decode("utf-8", "replace")
    capture = Capture(
        type="warcinfo" if uri.startswith("filedesc:") else "response",
        member=member,
        ordinal=ordinal,
        uri=uri,
        date=iso_date(head["date"].decode()),
        content_type=head["kind"].decode("utf-8", "replace"),
    )
    return capture, int(head["length"])


def typed(capture: Capture) -> Capture:
    """The capture with its block read: a response if that is an HTTP message, else a resource.

    ARC tells the type of the page where WARC tells that of the block.
    """
    if capture.type == "response":
        if capture.block[:5].upper() == b"HTTP/":
            capture.content_type = "application/http; msgtype=response"
        elif capture.fault is None:
            capture.type = "resource"
    return capture


def iso_date(stamp: str) -> str | None:
    """`20140216050221` → `2014-02-16T05:02:20Z`; None for what is no date of 14 digits."""
    found = _DATE.fullmatch(stamp)
    if found is None:
        return None
    year, month, day, hour, minute, second = found.groups()
    if not ("01" <= month <= "12" and "01" <= day <= "31" and hour < "24"):
        return None
    if minute >= "60" or second > "60":
        return None
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}Z"
