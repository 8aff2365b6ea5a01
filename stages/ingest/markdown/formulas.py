"""Formulas of a page as TeX: MathML annotations, MathJax scripts, KaTeX, pictures with TeX as text.

Pages show a formula in two or three forms at once (MathML for screen readers, spans for the eye, a
picture). Here the TeX is read once, and the element that holds all forms is named, so that a reader
of the tree can leave it out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from selectolax.lexbor import LexborNode

LONGEST_FORMULA = 20_000
_STYLE = re.compile(r"\{\\(?:displaystyle|textstyle)\s*(.*)\}", re.DOTALL)
_DOLLAR = re.compile(r"(?<!\\)\$")
_PICTURES = frozenset({"tex", "latex", "mwe-math-fallback-image-inline"})


@dataclass(frozen=True, slots=True)
class Formula:
    """TeX on one line, and whether it stands in a line of its own."""

    tex: str
    display: bool

    @property
    def markdown(self) -> str:
        """The formula between dollar signs."""
        mark = "$$" if self.display else "$"
        return f"{mark}{self.tex}{mark}"


def formula_of(
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


def is_formula_preview(tag: str, classes: frozenset[str]) -> bool:
    """Whether an element is what MathJax 2 draws beside the script that holds the TeX."""
    return tag in ("span", "div") and any(
        name in ("MathJax", "MathJax_Preview", "MathJax_Display", "MathJax_SVG") for name in classes
    )


def _annotation(node: LexborNode) -> str | None:
    found = node.css_first('annotation[encoding="application/x-tex" i]')
    return found.text() if found is not None else None


def _formula(tex: str | None, display: bool) -> Formula | None:
    """A formula whose TeX can stand between dollar signs."""
    tex = " ".join((tex or "")[: LONGEST_FORMULA + 1].split())
    if found := _STYLE.fullmatch(tex):
        tex = found[1].strip()
    if tex[:2] == tex[-2:] == "$$" or (tex[:1] == tex[-1:] == "$" and len(tex) > 2):
        tex = tex.strip("$").strip()
    tex = tex.rstrip("\\") if tex.endswith("\\") and not tex.endswith("\\\\") else tex
    if not tex or len(tex) > LONGEST_FORMULA or _DOLLAR.search(tex):
        return None
    return Formula(tex, display)
