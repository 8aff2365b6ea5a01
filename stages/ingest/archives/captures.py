"""One record of an archive as it is handed on, whatever kind of archive it came from."""

from __future__ import annotations

from dataclasses import dataclass

_TYPES = {
    name: name
    for name in (
        "warcinfo",
        "response",
        "resource",
        "request",
        "metadata",
        "revisit",
        "conversion",
        "continuation",
    )
}
_PAGES = frozenset({"response", "resource", "conversion", "revisit"})


@dataclass(slots=True)
class Capture:
    """One record of an archive, or a stretch that is none (`type` "damage").

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
