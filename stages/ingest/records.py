"""What a reader gives for each record: a document, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stages.ingest.extraction import Span

BROKEN = frozenset(
    {
        "truncated",  # cut by the crawler (WARC-Truncated) or by the end of the file
        "malformed_record",  # not a record, not HTTP, bytes that do not decompress
        "malformed_body",  # the body contradicts its own Transfer- or Content-Encoding
        "malformed_json",
        "not_an_object",
        "missing_text",  # the text field is absent or no string
        "undecodable",  # no character encoding fits
        "expansion",  # decompresses beyond its budget
        "extractor_error",
        "hung",  # kept a parser busy beyond all limits
        "crashed",  # took a parser down
        "unsupported_format",
    }
)
"""Reasons that count against `max_bad_share`: the bytes or the program are at fault.

The other reasons (http_status, content_type, revisit, empty_body, no_text, too_large, too_deep,
too_many_nodes) are what any healthy source holds, or a limit that the Config sets.
"""

DETAIL = 200
"""Characters kept of a detail."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record lies: its name in the file, first byte, bytes (0 where it shares them)."""

    record: int | str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Document:
    """A record that became a document.

    `page` holds columns of the `pages` table, `boilerplate` the stretches of the text that are not
    its main text, `repaired` the characters dropped or replaced when it was read.
    """

    place: Place
    text: str
    url: str | None = None
    date: str | None = None
    title: str | None = None
    language: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    page: dict[str, Any] = field(default_factory=dict)
    boilerplate: Sequence[Span] = ()
    repaired: int = 0


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that did not."""

    place: Place
    reason: str
    detail: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Ignored:
    """A record that never could be a document (warcinfo, request, metadata): only counted."""

    type: str


Record = Document | Rejected | Ignored
