"""One pass over a page's tree: its blocks, the containers around them, and formulas as TeX.

A block is a run of inline content under one block-level element, uninterrupted by another: a
paragraph, a list item, a cell, a heading, or the loose text of a `div`. Two line breaks in a row
end a block too. Containers are the block-level elements, in document order, each with its parent.

Pages show a formula in two or three forms at once (MathML for screen readers, spans for the eye, a
picture). Here the TeX is read once (MathML annotations, MathJax scripts, KaTeX, pictures with TeX
as text), and the element that holds all forms is named, so that a reader of the tree can skip it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from stages.ingest.extraction.nesting import PageTooLarge
from stages.ingest.extraction.vocabulary import BLOCK, NOT_SHOWN, PLACE_BIT, ROLE_PLACE, TAG_PLACE

LONGEST_FORMULA = 20_000
_STYLE = re.compile(r"\{\\(?:displaystyle|textstyle)\s*(.*)\}", re.DOTALL)
_DOLLAR = re.compile(r"(?<!\\)\$")
_PICTURES = frozenset({"tex", "latex", "mwe-math-fallback-image-inline"})


@dataclass(frozen=True, slots=True)
class Formula:
    """TeX on one line, and whether it is on a line of its own."""

    tex: str
    display: bool

    @property
    def markdown(self) -> str:
        """The formula between dollar signs."""
        mark = "$$" if self.display else "$"
        return f"{mark}{self.tex}{mark}"


def formula_in(
    node: LexborNode, tag: str, attributes: dict[str, str | None], classes: frozenset[str]
) -> Formula | None:
    """The formula that an element is; None for another element or one without TeX.

    `math` (by `alttext` or its annotation in TeX), `script type="math/tex"`, `.katex`, and pictures
    of TeX. The cost is that of the element's own subtree.
    """
    if tag == "script":
        kind = (attributes.get("type") or "").lower()
        return (
            _formula(node.text(), "mode=display" in kind) if kind.startswith("math/tex") else None
        )
    if tag == "math":
        display = attributes.get("display") == "block" or attributes.get("mode") == "display"
        tex = _formula(attributes.get("alttext"), display)
        return tex or _formula(_annotation(node), display)
    if tag == "img":
        return _formula(attributes.get("alt"), False) if classes & _PICTURES else None
    if "katex" in classes or "katex-display" in classes:
        return _formula(_annotation(node), "katex-display" in classes)
    return None


def _annotation(node: LexborNode) -> str | None:
    annotation = node.css_first('annotation[encoding="application/x-tex" i]')
    return annotation.text() if annotation is not None else None


def _formula(tex: str | None, display: bool) -> Formula | None:
    """A formula whose TeX can stand between dollar signs."""
    tex = " ".join((tex or "")[: LONGEST_FORMULA + 1].split())
    if match := _STYLE.fullmatch(tex):
        tex = match[1].strip()
    if tex[:2] == tex[-2:] == "$$" or (tex[:1] == tex[-1:] == "$" and len(tex) > 2):
        tex = tex.strip("$").strip()
    tex = tex.rstrip("\\") if tex.endswith("\\") and not tex.endswith("\\\\") else tex
    if not tex or len(tex) > LONGEST_FORMULA or _DOLLAR.search(tex):
        return None
    return Formula(tex, display)


BREAK = "\x00"  # the parser leaves no NUL in a text
_LINK, _PRE = 1, 2
_HIDDEN = PLACE_BIT["hidden"]
_IN_LINK = PLACE_BIT["link"]
_ROOT = -1

# What the pass does with an element.
_INLINE, _BLOCK, _A, _SPAN, _BR, _RULE, _FORMULA, _DECLARES, _UNSHOWN = range(9)
_KIND = {
    **dict.fromkeys(BLOCK, _BLOCK),
    **dict.fromkeys(NOT_SHOWN, _UNSHOWN),
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
    blocks = Blocks()
    if tree.root is not None:
        _BlockWalk(blocks, text_nodes).run(tree.root, max_nodes)
    if blocks.nodes > max_nodes:
        raise PageTooLarge("too_many_nodes", f"more than {max_nodes:,} nodes")
    return blocks


class _BlockWalk:
    """The state of one pass: which container and flags hold below each element seen so far."""

    def __init__(self, blocks: Blocks, text_nodes: bool) -> None:
        self.blocks = blocks
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
        self.blocks.nodes = nodes
        if self.containers:
            self.blocks.containers = Containers(*map(list, zip(*self.containers, strict=True)))

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
                names, added = _names_and_places(names, attributes)
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
        first = len(self.blocks.text)
        rows.append((parent, BLOCK[tag], depth + 1, places, names, first, row, item, article))
        return index, flags

    def close(self) -> None:
        """End the open block; keep it if it says anything."""
        if self.pieces:
            raw = "".join(self.pieces)
            preformatted = bool(self.open_flags & _PRE)
            text = _preformatted(raw) if preformatted else _lines(raw)
            if text:
                blocks = self.blocks
                blocks.text.append(text)
                blocks.container.append(self.open_in)
                blocks.link_characters.append(min(self.linked, len(text)))
                blocks.preformatted.append(preformatted)
                if self.names_text_nodes:
                    blocks.text_nodes.append(self.ids[:])
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
        formula = formula_in(node, tag, attributes, classes)
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
        if _is_hidden(attributes):
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
            if not self.blocks.title and node.parent is not None and node.parent.tag == "head":
                self.blocks.title = _lines(node.text() or "")
            return
        attributes = node.attributes
        if tag == "meta":
            name = attributes.get("property") or attributes.get("name") or ""
            content = attributes.get("content")
            if content and name.lower() in ("description", "og:description", "og:title"):
                self.blocks.descriptions.append(_lines(content))


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


def _names_and_places(names: str, attributes: dict[str, str | None]) -> tuple[str, int]:
    """The class, id and itemprop of an element, and the places that its attributes name."""
    if identity := attributes.get("id"):
        names = f"{names} {identity}"
    if marked := attributes.get("itemprop"):
        names = f"{names} {marked}"
    places = _HIDDEN if _is_hidden(attributes) else 0
    if role := attributes.get("role"):
        places |= ROLE_PLACE.get(role.lower(), 0)
    return names, places


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    if "hidden" in attributes:
        return True
    style = attributes.get("style")
    if not style:
        return False
    squeezed = style.replace(" ", "").lower()
    return "display:none" in squeezed or "visibility:hidden" in squeezed
