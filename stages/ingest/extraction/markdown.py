"""The main text of a page as Markdown: CommonMark with GitHub's tables and `$` formulas.

The library html-to-markdown converts a whole page. So the tree is cut to what the extractor kept
first, and what the library would write so that it reads as something else is changed: text that
looks like markup is escaped where a reader of Markdown would take it for markup (the library
escapes all punctuation, `3\\.6\\.0`, or none), emphasis beside letters and punctuation that
CommonMark could not read is unwrapped
(https://spec.commonmark.org/0.31.2/#emphasis-and-strong-emphasis), layout tables become blocks, and
nesting is bounded, as the library's time is quadratic in it. On 150 shared pages a reader of the
Markdown finds the kept text, no more and no less, on 147; a writer of our own, four times as long,
reached 141.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode, create_tag

from stages.ingest.extraction.blocks import Formula, formula_in

MOST_NESTED = 12
"""Lists and quotes inside each other that are written; deeper ones join the one above."""
DEEPEST = 500
"""Elements inside each other that are written; the library drops what lies 1,024 deep."""
LONGEST_TARGET = 2_048
WIDEST, LONGEST_CELL = 64, 1_000
"""Columns of a data table, characters of its cells."""
_ESCAPE, _FORMULA = "\ufdd0", "\ufdd1"
"""Noncharacters that stand for a backslash and around a formula's number until the end."""
_MARKS = re.compile("[*`\\[\\]_<~&$\ufdd0\ufdd1]")
_MARKUP = re.compile(
    r"\\(?=[*`\[\]_<~&$])|[*`\[\]]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?]|$)|(?<=\S)~|&(?=#?[0-9A-Za-z]{1,31};)"
    r"|(?<=\S)\$(?!\d)|\$(?=\$)"
)
_BLOCK_START = re.compile(
    r"(\s*)(?:(\#{1,6}(?=\s|$)|>|[-+](?=\s|$)|={1,}\s*$|~{3}|[-:|\s]+$)|(\d{1,9})(?=[.)](?:\s|$)))",
    re.ASCII,
)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE | re.ASCII)
_SPACES = re.compile(r"[ \t\n\r\f]+")
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_TARGET = {ord(mark): f"%{ord(mark):02X}" for mark in " ()<>\\`\"'|"}
_VERBATIM = frozenset({"pre", "code", "kbd", "samp", "tt", "listing", "xmp"})
_NESTING = frozenset({"ul", "ol", "menu", "dir", "blockquote"})
_HEADINGS = "h1,h2,h3,h4,h5,h6"
_PARTS = "p,ul,ol,dl,table,pre,blockquote,article,section,hr," + _HEADINGS
_NOT_IN_CELLS = "table,blockquote,pre,hr,form,article," + _HEADINGS


def to_markdown(tree: LexborHTMLParser, kept: Collection[int]) -> str:
    """The page as Markdown; of its text only the nodes whose `mem_id` is in `kept`.

    A formula gives its TeX where it holds kept text or is next to it; pictures are not written.
    Links go to http, https, mailto or relative targets; others are plain text. The tree is changed.
    """
    from html_to_markdown import (
        ConversionOptions,
        HiddenContent,
        PreprocessingOptions,
        convert,
    )

    if tree.root is None:
        return ""
    page = _Selection(frozenset(kept))
    page.read(tree.root)
    if not page.texts:
        return ""
    _cut(tree, page)
    for inline in tree.css("pre a,pre b,pre strong,pre i,pre em,pre pre"):
        inline.unwrap()
    for line_break in tree.css("a>br,b>br,strong>br,i>br,em>br"):
        if line_break.prev is None or line_break.next is None:
            line_break.decompose()
    for table in tree.css("table"):
        if not _is_data_table(table):
            for cell in table.css("td,th,caption"):
                _to_block(cell)
    for heading in tree.css(_HEADINGS):
        if _holds(heading, _PARTS):
            heading.unwrap()  # Never closed: it holds the rest of the page.
    options = ConversionOptions(
        autolinks=False,
        bullets="-",
        compact_tables=True,
        expand_abbreviations=False,
        extract_metadata=False,
        hidden_content=HiddenContent.ALL,
        preprocessing=PreprocessingOptions(
            enabled=False, remove_forms=False, remove_navigation=False
        ),
        highlight_style="none",
    )
    text = convert(tree.html or "", options).content or ""
    for number, formula in enumerate(page.formulas):
        text = text.replace(f"{_FORMULA}{number}{_FORMULA}", formula[1].markdown, 1)
    text = text.replace(
        f"{_ESCAPE}\\*", f"{_ESCAPE}*"
    )  # In bold cells the library escapes it, too.
    return text.replace(_ESCAPE, "\\").strip("\n")


