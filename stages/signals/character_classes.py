"""What Python and Unicode say about each character, as tables that compiled code reads.

A code point is looked up when a text first holds it: a table of all of them would take seconds to
make in every process.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.text.characters import all_known
from stages.text.punctuation import TERMINAL_PUNCTUATION

KNOWN = 1
SPACE = 2
"""White space: `str.isspace`, which is `\\s` and what `str.split` and `str.strip` take away."""
WORD = 4
"""`\\w`: `str.isalnum` or an underscore."""
ALPHABETIC = 8
"""`str.isalpha`."""
ALPHANUMERIC = 16
"""`str.isalnum`."""
UPPER = 32
"""`str.isupper` of the one character."""
NOT_UPPER = 64
"""Lower or title case: a word that holds it is not `str.isupper`."""
SPECIAL = 128
"""Neither a letter, a number, a mark (categories L, N, M) nor white space."""
TERMINAL = 256
"""One of `TERMINAL_PUNCTUATION`."""
IGNORABLE = 512
"""Unicode's Case_Ignorable, which the choice between the two small sigmas looks past."""
CASED = 1024
"""Cased and not case-ignorable."""

CODE_BITS, NUMERIC = 21, 1 << 29
CODE_MASK = (1 << CODE_BITS) - 1
"""An entry of `folded`: code point, combining class above it, and whether it is numeric."""

_CODE_POINTS = 0x110000
_PRESENT = 1 << 30


class Characters(NamedTuple):
    """Two tables by code point, right for the characters that were asked for.

    `classes` holds the bits above. A row of `folded` holds the canonical decomposition (NFD) of
    the character in lower case: up to four entries, zero after the last.
    """

    classes: NDArray[np.uint16]
    folded: NDArray[np.uint32]


_TABLES = Characters(
    np.zeros(_CODE_POINTS, dtype=np.uint16), np.zeros((_CODE_POINTS, 4), dtype=np.uint32)
)


def characters(codes: NDArray[np.uint32]) -> Characters:
    """The tables, complete for all of `codes`."""
    if not all_known(codes, _TABLES.classes):
        seen = np.zeros(_CODE_POINTS, dtype=np.bool_)
        seen[codes] = True
        for code in np.flatnonzero(seen & (_TABLES.classes == 0)).tolist():
            _learn(code)
    return _TABLES


def _learn(code: int) -> None:
    char = chr(code)
    for place, part in enumerate(unicodedata.normalize("NFD", char.lower())):
        entry = ord(part) | unicodedata.combining(part) << CODE_BITS | _PRESENT
        _TABLES.folded[code, place] = entry | (NUMERIC if part.isnumeric() else 0)
    # Python tells neither property, but its lower case of a sigma depends on both.
    cased = f"{char}Σ".lower().endswith("ς")
    ignorable = not cased and f"A{char}Σ".lower().endswith("ς")
    _TABLES.classes[code] = (
        KNOWN
        | SPACE * char.isspace()
        | WORD * (char.isalnum() or char == "_")
        | ALPHABETIC * char.isalpha()
        | ALPHANUMERIC * char.isalnum()
        | UPPER * char.isupper()
        | NOT_UPPER * (char.islower() or (char.istitle() and not char.isupper()))
        | SPECIAL * (not char.isspace() and unicodedata.category(char)[0] not in "LNM")
        | TERMINAL * (char in TERMINAL_PUNCTUATION)
        | IGNORABLE * ignorable
        | CASED * cased
    )
