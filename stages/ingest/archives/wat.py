"""WAT: what Common Crawl tells of a page without its text, one JSON envelope a record.

A WAT holds no text, so its records make no documents by themselves; `wat_page` gives what there is:
address, status, title, description, links.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from stages.engine.strict_json import parse_json

MOST_LINKS = 10_000
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*")


@dataclass(frozen=True, slots=True)
class WatPage:
    """A page as its WAT record tells of it; all but `links` None where it does not.

    `kind` is the type of the record that it describes: "response" for a page. `links` are the
    targets of `<a>` in order, with their texts, as written: relative ones stay so.
    """

    kind: str | None
    url: str | None
    status: int | None
    title: str | None
    description: str | None
    language: str | None
    links: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class WatFault:
    """Why a block is no WAT envelope: "malformed_json" or "not_an_object", and a detail."""

    reason: str
    detail: str


def wat_page(block: bytes, most_links: int = MOST_LINKS) -> WatPage | WatFault:
    """What the JSON of a metadata record says; parts of another shape than expected are absent."""
    try:
        value = parse_json(block)
    except ValueError as error:
        return WatFault("malformed_json", str(error)[:200])
    envelope = _object(value, "Envelope")
    if not envelope:
        return WatFault("not_an_object", "no Envelope")
    header = _object(envelope, "WARC-Header-Metadata")
    response = _object(envelope, "Payload-Metadata", "HTTP-Response-Metadata")
    html = _object(response, "HTML-Metadata")
    metas = _metas(_object(html, "Head").get("Metas"))
    headers = {name.lower(): value for name, value in _object(response, "Headers").items()}
    return WatPage(
        kind=_text(header.get("WARC-Type")),
        url=_text(header.get("WARC-Target-URI")),
        status=_status(_object(response, "Response-Message").get("Status")),
        title=_text(_object(html, "Head").get("Title")),
        description=metas.get("description") or metas.get("og:description"),
        language=_language(
            metas.get("content-language"), headers.get("content-language"), metas.get("og:locale")
        ),
        links=_links(html.get("Links"), most_links),
    )


def _object(value: Any, *path: str) -> dict[str, Any]:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return " ".join(value.split()) or None if isinstance(value, str) else None


def _status(value: Any) -> int | None:
    told = str(value) if isinstance(value, str | int) else ""
    return int(told) if re.fullmatch(r"[1-9][0-9]{2}", told) else None


def _metas(value: Any) -> dict[str, str]:
    """Name, property or http-equiv in lower case → content; the first of a name counts."""
    metas: dict[str, str] = {}
    for meta in value if isinstance(value, list) else ():
        if isinstance(meta, dict) and (content := _text(meta.get("content"))):
            for key in ("name", "property", "http-equiv"):
                if name := _text(meta.get(key)):
                    metas.setdefault(name.lower(), content)
    return metas


def _language(*told: Any) -> str | None:
    """The first that is one language tag, as `de` or `pt-BR`; of a list of tags the first."""
    for value in told:
        tag = (_text(value) or "").split(",")[0].strip()
        if _LANGUAGE.fullmatch(tag):
            return tag.replace("_", "-")
    return None


def _links(value: Any, most: int) -> tuple[tuple[str, str], ...]:
    links: list[tuple[str, str]] = []
    for link in value if isinstance(value, list) else ():
        if len(links) == most:
            break
        if not isinstance(link, dict) or _text(link.get("path")) != "A@/href":
            continue
        if url := _text(link.get("url")):
            links.append((url, _text(link.get("text")) or ""))
    return tuple(links)
