"""What a page and its response ask of robots, and their marks against use for AI.

Read are robots meta tags and `X-Robots-Tag`
(https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag), `noai` and
`noimageai` (first asked for by DeviantArt, 2022), tags that name a crawler of an AI company, and
the TDM Reservation Protocol (https://www.w3.org/community/reports/tdmrep/CG-FINAL-tdmrep-20240202/).
A mark counts whoever it is addressed to and wherever it stands: when header and page disagree, the
one that reserves rights wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

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
_REFUSALS = frozenset({"noindex", "none", "noai", "noimageai", "disallow"})
_VALUED = frozenset({"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"})
_AGENT = re.compile(r"[\w*.-]{1,64}", re.ASCII)
_DIRECTIVE = re.compile(r"[a-z][a-z_-]{0,39}(?::[a-z0-9-]{1,20})?", re.ASCII)
_TEXT_READ, _MOST = 4096, 64

Asked = tuple[str, str]
"""Agent and directive, both lower-case; a directive's value follows a colon."""


def asked_by_header(value: str) -> Iterator[Asked]:
    """Directives of an `X-Robots-Tag`; `agent:` in front of one holds for those after it too."""
    agent = "robots"
    for part in value[:_TEXT_READ].lower().split(","):
        name, colon, rest = part.strip().partition(":")
        if colon and name.strip() not in _VALUED and _AGENT.fullmatch(name.strip()):
            agent, part = name.strip(), rest
        for directive in _directives(part):
            yield agent, directive


def asked_by_meta(agent: str, content: str) -> Iterator[Asked]:
    """Directives of a meta tag, whose name is the agent."""
    for part in content[:_TEXT_READ].lower().split(","):
        for directive in _directives(part):
            yield agent, directive


def robots_directives(asked: Iterable[Asked]) -> str | None:
    """What is asked of every crawler or of Googlebot, sorted; None for nothing."""
    found = {directive for agent, directive in asked if agent in EVERYONE}
    return " ".join(sorted(found)[:_MOST]) or None


def ai_marks(asked: Iterable[Asked], reservations: Iterable[str]) -> str | None:
    """Marks against use for AI, sorted; None for none.

    `noai` and `noimageai` as they stand; the lower-case name of each AI crawler that is refused;
    `tdm-reservation` where one of `reservations` (values of the header and of meta tags) is 1.
    """
    marks = set()
    for agent, directive in asked:
        if directive in _AI_DIRECTIVES:
            marks.add(directive)
        if agent in AI_CRAWLERS and directive in _REFUSALS:
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
