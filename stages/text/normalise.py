"""Text as near-duplicates and n-gram overlap see it: without case, accents, marks and numbers.

The steps and their order are those of datatrove's `simplify_text`, with which FineWeb was
deduplicated (Penedo et al. 2024): lower case; each number becomes 0; punctuation becomes a space;
white space is squeezed; accents are dropped (NFD without Mn). Two characters behave better here:
the full-width digit one is a number, and the opening quote marks are punctuation like their closing
ones.
"""

from __future__ import annotations

import re
import unicodedata

import regex

from stages.text.punctuation import PUNCTUATION
from stages.text.words import words

_ASCII_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)?")
_NUMBER = regex.compile(r"\p{Nd}+(?:[.,،٫⎖⎗⎘]\p{Nd}+)?")
_ACCENTS = regex.compile(r"\p{Mn}+")
_TO_SPACE = dict.fromkeys(map(ord, PUNCTUATION | frozenset("‘‹›")), " ")


def normalise(text: str) -> str:
    """`text` in lower case, numbers as 0, punctuation as single spaces, accents removed, stripped.

    "Rose by 1.5 – très CHER!" becomes "rose by 0 tres cher". A number takes one decimal separator
    at most ("1,200.50" gives "0 0"). Any string is fine; the result may be empty.
    """
    lowered = text.lower()
    if lowered.isascii():
        numbered = _ASCII_NUMBER.sub("0", lowered)
        return " ".join(numbered.translate(_TO_SPACE).split())
    numbered = _NUMBER.sub("0", lowered)
    squeezed = " ".join(numbered.translate(_TO_SPACE).split())
    return " ".join(_ACCENTS.sub("", unicodedata.normalize("NFD", squeezed)).split())


def normalised_words(text: str) -> list[str]:
    """The words of the normalised text, `words(normalise(text))`."""
    plain = normalise(text)
    # ASCII without punctuation is letters, digits and spaces, which splitting at spaces divides
    # alike.
    return plain.split() if plain.isascii() else words(plain)
