"""One pass over a page's tree: its blocks, and the containers around them.

A block is a run of inline content under one block-level element, uninterrupted by another: a
paragraph, a list item, a cell, a heading, or the loose text of a `div`. Two line breaks in a row
end a block too. Containers are the block-level elements, in document order, each with its parent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from stages.ingest.extraction.errors import PageTooLarge
from stages.ingest.extraction.vocabulary import (
    BLOCK,
    PLACE_BIT,
    ROLE_PLACE,
    TAG_PLACE,
    UNSHOWN,
)
from stages.ingest.markdown.formulas import formula_of

BREAK = "\x00"  # the parser leaves no NUL in a text
_LINK, _PRE = 1, 2
_HIDDEN = PLACE_BIT["hidden"]
_IN_LINK = PLACE_BIT["link"]
_ROOT = -1

# What the pass does with an element.
_INLINE, _BLOCK, _A, _SPAN, _BR, _RULE, _FORMULA, _DECLARES, _UNSHOWN = range(9)
_KIND = {
    **dict.fromkeys(BLOCK, _BLOCK),
    **dict.fromkeys(UNSHOWN, _UNSHOWN),
    "a": _A,
    "span": _SPAN,
    "br": _BR,
    "hr": _RULE,
    "math": _FORMULA,
    "script": _FORMULA,
    "title": _DECLARES,
    "meta": _DECLARES,
    "-comment": _UNSHOWN,
}


@dataclass(slots=True)
class Containers:
    """Block-level elements in document order; one list a fact, `parent` is an index or -1."""

    parent: list[int] = field(default_factory=list)
    tag: list[int] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # bits, ancestors' included
    names: list[str] = field(default_factory=list)  # class, id, role, itemprop
    first_block: list[int] = field(default_factory=list)
    row: list[int] = field(default_factory=list)  # nearest table row, or -1
    item: list[int] = field(default_factory=list)  # nearest list item, or -1
    article: list[int] = field(default_factory=list)  # outermost `article`, or -1


@dataclass(slots=True)
class Blocks:
    """Blocks in document order; one list a fact."""

    text: list[str] = field(default_factory=list)
    container: list[int] = field(default_factory=list)
    link_characters: list[int] = field(default_factory=list)
    preformatted: list[bool] = field(default_factory=list)
    text_nodes: list[list[int]] = field(default_factory=list)  # mem_ids, if asked for
    containers: Containers = field(default_factory=Containers)
    nodes: int = 0
    title: str = ""
    descriptions: list[str] = field(default_factory=list)


def segment(tree: LexborHTMLParser, max_nodes: int = 1 << 62, text_nodes: bool = False) -> Blocks:
    """The blocks of a page, in time linear in its nodes; `PageTooLarge` for more than allowed.

    With `text_nodes` each block names the text nodes that it is made of.
    """
    found = Blocks()
    if tree.root is not None:
        _Walk(found, text_nodes).run(tree.root, max_nodes)
    if found.nodes > max_nodes:
        raise PageTooLarge("too_many_nodes", f"more than {max_nodes:,} nodes")
    return found


class _Walk:
    """The state of one pass: which container and flags hold below each element seen so far."""

    def __init__(self, found: Blocks, text_nodes: bool) -> None:
        self.found = found
        self.names_text_nodes = text_nodes
        self.containers: list[tuple[int, int, int, int, str, int, int, int, int]] = []
        self.below: dict[int, tuple[int, int]] = {}
        self.pieces: list[str] = []
        self.ids: list[int] = []
        self.linked = 0
        self.open_in = _ROOT - 1
        self.open_flags = 0
        self.breaks = 0

    def run(self, root: LexborNode, max_nodes: int) -> None:
        below, pieces, kinds = self.below, self.pieces, _KIND
        ids = self.ids if self.names_text_nodes else None
        nodes = 0
        if root.parent is not None:
            below[root.parent.mem_id] = (_ROOT, 0)
        for node in islice(root.traverse(include_text=True), max_nodes + 1):
            nodes += 1
            parent = node.parent
            tag = node.tag or ""
            state = below.get(parent.mem_id) if parent is not None else (_ROOT, 0)
            if tag == "-text":
                if state is None:
                    continue
                text = node.text_content or ""
                container, flags = state
                if container != self.open_in:
                    if text.isspace():
                        continue
                    if pieces:
                        self.close()
                    self.open_in = container
                    self.open_flags = flags
                elif self.breaks and not text.isspace():
                    self.breaks = 0
                pieces.append(text)
                if ids is not None:
                    ids.append(node.mem_id)
                if flags & _LINK:
                    self.linked += len(text)
                continue
            kind = kinds.get(tag, _INLINE)
            if state is None:
                if kind == _DECLARES:
                    self.head_element(node, tag)
            elif kind == _BLOCK:
                if pieces:
                    self.close()
                below[node.mem_id] = self.open_container(node, tag, state)
            elif kind == _INLINE:
                below[node.mem_id] = state
            elif kind == _A:
                below[node.mem_id] = (state[0], state[1] | _LINK)
            elif kind != _UNSHOWN:
                self.special(node, tag, kind, state)
        self.close()
        self.found.nodes = nodes
        if self.containers:
            self.found.containers = Containers(*map(list, zip(*self.containers, strict=True)))

    def special(self, node: LexborNode, tag: str, kind: int, state: tuple[int, int]) -> None:
        """Elements that do more than hold text: breaks, rules, formulas, spans that hide."""
        if kind == _SPAN:
            if self.shown_span(node, state):
                self.below[node.mem_id] = state
        elif kind == _BR:
            self.line_break(state)
        elif kind == _RULE:
            self.close()
        elif kind == _FORMULA and not self.formula(node, tag, state) and tag == "math":
            self.below[node.mem_id] = state

    def open_container(self, node: LexborNode, tag: str, state: tuple[int, int]) -> tuple[int, int]:
        """Note a block-level element; what holds below it."""
        parent, flags = state
        rows = self.containers
        index = len(rows)
        if parent >= 0:
            _, _, depth, places, _, _, row, item, article = rows[parent]
        else:
            depth, places, row, item, article = -1, 0, -1, -1, -1
        places |= TAG_PLACE[tag]
        names = ""
        attributes = node.attributes
        if attributes:
            names = attributes.get("class") or ""
            if len(attributes) > 1 or not names:
                names, added = _named(names, attributes)
                places |= added
        if flags & _LINK:
            places |= _IN_LINK
        if tag == "pre" or tag == "listing" or tag == "xmp":
            flags |= _PRE
        elif tag == "tr":
            row = index
        elif tag == "li":
            item = index
        elif tag == "article" and article < 0:
            article = index
        first = len(self.found.text)
        rows.append((parent, BLOCK[tag], depth + 1, places, names, first, row, item, article))
        return index, flags

    def close(self) -> None:
        """End the open block; keep it if it says anything."""
        if self.pieces:
            raw = "".join(self.pieces)
            preformatted = bool(self.open_flags & _PRE)
            text = _preformatted(raw) if preformatted else _lines(raw)
            if text:
                found = self.found
                found.text.append(text)
                found.container.append(self.open_in)
                found.link_characters.append(min(self.linked, len(text)))
                found.preformatted.append(preformatted)
                if self.names_text_nodes:
                    found.text_nodes.append(self.ids[:])
            self.pieces.clear()
            self.ids.clear()
        self.linked = 0
        self.breaks = 0
        self.open_in = _ROOT - 1

    def line_break(self, state: tuple[int, int]) -> None:
        if self.open_in != state[0]:
            return
        self.breaks += 1
        if self.breaks > 1 and not state[1] & _PRE:
            self.close()
        else:
            self.pieces.append("\n" if state[1] & _PRE else BREAK)

    def formula(self, node: LexborNode, tag: str, state: tuple[int, int]) -> bool:
        """Write the formula that the element is, as TeX between dollar signs; False for none."""
        attributes = node.attributes
        classes = frozenset((attributes.get("class") or "").split())
        formula = formula_of(node, tag, attributes, classes)
        if formula is None:
            return False
        self.add_tex(formula.markdown, state)
        return True

    def shown_span(self, node: LexborNode, state: tuple[int, int]) -> bool:
        """Whether a span's own text counts; formulas that it draws or hides are written."""
        attributes = node.attributes
        if not attributes:
            return True
        name = attributes.get("class") or ""
        if name.startswith("katex"):
            return not self.formula(node, "span", state)
        if name.startswith("MathJax"):
            return False
        if _unshown(attributes):
            math = node.css_first("math")
            if math is not None:
                self.formula(math, "math", state)
            return False
        return True

    def add_tex(self, tex: str, state: tuple[int, int]) -> None:
        if state[0] != self.open_in:
            self.close()
            self.open_in, self.open_flags = state
        self.breaks = 0
        self.pieces.append(tex)

    def head_element(self, node: LexborNode, tag: str) -> None:
        """Title and descriptions, for comparison with the blocks."""
        if tag == "title":
            if not self.found.title and node.parent is not None and node.parent.tag == "head":
                self.found.title = _lines(node.text() or "")
            return
        attributes = node.attributes
        if tag == "meta":
            name = attributes.get("property") or attributes.get("name") or ""
            content = attributes.get("content")
            if content and name.lower() in ("description", "og:description", "og:title"):
                self.found.descriptions.append(_lines(content))


