"""From a capture of a crawl, or a whole file, to a document or to a reason for rejection.

Of a capture: status, type, body, characters, main text. Plain text, Markdown, HTML and source code
are one document a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stages.engine.reading.row import Damage, Readable, scrub
from stages.engine.reading.rows import decompress_stream
from stages.ingest.archive_heads import Capture
from stages.ingest.charset import Decoded, decode
from stages.ingest.config import IngestConfig
from stages.ingest.extraction import PageTooLarge, Span, extract
from stages.ingest.formats import (
    Format,
    binary_type,
    may_be_page,
    page_kind,
    programming_language,
    sniffed_type,
)
from stages.ingest.http_response import (
    MalformedBody,
    Response,
    decode_body,
    media_type,
    parse_response,
)
from stages.ingest.linked_data import normalise_date
from stages.ingest.rights import licence_from_source, nearest_licence

_PAGES = frozenset({"response", "resource", "conversion"})
_DECLARED = (
    "canonical_url", "author", "published", "robots", "ai_opt_out", "tdm_policy", "licence",
    "licence_url",
)  # fmt: skip
_MEASURED = ("extractor", "doubt", "nodes", "main_share", "link_share")


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


def read_capture(capture: Capture, config: IngestConfig) -> Record:
    """The document that a capture holds, or why it holds none."""
    page = page_from_capture(capture, config)
    return document_from_page(page, config) if isinstance(page, Page) else page


def page_from_capture(capture: Capture, config: IngestConfig) -> Page | Rejected | Ignored:
    """The page that a capture holds, before anything of it is parsed."""
    place = Place(capture.record, capture.member, capture.length)
    if capture.fault is not None:
        return Rejected(place, capture.fault, capture.detail, capture.uri)
    if capture.type == "revisit":
        return Rejected(place, "revisit", None, capture.uri)
    if capture.type not in _PAGES:
        return Ignored(capture.type)
    if capture.truncated and config.truncated == "reject":
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
    return _page_from_response(response, capture, place, config)


def capture_date(capture: Capture) -> tuple[str | None, dict[str, Any]]:
    """The date of a record in ISO 8601, and as metadata what its header says instead."""
    captured, declared = normalise_date(capture.date), (capture.date or "").strip()
    return captured, {"warc_date": declared} if declared not in ("", captured) else {}


def document_from_page(page: Page, config: IngestConfig) -> Record:
    """The document that a page makes."""
    text, replaced = page.decoded.text, page.decoded.replaced
    if replaced > config.max_replaced_share * len(text):
        detail = f"{replaced} of {len(text)} characters as {page.decoded.encoding}"
        return Rejected(page.place, "undecodable", detail, page.url)
    columns = {
        **page.columns,
        "charset": page.decoded.encoding,
        "charset_told_by": page.decoded.source,
    }
    title, language = None, page.language
    boilerplate: Sequence[Span] = ()
    if page.markup:
        replaced += text.count("\0")  # The parsers drop or replace them.
        try:
            main = extract(text, config, page.headers)
        except PageTooLarge as error:
            return Rejected(page.place, error.reason, error.detail, page.url)
        except Exception as error:  # Third-party parsers raise what they like on a hostile page.
            detail = f"{type(error).__name__}: {error}"
            return Rejected(page.place, "extractor_error", detail, page.url)
        text, boilerplate = main.text, main.boilerplate
        title, language = main.head.title, main.head.language or language
        columns |= {name: getattr(main.head, name) for name in _DECLARED}
        columns |= {name: getattr(main, name) for name in _MEASURED}
    text, repaired = scrub(text)
    if len(text.strip()) < config.min_characters:
        return Rejected(page.place, "no_text", f"{len(text)} characters", page.url)
    return Document(
        page.place,
        text,
        url=page.url,
        date=page.date,
        title=title,
        language=language,
        metadata=page.metadata,
        page=columns,
        boilerplate=boilerplate,
        repaired=repaired + replaced,
    )


def _page_from_response(
    response: Response, capture: Capture, place: Place, config: IngestConfig
) -> Page | Rejected:
    url, declared = capture.uri, response.content_type
    if response.status != 200:
        return Rejected(place, "http_status", str(response.status), url)
    if not may_be_page(declared):
        return Rejected(place, "content_type", declared, url)
    try:
        body = decode_body(response, config.max_document_bytes, config.max_expansion)
    except MalformedBody as error:
        return Rejected(place, error.reason, error.detail, url)
    if body.truncated and config.truncated == "reject":
        return Rejected(place, "truncated", body.truncated, url)
    if not body.content.strip():
        return Rejected(place, "empty_body", None, url)
    sniffed = sniffed_type(body.content)
    kind, detail = page_kind(declared, sniffed)
    if kind is None or (kind == "text" and not config.plain_text):
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
    captured, metadata = capture_date(capture)
    return Page(
        place,
        markup=kind == "html",
        decoded=decoded,
        url=url,
        date=captured,
        headers=response.headers,
        columns=columns,
        metadata=metadata,
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
    captured, metadata = capture_date(capture)
    return Page(
        place,
        markup=False,
        decoded=decoded,
        url=capture.uri,
        date=captured,
        language=capture.language,
        columns=columns,
        metadata=metadata,
    )


def read_file(
    source: Readable, form: Format, config: IngestConfig, licences: Mapping[str, str]
) -> Record:
    """The document that a whole file makes, or why it makes none.

    `licences` maps folders of a code tree to the licence of what lies in them.
    """
    place = Place(0, 0, source.bytes)
    try:
        body = _read_body(source, config.max_document_bytes, config.max_expansion)
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
    return document_from_page(page, config)


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
