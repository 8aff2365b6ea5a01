"""Which writing system a text is in."""

from __future__ import annotations

import numpy as np
import regex
from numpy.typing import NDArray

SCRIPTS = (
    *("Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Han", "Hiragana", "Katakana", "Hangul"),
    *("Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada"),
    *("Malayalam", "Sinhala", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Georgian", "Armenian"),
    *("Ethiopic", "Cherokee", "Mongolian", "Syriac", "Thaana", "Canadian_Aboriginal"),
)
"""Scripts told apart, by their Unicode names; letters of any other are "Other"."""

_PATTERNS = [regex.compile(rf"\p{{Script={name}}}") for name in SCRIPTS]
_LETTER = regex.compile(r"[\p{L}\p{M}]")
_ASCII_LETTER = regex.compile(r"[A-Za-z]")
_OTHER, _NO_LETTER, _UNKNOWN = len(SCRIPTS), len(SCRIPTS) + 1, 255

_script_of = np.full(0x110000, _UNKNOWN, dtype=np.uint8)
"""Script of each code point, filled in when it is first met."""


def main_script(text: str) -> tuple[str | None, float]:
    """The script of most letters and marks of `text`, and its share of them.

    Ties go to the script named first in `SCRIPTS`; a text without letters gives (None, 0.0).
    """
    if text.isascii():
        return ("Latin", 1.0) if _ASCII_LETTER.search(text) else (None, 0.0)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    scripts = _script_of[codes]
    if scripts.max() == _UNKNOWN:
        _learn(np.unique(codes[scripts == _UNKNOWN]))
        scripts = _script_of[codes]
    counts = np.bincount(scripts, minlength=_NO_LETTER)[:_NO_LETTER]
    letters = int(counts.sum())
    if not letters:
        return None, 0.0
    most = int(counts.argmax())
    return (*SCRIPTS, "Other")[most], int(counts[most]) / letters


def _learn(codes: NDArray[np.uint32]) -> None:
    for code in codes.tolist():
        char = chr(code)
        if not _LETTER.match(char):
            _script_of[code] = _NO_LETTER
            continue
        matches = (i for i, pattern in enumerate(_PATTERNS) if pattern.match(char))
        _script_of[code] = next(matches, _OTHER)
