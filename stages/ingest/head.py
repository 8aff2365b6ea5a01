"""What a page declares about itself: title, author, date, language, address, robots, licence.

One query over the tree gathers the elements that declare something; the order in which the sources
of each value are believed is written in one function per value. Nothing is guessed from the text.
Values come from strangers: each is bounded, put on one line, and checked.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from stages.ingest.linked_data import LinkedData, iso_date, read_linked_data
from stages.ingest.rights import (
    AI_CRAWLERS,
    EVERYONE,
    ai_marks,
    directives_from_header,
    directives_from_meta,
    first_licence,
    robots_directives,
)

_QUERY = (
    'meta,title,script[type="application/ld+json" i],time,h1,link[rel~="canonical" i],'
    '[rel~="license" i],a[rel~="author" i],a[href*="creativecommons.org" i],'
    '[itemprop="author"],[itemprop="datePublished"]'
)
MOST_ELEMENTS = 5_000
"""Elements of the query that are looked at: more than any honest page has."""
LONGEST_TITLE, LONGEST_NAME, LONGEST_URL = 1_000, 120, 2_048
_MOST_AUTHORS = 10
_BROKEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_TAG = re.compile(  # Language, script, region, variants (https://www.rfc-editor.org/rfc/rfc5646).
    r"([a-z]{2,3})(?:-[a-z]{3}){0,3}(?:-([a-z]{4}))?(?:-([a-z]{2}|\d{3}))?"
    r"(?:-(?:[a-z\d]{5,8}|\d[a-z\d]{3})){0,4}(?:-[a-wy-z\d](?:-[a-z\d]{2,8})+)*"
    r"(?:-x(?:-[a-z\d]{1,8})+)?",
    re.IGNORECASE | re.ASCII,
)
_WEB = re.compile(
    r"https?://[^\s/?#\\<>\"'`{}|^@\x00-\x20\x7f-\x9f\ud800-\udfff]+"
    r"(?:[/?#][^\s<>\"`\x00-\x20\x7f-\x9f\ud800-\udfff]*)?",
    re.IGNORECASE,
)
_BY = re.compile(r"\A(?:by|von|par|por|written by|posted by)[:\s]\s*", re.IGNORECASE)
_NO_AUTHOR = frozenset(
    {"admin", "administrator", "author", "editor", "none", "null", "n/a", "unknown", "undefined"}
)
_PUBLISHED_CLASS = re.compile(
    r"\b(?:published|entry-date|pubdate|post-date|dt-published)\b", re.IGNORECASE
)
_DRAWING = frozenset({"svg", "g", "symbol", "defs", "path", "use", "a", "circle", "rect", "text"})

_TITLES = ("og:title", "twitter:title", "citation_title", "dc.title", "dcterms.title")
_AUTHORS = (
    "author", "citation_author", "dc.creator", "dcterms.creator", "article:author",
    "parsely-author", "sailthru.author", "byl", "dc.creator.personalname",
)  # fmt: skip
_DATES = (
    "article:published_time", "og:published_time", "og:article:published_time", "datepublished",
    "citation_publication_date", "citation_date", "citation_online_date", "dcterms.issued",
    "dc.date.issued", "dcterms.created", "dc.date.created", "parsely-pub-date", "sailthru.date",
    "article.published", "published_time", "publication_date", "publication-date", "publish-date",
    "publish_date", "publishdate", "published-date", "pubdate", "originalpublicationdate",
    "cxenseparse:recs:publishtime", "rnews:datepublished", "bt:pubdate", "dcterms.date", "dc.date",
    "date",
)  # fmt: skip
_LICENCES = ("dc.rights", "dcterms.rights", "dcterms.license", "dc.rights.license", "license")
_ONE_VALUED = ("content-language", "language", "og:locale", "og:url")
_RESERVED = ("tdm-reservation", "tdm-policy")
_META_NAMES = frozenset(
    {*_TITLES, *_AUTHORS, *_DATES, *_LICENCES, *_ONE_VALUED, *_RESERVED, *EVERYONE, *AI_CRAWLERS}
)


@dataclass(frozen=True, slots=True)
class Head:
    """What a page and its response declare. Each value is checked; None where none holds."""

    title: str | None = None
    author: str | None = None
    """Names, with "; " between."""
    published: str | None = None
    """ISO 8601 date, as written on the page."""
    language: str | None = None
    """BCP 47 tag."""
    canonical_url: str | None = None
    robots: str | None = None
    """Directives, sorted, with spaces between."""
    ai_opt_out: str | None = None
    """Marks against use for AI, sorted, with spaces between."""
    tdm_policy: str | None = None
    licence: str | None = None
    """SPDX identifier."""
    licence_url: str | None = None


@dataclass(slots=True)
class _Elements:
    """Elements that declare something, in document order."""

    meta: dict[str, list[str]] = field(default_factory=dict)
    titles: list[LexborNode] = field(default_factory=list)
    heading: LexborNode | None = None
    json_ld: list[LexborNode] = field(default_factory=list)
    times: list[tuple[LexborNode, dict[str, str | None]]] = field(default_factory=list)
    authors: list[LexborNode] = field(default_factory=list)
    canonical: list[str] = field(default_factory=list)
    licences: list[str] = field(default_factory=list)
    mentioned: list[str] = field(default_factory=list)


def read_head(tree: LexborHTMLParser, headers: Mapping[str, str]) -> Head:
    """What the page in `tree` and its response's `headers` (lower-case name → value) declare.

    Several header lines of one name are one value, joined by ", ". Never raises for what a page
    says. JSON-LD is parsed only where the tags leave something open.
    """
    elements = _gather(tree)
    title, author, published = _title(elements), _author(elements), _published(elements)
    blocks = [node.text() for node in elements.json_ld]
    linked = LinkedData()
    if not (title and author and published) or any('"license"' in block for block in blocks):
        linked = read_linked_data(blocks)
    author = author or _names(linked.authors) or _linked_author(elements)
    directives = list(directives_from_header(headers.get("x-robots-tag", "")))
    for name in (*sorted(EVERYONE), *sorted(AI_CRAWLERS & elements.meta.keys())):
        for content in elements.meta.get(name, ()):
            directives.extend(directives_from_meta(name, content))
    reservations = [headers.get("tdm-reservation", ""), *elements.meta.get("tdm-reservation", ())]
    licence, licence_url = _licence(elements, linked)
    return Head(
        title=title or _fallback_title(elements, linked),
        author=author,
        published=published
        or _first_valid(linked.published, iso_date)
        or _first_valid(_marked_times(elements), iso_date),
        language=_language(tree, elements, headers),
        canonical_url=_first_valid(
            elements.canonical + elements.meta.get("og:url", []), web_address
        ),
        robots=robots_directives(directives),
        ai_opt_out=ai_marks(directives, reservations),
        tdm_policy=web_address(headers.get("tdm-policy"))
        or _first_valid(elements.meta.get("tdm-policy", ()), web_address),
        licence=licence,
        licence_url=licence_url,
    )


def web_address(value: str | None) -> str | None:
    """An absolute http(s) address without credentials, spaces stripped; None for any other."""
    value = (value or "").strip()
    return value if len(value) <= LONGEST_URL and _WEB.fullmatch(value) else None


def language_tag(value: str | None) -> str | None:
    """A language tag in BCP 47's shape and case (`zh-Hant-TW`); None if it has another shape."""
    value = (value or "").strip()[:64].replace("_", "-")
    match = _TAG.fullmatch(value)
    if match is None or match[1].lower() == "und":
        return None
    language, _, rest = value.lower().partition("-")
    parts = [language]
    for part in rest.split("-") if rest else ():
        # Extensions and private subtags, after a single letter, stay in lower case.
        if part.isalpha() and not any(len(before) == 1 for before in parts):
            part = {2: part.upper(), 4: part.title()}.get(len(part), part)
        parts.append(part)
    return "-".join(parts)


