"""What tags, attributes and words tell about the place of a text in a page."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# Elements whose text is not shown, or is no prose.
NOT_SHOWN: Final = frozenset(
    [
        "script", "style", "template", "svg", "noscript", "head", "iframe", "object", "video",
        "audio", "canvas", "select", "option", "optgroup", "textarea", "datalist", "progress",
        "meter", "map", "frameset", "noframes", "noembed", "applet", "param", "rp", "rt",
    ]
)  # fmt: skip

# Elements that begin a line of their own; every other element is inline.
BLOCK_TAGS: Final = [
    "div", "p", "li", "td", "th", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre",
    "figure", "figcaption", "caption", "dd", "dt", "dl", "ul", "ol", "table", "tbody", "thead",
    "tfoot", "article", "section", "main", "aside", "nav", "header", "footer", "form", "fieldset",
    "legend", "address", "details", "summary", "button", "center", "body", "html", "dialog",
    "hgroup", "menu", "listing", "xmp", "search", "label",
]  # fmt: skip
BLOCK: Final = {tag: code for code, tag in enumerate(BLOCK_TAGS, start=1)}
CELL_CODES: Final = frozenset({BLOCK["td"], BLOCK["th"]})
HEADING: Final = {f"h{level}": level for level in range(1, 7)}

# Ancestors worth a bit each, in the order of the bits.
PLACES: Final = (
    "nav", "header", "footer", "aside", "form", "table", "list", "article", "main", "section",
    "figure", "blockquote", "pre", "hidden", "link", "button", "paragraph", "heading", "address",
    "dialog",
)  # fmt: skip
_PLACE_OF_TAG: Final = {
    "ul": "list",
    "ol": "list",
    "dl": "list",
    "menu": "list",
    "figcaption": "figure",
    "p": "paragraph",
    "listing": "pre",
    "xmp": "pre",
    "fieldset": "form",
    "label": "button",
    **dict.fromkeys(HEADING, "heading"),
}
PLACE_BIT: Final = {name: 1 << bit for bit, name in enumerate(PLACES)}
TAG_PLACE: Final = {tag: PLACE_BIT.get(_PLACE_OF_TAG.get(tag, tag), 0) for tag in BLOCK_TAGS}
ROLE_PLACE: Final = {
    "navigation": PLACE_BIT["nav"],
    "menu": PLACE_BIT["nav"],
    "menubar": PLACE_BIT["nav"],
    "banner": PLACE_BIT["header"],
    "contentinfo": PLACE_BIT["footer"],
    "complementary": PLACE_BIT["aside"],
    "main": PLACE_BIT["main"],
    "article": PLACE_BIT["article"],
    "form": PLACE_BIT["form"],
    "search": PLACE_BIT["form"],
    "dialog": PLACE_BIT["dialog"],
    "alertdialog": PLACE_BIT["dialog"],
}

# What a class, id, role or itemprop names, in the order of the bits.
_TOPICS: Final = {
    "body": r"articlebody|bodytext|richtext|prose|absatz|bodycopy|wysiwyg|parser|paragraph",
    "content": r"content|inhalt|contenu|main",
    "article": r"article|artikel|story|post|entry|beitrag|blog|news",
    "text": r"body|text|copy|description|markdown",
    "title": r"title|headline|heading|titel|subline|kicker",
    "lead": r"lead|lede|intro|summary|standfirst|subtitle|excerpt|abstract|teaser|vorspann|^dek$",
    "navigation": r"nav|menu|crumb|pagin|pager|^tab|^toc$|sitemap|skip|toolbar|topbar|index",
    "header": r"header|masthead|banner|logo|^top",
    "footer": r"foot|bottom|copyright|legal|imprint|impressum|colophon",
    "sidebar": r"side|aside|widget|rail$|secondary|margin|spalte",
    "comments": r"comment|disqus|respon|kommentar|discussion|reply|replies|trackback|pingback",
    "related": r"relat|recommend|more|popular|trending|similar|also|latest|recirc|mostread|readnext"
    r"|recent|archive|weitere|aehnlich",
    "cards": r"card|tile|grid|list|item|feed|carousel|slider|gallery|teaser",
    "share": r"shar|social|facebook|twitter|follow|whatsapp|^like|bookmark|print|email|tools",
    "advert": r"^ads?$|^adv|sponsor|promo|outbrain|taboola|werbung|anzeige|commercial"
    r"|paid|affiliate|banner|dfp",
    "form": r"form|login|search|newsletter|subscri|signup|register|modal|popup|overlay|dialog"
    r"|paywall|cart|shop|donat|rating|vote|poll",
    "cookie": r"cookie|consent|gdpr|privacy|^cmp$|notice|disclaimer",
    "byline": r"meta|byline|author|autor|date|time|publish|posted|credit|source|^bio$|contributor",
    "tags": r"^tag|categor|topic|keyword|label|rubri|badge",
    "media": r"video|image|photo|bild|figure|caption|media|embed|player|gallery|picture|audio",
    "hidden": r"hidden|^hide$|invisible|^sr$|screen|visually|noprint|tooltip",
    "reference": r"footnote|reference|reflist|citation|infobox|navbox|edit|hatnote|thumb",
}
TOPICS: Final = tuple(_TOPICS)
_TOPIC_PATTERNS: Final = tuple(
    (1 << bit, re.compile(pattern)) for bit, pattern in enumerate(_TOPICS.values())
)
_WORD: Final = re.compile(r"[A-Z]?[a-z]{2,24}|[A-Z]{2,24}")


_BIT: Final = {name: 1 << bit for bit, name in enumerate(_TOPICS)}
_ARTICLE_BIT: Final = _BIT["article"]
_ARTICLE_TEXT_BITS: Final = _BIT["text"] | _BIT["content"]


@lru_cache(maxsize=1 << 16)
def topics(names: str) -> int:
    """Bits of the topics that the words of a class, id or itemprop name.

    A name such as `entry-content` or `articleBody` names the topic `body` as well.
    """
    bits = 0
    for name in names.split():
        own = 0
        for word in _WORD.findall(name[:100]):
            own |= _word_topics(word.lower())
        if own & _ARTICLE_BIT and own & _ARTICLE_TEXT_BITS:
            own |= _BIT["body"]
        bits |= own
    return bits


@lru_cache(maxsize=1 << 14)
def _word_topics(word: str) -> int:
    return sum(bit for bit, pattern in _TOPIC_PATTERNS if pattern.search(word))


def name_words(names: str) -> list[str]:
    """The words of classes and ids in lower case, split at spaces, hyphens and underscores."""
    return names.lower().replace("-", " ").replace("_", " ").split()
