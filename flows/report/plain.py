"""Text that nobody wrote for a reader of this page, made safe to look at.

What a browser or a terminal would obey without showing it (control characters, escape sequences,
marks that reverse the direction of text, invisible characters) is shown as `·`. Joiners stay: Indic
scripts, Persian and emoji need them.
"""

from __future__ import annotations

import re
import unicodedata

_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
PLACEHOLDER = "·"
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u20d0-\u20ff]"
_MARKS_IN_A_ROW = re.compile(f"({_MARK}{{3}}){_MARK}+")


def visible(text: str) -> str:
    """`text` with `·` for every character that would be obeyed instead of shown.

    Line ends become `\\n`; of a stack of combining marks three stay, so that none climbs over
    its neighbours.
    """
    text = _OBEYED.sub(PLACEHOLDER, text.replace("\r\n", "\n"))
    return _MARKS_IN_A_ROW.sub(r"\1", text)


def one_line(text: str, most: int) -> str:
    """The beginning of a text on one line, at most `most` characters."""
    line = " ".join(visible(text[: 4 * most + 64]).split())
    return line if len(line) <= most and len(text) <= 4 * most + 64 else line[: most - 1] + "…"


def cut(text: str, most: int) -> tuple[str, int]:
    """At most `most` characters of a text, and how many were left out."""
    return (text, 0) if len(text) <= most else (text[:most], len(text) - most)


def text_width(text: str, size: float) -> float:
    """About how wide a line of sans-serif text is, in the unit of `size`."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return size * (0.56 * (len(text) - wide) + 1.0 * wide)