class _Selection:
    """What of a tree is written, found in one pass in document order; nothing is changed yet."""

    def __init__(self, kept: frozenset[int]) -> None:
        self.kept = kept
        self.needed: set[int] = set()
        """Elements that hold what is written."""
        self.texts: list[tuple[LexborNode, str]] = []
        """Kept text, and whether it is `code`, in a `link` or neither."""
        self.formulas: list[tuple[LexborNode, Formula]] = []
        self.too_deep: list[LexborNode] = []
        self.emphasis: list[LexborNode] = []
        self._waiting: list[tuple[LexborNode, Formula | None, bool]] = []
        """Formulas and rules until the next text is known, and whether kept text came before."""

    def read(self, root: LexborNode) -> None:
        """Read the whole tree."""
        skipped: set[int] = set()
        levels: dict[
            int, tuple[int, int, str]
        ] = {}  # Depth, lists and quotes around, code or link.
        after_kept = False
        for node in root.traverse(include_text=True):
            parent, tag = node.parent, node.tag or ""
            above = parent.mem_id if parent is not None else 0
            if above in skipped:
                skipped.add(node.mem_id)
                if node.mem_id in self.kept and self._waiting:
                    self._waiting[-1] = (*self._waiting[-1][:2], True)
                continue
            depth, nested, within = levels.get(above, (0, 0, ""))
            if tag == "-text":
                if (node.text_content or "").strip(" \t\n\r\f"):
                    after_kept = node.mem_id in self.kept
                    self._settle(after_kept)
                    if after_kept:
                        self.texts.append((node, within))
                        self._need(parent)
                continue
            if within != "code" and (
                tag == "hr" or (formula := self._formula(node, tag)) is not None
            ):
                skipped.add(node.mem_id)
                self._waiting.append((node, None if tag == "hr" else formula, after_kept))
                continue
            if tag in _NESTING:
                nested += 1
            if tag in _VERBATIM:
                within = "code"
            elif tag == "a":
                within = within or "link"
            levels[node.mem_id] = (depth + 1, nested, within)
            if depth > DEEPEST or (nested > MOST_NESTED and tag in (*_NESTING, "li")):
                self.too_deep.append(node)
            elif tag in ("b", "strong", "i", "em"):
                self.emphasis.append(node)
        self._settle(False)

    def _formula(self, node: LexborNode, tag: str) -> Formula | None:
        if tag not in ("math", "script", "img", "span", "div"):
            return None
        attributes = node.attributes
        classes = frozenset((attributes.get("class") or "").split())
        return formula_in(node, tag, attributes, classes)

    def _settle(self, before_kept: bool) -> None:
        """Write formulas beside kept text, and rules between."""
        for node, formula, after_kept in self._waiting:
            if formula is not None and (after_kept or before_kept):
                self.formulas.append((node, formula))
                self._need(node)
            elif formula is None and after_kept and before_kept and node is self._waiting[-1][0]:
                self._need(node)
        self._waiting = []

    def _need(self, node: LexborNode | None) -> None:
        while node is not None and node.mem_id not in self.needed:
            self.needed.add(node.mem_id)
            node = node.parent


def _cut(tree: LexborHTMLParser, page: _Selection) -> None:
    """Take out of the tree what is not written; escape and mend the rest."""
    assert tree.root is not None
    dropped = list(_dropped(tree.root, page))
    for number, (node, _) in enumerate(page.formulas):
        node.replace_with(f"{_FORMULA}{number}{_FORMULA}")
    for node, within in page.texts:
        text = node.text_content or ""
        if within == "code":
            continue
        written = _escape(text, bool(page.formulas))
        if within == "link":  # The library escapes brackets in links itself.
            written = written.replace(f"{_ESCAPE}[", "[").replace(f"{_ESCAPE}]", "]")
        if written != text:
            node.replace_with(written)
    for node in dropped:
        node.decompose()
    for node in page.emphasis:
        if node.mem_id in page.needed and not _is_readable(node):
            node.unwrap()
    for node in page.too_deep:
        if node.mem_id in page.needed:
            node.insert_before(" ")
            node.unwrap()
    for ordered in tree.css("ol[start]"):
        if not re.fullmatch("[0-9]{1,4}", ordered.attributes.get("start") or ""):
            del ordered.attrs["start"]
    for link in tree.css("a[href]"):
        target = link_target(link.attributes.get("href"))
        if target is None:
            link.unwrap()
        else:
            link.attrs["href"] = target


