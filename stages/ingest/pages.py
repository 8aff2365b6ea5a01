"""From a capture of a crawl, or a whole file, to a document.

Of a capture: status, type, body, characters, main text. Plain text, Markdown, HTML and source code
are one document a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from stages.engine.reading.row import Damage, Readable, scrub
from stages.engine.reading.rows import decompress_stream
from stages.ingest.archive_heads import Capture
from stages.ingest.charset import Decoded, decode
from stages.ingest.extraction import ExtractionRules, PageTooLarge, extract
from stages.ingest.http_response import (
    MalformedBody,
    Response,
    decode_body,
    media_type,
    parse_response,
)
from stages.ingest.media_types import binary_type, may_be_page, page_kind, sniffed_type
from stages.ingest.records import Document, Ignored, Place, Record, Rejected
from stages.ingest.rights import licence_from_source, nearest_licence
from stages.ingest.units import Format, programming_language

_PAGES = frozenset({"response", "resource", "conversion"})


@dataclass(frozen=True, slots=True)
class PageRules:
    """What the Config says about pages."""

    extraction: ExtractionRules = field(default_factory=ExtractionRules)
    max_bytes: int = 10 << 20
    """Longest body, after its encodings are undone."""
    max_expansion: int = 200
    min_characters: int = 1
    max_replaced_share: float = 0.05
    """Share of characters that no encoding explains, above which a text is `undecodable`."""
    truncated: Literal["reject", "keep"] = "reject"
    plain_text: bool = False
    """Whether responses of plain text are documents too."""


@dataclass(frozen=True, slots=True)
class Page:
    """A capture whose characters are known; `columns` holds those of the `pages` table."""

    place: Place
    markup: bool
    decoded: Decoded
    url: str | None = None
    date: str | None = None
    language: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


def read_capture(capture: Capture, rules: PageRules) -> Record:
    """The document that a capture holds, or why it holds none."""
    page = page_from_capture(capture, rules)
    return document_from_page(page, rules) if isinstance(page, Page) else page


def page_from_capture(capture: Capture, rules: PageRules) -> Page | Rejected | Ignored:
    """The page that a capture holds, before anything of it is parsed."""
    place = Place(capture.record, capture.member, capture.length)
    if capture.fault is not None:
        return Rejected(place, capture.fault, capture.detail, capture.uri)
    if capture.type == "revisit":
        return Rejected(place, "revisit", None, capture.uri)
    if capture.type not in _PAGES:
        return Ignored(capture.type)
    if capture.truncated and rules.truncated == "reject":
        return Rejected(place, "truncated", f"WARC-Truncated: {capture.truncated}", capture.uri)
    if capture.type == "conversion":
        return _page_from_conversion(capture, place)
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
    return _page_from_response(response, capture, place, rules)


def document_from_page(page: Page, rules: PageRules) -> Record:
    """The document that a page makes."""
    text, replaced = page.decoded.text, page.decoded.replaced
    if replaced > rules.max_replaced_share * len(text):
        detail = f"{replaced} of {len(text)} characters as {page.decoded.encoding}"
        return Rejected(page.place, "undecodable", detail, page.url)
    columns = {
        **page.columns,
        "charset": page.decoded.encoding,
        "charset_told_by": page.decoded.source,
    }
    if page.markup:
        return _extract_document(page, rules, columns)
    text, repaired = scrub(text)
    if len(text.strip()) < max(1, rules.min_characters):
        return Rejected(page.place, "no_text", f"{len(text)} characters", page.url)
    return Document(
        page.place,
        text,
        url=page.url,
        date=page.date,
        language=page.language,
        metadata=page.metadata,
        page=columns,
        repaired=repaired + replaced,
    )


def _extract_document(page: Page, rules: PageRules, columns: dict[str, Any]) -> Record:
    try:
        main = extract(page.decoded.text, rules.extraction, page.headers)
    except PageTooLarge as error:
        return Rejected(page.place, error.reason, error.detail, page.url)
    except Exception as error:  # Third-party parsers raise what they like on a hostile page.
        return Rejected(page.place, "extractor_error", f"{type(error).__name__}: {error}", page.url)
    text, repaired = scrub(main.text)
    if len(text.strip()) < max(1, rules.min_characters):
        return Rejected(page.place, "no_text", f"{len(text)} characters", page.url)
    head = main.head
    declared = {
        name: getattr(head, name)
        for name in (
            "canonical_url",
            "author",
            "published",
            "robots",
            "ai_opt_out",
            "tdm_policy",
            "licence",
            "licence_url",
        )
    }
    measured = {
        name: getattr(main, name)
        for name in ("extractor", "doubt", "nodes", "main_share", "link_share")
    }
    return Document(
        page.place,
        text,
        url=page.url,
        date=page.date,
        title=head.title,
        language=head.language or page.language,
        metadata=page.metadata,
        page={**columns, **declared, **measured},
        boilerplate=main.boilerplate,
        repaired=repaired + page.decoded.replaced,
    )


def _page_from_response(
    response: Response, capture: Capture, place: Place, rules: PageRules
) -> Page | Rejected:
    url, declared = capture.uri, response.content_type
    if response.status != 200:
        return Rejected(place, "http_status", str(response.status), url)
    if not may_be_page(declared):
        return Rejected(place, "content_type", declared, url)
    try:
        body = decode_body(response, rules.max_bytes, rules.max_expansion)
    except MalformedBody as error:
        return Rejected(place, error.reason, error.detail, url)
    if body.truncated and rules.truncated == "reject":
        return Rejected(place, "truncated", body.truncated, url)
    if not body.content.strip():
        return Rejected(place, "empty_body", None, url)
    sniffed = sniffed_type(body.content)
    kind, detail = page_kind(declared, sniffed)
    if kind is None or (kind == "text" and not rules.plain_text):
        return Rejected(place, "content_type", detail or declared, url)
    columns = {
        "record_type": capture.type,
        "http_status": response.status if capture.type == "response" else None,
        "declared_type": declared,
        "sniffed_type": sniffed,
        "body_bytes": len(body.content),
        "encodings": body.encodings,
        "truncated": capture.truncated or ("body" if body.truncated else None),
    }
    decoded = decode(body.content, response.charset, markup=kind == "html")
    return Page(
        place,
        markup=kind == "html",
        decoded=decoded,
        url=url,
        date=capture.date,
        headers=response.headers,
        columns=columns,
    )


def _page_from_conversion(capture: Capture, place: Place) -> Page | Rejected:
    """A WET record: text that somebody else extracted."""
    declared = media_type(capture.content_type)
    if declared not in (None, "text/plain"):
        return Rejected(place, "content_type", capture.content_type, capture.uri)
    columns = {
        "record_type": "conversion",
        "declared_type": declared,
        "body_bytes": len(capture.block),
        "truncated": capture.truncated,
    }
    decoded = decode(capture.block.strip(), "utf-8", markup=False)
    return Page(
        place,
        markup=False,
        decoded=decoded,
        url=capture.uri,
        date=capture.date,
        language=capture.language,
        columns=columns,
    )


_NO_LICENCES: Mapping[str, str] = {}


def read_file(
    source: Readable, form: Format, rules: PageRules, licences: Mapping[str, str] = _NO_LICENCES
) -> Record:
    """The document that a whole file makes, or why it makes none.

    `licences` maps folders of a code tree to the licence of what lies in them.
    """
    place = Place(0, 0, source.bytes)
    try:
        body = _read_body(source, rules.max_bytes, rules.max_expansion)
    except Damage as damage:
        return Rejected(place, damage.reason, damage.detail, source.name)
    if not body.strip():
        return Rejected(place, "empty_body", None, source.name)
    if (binary := binary_type(body)) is not None:
        return Rejected(place, "content_type", binary, source.name)
    markup = form == "html"
    columns: dict[str, Any] = {"body_bytes": len(body), "sniffed_type": sniffed_type(body)}
    metadata: dict[str, Any] = {"path": source.name}
    decoded = decode(body, markup=markup)
    if form == "code":
        language = programming_language(source.name)
        metadata["language"] = columns["programming_language"] = language
        columns["licence"] = licence_from_source(decoded.text) or nearest_licence(
            source.name, licences
        )
    page = Page(place, markup, decoded, url=source.name, columns=columns, metadata=metadata)
    return document_from_page(page, rules)


def _read_body(source: Readable, limit: int, expansion: int) -> bytes:
    """The file's bytes, decompressed. Raises Damage, with `too_large` over the limit."""
    parts, total = [], 0
    with source.open() as stream:
        for chunk in decompress_stream(stream, expansion):
            parts.append(chunk)
            total += len(chunk)
            if total > limit:
                raise Damage("too_large", f"more than {limit} bytes")
    return b"".join(parts)
