"""Licences that pages, source files and licence files name, and marks against use for AI.

Licence identifiers are those of the SPDX list (https://spdx.org/licenses/), by the copy in
`packaging`. For pages the mark is the address of a licence: Creative Commons ones are most of what
the web names (Dolma looks for them in the same way, by a pattern over the HTML). For code it is
`SPDX-License-Identifier:`, or the licence file in the folder or the nearest one above.

What a page asks of robots is read from robots meta tags and `X-Robots-Tag`
(https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag), `noai` and
`noimageai` (first asked for by DeviantArt, 2022), tags that name a crawler of an AI company, and
the TDM Reservation Protocol (https://www.w3.org/community/reports/tdmrep/CG-FINAL-tdmrep-20240202/).
A mark counts for every addressee and in every place: when header and page disagree,
the one that reserves rights wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

_CREATIVE_COMMONS = re.compile(
    r"(?:https?:)?//(?:[a-z]{1,3}\.)?creativecommons\.org/(licen[sc]es|publicdomain)/"
    r"([a-z-]{2,20})(?:/(\d\.\d))?(?:/([a-z]{2,10}))?(?=[/?#\s.]|$)",
    re.IGNORECASE | re.ASCII,
)
_NEWEST_CC = "4.0"
_CC_WAIVERS = {"zero": "CC0-1.0", "mark": "CC-PDM-1.0", "certification": "CC-PDDC"}
_CC_PARTS = frozenset({"by", "nc", "nd", "sa"})
_ADDRESSES = (
    (
        re.compile(
            r"gnu\.org/(?:licenses|copyleft)/(?:old-licenses/)?(gpl|lgpl|agpl|fdl)"
            r"(?:-(\d\.\d))?",
            re.I | re.A,
        ),
        "gnu",
    ),
    (
        re.compile(r"(?:opensource\.org/licenses?|spdx\.org/licenses)/([\w.-]{2,40})", re.I | re.A),
        "id",
    ),
    (re.compile(r"apache\.org/licenses/LICENSE-(\d\.\d)", re.I | re.A), "Apache"),
    (re.compile(r"mozilla\.org/(?:\w\w-\w\w/)?MPL/(\d\.\d)", re.I | re.A), "MPL"),
    (re.compile(r"opendatacommons\.org/licenses/(odbl|by|pddl)", re.I | re.A), "odc"),
)
_GNU = {"gpl": "GPL-{}-only", "lgpl": "LGPL-{}-only", "agpl": "AGPL-{}-only", "fdl": "GFDL-{}-only"}
_GNU_NEWEST = {"gpl": "3.0", "lgpl": "3.0", "agpl": "3.0", "fdl": "1.3"}
_OPEN_DATA = {"odbl": "ODbL-1.0", "by": "ODC-By-1.0", "pddl": "PDDL-1.0"}
_PAGE_ENDING = re.compile(r"(?:-license)?(?:\.(?:php|html|txt|json))?$", re.IGNORECASE)
_LONGEST_URL, _LONGEST_EXPRESSION = 512, 200

_TAG = re.compile(r"SPDX-License-Identifier:[ \t]*([^\r\n]{1,300})")
_TAG_LINES, _TAG_CHARACTERS = 40, 8192
_COMMENT_END = re.compile(r"\s*(?:\*/|-->|\*\)|#\}|%>|\"\"\"|''').*$")

_LICENCE_FILE = re.compile(
    r"(?:(?:un)?licen[sc]es?|copying|copyright)"
    r"(?:[-_.](?!(?:py|pyi|js|jsx|ts|tsx|java|go|rs|rb|c|h|cc|cpp|hpp|cs|php|json|ya?ml|toml|xml"
    r"|html?|css|sh|sql|kt|swift|scala|lua|pl|r)$)[\w.-]{1,40})?"
    r"|(?:mit|apache|bsd|gpl|lgpl|agpl|mpl)[-_.]licen[sc]e(?:\.(?:txt|md|rst))?",
    re.IGNORECASE | re.ASCII,
)
_READ = 65_536
"""Characters of a licence file that are looked at; the longest licence here has 35,000."""
_NOT_WORDS = re.compile(r"[^a-z0-9.]+")

_GRANT = "redistribution and use in source and binary forms with or without modification"
_MIT = "permission is hereby granted free of charge to any person obtaining a copy"
_ISC = "purpose with or without fee is hereby granted"
_TEXTS: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    # What names it, identifier, what else must be there, what must not.
    ("gnu affero general public license version 3", "AGPL-3.0-only", (), ()),
    ("gnu lesser general public license version 2.1", "LGPL-2.1-only", (), ()),
    ("gnu lesser general public license version 3", "LGPL-3.0-only", (), ()),
    ("gnu library general public license version 2", "LGPL-2.0-only", (), ()),
    ("gnu general public license version 2 june 1991", "GPL-2.0-only", (), ()),
    ("gnu general public license version 3 29 june 2007", "GPL-3.0-only", (), ()),
    ("gnu free documentation license version 1.2", "GFDL-1.2-only", (), ()),
    ("gnu free documentation license version 1.3", "GFDL-1.3-only", (), ()),
    ("apache license version 2.0", "Apache-2.0", (), ()),
    ("mozilla public license version 1.1", "MPL-1.1", (), ()),
    ("mozilla public license version 2.0", "MPL-2.0", (), ()),
    ("mozilla public license v. 2.0", "MPL-2.0", (), ()),
    ("boost software license version 1.0", "BSL-1.0", (), ()),
    ("eclipse public license v 2.0", "EPL-2.0", (), ()),
    ("european union public licence v. 1.2", "EUPL-1.2", (), ()),
    ("python software foundation license version 2", "PSF-2.0", (), ()),
    ("this is free and unencumbered software released into the public domain", "Unlicense", (), ()),
    ("cc0 1.0 universal", "CC0-1.0", (), ()),
    ("do what the fuck you want to public license", "WTFPL", (), ()),
    (_MIT, "MIT", ("this permission notice",), ("advertising or otherwise",)),
    (_MIT, "X11", ("this permission notice", "advertising or otherwise"), ()),
    (_MIT, "MIT-0", (), ("this permission notice",)),
    (_ISC, "ISC", ("provided that the above copyright notice",), ()),
    (_ISC, "0BSD", (), ("provided that the above copyright notice",)),
    (_GRANT, "BSD-4-Clause", ("all advertising materials mentioning",), ()),
    (_GRANT, "BSD-3-Clause", ("endorse or promote",), ("all advertising materials mentioning",)),
    (_GRANT, "BSD-2-Clause", (), ("endorse or promote", "all advertising materials mentioning")),
    (
        "this software is provided as is without any express or implied warranty. in no event",
        "Zlib",
        ("the origin of this software must not be misrepresented",),
        (),
    ),
)
_CC_TEXT = re.compile(
    r"(?:creative commons )?(attribution(?: noncommercial)?(?: sharealike| noderivatives)?)"
    r" (\d\.\d) (?:international|unported|generic)"
)
_CC_NAMES = {"attribution": "BY", "noncommercial": "NC", "sharealike": "SA", "noderivatives": "ND"}


def licence_from_url(url: str) -> str | None:
    """The licence whose address this is; None for any other address.

    A Creative Commons address without a version means the newest; one of a country that has no
    identifier of its own gets that of the international licence of its version.
    """
    url = url[:_LONGEST_URL]
    if match := _CREATIVE_COMMONS.search(url):
        return _creative_commons(match[2].lower(), match[3], match[4])
    for pattern, family in _ADDRESSES:
        if match := pattern.search(url):
            return _family_licence(family, match)
    return None


def first_licence(addresses: Iterable[str]) -> tuple[str | None, str | None]:
    """Licence and address of the first address that is a licence's; else (None, None)."""
    for url in addresses:
        if (licence := licence_from_url(url)) is not None:
            return licence, url[:_LONGEST_URL]
    return None, None


