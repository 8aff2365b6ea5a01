"""Blocks of Markdown, one below the other, inside quotes and list items.

Where a blank line parts two blocks and where not decides what Markdown reads: items of one list, a
list that interrupts a paragraph, two quotes or one (https://spec.commonmark.org/0.31.2/#lists).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from selectolax.lexbor import LexborNode

MOST_NESTED = 12
"""Lists and quotes inside each other that are written; deeper ones join the one above."""
HIGHEST_START = 9_999
HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(
    {"address", "article", "aside", "body", "caption", "center", "dd", "details", "dialog", "dir",
     "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frameset", "header",
     "hgroup", "html", "legend", "li", "main", "menu", "nav", "ol", "optgroup", "option", "p",
     "search", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
     "blockquote", "pre", "hr", "listing", "xmp", *HEADINGS}
)  # fmt: skip
HEADING_ENDS = BLOCKS - {"div", "hgroup", "figure", "figcaption", "legend", "summary"}
_OTHER_MARK = {"-": "*", "*": "-", ".": ")", ")": "."}
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|brush:?|sourceCode)[-: ]\s*([\w+#.-]{1,30})", re.I
)
_NAME = re.compile(r"[\w+#.-]{1,30}", re.ASCII)
_NO_LANGUAGE = frozenset({"none", "plaintext", "plain", "text", "nohighlight"})


@dataclass(slots=True, eq=False)
class ListMark:
    """How the items of an open list are marked: a bullet or the mark after a number."""

    ordered: bool
    mark: str
    number: int = 1
    """Of the next item."""
    written: bool = False


@dataclass(slots=True)
class Container:
    """A quote or an item around blocks: what stands before its first line and before the others."""

    first: str
    others: str
    list: ListMark | None = None
    written: bool = False


@dataclass(slots=True)
class Lines:
    """The Markdown so far: blocks with a blank line between, inside quotes and items."""

    out: list[str] = field(default_factory=list)
    containers: list[Container] = field(default_factory=list)
    _lists: list[ListMark] = field(default_factory=list)
    _closed: tuple[ListMark, int] | None = None
    """The list that was closed last, and the blocks before its end."""
    _blocks: int = 0
    _after_paragraph: bool = False
    _around_last: list[ListMark | None] = field(default_factory=list)

    def block(self, lines: list[str], *, paragraph: bool = False) -> None:
        """Write a block."""
        if self.out and not self._joins():
            blank = "".join(c.others for c in self.containers if c.written)
            self.out.append(blank.rstrip())
        for number, line in enumerate(lines):
            if number < 2:
                prefix = "".join(c.others if c.written else c.first for c in self.containers)
                for container in self.containers:
                    container.written = True
                    if container.list is not None:
                        container.list.written = True
            self.out.append(prefix + line if line else prefix.rstrip())
        self._after_paragraph = paragraph
        self._around_last = [c.list for c in self.containers]
        self._blocks += 1

    def between(self, line: str) -> None:
        """Write a line between blocks, outside the quotes and items that have not begun."""
        containers = self.containers
        self.containers = [c for c in containers if c.written]
        self.block([line])
        self.containers = containers

    def open_list(self, start: str | None, ordered: bool) -> None:
        """Begin a list. One at once after another of its kind gets another mark, to stay apart."""
        mark = "." if ordered else "-"
        if self._closed is not None and self._closed[1] == self._blocks:
            beside = self._closed[0]
            mark = _OTHER_MARK[beside.mark] if beside.ordered == ordered else mark
        number = (start or "").strip()
        valid = number.isascii() and number.isdigit() and len(number) <= len(str(HIGHEST_START))
        self._lists.append(ListMark(ordered, mark, int(number) if valid else 1))

    def close_list(self) -> None:
        """End the innermost list."""
        self._closed = (self._lists.pop(), self._blocks)

    def open_item(self) -> bool:
        """Begin an item of the innermost list; False if nothing is nested so deep."""
        of = self._lists[-1] if self._lists else ListMark(False, "-")
        marker = f"{of.number}{of.mark} " if of.ordered else f"{of.mark} "
        of.number += 1
        return self._contain(Container(marker, " " * len(marker), of))

    def open_quote(self) -> bool:
        """Begin a quote; False if nothing is nested so deep."""
        return self._contain(Container("> ", "> "))

    def close_container(self) -> None:
        """End the innermost item or quote."""
        self.containers.pop()

    def _contain(self, container: Container) -> bool:
        if len(self.containers) >= MOST_NESTED:
            return False
        self.containers.append(container)
        return True

    def _joins(self) -> bool:
        """Whether a block follows without a blank line: an item after a paragraph.

        Not in front of the first item of a list, unless it is nested and, as Markdown demands of
        what interrupts a paragraph, a bullet or number 1.
        """
        begun = [c for c in self.containers if not c.written]
        if not begun or not self._after_paragraph or any(c.list is None for c in begun):
            return False
        inner = begun[0].list
        assert inner is not None
        depth = len(self.containers) - len(begun)
        if inner.written:
            return self._around_last[depth : depth + 1] == [inner]
        nested = depth > 0 and self.containers[depth - 1].list is not None
        return nested and (not inner.ordered or begun[0].first == f"1{inner.mark} ")


def code_language(pre: LexborNode) -> str:
    """The language that the classes of a block of code, of its `code` or of its parent name."""
    parent = pre.parent
    for node in (pre, _first_element(pre), parent):
        if node is None:
            continue
        attributes = node.attributes
        named = (attributes.get("class") or "")[:256]
        told = attributes.get("data-lang") or attributes.get("data-language") or ""
        found = _LANGUAGE.search(named)
        language = (found[1] if found else told).lower()
        if language and language not in _NO_LANGUAGE and _NAME.fullmatch(language):
            return language
    return ""


def _first_element(node: LexborNode) -> LexborNode | None:
    child = node.first_child
    for _ in range(4):
        if child is None or child.is_element_node:
            return child
        child = child.next
    return None