def _dropped(root: LexborNode, page: _Selection) -> Iterator[LexborNode]:
    """The highest nodes that hold nothing that is written; cells of a table row stay, empty."""
    for node in root.traverse(include_text=True):
        parent = node.parent
        if parent is None or parent.mem_id not in page.needed or node.mem_id in page.needed:
            continue
        if node.tag in ("td", "th"):
            page.needed.add(node.mem_id)
        elif node.is_text_node:
            blank = not (node.text_content or "").strip(" \t\n\r\f")
            if not blank and node.mem_id not in page.kept:
                yield node
        elif node.tag != "br":
            yield node


def _escape(text: str, dollars: bool) -> str:
    """Text in which nothing is markup. Beside formulas every dollar sign is escaped.

    Without one, a dollar sign is left alone where it could not close a formula: `$5 and $10`.
    """
    text = _SPACES.sub(" ", text)
    if _MARKS.search(text):
        text = text.replace(_ESCAPE, "").replace(_FORMULA, "")
        text = _MARKUP.sub(rf"{_ESCAPE}\g<0>", text)
        if dollars:
            text = re.sub(rf"(?<!{_ESCAPE})\$", f"{_ESCAPE}$", text)
    if start := _BLOCK_START.match(text):
        at = start.end() if start[3] else start.end(1)
        text = f"{text[:at]}{_ESCAPE}{text[at:]}"
    return text


def _is_readable(node: LexborNode) -> bool:
    """Whether Markdown reads delimiters around an element as emphasis, by the flanking rule."""
    text = node.text().strip()
    return bool(text) and all(
        unicodedata.category(inner)[0] not in "PS"
        or outer.isspace()
        or unicodedata.category(outer)[0] == "P"
        for inner, outer in ((text[0], _edge(node.prev, -1)), (text[-1], _edge(node.next, 0)))
    )


def _edge(node: LexborNode | None, end: int) -> str:
    """The character at an end of the node next to an element."""
    return ((node.text() if node is not None else "") or " ")[end]


def _is_data_table(table: LexborNode) -> bool:
    """Whether a table is rows of short cells, and not a page laid out in a grid.

    Data has two cells with text in one row, and two such rows or a heading cell; its cells hold no
    table, heading, quote or block of code.
    """
    role = (table.attributes.get("role") or "").lower()
    if role in ("presentation", "none") or _holds(table, _NOT_IN_CELLS):
        return False
    rows = [[cell.text().strip() for cell in row.css("td,th")] for row in table.css("tr")]
    filled = [sum(map(bool, row)) for row in rows]
    several = sum(count > 0 for count in filled) > 1 or table.css_first("th") is not None
    longest = max((len(cell) for row in rows for cell in row), default=0)
    return several and 2 <= max(filled, default=0) <= WIDEST and longest <= LONGEST_CELL


def _holds(node: LexborNode, selector: str) -> bool:
    """Whether an element holds one that the selector names."""
    return any(child.css_first(selector) is not None for child in node.iter())


def _to_block(cell: LexborNode) -> None:
    """Put a `div` in the place of a cell."""
    cell.insert_before(create_tag("div"))
    block = cell.prev
    assert block is not None
    for child in list(cell.iter(include_text=True)):
        block.insert_child(child)
    cell.decompose()


def link_target(href: str | None) -> str | None:
    """A target as Markdown writes it: http, https, mailto or relative; None for any other.

    Control characters go first, as browsers take `java\\nscript:` for what it means.
    """
    target = _CONTROLS.sub("", (href or "")[: 2 * LONGEST_TARGET]).strip()
    if not target or target.startswith("#") or len(target) > LONGEST_TARGET:
        return None
    scheme = _SCHEME.match(target)
    if scheme and scheme[1].lower() not in ("http", "https", "mailto"):
        return None
    return target.translate(_TARGET)
