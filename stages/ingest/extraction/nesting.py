"""How deep a page can nest, and how many nodes it can become, known before it is parsed.

Building a tree costs time quadratic in its depth (50,000 nested `div` take seconds) and in the
attributes of a tag (40,000 take two seconds), and formatting elements that are never closed are
opened again in each paragraph (the "active formatting elements" of the HTML standard, 13.2.4.3):
30 kB can become millions of nodes. All show in the sequence of the tags, which is read here in time
linear in the page.

An end tag counts for the nearest open element of its name. That is what parsers do but for scopes
(an end tag in a table cell does not close what is open outside), so a page made for it can pass
with a greater depth than the limit; what it then costs is bounded by the limit on nodes
after the parse and by the clock of whoever runs this.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np


class PageTooLarge(Exception):
    """A page over a budget: `reason` is `too_many_nodes` or `too_deep`, `detail` a few words."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[type[PageTooLarge], tuple[str, str]]:
        return type(self), (self.reason, self.detail)


_REST_OF_TAG: Final = r"[^>\"']*+(?:(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))[^>\"']*+)*+(?:>|\Z)"
# Raw text with its start tag, a whole tag with its quoted attributes, or a comment; each may also
# be cut off by the end of the page, so that no text is read twice.
_TOKEN: Final = re.compile(
    r"<(?:(script|style|textarea|title|xmp|iframe|noembed|noframes)(?=[\s/>])"
    + _REST_OF_TAG
    + r"[^<]*+(?:<(?!/\1)[^<]*+)*+"
    + r"|(/?[a-z][a-z0-9:_-]*+)"
    + _REST_OF_TAG
    + r"|!--[^-]*+(?:-(?!->)[^-]*+)*+)",
    re.IGNORECASE,
)
_VOID: Final = frozenset(
    [
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param",
        "source", "track", "wbr", "basefont", "bgsound", "frame", "keygen", "image",
    ]
)  # fmt: skip
# Elements that the next one of their kind closes: they nest only inside elements that count.
_CLOSED_BY_THE_NEXT: Final = frozenset(
    [
        "p", "li", "dt", "dd", "option", "optgroup", "tr", "td", "th", "thead", "tbody", "tfoot",
        "colgroup", "caption", "rb", "rt", "rp", "rtc", "a", "nobr", "html", "head", "body",
    ]
)  # fmt: skip
_FORMATTING: Final = frozenset(
    ["b", "big", "code", "em", "font", "i", "s", "small", "strike", "strong", "tt", "u"]
)


_UNCOUNTED: Final = _VOID | _CLOSED_BY_THE_NEXT
_UNCOUNTED_TAGS: Final = _UNCOUNTED | {f"/{name}" for name in _UNCOUNTED}
_FORMATTING_TAGS: Final = _FORMATTING | {f"/{name}" for name in _FORMATTING}

# Spelt out: ten times faster than the flag that ignores case.
_FORMATTING_START: Final = re.compile(
    "<(?=[bBcCeEfFiIsStTuU])(?:{})[\\s/][^>]{{0,200}}".format(
        "|".join(
            "".join(f"[{letter}{letter.upper()}]" for letter in name)
            for name in sorted(_FORMATTING)
        )
    )
)
_STRIDE: Final = 1_000
"""A tag with so few characters, or twice as many, has too few attributes to matter."""
_TAG: Final = re.compile("<[a-z]" + _REST_OF_TAG, re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(r"[\s/]++[^\s/>=]")
_VALUE: Final = re.compile(r"\"[^\"]*+\"|'[^']*+'")
_MOST_COMPARED: Final = 200_000_000
"""Pairs of attributes of a tag that a parser compares: a quarter of a second."""
_SHALLOW: Final = 8_000
"""Tags of a page that costs little however it nests: building its tree takes milliseconds."""


def check_nesting(html: str, max_depth: int, max_nodes: int) -> None:
    """Raise `PageTooLarge` for a page that nests deeper or unfolds into more nodes than allowed.

    So it is for one whose tags have attributes beyond measure.
    """
    tags = html.count("<")
    _check_attributes(html)
    if tags <= _SHALLOW and tags**2 <= 4 * max_nodes:
        return  # at worst half of them are formatting that the other half opens again
    formatting = 3 * _distinct_formatting(html)
    if tags <= _SHALLOW and formatting * tags <= max_nodes:
        return
    names = [name.lower() for _, name in _TOKEN.findall(html) if name]
    depth = _most_open([name for name in names if name not in _UNCOUNTED_TAGS])
    if depth > max_depth:
        raise PageTooLarge("too_deep", f"elements are nested {depth:,} deep")
    unclosed = _most_open([name for name in names if name in _FORMATTING_TAGS])
    nodes = min(unclosed, formatting) * len(names)
    if nodes > max_nodes:
        raise PageTooLarge("too_many_nodes", f"unclosed formatting can unfold to {nodes:,}")


def _check_attributes(html: str) -> None:
    compared = place = 0
    while place < len(html):
        if html.find("<", place, place + _STRIDE) >= 0:
            place += _STRIDE
            continue
        # A tag longer than two strides holds one in which no other begins.
        start = html.rfind("<", max(place - _STRIDE, 0), place)
        tag_end = html.find(">", start, place)
        place = html.find("<", place + _STRIDE) % (len(html) + 1)
        if start < 0 or (tag_end > 0 and not _is_quoted(html, start, tag_end)):
            continue  # A short tag with a long text after it.
        tag = _TAG.match(html, start)
        compared += len(_ATTRIBUTE.findall(_VALUE.sub("", tag[0]))) ** 2 if tag else 0
        if compared > _MOST_COMPARED:
            raise PageTooLarge("too_many_nodes", "a tag has tens of thousands of attributes")


def _is_quoted(html: str, start: int, place: int) -> bool:
    """Whether a quotation mark may be open between the start of a tag and a place in it."""
    marks = html.count('"', start, place), html.count("'", start, place)
    return marks[0] % 2 == 1 or marks[1] % 2 == 1


def _most_open(names: list[str]) -> int:
    """The most elements open at once; an end tag without its element counts nothing."""
    if not names:
        return 0
    ends = np.array([name[0] == "/" for name in names])
    numbers: dict[str, int] = {}
    code = np.array([numbers.setdefault(name.lstrip("/"), len(numbers)) for name in names])
    step = np.where(ends, -1, 1)
    order = np.argsort(code, kind="stable")
    steps, groups = step[order], code[order]
    balance = np.cumsum(steps)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    before = np.zeros(len(numbers), np.int64)
    before[1:] = balance[starts[1:] - 1]
    balance -= before[groups]
    # the lowest balance so far of each name, from 0: what it falls by are end tags of nothing
    offset = groups * (2 * len(names) + 2)
    lowest = np.minimum.accumulate(np.minimum(balance, 0) - offset) + offset
    stray = -np.diff(lowest, prepend=0)
    stray[starts] = -lowest[starts]
    corrected = np.empty_like(steps)
    corrected[order] = steps + stray
    return int(np.cumsum(corrected).max())


def _distinct_formatting(html: str) -> int:
    """Different formatting start tags; the standard keeps at most three alike open."""
    return len(set(_FORMATTING_START.findall(html)))