def _lines(raw: str) -> str:
    """White space squeezed; each `<br>` ends a line."""
    if BREAK not in raw:
        return " ".join(raw.split())
    lines = (" ".join(line.split()) for line in raw.split(BREAK))
    return "\n".join(line for line in lines if line)


def _preformatted(raw: str) -> str:
    """Line breaks and indents kept; spaces at line ends and blank lines at the ends dropped."""
    lines = [line.rstrip() for line in raw.replace(BREAK, "\n").expandtabs(4).split("\n")]
    return "\n".join(lines).strip("\n")


def _named(names: str, attributes: dict[str, str | None]) -> tuple[str, int]:
    """The names of an element beside its class, and the places that its attributes tell."""
    if identity := attributes.get("id"):
        names = f"{names} {identity}"
    if marked := attributes.get("itemprop"):
        names = f"{names} {marked}"
    places = _HIDDEN if _unshown(attributes) else 0
    if role := attributes.get("role"):
        places |= ROLE_PLACE.get(role.lower(), 0)
    return names, places


def _unshown(attributes: dict[str, str | None]) -> bool:
    if "hidden" in attributes:
        return True
    style = attributes.get("style")
    if not style:
        return False
    squeezed = style.replace(" ", "").lower()
    return "display:none" in squeezed or "visibility:hidden" in squeezed


__all__ = ["BREAK", "Blocks", "Containers", "segment"]
