"""The errors that a person sees, each with its exit code, and text made safe to print.

Every message says what was wrong, where, and what to do. Anything else that escapes is a bug in
Ingot and keeps its traceback. Text from outside is escaped before it is printed: control characters
move the cursor, change titles and colours, and ring; bidirectional overrides and invisible
characters make a line read as another one.
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


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def _escape_json(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_RESUME = 75
"""`EX_TEMPFAIL` of sysexits.h: what was finished is kept; run the same command to continue."""


class IngotError(Exception):
    """A run failed for a reason that a person can act on."""

    exit_code = EXIT_FAILED

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{printable(self.where)}: " if self.where else ""
        advice = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.what}{advice}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.hint)


def _rebuild(kind: type[IngotError], what: str, where: str | None, hint: str | None) -> IngotError:
    """Carry the three parts over a process border (exceptions lose keyword arguments there)."""
    return kind(what, where=where, hint=hint)


class UsageError(IngotError):
    """The request itself cannot be run: a wrong recipe, config, reference or command line."""

    exit_code = EXIT_USAGE


class InputError(IngotError):
    """An input is missing, unreadable, empty or not what its kind promises."""

    exit_code = EXIT_USAGE


class CorruptArtifact(InputError):
    """Bytes in the store are not the bytes that the manifest names."""


class StoreError(IngotError):
    """The store cannot be read or written: permission, space, a lost connection."""


class NotDeterministic(IngotError):
    """Two runs of one key gave different bytes where the stage promises equal ones."""


class NotConserved(IngotError):
    """Documents in and documents accounted for differ; nothing was committed."""


class LeaseLost(IngotError):
    """Another run took this key over; this one must not commit."""


class Stopped(IngotError):
    """Stopped on request; what is finished is kept and the same command continues."""

    exit_code = EXIT_RESUME

    def __init__(
        self,
        what: str = "stopped on request",
        *,
        where: str | None = None,
        hint: str | None = "run the same command to continue",
    ) -> None:
        super().__init__(what, where=where, hint=hint)
