"""From a capture of a crawl to a document: status, type, body, characters, main text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from stages.engine.reading.rows import scrub
from stages.ingest.archive import Capture
from stages.ingest.charset import decode
from stages.ingest.extract import Extractor, extract
from stages.ingest.http import MalformedBody, Response, decoded_body, media_type, parse_response
from stages.ingest.records import Document, Ignored, Place, Record, Rejected

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_UNTOLD = frozenset(
    {None, "application/octet-stream", "application/xml", "text/xml", "unknown/unknown"}
)
_HTML_OPENING = re.compile(  # The tags by which browsers know HTML (mimesniff.spec.whatwg.org).
    rb"(?:\xef\xbb\xbf)?(?>\s|<!--.*?-->|<\?xml\b[^>]*>)*+<(?:!doctype html|html|head|script"
    rb"|iframe|h1|div|font|table|a|style|title|b|body|br|p|meta)(?:[\s>]|$)",
    re.IGNORECASE | re.DOTALL,
)
_BINARY = {
    b"%PDF-": "application/pdf",
    b"\x89PNG": "image/png",
    b"GIF8": "image/gif",
    b"\xff\xd8\xff": "image/jpeg",
    b"PK\x03\x04": "application/zip",
    b"\x1f\x8b": "application/gzip",
    b"RIFF": "audio, video or image (RIFF)",
    b"wOF": "font/woff",
    b"\x7fELF": "application/x-executable",
}
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_SNIFFED = 1024


@dataclass(frozen=True, slots=True)
class PageRules:
    """What the Config says about pages."""

    extractor: Extractor = "resiliparse"
    max_bytes: int = 10 << 20
    """Longest body, after its encodings are taken off."""
    min_characters: int = 1
    max_replaced_share: float = 0.05
    """Share of characters that no encoding explains, above which a text is `undecodable`."""


def record_of(capture: Capture, rules: PageRules) -> Record:
    """The document that a capture holds, or why it holds none."""
    place = Place(capture.record, capture.member, capture.length)
    if capture.fault is not None:
        return Rejected(place, capture.fault, capture.detail, capture.uri)
    if capture.type == "revisit":
        return Rejected(place, "revisit", None, capture.uri)
    if capture.type not in ("response", "resource", "conversion"):
        return Ignored(capture.type)
    if capture.truncated:
        return Rejected(place, "truncated", f"WARC-Truncated: {capture.truncated}", capture.uri)
    if capture.type == "conversion":
        return _converted(capture, place, rules)
    if capture.type == "resource":
        response = Response(200, {"content-type": capture.content_type or ""}, capture.block)
    elif media_type(capture.content_type) not in (None, "application/http"):
        return Rejected(place, "content_type", capture.content_type, capture.uri)
    else:
        parsed = parse_response(capture.block)
        if parsed is None:
            reason = "malformed_record" if capture.block else "empty_body"
            return Rejected(place, reason, "no HTTP status line", capture.uri)
        response = parsed
    return _page_of(response, capture, place, rules)


def page_record(
    body: bytes,
    charset: str | None,
    place: Place,
    rules: PageRules,
    *,
    url: str | None,
    date: str | None,
    metadata: dict[str, Any],
) -> Record:
    """The document that a page of HTML makes."""
    decoded = decode(body, charset)
    if decoded.replaced > rules.max_replaced_share * len(decoded.text):
        detail = f"{decoded.replaced} of {len(decoded.text)} characters as {decoded.encoding}"
        return Rejected(place, "undecodable", detail, url)
    try:
        page = extract(decoded.text, rules.extractor)
    except Exception as error:  # Third-party parsers raise what they like on a hostile page.
        return Rejected(place, "extractor_error", f"{type(error).__name__}: {error}", url)
    text, repaired = scrub(page.text)
    if len(text) < max(1, rules.min_characters):
        return Rejected(place, "no_text", f"{len(text)} characters", url)
    told = {"charset": decoded.encoding, "charset_told_by": decoded.told_by}
    return Document(
        place,
        text,
        url=url,
        date=date,
        title=page.title,
        language=page.language,
        metadata={**metadata, **told},
        repaired=repaired + decoded.replaced,
    )


def is_html(body: bytes) -> bool:
    """Whether a body without a usable type begins as browsers expect of HTML."""
    head = body[:_SNIFFED]
    if head.startswith(_UTF16_MARKS):
        encoding = "utf-16-le" if head.startswith(_UTF16_MARKS[0]) else "utf-16-be"
        head = head[2:].decode(encoding, "ignore").encode()
    return _HTML_OPENING.match(head) is not None


def binary_type(body: bytes) -> str | None:
    """What a body is that cannot be text, by its first bytes; None if it may be text."""
    for magic, name in _BINARY.items():
        if body.startswith(magic):
            return name
    head = body[:_SNIFFED]
    if head.startswith(_UTF16_MARKS) or not head:
        return None
    # UTF-16 without a mark has every other byte 0 on Latin text; other files with zeros are binary.
    zeros = head.count(0)
    return "binary" if zeros and not 0.3 < zeros / len(head) < 0.6 else None


def _page_of(response: Response, capture: Capture, place: Place, rules: PageRules) -> Record:
    url, kind = capture.uri, response.content_type
    if response.status != 200:
        return Rejected(place, "http_status", str(response.status), url)
    if kind not in _HTML and kind not in _UNTOLD:
        return Rejected(place, "content_type", kind, url)
    try:
        body = decoded_body(response, rules.max_bytes)
    except MalformedBody as error:
        return Rejected(place, error.reason, error.detail, url)
    if not body.strip():
        return Rejected(place, "empty_body", None, url)
    if (binary := binary_type(body)) is not None:
        return Rejected(place, "content_type", f"{kind or 'no type'}, is {binary}", url)
    if kind in _UNTOLD and not is_html(body):
        return Rejected(place, "content_type", f"{kind or 'no type'}, does not look like HTML", url)
    metadata = {"record_type": capture.type, "content_type": kind}
    return page_record(
        body, response.charset, place, rules, url=url, date=capture.date, metadata=metadata
    )


def _converted(capture: Capture, place: Place, rules: PageRules) -> Record:
    """A WET record: text that somebody else extracted."""
    if media_type(capture.content_type) not in (None, "text/plain"):
        return Rejected(place, "content_type", capture.content_type, capture.uri)
    decoded = decode(capture.block, "utf-8", markup=False)
    if decoded.replaced > rules.max_replaced_share * len(decoded.text):
        detail = f"{decoded.replaced} of {len(decoded.text)} characters"
        return Rejected(place, "undecodable", detail, capture.uri)
    text, repaired = scrub(decoded.text.strip())
    if len(text) < max(1, rules.min_characters):
        return Rejected(place, "no_text", f"{len(text)} characters", capture.uri)
    return Document(
        place,
        text,
        url=capture.uri,
        date=capture.date,
        language=capture.language,
        metadata={"record_type": "conversion"},
        repaired=repaired + decoded.replaced,
    )