def _gather(tree: LexborHTMLParser) -> _Elements:
    elements = _Elements()
    root = tree.root
    for node in root.css(_QUERY)[:MOST_ELEMENTS] if root is not None else ():
        tag = node.tag
        if tag == "meta":
            _meta(node.attributes, elements.meta)
        elif tag == "title":
            elements.titles.append(node)
        elif tag == "script":
            elements.json_ld.append(node)
        elif tag == "h1":
            elements.heading = elements.heading or node
        else:
            _body_element(node, tag, elements)
    return elements


def _meta(attributes: dict[str, str | None], into: dict[str, list[str]]) -> None:
    content = attributes.get("content") or attributes.get("value")
    if not content:
        return
    for key in ("name", "property", "http-equiv", "itemprop"):
        if (name := attributes.get(key)) and (name := name.strip().lower()) in _META_NAMES:
            into.setdefault(name, []).append(content)


def _body_element(node: LexborNode, tag: str | None, elements: _Elements) -> None:
    attributes = node.attributes
    href = (attributes.get("href") or "").strip()
    rel = (attributes.get("rel") or "").lower().split()
    itemprop = attributes.get("itemprop")
    if tag in ("a", "link") and href:
        if "license" in rel or "licence" in rel:
            elements.licences.append(href)
        elif "creativecommons.org" in href:
            elements.mentioned.append(href)
        if tag == "link" and "canonical" in rel:
            elements.canonical.append(href)
    if tag == "time" or itemprop == "datePublished":
        elements.times.append((node, attributes))
    elif itemprop == "author" or (tag == "a" and "author" in rel):
        elements.authors.append(node)


