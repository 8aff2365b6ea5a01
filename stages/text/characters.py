"""Characters: bits of each code point, punctuation, and the writing system of a text.

The published rules share two sets: CCNet's table (Wenzek et al. 2020, `cc_net/text_normalizer.py`,
with the control characters that it strips) and Unicode's Sentence_Terminal property. datatrove's
Gopher rules call a token a symbol when all its characters are in their union, its FineWeb rules
look for the second at the end of lines; both sets equal its sets but for one character: CCNet's
table lists the full-width digit one, a slip of 2019 copied since. A digit is no punctuation here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import regex
from numpy.typing import NDArray

Table = NDArray[np.uint16]
Flags = Callable[[str], Iterable[tuple[int, Iterable[int]]]]
"""Given distinct characters, yields (bit, places of the characters that have it)."""

KNOWN = 1 << 15
"""Set for every code point that was looked up, so that it differs from one that was not."""


class CharacterTable:
    """[0x110000] bits of each code point, looked up when it is first met.

    An entry depends on its code point alone, never on earlier texts.
    """

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self._bits: Table = np.zeros(0x110000, dtype=np.uint16)

    def covering(self, codes: NDArray[np.uint32]) -> Table:
        """The table, in which at least all of `codes` are known."""
        unknown = codes[self._bits[codes] == 0]
        if len(unknown):
            self._learn(np.unique(unknown))
        return self._bits

    def _learn(self, codes: NDArray[np.uint32]) -> None:
        chars = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
        self._bits[codes] = KNOWN
        for bit, places in self._flags(chars):
            self._bits[codes[np.fromiter(places, dtype=np.intp)]] |= np.uint16(bit)


def code_points(text: str) -> NDArray[np.uint32]:
    """[len(text)] the code points of a text, lone surrogates included."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _parse_ranges(ranges: str) -> frozenset[str]:
    """The characters of hexadecimal code points and ranges, e.g. `21 2e-2f`."""
    chars: set[str] = set()
    for item in ranges.split():
        first, _, last = item.partition("-")
        chars.update(map(chr, range(int(first, 16), int(last or first, 16) + 1)))
    return frozenset(chars)


CONTROLS = _parse_ranges("0-8 b-1f 7f-9f")
"""C0 and C1 control characters, without tab and line feed."""

PUNCTUATION = CONTROLS | frozenset(
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~´–—’“”„…«»∶━►、。〈〉《》「」【】！％（），．：；？～"
)
"""CCNet's table: ASCII, typographic, CJK and full-width punctuation, and the controls."""

TERMINAL_PUNCTUATION = _parse_ranges(
    "21 2e 3f 589 61d-61f 6d4 700-702 7f9 837 839 83d-83e 964-965 104a-104b 1362 1367-1368 "
    "166e 1735-1736 17d4-17d6 17d9-17da 1803 1809 1944-1945 1aa8-1aab 1b5a-1b5b 1b5e-1b5f "
    "1b7d-1b7e 1c3b-1c3c 1c7e-1c7f 203c-203d 2047-2049 2e2e 2e3c 2e53-2e54 3002 a4ff "
    "a60e-a60f a6f3 a6f7 a876-a877 a8ce-a8cf a92f a9c8-a9c9 aa5d-aa5f aaf0-aaf1 abeb fe52 "
    "fe56-fe57 ff01 ff0e ff1f ff61 10a56-10a57 10f55-10f59 10f86-10f89 11047-11048 "
    "110be-110c1 11141-11143 111c5-111c6 111cd 111de-111df 11238-11239 1123b-1123c 112a9 "
    "1144b-1144c 115c2-115c3 115c9-115d7 11641-11642 1173c-1173e 11944 11946 11a42-11a43 "
    "11a9b-11a9c 11c41-11c42 11ef7-11ef8 11f43-11f44 16a6e-16a6f 16af5 16b37-16b38 16b44 "
    "16e98 1bc9f 1da88 "
)
"""Marks that end a sentence: Sentence_Terminal of Unicode 15 and three Khmer signs."""

SYMBOLS = PUNCTUATION | TERMINAL_PUNCTUATION
"""A token made of these alone is a symbol, not a word, to the Gopher rules."""


SCRIPTS = (
    *("Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Han", "Hiragana", "Katakana", "Hangul"),
    *("Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada"),
    *("Malayalam", "Sinhala", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Georgian", "Armenian"),
    *("Ethiopic", "Cherokee", "Mongolian", "Syriac", "Thaana", "Canadian_Aboriginal"),
)
"""Scripts that are distinguished, by their Unicode names; letters of any other are "Other"."""

_PATTERNS = [regex.compile(rf"\p{{Script={name}}}") for name in SCRIPTS]
_LETTER = regex.compile(r"[\p{L}\p{M}]")
_ASCII_LETTER = regex.compile(r"[A-Za-z]")
_OTHER, _NO_LETTER, _UNKNOWN = len(SCRIPTS), len(SCRIPTS) + 1, 255

_scripts = np.full(0x110000, _UNKNOWN, dtype=np.uint8)
"""Script of each code point, filled in when it is first met."""


def find_main_script(text: str) -> tuple[str | None, float]:
    """The script of most letters and marks of `text`, and its share of them.

    Ties go to the script named first in `SCRIPTS`; a text without letters gives (None, 0.0).
    """
    if text.isascii():
        return ("Latin", 1.0) if _ASCII_LETTER.search(text) else (None, 0.0)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    scripts = _scripts[codes]
    if scripts.max() == _UNKNOWN:
        _learn_scripts(np.unique(codes[scripts == _UNKNOWN]))
        scripts = _scripts[codes]
    counts = np.bincount(scripts, minlength=_NO_LETTER)[:_NO_LETTER]
    letters = int(counts.sum())
    if not letters:
        return None, 0.0
    most = int(counts.argmax())
    return (*SCRIPTS, "Other")[most], int(counts[most]) / letters


def _learn_scripts(codes: NDArray[np.uint32]) -> None:
    for code in codes.tolist():
        char = chr(code)
        if not _LETTER.match(char):
            _scripts[code] = _NO_LETTER
            continue
        matches = (i for i, pattern in enumerate(_PATTERNS) if pattern.match(char))
        _scripts[code] = next(matches, _OTHER)
