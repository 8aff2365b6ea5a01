"""What spaCy's English tokenizer must know of a character: its classes, as bits of a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from stages.text.characters import CharacterTable

DATA: dict[str, Any] = json.loads(
    Path(__file__).with_name("spacy_english.json").read_text(encoding="utf-8")
)
"""spaCy's tables, with their source, version and licence."""

(
    SPACE,
    PREFIX,
    SUFFIX,
    INFIX,
    ALPHA,
    LOWER,
    UPPER,
    QUOTE,
    BEFORE_STOP,
    HOST,
    WORD,
    DECIMAL,
    PLAIN,
) = (1 << bit for bit in range(13))
"""Bits of a character: white space; a prefix, suffix or infix on its own; in spaCy's classes
`ALPHA`, `ALPHA_LOWER`, `ALPHA_UPPER` and `CONCAT_QUOTES`; before a full stop that is a suffix; of a
host name; `\\w`; `\\d`; a letter that no rule splits at."""

_NAMED = {
    "prefix": PREFIX,
    "suffix": SUFFIX,
    "infix": INFIX,
    "alpha": ALPHA,
    "lower": LOWER,
    "upper": UPPER,
    "quote": QUOTE,
    "before_stop": BEFORE_STOP,
}


def _members(ranges: str) -> np.ndarray:
    """[0x110000] whether each code point is in ranges such as `21 2e-2f`."""
    members = np.zeros(0x110000, dtype=np.bool_)
    for item in ranges.split():
        first, _, last = item.partition("-")
        members[int(first, 16) : int(last or first, 16) + 1] = True
    return members


_classes = np.zeros(0x110000, dtype=np.uint16)
for _name, _bit in _NAMED.items():
    _classes[_members(DATA["classes"][_name])] |= np.uint16(_bit)


def _flags(chars: str) -> Iterator[tuple[int, Iterable[int]]]:
    bits = _classes[[ord(char) for char in chars]].tolist()
    for bit in _NAMED.values():
        yield bit, (place for place, given in enumerate(bits) if given & bit)
    yield SPACE, (place for place, char in enumerate(chars) if char.isspace())
    yield WORD, (place for place, char in enumerate(chars) if char.isalnum() or char == "_")
    yield DECIMAL, (place for place, char in enumerate(chars) if char.isdecimal())
    yield HOST, (place for place, char in enumerate(chars) if _in_host(char))
    splitting = PREFIX | SUFFIX | INFIX
    yield PLAIN, (p for p, given in enumerate(bits) if given & ALPHA and not given & splitting)


def _in_host(char: str) -> bool:
    return (char.isascii() and char.isalnum()) or "\u00a1" <= char <= "\uffff"


spacy_characters = CharacterTable(_flags)
"""The table of these bits."""
