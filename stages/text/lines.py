"""Lines and paragraphs in the senses that published rules use, and repetition among them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LINE_BREAKS = re.compile(r"\n+")
_PARAGRAPH_BREAKS = re.compile(r"\n{2,}")


def lines(text: str) -> list[str]:
    """Pieces between runs of line feeds; an empty one where the text begins or ends with a run."""
    return _LINE_BREAKS.split(text) if "\n\n" in text else text.split("\n")


def filled_lines(text: str) -> list[str]:
    """Lines that are not blank."""
    return [line for line in text.split("\n") if line and not line.isspace()]


def paragraphs(text: str) -> list[str]:
    """Pieces of the stripped text between blank lines."""
    stripped = text.strip()
    return _PARAGRAPH_BREAKS.split(stripped) if "\n\n" in stripped else [stripped]


def extra_copies(pieces: Sequence[str]) -> tuple[int, int]:
    """How many pieces repeat an earlier one, and the characters of those: the first copy is free.

    datatrove counts so; dolma and DCLM count the first copy too.
    """
    if len(set(pieces)) == len(pieces):
        return 0, 0
    seen: set[str] = set()
    copies = characters = 0
    for piece in pieces:
        if piece in seen:
            copies += 1
            characters += len(piece)
        else:
            seen.add(piece)
    return copies, characters
