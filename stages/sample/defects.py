"""What is wrong with a planted page: each function makes one defect of clean content. Pure."""

from __future__ import annotations

import hashlib
import html
import random
import re
from collections.abc import Sequence

from stages.sample.site import TAG, Page, jaccard, visible_text, words
from stages.sample.warc import Exchange

LEAST_JACCARD = 0.87
"""Of a near-duplicate with its original, over the content's word 5-grams."""
PARAGRAPH = re.compile(r"<p>(?:(?!</?p>).)*</p>\n?", re.DOTALL)

PEOPLE = (
    "Ada Brandt",
    "Milo Okafor",
    "Ines Tarkov",
    "Jonas Lindqvist",
    "Priya Raman",
    "Tomas Herrera",
    "Yuki Watanabe",
    "Noor Haddad",
)
MAIL_DOMAINS = ("mail-provider.example", "post-office.example", "campus-mail.example")
PUBLIC_ADDRESSES = ("8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9", "149.112.112.112")
"""Public resolvers: global addresses that name no person."""

NOTICE = """<h2>Notice</h2>
<p>The names described on this page belong to the stable part of the library. They keep their
meaning within a major version, and a change that would break a program is announced two releases
before it is made. Where a note says that something is deprecated, the replacement is named in the
same place, and a warning is given when the old name is used. Examples are checked with every
release on all platforms that are built and tested; should one of them fail for you, then please
say which release you use and how it was installed, since distributors sometimes carry changes of
their own.</p>
"""
"""A paragraph that unrelated pages share: alike in part, yet no duplicates."""


def near_copy(content: str, rng: random.Random, rate: float) -> str:
    """A copy with a banner, a dropped paragraph and a share `rate` of its words changed.

    The edits shrink until the word-5-gram Jaccard similarity is at least `LEAST_JACCARD`.
    """
    banner = "<p>Archived copy of this page, kept for readers of older links.</p>\n"
    shorter = _drop_paragraph(content, rng)
    for attempt in range(8):
        body = shorter if attempt < 2 else content
        copy = banner + _replace_words(body, rng, rate / 2**attempt)
        if jaccard(content, copy) >= LEAST_JACCARD:
            return copy
    raise ValueError("content is too short to be edited and stay a near-duplicate")


def _drop_paragraph(content: str, rng: random.Random) -> str:
    """Without one paragraph of at most one word in fifty."""
    most = len(words(content)) / 50
    short = [m for m in PARAGRAPH.finditer(content) if 3 <= len(words(m.group())) <= most]
    if not short:
        return content
    chosen = rng.choice(short)
    return content[: chosen.start()] + content[chosen.end() :]


def _replace_words(content: str, rng: random.Random, rate: float) -> str:
    """Put other words of the same page in the place of a share of the longer words."""
    pieces = TAG.split(content)
    spots = [
        (i, match)
        for i in range(0, len(pieces), 2)
        for match in re.finditer(r"(?<![\w&#])[a-z]{4,}(?![\w;])", pieces[i])
    ]
    count = min(len(spots), max(1, round(rate * len(words(content)))))
    for i, match in sorted(rng.sample(spots, count), key=lambda s: (s[0], s[1].start()))[::-1]:
        other = rng.choice(spots)[1].group()
        pieces[i] = pieces[i][: match.start()] + other + pieces[i][match.end() :]
    return "".join(pieces)


def garbled(content: str, rng: random.Random, manner: str) -> str:
    """Content whose words are unreadable: `symbols`, `mojibake` or `digits`."""
    found = [word for word in visible_text(content).split() if word.isalpha()][:400]
    spoilt = [_spoil(word, rng, manner) for word in found]
    rows = [spoilt[i : i + 50] for i in range(0, len(spoilt), 50)]
    return "\n".join(f"<p>{html.escape(' '.join(row))}</p>" for row in rows)


def _spoil(word: str, rng: random.Random, manner: str) -> str:
    if manner == "symbols":
        return "".join(rng.choice("¤§¶†‡•¬±÷¿¡#%*~^|{}[]$") for _ in word)
    if manner == "mojibake":
        return re.sub("[aeiouy]", lambda _: rng.choice(("Ã©", "â€™", "Ã¼", "Â¤")), word.lower())
    return "".join(rng.choice("0123456789abcdef") for _ in range(24))


def repeated(content: str, rng: random.Random, times: int = 25) -> str:
    """A few of the content's sentences, over and over."""
    sentences = re.split(r"(?<=\.)\s+", visible_text(content))
    sentences = [sentence for sentence in sentences if 6 <= len(sentence.split()) < 40]
    chosen = rng.sample(sentences, min(3, len(sentences)))
    return "\n".join(f"<p>{html.escape(' '.join(s.split()))}</p>" for s in chosen * times)


def navigation(pages: Sequence[Page], rng: random.Random) -> str:
    """Links and nothing else."""
    links = rng.sample(list(pages), min(120, len(pages)))
    items = "\n".join(f'<li><a href="{p.url}">{html.escape(p.title)}</a></li>' for p in links)
    return f"<ul>\n{items}\n</ul>\n<p>Home | Up | Previous | Next | Log in | Share</p>"


def personal(content: str, rng: random.Random) -> tuple[str, list[str]]:
    """Content with addresses of invented people and public resolvers, and those addresses."""
    people = rng.sample(PEOPLE, rng.randint(1, 3))
    mails = [f"{name.lower().replace(' ', '.')}@{rng.choice(MAIL_DOMAINS)}" for name in people]
    names = ", ".join(f"{name} ({mail})" for name, mail in zip(people, mails, strict=True))
    text = f"<h2>Contact</h2>\n<p>Questions are answered by {names} within a week.</p>"
    hosts = rng.sample(PUBLIC_ADDRESSES, rng.randint(0, 2))
    for host in hosts:
        text += f"\n<p>On that day the example server answered from {host} only.</p>"
    return f"{content}\n{text}\n", mails + hosts


def leaking(content: str, text: str) -> str:
    """Content with the text of a benchmark item pasted in."""
    return f"{content}\n<h2>Test yourself</h2>\n<p>{html.escape(text)}</p>\n"


BROKEN = (
    "http_404",
    "http_500",
    "not_html",
    "empty_body",
    "truncated",
    "invalid_utf8",
    "malformed_http",
    "cut_record",
)


def broken(manner: str, url: str, body: bytes) -> Exchange:
    """A record that cannot become a document, made of a whole page `body`."""
    noise = b"".join(hashlib.sha256(f"{url}/{i}".encode()).digest() for i in range(64))
    match manner:
        case "http_404":
            return Exchange(url, body, status="404 Not Found")
        case "http_500":
            return Exchange(url, body, status="500 Internal Server Error")
        case "not_html":
            return Exchange(url, b"\x89PNG\r\n\x1a\n" + noise, content_type="image/png")
        case "empty_body":
            return Exchange(url, b"")
        case "truncated":
            return Exchange(url, body[: len(body) // 2], truncated="length")
        case "invalid_utf8":
            return Exchange(url, b"<html><body><p>" + bytes(b | 0x80 for b in noise) + b"</p>")
        case "malformed_http":
            return Exchange(url, b"", raw=b"\x00\x01\x02 no status line here\r\n" + body[:500])
        case "cut_record":
            return Exchange(url, body, cut=len(body) // 2)
    raise ValueError(f"no broken record of manner {manner!r}")
