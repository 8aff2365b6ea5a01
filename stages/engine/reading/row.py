"""One row of an input file, its limits and faults, and field names that a reader does not know."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import IO, Any, Protocol

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
PARQUET, ARROW = b"PAR1", b"ARROW1\0\0"
FREE_EXPANSION = 64 << 20
"""Decompressed bytes that any file may have, however small it is."""
MAX_EXPANSION = 200
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Readable(Protocol):
    """What rows are read from: `stages.engine.sources.SourceFile`, or a stand-in in a test."""

    @property
    def name(self) -> str:
        """Name of the file; its ending gives the format."""

    def open(self) -> IO[bytes]:
        """Open for reading, seekable."""

    @property
    def bytes(self) -> int:
        """Size of the file."""


@dataclass(frozen=True, slots=True)
class RowLimits:
    """Budgets in bytes, so that the same file gives the same rows on every machine."""

    row: int = 10 << 20
    """Longest line that is read."""
    file: int = 512 << 20
    """Longest JSON text that is one value (an array of rows)."""
    expansion: int = MAX_EXPANSION
    """Decompressed over compressed bytes above which a file is refused as a bomb."""
    values: int = 50_000_000
    """Most values of a JSON text that is one value: a value of 3 bytes may take 70 in memory."""
    undecodable_share: float = 0.0
    """Bytes of JSON that are no UTF-8, over characters, up to which each becomes U+FFFD.

    Of a line, or of a file that is one value.
    """


@dataclass(frozen=True, slots=True)
class Row:
    """One row or one fault.

    `record` is the byte offset of the line in the decompressed file; for a JSON array and for
    Parquet the ordinal of the row. `length` is the line's length in bytes (0 where rows have none).
    `repaired` counts the characters that were dropped or replaced in all strings of the row.
    """

    record: int
    length: int
    value: dict[str, Any] | None
    reason: str | None = None
    detail: str | None = None
    repaired: int = 0


class Damage(Exception):
    """Bytes that cannot be decompressed any further: a reason and a detail."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(reason, detail)


def scrub(text: str) -> tuple[str, int]:
    """`text` without NUL (dropped) and lone surrogates (U+FFFD for each), and how many there were.

    Neither can be stored as UTF-8 that every reader takes.
    """
    with suppress(UnicodeEncodeError):
        text.encode()  # Many times faster than to search the text for surrogates.
        if "\0" not in text:
            return text, 0
    return _UNSTORABLE.subn(lambda match: "" if match[0] == "\0" else "\ufffd", text)


def scrub_value(value: Any) -> tuple[Any, int]:
    """`scrub` for every string inside a JSON value, keys included."""
    if isinstance(value, str):
        return scrub(value)
    repaired = 0
    if isinstance(value, list):
        items = []
        for item in value:
            item, count = scrub_value(item)
            items.append(item)
            repaired += count
        return items, repaired
    if isinstance(value, dict):
        fields = {}
        for key, item in value.items():
            key, key_count = scrub(key)
            fields[key], count = scrub_value(item)
            repaired += key_count + count
        return fields, repaired
    return value, 0


def scrubbed_row(record: int, length: int, value: dict[str, Any]) -> Row:
    """The row of a value whose strings may hold what cannot be stored."""
    value, repaired = scrub_value(value)
    return Row(record, length, value, repaired=repaired)


_SYNONYMS = {
    "text": ("content", "body", "text_content", "raw_content", "raw_text", "document", "markdown"),
    "messages": ("message", "conversation", "dialog", "dialogue", "chat", "turns", "history"),
    "prompt": ("query", "input", "user", "human", "request", "instructions"),
    "completion": ("target", "assistant", "reply", "answers", "responses", "gpt", "label"),
    "chosen": ("chosen_response", "preferred", "accepted", "winner", "better", "positive"),
    "rejected": ("rejected_response", "dispreferred", "loser", "worse", "negative"),
    "question": ("query", "stem", "sentence", "text", "instruction"),
    "choices": ("candidates", "answers", "alternatives", "answer_choices"),
}
"""Ingot's name → what data sets call the same thing, lower case, most likely first."""


def suggest_renames(fields: Mapping[str, Any], wanted: tuple[str, ...]) -> dict[str, str]:
    """Field of the data → the name of `wanted` that it may mean; each of both at most once."""
    free = {name.lower(): name for name in fields if name not in wanted}
    renames: dict[str, str] = {}
    for ours in wanted:
        if ours in fields:
            continue
        likely = [one for one in _SYNONYMS.get(ours, ()) if one in free]
        likely += get_close_matches(ours, sorted(free), n=1, cutoff=0.7)
        if likely:
            renames[free.pop(likely[0])] = ours
    return renames


def format_fields(fields: Mapping[str, Any]) -> str:
    """The names of a row's fields, for a message."""
    names = sorted(fields)
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"fields: {', '.join(name[:40] for name in names[:10])}{more}" if names else "no fields"


def rename_hint(fields: Mapping[str, Any], wanted: tuple[str, ...]) -> str:
    """What a row has, after the `rename` that may be meant."""
    renames = suggest_renames(fields, wanted)
    guess = ", ".join(f"{theirs}: {ours}" for theirs, ours in renames.items())
    meant = f"did you mean `rename: {{{guess}}}`? " if guess else ""
    return f"{meant}{format_fields(fields)}"
