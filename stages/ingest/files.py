"""One document a file: plain text, Markdown, HTML and source code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.engine.reading.rows import Damage, Readable, decompressed
from stages.ingest.declared.licences import declared_in_source, nearest_licence
from stages.ingest.formats import Format, programming_language
from stages.ingest.pages import Page, PageRules, document_of
from stages.ingest.records import Place, Record, Rejected
from stages.ingest.responses.charset import decode
from stages.ingest.responses.sniff import binary_type, sniffed_type

_NO_LICENCES: Mapping[str, str] = {}


def read_file(
    source: Readable, form: Format, rules: PageRules, licences: Mapping[str, str] = _NO_LICENCES
) -> Record:
    """The document that a whole file makes, or why it makes none.

    `licences` maps folders of a code tree to the licence of what lies in them.
    """
    place = Place(0, 0, source.bytes)
    try:
        body = _body(source, rules.max_bytes, rules.max_expansion)
    except Damage as damage:
        return Rejected(place, damage.reason, damage.detail, source.name)
    if not body.strip():
        return Rejected(place, "empty_body", None, source.name)
    if (binary := binary_type(body)) is not None:
        return Rejected(place, "content_type", binary, source.name)
    markup = form == "html"
    told: dict[str, Any] = {"body_bytes": len(body), "sniffed_type": sniffed_type(body)}
    metadata: dict[str, Any] = {"path": source.name}
    decoded = decode(body, markup=markup)
    if form == "code":
        language = programming_language(source.name)
        metadata["language"] = told["programming_language"] = language
        told["licence"] = declared_in_source(decoded.text) or nearest_licence(source.name, licences)
    page = Page(place, markup, decoded, url=source.name, told=told, metadata=metadata)
    return document_of(page, rules)


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
