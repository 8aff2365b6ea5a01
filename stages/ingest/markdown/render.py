"""The main text of a page as Markdown: CommonMark with GitHub's tables and `$` formulas.

The tree is walked once, in document order and without recursion. Of its text only the nodes that
the extractor kept are written, so the text is the same whatever the markup; the elements around
them give headings, lists, quotes, code, tables, emphasis and links. Nesting is written down to a
depth that no honest page passes, so that the cost stays linear on pages that nest thousands deep.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from stages.ingest.markdown.blocks import (
    BLOCKS,
    HEADING_ENDS,
    HEADINGS,
    Lines,
    code_language,
)
from stages.ingest.markdown.formulas import Formula, formula_of, is_formula_preview
from stages.ingest.markdown.inline import (
    Piece,
    Run,
    fence,
    guarded,
    link_target,
    render,
)
from stages.ingest.markdown.tables import Table, is_data_table

LONGEST_ALT = 300
MOST_PIECES = 20_000
"""Pieces of text and markup of a paragraph, after which another one begins."""
_STYLES = {"b": "**", "strong": "**", "i": "*", "em": "*"}
_CODE = frozenset({"code", "kbd", "samp", "tt"})
_SKIPPED = frozenset({"script", "style", "head", "template", "noembed"})


@dataclass(slots=True)
class _Exit:
    """What ends when an element ends."""

    kind: str
    attributes: dict[str, str | None] = field(default_factory=dict)


_BOUNDARY = _Exit("block")
_SPACE = Piece("text", " ")


def to_markdown(tree: LexborHTMLParser, kept: Collection[int]) -> str:
    """The page as Markdown; of its text only the nodes whose `mem_id` is in `kept`.

    A picture gives its alternative text where it stands beside kept text, a formula its TeX where
    it holds kept text or stands beside or between. Links go to http, https, mailto or relative
    targets; others are plain text. Linear in the size of the tree.
    """
    return _Writer(kept).write(tree)


class _Writer:
    """The state of one walk."""

    def __init__(self, kept: Collection[int]) -> None:
        self._kept = kept if isinstance(kept, set | frozenset | dict) else frozenset(kept)
        self._lines = Lines()
        self._run = Run()
        self._held: list[str] = []
        """Formulas and rules that are written if kept text follows before other text does."""
        self._heading = 0
        self._code: list[str] | None = None
        self._pre: list[str] | None = None
        self._table: Table | None = None
        self._styles: list[Piece] = []
        self._depths = {"**": 0, "*": 0}
        self._plain_math = 0

    def write(self, tree: LexborHTMLParser) -> str:
        """The Markdown of the whole tree."""
        node = tree.root
        path: list[tuple[LexborNode, _Exit | None]] = []
        while node is not None:
            descend, end = self._enter(node)
            child = node.first_child if descend else None
            if child is not None:
                path.append((node, end))
                node = child
                continue
            if end is not None:
                self._leave(end)
            following = node.next if path else None
            while following is None and path:
                node, end = path.pop()
                if end is not None:
                    self._leave(end)
                following = node.next if path else None
            node = following
        self._flush()
        return "\n".join(self._lines.out)

    def _enter(self, node: LexborNode) -> tuple[bool, _Exit | None]:
        """Whether to go into a node, and what ends with it."""
        tag = node.tag
        if tag == "-text":
            self._text(node)
            return False, None
        if tag is None or tag[0] in "-!":
            return False, None
        if tag == "br":
            self._break()
            return False, None
        if tag in ("script", "math", "img", "span", "div") and self._pre is None:
            special = self._special(node, tag)
            if special is not None:
                return special
        if tag in _SKIPPED:
            return False, None
        if tag in BLOCKS:
            return True, self._enter_block(node, tag)
        return True, self._enter_inline(node, tag)

    def _special(self, node: LexborNode, tag: str) -> tuple[bool, _Exit | None] | None:
        """Formulas and pictures; None for other elements."""
        attributes = node.attributes
        named = attributes.get("class")
        if tag in ("span", "div") and not (named and ("katex" in named or "MathJax" in named)):
            return None
        classes = frozenset((named or "").split())
        if is_formula_preview(tag, classes):
            return False, None
        if tag == "img":
            self._picture(node, attributes, classes)
            return False, None
        if self._plain_math:
            return None
        formula = formula_of(node, tag, attributes, classes)
        if formula is not None:
            self._formula(formula, self._holds_kept(node))
            return False, None
        if tag == "math" or "katex" in classes or "katex-display" in classes:
            self._plain_math += 1
            return True, _Exit("math")
        return None

    def _picture(
        self, node: LexborNode, attributes: dict[str, str | None], classes: frozenset[str]
    ) -> None:
        if "mwe-math-fallback-image-inline" in classes or self._code is not None:
            return
        formula = formula_of(node, "img", attributes, classes)
        if formula is not None:
            self._formula(formula, False)
        elif alt := attributes.get("alt"):
            self._run.pieces.append(Piece("weak", f" {alt[:LONGEST_ALT]} "))

    def _holds_kept(self, node: LexborNode) -> bool:
        return any(
            inner.mem_id in self._kept
            for inner in node.traverse(include_text=True, skip_empty=True)
            if inner.is_text_node
        )

    def _formula(self, formula: Formula, kept: bool) -> None:
        apart = formula.display and not self._heading and self._table is None
        if apart:
            self._flush()
        if self._code is not None:
            self._end_code()
        self._run.pieces.append(Piece("raw", formula.markdown))
        self._run.formula = True
        self._run.kept = self._run.kept or kept
        if apart:
            self._flush()

    def _text(self, node: LexborNode) -> None:
        text = node.text_content or ""
        blank = not text.strip(" \t\n\r\f")
        if blank and not self._run.pieces and self._pre is None and self._code is None:
            return
        if not blank and node.mem_id not in self._kept:
            self._held = []
            return
        if self._pre is not None:
            self._pre.append(text)
        elif self._code is not None:
            self._code.append(text)
        else:
            self._run.pieces.append(Piece("text", text))
        if not blank:
            self._run.kept = True
        if len(self._run.pieces) > MOST_PIECES and self._table is None:
            self._write_run()

    def _break(self) -> None:
        if self._pre is not None:
            self._pre.append("\n")
        elif self._code is not None:
            self._code.append(" ")
        else:
            self._run.pieces.append(Piece("break"))

    def _boundary(self) -> None:
        """Where a block begins or ends."""
        if self._pre is not None:
            if self._pre and not self._pre[-1].endswith("\n"):
                self._pre.append("\n")
        elif self._heading or self._table is not None:
            self._run.pieces.append(_SPACE)
        else:
            self._flush()

    def _enter_block(self, node: LexborNode, tag: str) -> _Exit | None:
        if self._heading and tag in HEADING_ENDS:
            self._flush()
            self._heading = 0
        self._boundary()
        if self._pre is not None:
            return _BOUNDARY
        if self._table is not None:
            return self._enter_in_table(node, tag)
        if tag in HEADINGS:
            self._heading = HEADINGS[tag]
            return _Exit("heading")
        if tag in ("ul", "ol", "menu", "dir"):
            self._lines.open_list(
                node.attributes.get("start") if tag == "ol" else None, tag == "ol"
            )
            return _Exit("list")
        if tag == "li":
            return _Exit("container") if self._lines.open_item() else _BOUNDARY
        if tag == "blockquote":
            return _Exit("container") if self._lines.open_quote() else _BOUNDARY
        if tag in ("pre", "listing", "xmp"):
            self._pre = []
            return _Exit("pre", {"language": code_language(node)})
        if tag == "table" and is_data_table(node, self._kept):
            self._table = Table()
            return _Exit("table")
        if tag == "hr" and self._lines.out and self._held[-1:] != ["___"]:
            self._held.append("___")
        return _BOUNDARY

    def _enter_in_table(self, node: LexborNode, tag: str) -> _Exit | None:
        assert self._table is not None
        if tag == "tr":
            self._table.start_row()
        if tag in ("td", "th"):
            self._renew()
            return _Exit("cell", node.attributes)
        if tag == "caption":
            self._renew()
            return _Exit("caption")
        return _BOUNDARY

    def _enter_inline(self, node: LexborNode, tag: str) -> _Exit | None:
        if self._pre is not None or self._code is not None:
            return None
        if tag in _STYLES:
            style = _STYLES[tag]
            if self._heading and style == "**":
                return None
            self._depths[style] += 1
            if self._depths[style] == 1:
                self._open(Piece("open", style))
                return _Exit(style)
            return _Exit(f"inner{style}")
        if tag == "a" and not any(style.target is not None for style in self._styles):
            target = link_target(node.attributes.get("href"))
            if target is not None:
                self._open(Piece("open", "", target))
                return _Exit("style")
        if tag in _CODE:
            self._code = []
            return _Exit("code")
        return None

    def _leave(self, end: _Exit) -> None:
        match end.kind:
            case "block" | "caption":
                self._boundary()
                if end.kind == "caption":
                    self._write_run()
            case "style":
                self._close()
            case "**" | "*" | "inner**" | "inner*":
                style = end.kind.removeprefix("inner")
                self._depths[style] -= 1
                if end.kind == style:
                    self._close()
            case "code":
                self._end_code()
                self._code = None
            case "math":
                self._plain_math -= 1
            case "cell":
                self._leave_cell(end)
            case "heading":
                if self._heading:
                    self._flush()
                    self._heading = 0
            case "pre":
                self._leave_pre(end)
            case "table":
                self._leave_table()
            case _:
                self._flush()
                if end.kind == "container":
                    self._lines.close_container()
                else:
                    self._lines.close_list()

    def _leave_cell(self, end: _Exit) -> None:
        assert self._table is not None
        run = self._finished()
        lines = render(run, breaks=False) if run.kept else []
        self._table.add(lines[0][0] if lines else "", end.attributes)

    def _leave_table(self) -> None:
        table, self._table = self._table, None
        self._renew()
        if table is not None and (lines := table.lines()):
            self._write_held()
            self._lines.block(lines)

    def _leave_pre(self, end: _Exit) -> None:
        text, self._pre = "".join(self._pre or ()), None
        kept, self._run.kept = self._run.kept, False
        if not kept:
            return
        self._write_held()
        mark = fence(text)
        body = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n").split("\n")
        self._lines.block([mark + (end.attributes["language"] or ""), *body, mark])

    def _open(self, piece: Piece) -> None:
        self._styles.append(piece)
        self._run.pieces.append(piece)

    def _close(self) -> None:
        piece = self._styles.pop()
        self._run.pieces.append(Piece("close", piece.text, piece.target))

    def _end_code(self) -> None:
        text = "".join(self._code or ())
        if text:
            self._run.pieces.append(Piece("code", text))
        if self._code is not None:
            self._code = []

    def _finished(self) -> Run:
        """The run, with what is open in it closed; a new one begins."""
        if self._code is not None:
            self._end_code()
        run = self._run
        run.pieces += [Piece("close", p.text, p.target) for p in reversed(self._styles)]
        self._renew()
        return run

    def _renew(self) -> None:
        self._run = Run(list(self._styles))

    def _flush(self) -> None:
        """End a paragraph or heading, unless a table or code takes the text."""
        if self._table is None and self._pre is None:
            self._write_run()

    def _write_run(self) -> None:
        if len(self._run.pieces) == len(self._styles) and self._code is None:
            return
        run = self._finished()
        if not run.kept:
            if run.formula and self._lines.out:
                self._held += [piece.text for piece in run.pieces if piece.kind == "raw"]
            return
        self._write_held()
        for lines in render(run, breaks=not self._heading):
            if self._heading:
                text = lines[0][:-1] + "\\#" if lines[0].endswith("#") else lines[0]
                self._lines.block([f"{'#' * self._heading} {text}"])
            else:
                lines = [guarded(line) for line in lines]
                lines[:-1] = [f"{line}  " for line in lines[:-1]]
                self._lines.block(lines, paragraph=True)

    def _write_held(self) -> None:
        for line in self._held:
            self._lines.between(line)
        self._held = []
