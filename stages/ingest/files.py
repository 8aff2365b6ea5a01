"""One document a file: plain text, Markdown, HTML and source code."""

from __future__ import annotations

from typing import Any

from stages.engine.reading.rows import Damage, Readable, decompressed, scrub
from stages.ingest.charset import decode
from stages.ingest.formats import Format, programming_language
from stages.ingest.pages import PageRules, binary_type, page_record
from stages.ingest.records import Document, Place, Record, Rejected


def read_file(source: Readable, form: Format, rules: PageRules, expansion: int) -> Record:
    """The document that a whole file makes, or why it makes none."""
    place = Place(0, 0, source.bytes)
    try:
        body = _body(source, rules.max_bytes, expansion)
    except Damage as damage:
        return Rejected(place, damage.reason, damage.detail, source.name)
    if not body.strip():
        return Rejected(place, "empty_body", None, source.name)
    if (binary := binary_type(body)) is not None:
        return Rejected(place, "content_type", binary, source.name)
    metadata: dict[str, Any] = {"path": source.name}
    if form == "html":
        return page_record(body, None, place, rules, url=source.name, date=None, metadata=metadata)
    if form == "code":
        metadata["language"] = programming_language(source.name)
    decoded = decode(body, markup=False)
    if decoded.replaced > rules.max_replaced_share * len(decoded.text):
        detail = f"{decoded.replaced} of {len(decoded.text)} characters as {decoded.encoding}"
        return Rejected(place, "undecodable", detail, source.name)
    text, repaired = scrub(decoded.text)
    if len(text.strip()) < max(1, rules.min_characters):
        return Rejected(place, "no_text", f"{len(text)} characters", source.name)
    return Document(
        place,
        text,
        url=source.name,
        metadata={**metadata, "charset": decoded.encoding},
        repaired=repaired + decoded.replaced,
    )


def _body(source: Readable, limit: int, expansion: int) -> bytes:
    """The file's bytes, a compression taken off. Raises Damage, with `too_large` over the limit."""
    parts, total = [], 0
    with source.open() as stream:
        for chunk in decompressed(stream, expansion):
            parts.append(chunk)
            total += len(chunk)
            if total > limit:
                raise Damage("too_large", f"more than {limit} bytes")
    return b"".join(parts)
