"""What schema.org's JSON-LD blocks say of the page: headline, authors, date, licence.

The blocks are a stranger's JSON: each is bounded before it is parsed, and so is the walk. Only what
is said of the page itself counts (an article before any other work), not of a product, a review or
an image on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from stages.engine.strict_json import parse_json

LONGEST_BLOCK, MOST_BLOCKS, MOST_OBJECTS = 256 << 10, 8, 256
"""Characters of a block that is parsed, blocks of a page, and objects that are looked at."""
_MOST_AUTHORS = 10
_WRAPPING = re.compile(r"\A\s*(?://)?\s*(?:<!\[CDATA\[|<!--)|(?://)?\s*(?:\]\]>|-->)\s*\Z")
_WORKS = frozenset(
    {"AboutPage", "AudioObject", "Book", "Chapter", "CollectionPage", "ContactPage", "Course",
     "CreativeWork", "Dataset", "DigitalDocument", "DiscussionForumPosting", "Episode", "FAQPage",
     "Guide", "HowTo", "ItemPage", "LearningResource", "PodcastEpisode", "ProfilePage", "QAPage",
     "Question", "Recipe", "SoftwareSourceCode", "TextDigitalDocument", "Thesis", "VideoObject",
     "WebPage"}
)  # fmt: skip
_ARTICLES = frozenset({"BlogPosting", "LiveBlogPosting", "Report", "SocialMediaPosting"})
_INWARD = ("@graph", "mainEntity", "mainEntityOfPage", "hasPart")


@dataclass(slots=True)
class LinkedData:
    """Values as they stand in the blocks; each empty where nothing is said."""

    headline: str = ""
    authors: list[str] = field(default_factory=list)
    published: list[str] = field(default_factory=list)
    licences: list[str] = field(default_factory=list)


def read_linked_data(blocks: Iterable[str]) -> LinkedData:
    """What the blocks say of the page; blocks that are too long or no JSON say nothing."""
    objects = [found for block in _parsed(blocks) for found in _walk(block)][:MOST_OBJECTS]
    named = {key: found for found in objects if isinstance(key := found.get("@id"), str)}
    articles = [found for found in objects if _is_article(found)]
    works = articles + [found for found in objects if _types(found) & _WORKS]
    said = LinkedData()
    for work in works:
        # A page's own name is its title, which the page gives better.
        said.headline = said.headline or _string(work.get("headline"))
        said.authors = said.authors or _names(work.get("author"), named)
        if date := _string(work.get("datePublished")):
            said.published.append(date)
        said.licences += _addresses(work.get("license"))
    return said


def _parsed(blocks: Iterable[str]) -> Iterator[Any]:
    for number, block in enumerate(blocks):
        if number >= MOST_BLOCKS:
            return
        if len(block) > LONGEST_BLOCK:
            continue
        try:
            # Raw line ends inside strings are common, and harmless.
            yield parse_json(_WRAPPING.sub("", block).strip().rstrip(";"), strict=False)
        except ValueError:
            continue


def _walk(value: Any) -> Iterator[dict[str, Any]]:
    """Objects of a block that may describe the page, breadth first, bounded."""
    waiting, at = [value], 0
    while at < len(waiting) and at < MOST_OBJECTS:
        value = waiting[at]
        at += 1
        if isinstance(value, list):
            waiting += value[:MOST_OBJECTS]
        elif isinstance(value, dict):
            yield value
            waiting += [value[key] for key in _INWARD if isinstance(value.get(key), dict | list)]


def _types(found: dict[str, Any]) -> set[str]:
    value = found.get("@type")
    values = value[:8] if isinstance(value, list) else [value]
    return {kind.rpartition("/")[2] for kind in values if isinstance(kind, str)}


def _is_article(found: dict[str, Any]) -> bool:
    return any(kind.endswith("Article") or kind in _ARTICLES for kind in _types(found))


def _string(value: Any) -> str:
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, str) else ""


def _names(value: Any, named: dict[str, dict[str, Any]]) -> list[str]:
    """Names of authors: a string, an object with a name, a reference to one, or a list of them."""
    names = []
    for author in (value if isinstance(value, list) else [value])[:_MOST_AUTHORS]:
        if isinstance(author, dict):
            if "name" not in author and isinstance(reference := author.get("@id"), str):
                author = named.get(reference, author)
            author = author.get("name")
        if name := _string(author):
            names.append(name)
    return names


def _addresses(value: Any) -> list[str]:
    """Addresses in a `license`: one, a list, or a CreativeWork with `url` or `@id`."""
    found = []
    for licence in (value if isinstance(value, list) else [value])[:_MOST_AUTHORS]:
        if isinstance(licence, dict):
            licence = licence.get("url") or licence.get("@id")
        if isinstance(licence, str):
            found.append(licence)
    return found
