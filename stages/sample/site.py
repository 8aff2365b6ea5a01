"""The made-up site around the pages: what is on every page and an extractor must leave."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stages.sample.harvest import DocPage

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

    def with_content(self, content: str) -> Page:
        """The same page with other content."""
        return replace(self, content=content)


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


def framed(page: Page, version: str) -> bytes:
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