def spdx_expression(value: str) -> str | None:
    """The canonical form of an SPDX expression; None for anything else. Never raises."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    value = value.strip()
    if not value or len(value) > _LONGEST_EXPRESSION or not value.isascii():
        return None
    try:
        return str(canonicalize_license_expression(value))
    except (InvalidLicenseExpression, ValueError, MemoryError, RecursionError):
        return None


def licence_from_source(text: str) -> str | None:
    """The expression after `SPDX-License-Identifier:` in the first 40 lines of a source file."""
    head = "\n".join(text[:_TAG_CHARACTERS].split("\n", _TAG_LINES)[:_TAG_LINES])
    match = _TAG.search(head)
    return spdx_expression(_COMMENT_END.sub("", match[1])) if match else None


def is_licence_file(name: str) -> bool:
    """Whether a file of this name holds a licence: LICENSE, COPYING.LESSER, MIT-LICENSE.txt."""
    return _LICENCE_FILE.fullmatch(PurePosixPath(name).name) is not None


def licence_from_text(text: str) -> str | None:
    """The licence whose words come first in the text of a licence file; None for an unknown one.

    The text of a GNU licence does not say whether later versions are allowed as well: it gets the
    narrower `-only`.
    """
    if (declared := licence_from_source(text)) is not None:
        return declared
    words = " ".join(_NOT_WORDS.sub(" ", text[:_READ].lower()).split())
    best: tuple[int, str] | None = None
    for phrase, identifier, needed, barred in _TEXTS:
        at = words.find(phrase)
        if at < 0 or (best is not None and best[0] <= at):
            continue
        if all(part in words for part in needed) and not any(part in words for part in barred):
            best = (at, identifier)
    match = _CC_TEXT.search(words)
    if match and (best is None or match.start() < best[0]):
        parts = "-".join(_CC_NAMES[name] for name in match[1].split())
        return spdx_expression(f"CC-{parts}-{match[2]}")
    return best[1] if best else None


def nearest_licence(path: str, licences: Mapping[str, str]) -> str | None:
    """The licence of the nearest folder above a file; `licences` maps folders ("" is the root)."""
    for folder in PurePosixPath(path).parents:
        name = "" if str(folder) == "." else str(folder)
        if (licence := licences.get(name)) is not None:
            return licence
    return None


def _creative_commons(kind: str, version: str | None, country: str | None) -> str | None:
    if kind in _CC_WAIVERS:
        return _CC_WAIVERS[kind]
    if not set(kind.split("-")) <= _CC_PARTS:
        return None
    name = f"CC-{kind.upper()}-{version or _NEWEST_CC}"
    local = spdx_expression(f"{name}-{country}") if country else None
    return local or spdx_expression(name)


def _family_licence(family: str, match: re.Match[str]) -> str | None:
    name = match[1]
    if family == "gnu":
        kind = name.lower()
        return spdx_expression(_GNU[kind].format(match[2] or _GNU_NEWEST[kind]))
    if family == "odc":
        return _OPEN_DATA[name.lower()]
    if family == "id":
        return spdx_expression(_PAGE_ENDING.sub("", name))
    return spdx_expression(f"{family}-{name}")


AI_CRAWLERS = frozenset(
    {"ai2bot", "ai2bot-dolma", "amazonbot", "anthropic-ai", "applebot-extended", "bytespider",
     "ccbot", "chatgpt-user", "claude-web", "claudebot", "cohere-ai",
     "cohere-training-data-crawler", "diffbot", "facebookbot", "google-extended", "gptbot",
     "imagesiftbot", "img2dataset", "meta-externalagent", "meta-externalfetcher", "oai-searchbot",
     "omgili", "omgilibot", "perplexitybot", "timpibot", "webzio-extended", "youbot"}
)  # fmt: skip
"""Crawlers and tokens of AI companies, lower-case."""
EVERYONE = frozenset({"robots", "googlebot", "*"})
"""Agents whose directives are the page's robots directives."""
_AI_DIRECTIVES = frozenset({"noai", "noimageai"})
_DENIALS = frozenset({"noindex", "none", "noai", "noimageai", "disallow"})
_VALUED = frozenset({"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"})
_AGENT = re.compile(r"[\w*.-]{1,64}", re.ASCII)
_DIRECTIVE = re.compile(r"[a-z][a-z_-]{0,39}(?::[a-z0-9-]{1,20})?", re.ASCII)
_TEXT_READ, _MOST = 4096, 64

