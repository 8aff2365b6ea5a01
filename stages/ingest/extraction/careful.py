"""The maintained extractors of others, behind the same interface: text of a page, or nothing."""

from __future__ import annotations

from typing import Literal

Markup = Literal["plain", "markdown"]


def trafilatura_text(html: str, markup: Markup = "plain") -> str:
    """Main text by trafilatura (comments off, tables on); empty where it finds none.

    It reads pages with lxml and in places by recursion: callers bound nesting and nodes before, and
    still it raises what it likes.
    """
    from trafilatura import extract

    kind = "markdown" if markup == "markdown" else "txt"
    found = extract(html, include_comments=False, include_tables=True, output_format=kind)
    return (found or "").strip()


def resiliparse_text(html: str) -> str:
    """Main text by resiliparse.

    The settings are those with the highest F1 on hand-made article texts among the ones that keep
    lists: links, forms, comments and alternative texts of images off.
    """
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    found: str = extract_plain_text(
        HTMLTree.parse(html),
        preserve_formatting=True,
        main_content=True,
        list_bullets=True,
        alt_texts=False,
        links=False,
        form_fields=False,
        comments=False,
    )
    return found.strip()
