"""Documents from WAT records: title and description, which is all the text that a WAT holds."""

from __future__ import annotations

from stages.engine.reading.rows import scrub
from stages.ingest.archives.archive import Capture
from stages.ingest.archives.wat import WatFault, wat_page
from stages.ingest.pages import PageRules
from stages.ingest.records import Document, Ignored, Place, Record, Rejected
from stages.ingest.responses.http import media_type


def is_wat(capture: Capture) -> bool:
    """Whether a record is of the sort that a WAT holds: metadata in JSON."""
    is_json = media_type(capture.content_type) == "application/json"
    return capture.type == "metadata" and is_json


def wat_record(capture: Capture, rules: PageRules) -> Record:
    """The document that a metadata record makes, or why it makes none.

    Only records that describe a response can: those of requests and of the crawl are ignored. Of
    the links their number is kept.
    """
    place = Place(capture.record, capture.member, capture.length)
    if capture.fault is not None:
        return Rejected(place, capture.fault, capture.detail, capture.uri)
    page = wat_page(capture.block)
    if isinstance(page, WatFault):
        return Rejected(place, page.reason, page.detail, capture.uri)
    if page.kind != "response":
        return Ignored("metadata")
    url = page.url or capture.uri
    if page.status != 200:
        return Rejected(place, "http_status", str(page.status), url)
    text, repaired = scrub("\n".join(part for part in (page.title, page.description) if part))
    if len(text.strip()) < max(1, rules.min_characters):
        return Rejected(place, "no_text", f"{len(text)} characters", url)
    return Document(
        place,
        text,
        url=url,
        date=capture.date,
        title=page.title,
        language=page.language,
        metadata={"links": len(page.links)},
        page={"record_type": "metadata", "http_status": page.status},
        repaired=repaired,
    )