RobotsDirective = tuple[str, str]
"""Agent and directive, both lower-case; a directive's value follows a colon."""


def directives_from_header(value: str) -> Iterator[RobotsDirective]:
    """Directives of an `X-Robots-Tag`; `agent:` before one also applies to those after it."""
    agent = "robots"
    for part in value[:_TEXT_READ].lower().split(","):
        name, colon, rest = part.strip().partition(":")
        if colon and name.strip() not in _VALUED and _AGENT.fullmatch(name.strip()):
            agent, part = name.strip(), rest
        for directive in _directives(part):
            yield agent, directive


def directives_from_meta(agent: str, content: str) -> Iterator[RobotsDirective]:
    """Directives of a meta tag, whose name is the agent."""
    for part in content[:_TEXT_READ].lower().split(","):
        for directive in _directives(part):
            yield agent, directive


def robots_directives(directives: Iterable[RobotsDirective]) -> str | None:
    """Directives for every crawler or for Googlebot, sorted; None without any."""
    names = {directive for agent, directive in directives if agent in EVERYONE}
    return " ".join(sorted(names)[:_MOST]) or None


def ai_marks(directives: Iterable[RobotsDirective], reservations: Iterable[str]) -> str | None:
    """Marks against use for AI, sorted; None for none.

    `noai` and `noimageai` as written; the lower-case name of each AI crawler that is refused;
    `tdm-reservation` where one of `reservations` (values of the header and of meta tags) is 1.
    """
    marks = set()
    for agent, directive in directives:
        if directive in _AI_DIRECTIVES:
            marks.add(directive)
        if agent in AI_CRAWLERS and directive in _DENIALS:
            marks.add(agent)
    if any(part.strip() == "1" for value in reservations for part in value[:64].split(",")):
        marks.add("tdm-reservation")
    return " ".join(sorted(marks)) or None


def _directives(part: str) -> Iterator[str]:
    """Directives of a part between commas; pages put spaces where commas belong."""
    name, colon, rest = part.strip().partition(":")
    if name.strip() == "unavailable_after":
        yield "unavailable_after"
    elif colon:
        directive = f"{name.strip()}:{rest.strip()}"
        if _DIRECTIVE.fullmatch(directive):
            yield directive
    else:
        for word in re.split(r"[\s;|]+", name):
            if _DIRECTIVE.fullmatch(word):
                yield word
