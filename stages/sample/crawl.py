"""The crawl of a made-up site: its pages, and the WARC 1.1 records that hold them.

Around each page is what every page of a site has and an extractor must leave out. Records are
written byte for byte, so that equal records give equal files on every machine (ISO 28500:2017).
They are not compressed, so a file's bytes do not depend on a version of zlib, and a record is named
by the offset of its first line.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stages.sample.modules import DocPage

DATE = "2024-01-15T12:00:00Z"
HTML = "text/html; charset=utf-8"


@dataclass(frozen=True)
class Exchange:
    """A response as the crawler saw it. `raw` replaces the whole HTTP message, `cut` drops its end.

    `truncated` is the reason of a WARC-Truncated header. A record with `cut` promises more bytes
    than follow, so it can only stand last in its file.
    """

    url: str
    body: bytes
    status: str = "200 OK"
    content_type: str = HTML
    truncated: str | None = None
    raw: bytes | None = None
    cut: int = 0


def response_record(exchange: Exchange) -> bytes:
    """A `response` record with the HTTP message of `exchange`."""
    message = exchange.raw if exchange.raw is not None else _http(exchange)
    headers = [
        ("WARC-Type", "response"),
        ("WARC-Record-ID", _record_id(exchange.url)),
        ("WARC-Date", DATE),
        ("WARC-Target-URI", exchange.url),
        ("WARC-IP-Address", "192.0.2.10"),
        ("WARC-Payload-Digest", _sha1(exchange.body)),
        ("Content-Type", "application/http; msgtype=response"),
    ]
    if exchange.truncated:
        headers.append(("WARC-Truncated", exchange.truncated))
    whole = _record(headers, message)
    return whole[: len(whole) - exchange.cut] if exchange.cut else whole


def warcinfo_record(file: str) -> bytes:
    """The record that opens a file."""
    fields = "software: ingot sample\r\nformat: WARC File Format 1.1\r\nrobots: obey\r\n"
    return _record(
        [
            ("WARC-Type", "warcinfo"),
            ("WARC-Record-ID", _record_id(f"warcinfo:{file}")),
            ("WARC-Date", DATE),
            ("WARC-Filename", file),
            ("Content-Type", "application/warc-fields"),
        ],
        fields.encode(),
    )


def warc_file(name: str, exchanges: Iterable[Exchange]) -> tuple[bytes, list[int]]:
    """A file's bytes, and the offset of the record of each exchange."""
    parts = [warcinfo_record(name)]
    offset, offsets = len(parts[0]), []
    for exchange in exchanges:
        offsets.append(offset)
        parts.append(response_record(exchange))
        offset += len(parts[-1])
    return b"".join(parts), offsets


def _http(exchange: Exchange) -> bytes:
    head = (
        f"HTTP/1.1 {exchange.status}\r\n"
        "Server: docs\r\n"
        "Date: Mon, 15 Jan 2024 12:00:00 GMT\r\n"
        f"Content-Type: {exchange.content_type}\r\n"
        f"Content-Length: {len(exchange.body)}\r\n"
        "\r\n"
    )
    return head.encode() + exchange.body


def _record(headers: Sequence[tuple[str, str]], block: bytes) -> bytes:
    lines = ["WARC/1.1", *(f"{name}: {value}" for name, value in headers)]
    lines += [f"Content-Length: {len(block)}", "", ""]
    return "\r\n".join(lines).encode() + block + b"\r\n\r\n"


def _record_id(name: str) -> str:
    return f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, name)}>"


def _sha1(data: bytes) -> str:
    digest = hashlib.sha1(data, usedforsecurity=False).digest()
    return f"sha1:{base64.b32encode(digest).decode()}"


HOST = "docs.example"
MIRROR = "mirror.docs.example"
TAG = re.compile(r"(<[^>]+>)")


@dataclass(frozen=True)
class Page:
    """A page: address, title, content (HTML without the frame), neighbours in the menu."""

    url: str
    title: str
    content: str
    menu: tuple[tuple[str, str], ...] = ()


def address(path: str, python: str, host: str = HOST) -> str:
    """Where a page lies: `python` is major.minor."""
    return f"https://{host}/python{python}/{path}.html"


def site_pages(documented: Sequence[DocPage], python: str) -> list[Page]:
    """The pages of the site, each with the pages around it in its menu."""
    pages = []
    for i, page in enumerate(documented):
        around = documented[max(0, i - 4) : i + 5]
        menu = tuple((address(near.path, python), near.title) for near in around if near != page)
        pages.append(Page(address(page.path, python), page.title, page.html, menu))
    return pages


def render_page(page: Page, version: str) -> bytes:
    """The whole HTML document: header, menu, content, footer."""
    title = html.escape(page.title)
    menu = "".join(f'<li><a href="{url}">{html.escape(name)}</a></li>' for url, name in page.menu)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title} - Python {version} documentation</title>
<link rel="canonical" href="{page.url}">
<link rel="stylesheet" href="/static/site.css">
<script>window.site = {{"theme": "light", "search": true}};</script>
</head>
<body>
<header>
<a class="logo" href="/">docs.example</a>
<nav class="top"><ul><li><a href="/">Home</a></li><li><a href="/library">Library</a></li>
<li><a href="/reference">Reference</a></li><li><a href="/blog">Blog</a></li></ul></nav>
<form action="/search"><input name="q" placeholder="Search the docs"><button>Go</button></form>
</header>
<aside class="sidebar"><h4>On this shelf</h4><ul>{menu}</ul></aside>
<main>
<article>
{page.content}
</article>
</main>
<footer>
<ul><li><a href="/about">About</a></li><li><a href="/privacy">Privacy</a></li>
<li><a href="/terms">Terms</a></li></ul>
<p>This site uses cookies. By using it you accept our terms.</p>
</footer>
</body>
</html>
""".encode()


def visible_text(content: str) -> str:
    """The words of a piece of HTML, tags taken out."""
    return html.unescape(TAG.sub(" ", content))


def page_text(content: str) -> str:
    """Text as an extractor gives it: blocks apart, lines of `pre` kept, other space squeezed."""
    parts = re.split(r"(?s)<pre>(.*?)</pre>", content)
    for i in range(0, len(parts), 2):
        line = re.sub(r"\s+", " ", parts[i])
        line = re.sub(r"</(?:p|h[1-6]|section|dl)> ?", "\n\n", line)
        line = re.sub(r"(?:</(?:dt|dd|li|div)>|<br ?/?>) ?", "\n", line)
        parts[i] = re.sub(r"(?m)^ +| +$", "", line)
    text = html.unescape(TAG.sub("", "\n".join(parts)))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def words(content: str) -> list[str]:
    """Lower-case words between white space of a piece of HTML."""
    return visible_text(content).lower().split()


def jaccard(one: str, other: str, n: int = 5) -> float:
    """Jaccard similarity of the sets of word n-grams of two pieces of HTML."""
    first, second = (
        {tuple(w[i : i + n]) for i in range(len(w) - n + 1)} for w in (words(one), words(other))
    )
    return len(first & second) / max(1, len(first | second))
