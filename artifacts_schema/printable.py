"""Text from outside, made safe to print: what a terminal would obey is shown as an escape.

Control characters move the cursor, change titles and colours, and ring; bidirectional overrides
and invisible characters make a line read as another one.
"""

from __future__ import annotations

import logging
import re

_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0 (ESC, BEL, newline, tab), DEL and C1
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # marks, overrides
    "\ud800-\udfff\U000e0000-\U000e007f]"  # lone surrogates (bytes that are not UTF-8), tags
)
_CONTINUED = "  "


def printable(text: str) -> str:
    """`text` on one line: newlines, tabs and whatever a terminal obeys become Python's escapes."""
    return _OBEYED.sub(_escape, text)


def printable_text(text: str) -> str:
    """`text` with its own newlines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def printable_lines(text: str) -> str:
    """`text` with its own newlines, each further line indented, so that none can pass for ours."""
    first, *rest = (printable(line.replace("\t", " ")) for line in text.split("\n"))
    return "\n".join(
        [first, *(line if line.startswith(_CONTINUED) else _CONTINUED + line for line in rest)]
    )


def printable_json(text: str) -> str:
    """JSON text whose strings hold what a terminal obeys as JSON's own escapes."""
    return re.sub(f"(?!\n){_OBEYED.pattern}", _escape_json, text)


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can hold the text: a name of other bytes reaches Python as surrogates."""
    return text.isascii() or re.search("[\ud800-\udfff]", text) is None


class OneLine(logging.Formatter):
    """A formatter under which no message can pass for another line of the log."""

    def format(self, record: logging.LogRecord) -> str:
        """The record; the further lines of a message or traceback are indented."""
        return printable_lines(super().format(record))


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def _escape_json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
