"""What a reader gives for each record, a document or why there is none, and its counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stages.engine.reading.row import scrub
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


SAMPLES = 5


@dataclass
class Tally:
    """Counts by what a record became, and the first few samples of each reason."""

    documents: int = 0
    characters: int = 0
    repaired: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)
    extractors: dict[str, int] = field(default_factory=dict)
    samples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, record: Record, file: str) -> None:
        """Count a record of `file`."""
        if isinstance(record, Document):
            self.documents += 1
            self.characters += len(record.text)
            self.repaired += record.repaired
            if (extractor := record.page.get("extractor")) is not None:
                self.extractors[extractor] = self.extractors.get(extractor, 0) + 1
        elif isinstance(record, Ignored):
            self.ignored[record.type] = self.ignored.get(record.type, 0) + 1
        else:
            self.rejected[record.reason] = self.rejected.get(record.reason, 0) + 1
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
        for name in ("rejected", "ignored", "extractors"):
            counts = getattr(total, name)
            for key, number in value[name].items():
                counts[key] = counts.get(key, 0) + number
        for reason, texts in value["samples"].items():
            kept = total.samples.setdefault(reason, [])
            kept.extend(texts[: SAMPLES - len(kept)])
    return total