def _title(elements: _Elements) -> str | None:
    """`<title>`: the first that is not empty."""
    for node in elements.titles[:8]:
        if not _is_svg_title(node) and (title := _one_line(node.text(), LONGEST_TITLE)):
            return title
    return None


def _fallback_title(elements: _Elements, linked: LinkedData) -> str | None:
    """Without `<title>`: the titles of meta tags, JSON-LD's headline, the first `<h1>`."""
    named = [value for name in _TITLES for value in elements.meta.get(name, ())]
    heading = elements.heading.text() if elements.heading is not None else ""
    return _first_valid(
        [*named, linked.headline, heading], lambda value: _one_line(value, LONGEST_TITLE)
    )


def _is_svg_title(node: LexborNode) -> bool:
    """Whether a title belongs to an SVG picture, whose elements have titles too."""
    parent = node.parent
    return parent is not None and parent.tag in _DRAWING


def _author(elements: _Elements) -> str | None:
    """Authors of meta tags; then come JSON-LD's, then `_linked_author`."""
    return _first_valid(_AUTHORS, lambda name: _names(elements.meta.get(name, ())))


def _linked_author(elements: _Elements) -> str | None:
    """The text of the first `rel=author` or `itemprop=author` that holds a name."""
    return _first_valid(
        (node.text() for node in elements.authors[:8]), lambda value: _names([value])
    )


def _names(values: Iterable[str]) -> str | None:
    """Names that look like names: short, no address, said once."""
    names: dict[str, None] = {}
    for value in values:
        name = _BY.sub("", _one_line(value, LONGEST_NAME + 1) or "", count=1).strip(" ,;|")
        is_name = "://" not in name and "@" not in name and any(map(str.isalpha, name))
        if is_name and 1 < len(name) <= LONGEST_NAME and name.lower() not in _NO_AUTHOR:
            names[name] = None
    return "; ".join(list(names)[:_MOST_AUTHORS]) or None


def _published(elements: _Elements) -> str | None:
    """The date of meta tags; then come JSON-LD's datePublished, then `_marked_times`."""
    return _first_valid(_DATES, lambda name: _first_valid(elements.meta.get(name, ()), iso_date))


def _marked_times(elements: _Elements) -> Iterator[str]:
    """Elements that are marked as the date of publication."""
    for node, attributes in elements.times[:64]:
        said_so = attributes.get("itemprop") == "datePublished" or "pubdate" in attributes
        if said_so or _PUBLISHED_CLASS.search((attributes.get("class") or "")[:256]):
            yield attributes.get("datetime") or attributes.get("content") or node.text()[:64]


def _language(
    tree: LexborHTMLParser, elements: _Elements, headers: Mapping[str, str]
) -> str | None:
    """`<html lang>`, meta content-language, the header, og:locale; a list of languages is none."""
    root = tree.root
    attributes = root.attributes if root is not None and root.tag == "html" else {}
    declared = (
        attributes.get("lang"),
        attributes.get("xml:lang"),
        *elements.meta.get("content-language", ()),
        headers.get("content-language"),
        *elements.meta.get("language", ()),
        *elements.meta.get("og:locale", ()),
    )
    return _first_valid((value for value in declared if value), language_tag)


def _licence(elements: _Elements, linked: LinkedData) -> tuple[str | None, str | None]:
    """Links with `rel=license`, JSON-LD, meta tags, then links to Creative Commons, in this order.

    In each the first by document order that is known. Without a known one, the address of the first
    `rel=license` or JSON-LD licence is given alone.
    """
    meta = [value for name in _LICENCES for value in elements.meta.get(name, ())]
    licence, url = first_licence([*elements.licences, *linked.licences, *meta, *elements.mentioned])
    if licence is None:
        return None, _first_valid([*elements.licences, *linked.licences], web_address)
    if url is not None and url.startswith("//"):
        url = f"https:{url}"
    return licence, web_address(url)


def _first_valid(values: Iterable[str], read: Callable[[str], str | None]) -> str | None:
    return next((valid for value in values if (valid := read(value)) is not None), None)


def _one_line(value: str, longest: int) -> str | None:
    """On one line, character references resolved, nothing that cannot be stored; None for nothing.

    A longer one is cut.
    """
    text = " ".join(_BROKEN.sub(" ", html.unescape(value[: 4 * longest])).split())
    return text[:longest].rstrip() or None
